// What srun, sbatch and salloc ask lbf-report, and what they say of its answer.
#include <gmock/gmock.h>

#include <cstdlib>

extern "C" {
#include <slurm/slurm_errno.h>
}

#include "tests/unit/plugin/plugin_fixture.h"

namespace lbf::plugin::report_program_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(PluginTest, SallocEndsWithALineForEachProgramOfMpirun) {
  write_report("printf 'lbf: a: lbf-report -j 42.0\\nlbf: b: lbf-report -j 42.mpirun-0000001\\n'");
  ::setenv("SLURM_JOB_ID", "41", 1);
  start(S_CTX_ALLOCATOR);
  give_option("lbf-predict", nullptr);
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, IsEmpty()) << "sbatch in job 41";
  ::setenv("SLURM_JOB_ID", "42", 1);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre("lbf: b: lbf-report -j 42.mpirun-0000001"));
}

TEST_F(PluginTest, AQuietSrunEndsWithoutALine) {
  const std::string output = dir_ + "/report.txt";
  write_report("echo \"$@\" >" + output);
  start(S_CTX_LOCAL);
  give_option("lbf-predict", nullptr);
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  host().log_level = 2;  // srun has read -Q
  EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_EQ(contents(output), "");
  EXPECT_THAT(host().said, IsEmpty());
  give_option("lbf-overhead", "x");
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_EQ(host().said.size(), 1U) << "errors are said";
}

TEST_F(PluginTest, TheJobsCommentIsSrunsLastLine) {
  write_report("printf 'lbf: 4 nodes would take 8 s\\nlbf: another\\n'");
  ::setenv("SLURM_JOB_ID", "42", 1);
  host().submit_times[42] = 1700000000;
  const auto run = [&](const char* job_comment) {
    host().said.clear();
    start(S_CTX_LOCAL, {job_comment});
    give_option("lbf-predict", nullptr);
    for (const char* hook : {"init_post_opt", "local_user_init", "exit"}) EXPECT_EQ(call_hook(hook), ESPANK_SUCCESS);
  };
  run("job_comment=off");
  EXPECT_THAT(host().comments, IsEmpty());
  run("job_comment=on");
  EXPECT_EQ(host().comments[42], "lbf: 4 nodes would take 8 s");
  host().comments[42] = "lbf: of the srun before";
  run("job_comment=on");
  EXPECT_EQ(host().comments[42], "lbf: 4 nodes would take 8 s");
  host().comments[42] = "the user's own";
  run("job_comment=on");
  EXPECT_EQ(host().comments[42], "the user's own");
  EXPECT_THAT(host().said, IsEmpty());
  host().comments.erase(42);
  host().update_error = ESLURM_JOB_FINISHED;
  run("job_comment=on");
  EXPECT_THAT(host().said, ElementsAre(testing::StartsWith("lbf: the job's comment could not be set: ")));
  // A job of srun's own is over by now.
  ::unsetenv("SLURM_JOB_ID");
  run("job_comment=on");
  EXPECT_THAT(host().said, IsEmpty());
}

TEST_F(PluginTest, ANetworkThatLbfdDoesNotHaveIsRefusedAtSubmission) {
  write_report("[ \"$*\" = --networks ] && printf 'zero\\nlan\\n'");
  for (const spank_context_t context : {S_CTX_LOCAL, S_CTX_ALLOCATOR}) {
    host().said.clear();
    start(context);
    give_option("lbf-predict", nullptr);
    give_option("lbf-networks", "lan,nonet");
    EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
    EXPECT_THAT(host().said, ElementsAre("lbf: --lbf-networks=lan,nonet: lbfd has no network nonet, but zero and lan; "
                                         "the job runs without prediction"));
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    EXPECT_EQ(host().said.size(), 1U);
    host().said.clear();
    start(context);
    give_option("lbf-predict", nullptr);
    give_option("lbf-networks", "lan");
    EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
    EXPECT_THAT(host().said, IsEmpty());
  }
  // Where lbfd does not answer nothing is refused.
  for (const char* script : {"exit 1", "exec sleep 60", "true"}) {
    write_report(script);
    start(S_CTX_LOCAL);
    give_option("lbf-predict", nullptr);
    give_option("lbf-networks", "nonet");
    EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
    EXPECT_THAT(host().said, IsEmpty()) << script;
  }
}

}  // namespace
}  // namespace lbf::plugin::report_program_test
