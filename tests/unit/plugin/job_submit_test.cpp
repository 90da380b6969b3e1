// When the job was submitted: who asks slurmctld, and who hears it (docs/plugin.md, "A job number that comes again").
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/unit/plugin/plugin_fixture.h"

extern "C" {
#include <slurm/slurm.h>
}

namespace lbf::plugin::job_submit_test {
namespace {

using JobSubmitTest = PluginTest;

TEST_F(JobSubmitTest, SrunAsksOnceWhenTheJobWasSubmitted) {
  const std::string output = dir_ + "/report.txt";
  std::ofstream(dir_ + "/lbf-report") << "#!/bin/sh\necho \"$@\" >" << output << "\n";
  ::chmod((dir_ + "/lbf-report").c_str(), 0755);
  host().submit_times[42] = 1700000000;
  start(S_CTX_LOCAL);
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
  EXPECT_EQ(host().asked[42], 0) << "nobody wants a prediction";
  EXPECT_EQ(::getenv("SLURM_LBF_SUBMIT"), nullptr);

  start(S_CTX_LOCAL);
  give_option("lbf-predict", nullptr);
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
  EXPECT_STREQ(::getenv("SLURM_LBF_SUBMIT"), "42:1700000000");
  host().items[S_JOB_ID] = 43;  // the next component of a heterogeneous job
  EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
  EXPECT_STREQ(::getenv("SLURM_LBF_SUBMIT"), "42:1700000000");
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_EQ(contents(output), "--brief -j 43.3 --submit=1700000000\n");

  host().items[S_JOB_ID] = 42;
  ::setenv("SLURM_LBF_SUBMIT", "42:1700000001", 1);  // the batch step has asked
  start(S_CTX_LOCAL, {"default=on"});
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_EQ(contents(output), "--brief -j 42.3 --submit=1700000001\n");
  EXPECT_EQ(host().asked[42], 1);
  EXPECT_EQ(host().asked[43], 0);
  ::unsetenv("SLURM_LBF_SUBMIT");
}

TEST_F(JobSubmitTest, TheNodesKnowWhenTheJobWasSubmitted) {
  const auto submit_of_step = [this] {
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    const auto json = nlohmann::json::parse(contents(rings() + "/step.json"));
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    return json.value("submit", 0);
  };
  EXPECT_EQ(submit_of_step(), 0) << "an older srun";
  host().environment["SLURM_LBF_SUBMIT"] = "42:1700000000";
  EXPECT_EQ(submit_of_step(), 1700000000);
  for (const char* wrong : {"41:1700000000", "42", "42:", "x:1", "42:-1", ""}) {  // 41: this job was submitted from it
    host().environment["SLURM_LBF_SUBMIT"] = wrong;
    EXPECT_EQ(submit_of_step(), 0) << wrong;
  }
  // The second component of a heterogeneous job has the first one's.
  host().environment["SLURM_HET_SIZE"] = "2";
  host().environment["SLURM_JOB_ID_HET_GROUP_0"] = "41";
  host().environment["SLURM_JOB_ID_HET_GROUP_1"] = "42";
  host().environment["SLURM_LBF_SUBMIT"] = "41:1700000000";
  EXPECT_EQ(submit_of_step(), 1700000000);
  EXPECT_TRUE(host().asked.empty());
}

// srun -p p-a,p-b: SLURM_JOB_PARTITION is the list, and lbf-report -r p-a did not find the step.
TEST_F(JobSubmitTest, AStepIsOfThePartitionInWhichItsJobRuns) {
  const auto partition_of_step = [this](const char* submit) {
    host().environment["SLURM_JOB_PARTITION"] = "p-a,p-b";
    host().environment["SLURM_LBF_SUBMIT"] = submit;
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    const auto json = nlohmann::json::parse(contents(rings() + "/step.json"));
    EXPECT_EQ(json.value("submit", 0), std::string(submit).starts_with("42") ? 1700000000 : 0);
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    return json.value("partition", "");
  };
  EXPECT_EQ(partition_of_step("42:1700000000:p-b"), "p-b");
  EXPECT_EQ(partition_of_step("42:1700000000"), "p-a,p-b") << "an older srun";
  EXPECT_EQ(partition_of_step("41:1700000000:p-b"), "p-a,p-b") << "another job's";

  host().submit_times[42] = 1700000000;
  for (const auto& [known, text] : {std::pair("p-b", "42:1700000000:p-b"), std::pair("p-a,p-b", "42:1700000000")}) {
    host().partitions[42] = known;
    start(S_CTX_LOCAL, {"default=on"});
    EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
    EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
    EXPECT_STREQ(::getenv("SLURM_LBF_SUBMIT"), text);
    ::unsetenv("SLURM_LBF_SUBMIT");
  }
}

TEST_F(JobSubmitTest, TheBatchStepAsksForItsSruns) {
  const auto start_script = [this] {
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
    const auto asked = host().asked;
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    EXPECT_EQ(host().asked, asked) << "Slurm 26.05 ends the job";
    const auto json = nlohmann::json::parse(contents(rings() + "/step.json"));
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    return json.value("submit", 0);
  };
  host().items[S_JOB_STEPID] = SLURM_BATCH_SCRIPT;
  host().environment["SLURM_LBF_SUBMIT"] = "42:1";  // of an earlier job of that number, from which it was submitted
  host().submit_times[42] = 1700000000;
  EXPECT_EQ(start_script(), 1700000000);
  EXPECT_EQ(host().environment["SLURM_LBF_SUBMIT"], "42:1700000000");
  // Not known for this job: for none of its steps.
  host().submit_times.clear();
  EXPECT_EQ(start_script(), 0);
  EXPECT_EQ(host().environment["SLURM_LBF_SUBMIT"], "42:0");
  EXPECT_EQ(host().asked[42], 2);
  // An interactive step has it from the srun that started it.
  host().items[S_JOB_STEPID] = SLURM_INTERACTIVE_STEP;
  host().environment["SLURM_LBF_SUBMIT"] = "42:1700000000";
  EXPECT_EQ(start_script(), 1700000000);
  EXPECT_EQ(host().asked[42], 2);
}

}  // namespace
}  // namespace lbf::plugin::job_submit_test
