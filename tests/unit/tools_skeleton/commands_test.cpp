// lbf-skeleton run, predict and compare as users run them, with an srun and an mpicc that only pretend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "event/synth.h"
#include "event/text_trace.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"

namespace lbf::commands_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// 2 s, 4 s on node "slow", 2.2 s on "wide" every other pair of calls; "bad" cannot be had.
constexpr const char* kSrun = R"(#!/bin/sh
echo "rate=$LBF_SKELETON_RATE $*" >>calls
n=$(wc -l <calls)
t=2.0
case "$*" in
  *--nodelist=bad*) echo "srun: error: Unable to create step: node bad is down" >&2; exit 1;;
  *--nodelist=slow*) t=4.0;;
  *--nodelist=wide*) [ $((n / 2 % 2)) -eq 0 ] && t=2.2;;
esac
echo "skeleton_s=$t factor=20 application_s=40.0 rate=123456"
)";

class SkeletonCommands : public testing::Test {
 protected:
  void SetUp() override {
    script("srun", kSrun);
    script("mpicc", "#!/bin/sh\ncp \"$2\" \"$4\" && chmod +x \"$4\"\n");
    std::ofstream out(dir_ + "/ring.lbf");
    TextTraceWriter writer(out, 4);
    const auto add = [&](Rank rank, const Event& event) { return writer.add(rank, event); };
    ASSERT_TRUE(synthesize("ring", 4, 60, add).ok());
    out.close();
    ASSERT_EQ(run("build ring.lbf --factor 20 -o ring.c").status, 0);
  }
  void script(const std::string& name, const std::string& text) {
    std::ofstream(dir_ + "/" + name) << text;
    ::chmod((dir_ + "/" + name).c_str(), 0755);
  }
  // With a token no request needs munge, which may not run here.
  test::Outcome run(const std::string& arguments) {
    return test::run_command("cd " + dir_ + " && LBF_TOKEN=none PATH=" + dir_ + ":$PATH MPICC=mpicc " + LBF_SKELETON +
                             " " + arguments);
  }
  std::string read(const std::string& name) {
    std::ifstream in(dir_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void refuses(int status, const std::string& arguments, const std::string& says) {
    const test::Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  test::TemporaryDirectory directory_;
  const std::string dir_ = directory_.path();
};

TEST_F(SkeletonCommands, RunOnEveryNodeSetInTurn) {
  const test::Outcome ran = run("run ring.c --on node[1-2] --on slow -N 4 --repeat 2");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("node[1-2]"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("slow +2 +4 +4 to 4"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("any 4 nodes +2 +2 +2 to 2"));
  const auto call = [&](const std::string& rate, const std::string& nodes) {
    return "rate=" + rate + " --kill-on-bad-exit=1 " + nodes + " --distribution=block " + dir_ + "/ring\n";
  };
  const std::string named = "--nodes=2 --ntasks=4 --nodelist=node[1-2]";
  const std::string all_in_turn = call("123456", named) + call("123456", "--nodes=1 --ntasks=4 --nodelist=slow") +
                                  call("123456", "--nodes=4 --ntasks=4");
  // The first one measures the processor's rate; it is not counted.
  EXPECT_EQ(read("calls"), call("", named) + all_in_turn + all_in_turn);
  const nlohmann::json kept = nlohmann::json::parse(read("ring.runs.json"));
  EXPECT_EQ(kept["runs"].size(), 3u);
  EXPECT_FALSE(kept.contains("reference"));
}

TEST_F(SkeletonCommands, PredictTheFastestFirst) {
  const test::Outcome reference = run("run ring.c --reference --on node[1-2] --repeat 2 --application-time 50s");
  EXPECT_EQ(reference.status, 0) << reference.err;
  EXPECT_THAT(reference.out, HasSubstr("Measured scaling ratio: 25 (application 50 s; K = 20)"));
  const test::Outcome predicted = run("predict ring.c --on slow --on node[1-2] --repeat 2");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, testing::ContainsRegex("node\\[1-2\\] +50 +50 to 50"));
  EXPECT_THAT(predicted.out, testing::ContainsRegex("slow +100 +100 to 100"));
  EXPECT_LT(predicted.out.find("node[1-2] "), predicted.out.find("slow "));
  EXPECT_THAT(read("calls"), Not(HasSubstr("rate= --nodes=1")));

  const nlohmann::json json = nlohmann::json::parse(run("predict ring.c --on wide --on slow --repeat 4 --json").out);
  EXPECT_EQ(json["ratio"], 25);
  EXPECT_EQ(json["application_s"], 50);
  ASSERT_EQ(json["predictions"].size(), 2u);
  const nlohmann::json& wide = json["predictions"][0];
  EXPECT_EQ(wide["nodes"], "wide");
  EXPECT_EQ(wide["times_s"].size(), 4u);
  EXPECT_GT(wide["predicted_s"], 50);
  EXPECT_LT(wide["predicted_s"], 55);
  EXPECT_LT(wide["low_s"], wide["predicted_s"]);
  EXPECT_GT(wide["high_s"], wide["predicted_s"]);
}

TEST_F(SkeletonCommands, PredictNothingWithoutAReference) {
  refuses(1, "predict ring.c --on node1", "first: lbf-skeleton run ring.c --reference --on NODELIST");
  // That of another skeleton is none.
  ASSERT_EQ(run("run ring.c --reference --on node1 --application-time 50s").status, 0);
  ASSERT_EQ(run("build ring.lbf --factor 10 -o ring.c").status, 0);
  refuses(1, "predict ring.c --on node1", "no run on the machine where the trace was recorded is kept");
}

TEST_F(SkeletonCommands, GoOnWhereOneNodeSetFails) {
  const test::Outcome ran = run("run ring.c --on bad --on slow --repeat 2");
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.err,
            "lbf-skeleton: error: ring.c on bad: srun ended with status 1: srun: error: Unable to create "
            "step: node bad is down\n");
  EXPECT_THAT(ran.out, testing::ContainsRegex("bad +0 +failed"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("slow +2 +4"));
  ASSERT_EQ(run("run ring.c --reference --on node1 --application-time 50s").status, 0);
  const test::Outcome predicted = run("predict ring.c --on bad --on slow --json");
  EXPECT_EQ(predicted.status, 1);
  const nlohmann::json json = nlohmann::json::parse(predicted.out);
  EXPECT_EQ(json["predictions"][0]["predicted_s"], 100);
  EXPECT_THAT(json["predictions"][1]["error"], HasSubstr("node bad is down"));
  refuses(1, "run ring.c --reference --on bad --application-time 5s", "node bad is down");
  EXPECT_EQ(nlohmann::json::parse(read("ring.runs.json"))["reference"]["nodes"], "node1") << "the old reference stays";
}

TEST_F(SkeletonCommands, RefuseInOneLine) {
  refuses(1, "run nothing.c", "nothing.c: cannot open the skeleton");
  refuses(1, "run ring.lbf", "ring.lbf: no skeleton that this lbf-skeleton made");
  refuses(1, "run ring.c --mpicc /nowhere/mpicc", "cannot run /nowhere/mpicc: No such file");
  refuses(1, "run ring.c --on node[1-5]", "5 nodes for 4 ranks");
  refuses(1, "run ring.c --on 'node[1-'", "node[1-");
  refuses(2, "run ring.c --launcher ssh", "--launcher ssh");
  refuses(2, "run ring.c --repeat 0", "--repeat");
  refuses(2, "run", "SKELETON");
  refuses(2, "run ring.c --reference --on a --on b", "--reference: one node set");
  refuses(2, "run ring.c --application-time soon", "--application-time soon");
  refuses(2, "build ring.lbf -j 12 --factor 2", "give one of TRACE and -j");
  refuses(2, "build -j twelve --factor 2", "-j: ");
  refuses(2, "build -j 12,13 --factor 2", "-j takes one job");
  refuses(1, "build -j 12.0 --factor 2 --server unix:/nowhere.sock", "/nowhere.sock");
  refuses(1, "show -j 12 --server unix:/nowhere.sock", "/nowhere.sock");
  refuses(1, "compare ring.lbf ring.lbf", "does not begin and end as a skeleton");
}

}  // namespace
}  // namespace lbf::commands_test