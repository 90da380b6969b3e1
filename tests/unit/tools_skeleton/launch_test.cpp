#include "tools/skeleton/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_directory.h"

namespace lbf::launch_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

tools::Launcher launcher(const std::string& text) {
  Result<tools::Launcher> parsed = tools::Launcher::parse(text);
  EXPECT_TRUE(parsed.ok());
  return *parsed;
}

TEST(Launcher, PutsRanksOnNodesThroughSrun) {
  const auto words = launcher("srun --mpi=pmix").words(4, {"node[1-2]", 0});
  ASSERT_TRUE(words.ok());
  EXPECT_THAT(*words, ElementsAre("srun", "--kill-on-bad-exit=1", "--mpi=pmix", "--nodes=2", "--ntasks=4",
                                  "--nodelist=node[1-2]", "--distribution=block"));
  EXPECT_THAT(*launcher("srun").words(4, {"", 2}),
              ElementsAre("srun", "--kill-on-bad-exit=1", "--nodes=2", "--ntasks=4", "--distribution=block"));
  EXPECT_THAT(*launcher("/opt/slurm/bin/srun").words(4, {}),
              ElementsAre("/opt/slurm/bin/srun", "--kill-on-bad-exit=1", "--ntasks=4", "--distribution=block"));
}

TEST(Launcher, PutsBlocksOnHostsThroughMpirun) {
  EXPECT_THAT(*launcher("mpirun --oversubscribe").words(5, {"a,b[1-2]", 0}),
              ElementsAre("mpirun", "--oversubscribe", "-n", "5", "-host", "a:2,b1:2,b2:1"));
  EXPECT_THAT(*launcher("mpirun").words(5, {}), ElementsAre("mpirun", "-n", "5"));
  EXPECT_THAT(launcher("mpirun").words(4, {"", 2}).error().message, HasSubstr("by name only"));
}

TEST(Launcher, RefusesWhatCannotBe) {
  EXPECT_FALSE(tools::Launcher::parse("").ok());
  EXPECT_THAT(tools::Launcher::parse("ssh node1").error().message, HasSubstr("--launcher ssh"));
  EXPECT_THAT(launcher("srun").words(2, {"node[1-3]", 0}).error().message, HasSubstr("3 nodes for 2 ranks"));
  EXPECT_FALSE(launcher("srun").words(2, {"node[1-", 0}).ok());
}

class Runs : public testing::Test {
 protected:
  std::string script(const std::string& name, const std::string& body) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << body;
    ::chmod(path.c_str(), 0755);
    return path;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(Runs, GiveTheTimeThatTheSkeletonPrints) {
  const std::string srun =
      script("srun", "echo noise; echo \"skeleton_s=1.25 factor=4 application_s=5.0 rate=$LBF_SKELETON_RATE\"\n");
  const Result<tools::SkeletonRun> run = tools::run_skeleton({srun}, "/bin/true", 2e8, 0);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_DOUBLE_EQ(run->seconds, 1.25);
  EXPECT_DOUBLE_EQ(run->rate, 2e8);
}

TEST_F(Runs, SayInOneLineWhatFailed) {
  const auto why = [&](const std::string& body) {
    const Result<tools::SkeletonRun> run = tools::run_skeleton({script("srun", body)}, "/bin/true", {}, 0);
    EXPECT_FALSE(run.ok());
    EXPECT_EQ(run.error().message.find('\n'), std::string::npos);
    return run.error().message;
  };
  EXPECT_THAT(why("echo '-----'; echo 'srun: error: node7 is down' >&2; echo more; exit 3\n"),
              testing::AllOf(HasSubstr("ended with status 3"), HasSubstr("srun: error: node7 is down")));
  EXPECT_THAT(why("echo '[n1:7] *** Process received signal ***'; echo '[n1:7] Signal: Segmentation fault (11)'; "
                  "exit 139\n"),
              HasSubstr("ended with status 139: [n1:7] Signal: Segmentation fault (11)"));
  EXPECT_THAT(why("echo 'a peer is gone'; echo 'srun: error: n1: task 0: Segmentation fault'; "
                  "echo 'srun: error: n2: task 1: Terminated'; exit 143\n"),
              HasSubstr("ended with status 143: srun: error: n1: task 0: Segmentation fault"));
  EXPECT_THAT(why("echo 'needs 4 ranks'; echo 'srun: error: n1: task 0: Exited with exit code 1'; "
                  "echo 'srun: error: n2: task 1: Terminated'; exit 143\n"),
              HasSubstr("ended with status 143: needs 4 ranks"));
  EXPECT_THAT(why("kill -9 $$\n"), HasSubstr("was ended by signal 9"));
  EXPECT_THAT(why("echo hello\n"), HasSubstr("did not say how long it ran: hello"));
  EXPECT_THAT(tools::run_skeleton({"/nowhere/srun"}, "/bin/true", {}, 0).error().message,
              HasSubstr("cannot run /nowhere/srun: No such file"));
}

TEST_F(Runs, AreEndedAfterTheirLimit) {
  const std::string srun = script("srun", "exec sleep 30\n");
  const auto start = std::chrono::steady_clock::now();
  const Result<tools::SkeletonRun> run = tools::run_skeleton({srun}, "/bin/true", {}, 0.2);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::kLimit);
  EXPECT_THAT(run.error().message, HasSubstr("did not end within 0.2 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(Runs, CompileASourceOnceUntilItChanges) {
  const std::string mpicc = script("mpicc", "echo x >>" + directory_.path() + "/compiled\ncp \"$2\" \"$4\"\n");
  const std::string source = directory_.path() + "/skel.c";
  std::ofstream(source) << "int main(void) { return 0; }\n";
  const auto compilations = [&] {
    std::ifstream in(directory_.path() + "/compiled");
    return std::count(std::istreambuf_iterator<char>(in), {}, 'x');
  };
  const Result<std::string> program = tools::program_of(source, mpicc);
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(*program, directory_.path() + "/skel");
  EXPECT_EQ(compilations(), 1);
  std::filesystem::last_write_time(*program, std::filesystem::last_write_time(source) + std::chrono::seconds(5));
  ASSERT_TRUE(tools::program_of(source, mpicc).ok());
  EXPECT_EQ(compilations(), 1);
  std::filesystem::last_write_time(source, std::filesystem::last_write_time(*program) + std::chrono::seconds(5));
  ASSERT_TRUE(tools::program_of(source, mpicc).ok());
  EXPECT_EQ(compilations(), 2);
}

TEST_F(Runs, SayThatThereIsNoCompiler) {
  const std::string source = directory_.path() + "/skel.c";
  std::ofstream(source) << "x\n";
  EXPECT_THAT(tools::program_of(source, "/nowhere/mpicc").error().message,
              HasSubstr("cannot run /nowhere/mpicc: No such file"));
  EXPECT_THAT(tools::program_of(source, script("mpicc", "echo 'skel.c:1: error: bad' >&2; exit 1\n")).error().message,
              HasSubstr("could not compile " + source + ": skel.c:1: error: bad"));
  EXPECT_THAT(tools::program_of(directory_.path() + "/other.c", "mpicc").error().message,
              HasSubstr("no such skeleton"));
}

}  // namespace
}  // namespace lbf::launch_test