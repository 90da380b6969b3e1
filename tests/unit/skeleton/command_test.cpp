// lbf-skeleton as users run it.
#include "tests/support/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "event/synth.h"
#include "event/text_trace.h"
#include "tests/support/temporary_directory.h"

namespace lbf::command_test {
namespace {

using testing::HasSubstr;

class SkeletonCommand : public testing::Test {
 protected:
  test::Outcome run(const std::string& arguments) {
    return test::run_command("cd " + dir_ + " && " + LBF_SKELETON + " " + arguments);
  }
  void write_ring(const std::string& name, std::uint64_t iterations, Rank ranks = 4) {
    write_pattern(name, "ring", iterations, ranks);
  }
  void write_pattern(const std::string& name, const std::string& pattern, std::uint64_t iterations, Rank ranks) {
    std::ofstream out(dir_ + "/" + name);
    TextTraceWriter writer(out, ranks);
    const auto add = [&](Rank rank, const Event& event) { return writer.add(rank, event); };
    ASSERT_TRUE(synthesize(pattern, ranks, iterations, add).ok());
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(dir_ + "/" + name) << text; }

  test::TemporaryDirectory directory_;
  const std::string dir_ = directory_.path();
};

TEST_F(SkeletonCommand, ShowsTheSignature) {
  write_ring("ring.lbf", 60);
  const test::Outcome text = run("show ring.lbf");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("{(E1:60), E2}"));
  EXPECT_THAT(text.out, HasSubstr("P1: MPI_Send(to (rank+1)%size, 1024 bytes, tag 0)"));
  const nlohmann::json json = nlohmann::json::parse(run("show --json ring.lbf").out);
  EXPECT_EQ(json["signature"][0]["iterations"], 60);
  EXPECT_EQ(json["exchanges"][0]["groups"][0]["operations"].size(), 2u);
  EXPECT_EQ(json["operations"], 60 * 8 + 4);
}

TEST_F(SkeletonCommand, BuildsAProgram) {
  write_ring("ring.lbf", 60);
  const test::Outcome built = run("build ring.lbf --factor 20 -o ring.c");
  EXPECT_EQ(built.status, 0) << built.err;
  std::ifstream in(dir_ + "/ring.c");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, HasSubstr("i1 < 3; ++i1"));
  EXPECT_THAT(text, HasSubstr("MPI_Send(out, shrink(1024, k), MPI_BYTE, (rank + 1) % RANKS, 0, comm[0]);"));
  EXPECT_EQ(built.err.find("warning"), std::string::npos) << built.err;
}

TEST_F(SkeletonCommand, CompilesItWhereAskedTo) {
  write_ring("ring.lbf", 60);
  const test::Outcome built = run("build ring.lbf --factor 20 -o ring.c --compile ring");
  EXPECT_EQ(built.status, 0) << built.err;
  EXPECT_TRUE(std::ifstream(dir_ + "/ring").good());
}

TEST_F(SkeletonCommand, SaysThatThereIsNoCompiler) {
  write_ring("ring.lbf", 60);
  const test::Outcome built = run("build ring.lbf --factor 20 -o ring.c --compile ring --mpicc /nowhere/mpicc");
  EXPECT_EQ(built.status, 1);
  EXPECT_THAT(built.err, HasSubstr("cannot run /nowhere/mpicc: No such file"));
  EXPECT_TRUE(std::ifstream(dir_ + "/ring.c").good()) << "the source is of use without a compiler";
}

TEST_F(SkeletonCommand, WarnsOfSkeletonsThatAreTooShort) {
  write_ring("ring.lbf", 60);
  const test::Outcome built = run("build ring.lbf --factor 100 -o ring.c");
  EXPECT_EQ(built.status, 0) << built.err;
  EXPECT_THAT(built.err, HasSubstr("has not one whole iteration of the dominant sequence"));
  EXPECT_THAT(built.err, HasSubstr("K = 100 is larger than the loops allow"));
}

TEST_F(SkeletonCommand, TakesTheTimeThatIsWanted) {
  // 60 iterations; a hundredth second in all, a third of it.
  std::string text = "lbf-trace 1\nranks 1\n";
  for (int i = 0; i < 60; ++i) text += "0 coll 0.0005 op=barrier\n";
  write("bars.lbf", text + "0 exit 0\n");
  EXPECT_THAT(run("build bars.lbf --time 10ms -o b.c").err, HasSubstr("K = 3,"));
  EXPECT_THAT(run("build bars.lbf --time 1s -o b.c").err, HasSubstr("K = 1,"));
}

TEST_F(SkeletonCommand, RefusesWhatItCannotUse) {
  write_ring("ring.lbf", 3);
  write("cut.lbf", "lbf-trace 1\nranks 2\n0 send 0 to=1 tag=0 bytes=0\n0 exit 0\n1 startRecv 0 from=0 tag=0\n");
  write("notimes.lbf", "lbf-trace 1\nranks 1\n0 coll 0 op=barrier\n0 exit 0\n");
  const auto refuses = [&](int status, const std::string& arguments, const std::string& says) {
    const test::Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("lbf-skeleton: error: ")) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << arguments;
  };
  refuses(1, "build cut.lbf --factor 2", "cut.lbf: rank 1 has no end in the trace");
  refuses(1, "build missing.lbf --factor 2", "missing.lbf");
  refuses(1, "build notimes.lbf --time 1s", "the trace has no times at all");
  refuses(1, "build ring.lbf --factor 2 -o /nowhere/ring.c", "/nowhere/ring.c: cannot write");
  refuses(2, "build ring.lbf", "--time or --factor is missing");
  refuses(2, "build ring.lbf --time 1s --factor 2", "give one of them");
  refuses(2, "build ring.lbf --time soon", "--time soon is no time");
  refuses(2, "build ring.lbf --factor 0", "--factor");
  refuses(2, "build --factor 2", "TRACE is missing");
  refuses(2, "", "lbf-skeleton --help");
}

}  // namespace
}  // namespace lbf::command_test