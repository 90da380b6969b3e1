// A job beside other programs: lbf-whatif and lbf-advise predict the configuration that ran as lbfd does, and all
// others without them. On a busy machine they said a ninth of what lbfd had stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::other_programs_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint32_t kJob = 7;

// Four ranks in a ring on two nodes of two processors; other programs have rank 0's for 20 ms of each round.
class BesideOtherPrograms : public test::DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    if (IsSkipped()) return;
    write_config("network = \"lan\"\n");
    std::ofstream(path("cluster.toml")) << "lbf_cluster = 1\n[[node]]\nname = \"n[0-1]\"\ncores_per_socket = 2\n";
    start();
    test::RingProgram program;
    program.others_s = 20e-3;
    const double others_s = program.others_s * program.rounds * program.batches;
    program.more_stats = {{{"delayed_s", others_s}, {"others_s", others_s}}};
    send_all(program, kJob);
    step_ = wait_until_final(kJob);
    ASSERT_EQ(step_["state"], "complete") << step_;
    self_ = step_["predictions"][0];
    ASSERT_EQ(self_["kind"], "self");
    others_s_ = others_s;
  }
  std::string run(const std::string& command) {
    const test::Outcome out =
        test::run_command(command + " --server unix:" + socket() + " --networks-dir " + path("networks.d"));
    EXPECT_EQ(out.status, 0) << out.err;
    return out.out;
  }
  json json_of(const std::string& command) { return json::parse(run(command + " --json"), nullptr, false); }
  double predicted_by_lbfd(const std::string& kind, int nodes) const {
    for (const json& one : step_["predictions"]) {
      if (one["kind"] == kind && one["nodes"] == nodes) return one["predicted_s"];
    }
    ADD_FAILURE() << "no prediction " << kind << " of " << nodes << " nodes";
    return 0;
  }

  std::string advise() const { return LBF_ADVISE " -j 7.0 --overcommit --cluster " + path("cluster.toml"); }

  const std::string whatif_ = LBF_WHATIF " 7.0 --nodes 1,2 --cores 2 --network lan";
  json step_;
  json self_;
  double others_s_ = 0;
};

TEST_F(BesideOtherPrograms, WhatIfPredictsWhatRanAsLbfdDoes) {
  const json whatif = json_of(whatif_);
  EXPECT_NEAR(whatif["other_programs_s"].get<double>(), others_s_, 1e-6);
  const json& one_node = whatif["predictions"][0];
  const json& self = whatif["predictions"][1];
  EXPECT_EQ(self["beside_other_programs"], true);
  EXPECT_EQ(self["lbf_s"], self_["predicted_s"]);
  EXPECT_GT(self["lbf_s"].get<double>(), others_s_);
  EXPECT_EQ(one_node["beside_other_programs"], false);
  EXPECT_EQ(one_node["lbf_s"].get<double>(), predicted_by_lbfd("LBF", 1));
  EXPECT_LT(one_node["lbf_s"].get<double>(), others_s_);
  EXPECT_THAT(run(whatif_), AllOf(HasSubstr("in the time of the configuration that ran (+) and in no other"),
                                  testing::ContainsRegex("\n +2 .* \\+\n")));
}

// Other processors or another speed are another configuration, and of a file nobody knows which one ran.
TEST_F(BesideOtherPrograms, WhatIfPredictsAllElseWithoutThem) {
  const json faster = json_of(whatif_ + " --speed 2");
  for (const json& one : faster["predictions"]) EXPECT_EQ(one["beside_other_programs"], false) << one;
  const std::string file = LBF_WHATIF " " + path("state/traces/c/7.0.0") + " --nodes 2 --cores 2 --network lan";
  EXPECT_EQ(json_of(file)["predictions"][0]["beside_other_programs"], false);
  EXPECT_THAT(run(file), HasSubstr("in no time here: no target is known to be the configuration that ran"));
}

// They would come back on no candidate, so their absence is no gain.
TEST_F(BesideOtherPrograms, AdvisePredictsWhatRanAsLbfdDoesAndGainsWithoutThem) {
  const json advice = json_of(advise());
  const json& now = advice["now"];
  EXPECT_EQ(now["lbf_s"], self_["predicted_s"]);
  EXPECT_EQ(now["measured_s"], step_["measured_s"]);
  EXPECT_NEAR(advice["self_error_percent"].get<double>(), self_["self_error_percent"].get<double>(), 1e-6);
  const double alone_s = now["lbf_s"].get<double>() - now["other_programs_s"].get<double>();
  EXPECT_LT(alone_s, others_s_);
  for (const json& one : advice["candidates"]) {
    if (one["placement"] != "block" || one["nodes"] != 2) continue;
    EXPECT_NEAR(one["lbf_s"].get<double>(), alone_s, 1e-9);
  }
  EXPECT_NEAR(advice["sensitivity"]["lbf_s"].get<double>(), alone_s, 1e-9);
  EXPECT_TRUE(advice["advice"].is_null()) << advice["advice"];
  EXPECT_THAT(run(advise()), HasSubstr("by other programs on its processors"));
}

}  // namespace
}  // namespace lbf::other_programs_test
