// The summary of lbf-report --overhead.
#include "report/overhead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lbf::report::overhead_test {
namespace {

Step step_of(const std::string& command, double limit, double low, double high, double seen, double cpu_s) {
  Step step;
  step.command = command;
  Cost cost;
  cost.limit_percent = limit;
  cost.predicted_percent = 1;
  cost.low_percent = low;
  cost.high_percent = high;
  cost.seen_share = seen;
  cost.program_cpu_s = cpu_s;
  cost.once_capture_s = 0.012;
  cost.once_relay_s = cpu_s * 1e-5;
  cost.total_high_percent = high + 100 * cost.once_s().value() / cpu_s;
  step.cost = cost;
  return step;
}

std::vector<Step> some_steps() {
  std::vector<Step> steps = {step_of("/opt/lmp -in x", 2, 0.5, 1.0, 1, 100),
                             step_of("/usr/bin/lmp", 2, 1.5, 2.5, 0.25, 300),
                             step_of("./hpcc", 0.5, 0.25, 0.5, 0.5, 400), Step{}};
  steps[0].targets_deferred = 3;  // of a list
  steps[0].targets_taken_up = 12;
  steps[1].predictions.resize(3);  // of a whole step
  steps[1].predictions[1].why_deferred = "no room";
  steps[1].predictions[2].taken_up = true;
  return steps;
}

TEST(Overhead, ProgramsAndAllOfThem) {
  EXPECT_EQ(render_overhead(summarize_overhead(some_steps()), {}),
            "Program             Steps    Limit Predicted     Low    High     Once   Total    Seen InPart  Over "
            "Deferred TakenUp\n"
            "------------------ ------ -------- --------- ------- ------- -------- ------- ------- ------ ----- "
            "-------- -------\n"
            "hpcc                    1     0.5%     1.00%   0.25%   0.50%   16.0ms   0.50%   50.0%      1     0        "
            "0       0\n"
            "lmp                     2       2%     1.00%   1.25%   2.12%   14.0ms   2.13%   43.8%      1     1        "
            "4      13\n"
            "(all)                   3   0.5-2%     1.00%   0.75%   1.31%   14.7ms   1.32%   46.9%      2     1        "
            "4      13\n");
}

TEST(Overhead, Parsable) {
  TableStyle style;
  style.parsable = true;
  style.header = false;
  style.trailing = true;
  EXPECT_EQ(render_overhead(summarize_overhead({some_steps()[2]}), style),
            "hpcc|1|0.5%|1.00%|0.25%|0.50%|16.0ms|0.50%|50.0%|1|0|0|0|\n(all)|1|0.5%|1.00%|0.25%|0.50%|16.0ms|0.50%|50."
            "0%|1|0|0|0|\n");
}

TEST(Overhead, AsJson) {
  const auto json = nlohmann::json::parse(overhead_json(summarize_overhead(some_steps())));
  ASSERT_EQ(json["overhead"].size(), 3U);
  const auto& all = json["overhead"][2];
  EXPECT_EQ(all["program"], "(all)");
  EXPECT_EQ(all["steps"], 3);
  EXPECT_EQ(all["lowest_limit_percent"], 0.5);
  EXPECT_EQ(all["highest_limit_percent"], 2.0);
  EXPECT_EQ(all["targets_deferred"], 4);
  EXPECT_EQ(all["targets_taken_up"], 13);
  Step unknown;
  unknown.cost.emplace();
  EXPECT_TRUE(
      nlohmann::json::parse(overhead_json(summarize_overhead({unknown})))["overhead"][0]["high_percent"].is_null());
  EXPECT_EQ(nlohmann::json::parse(overhead_json({}))["overhead"], nlohmann::json::array());
}

TEST(Overhead, OfOneStepItsNodesAndRanks) {
  Step step = step_of("./app", 2, 0.5, 0.75, 1, 100);
  step.job = 7;
  step.step = 0;
  step.nodes = {"n1", "n2"};
  step.cost->state = "open";
  step.cost->recorded_calls = 2000;
  step.cost->counted_calls = 0;
  step.cost->nodes = {{0, "open", 40, 0.1, 0.05, 0.1, 0.02, 0.008, {}, {}},
                      {1, "open", 60, 0.1, 0.05, 0.2, {}, 0.005, {}, {}}};
  step.cost->ranks = {{3, "", 50, 0.25, 0.125, {}, {}, {}, 2000, 0}};
  EXPECT_EQ(render_overhead_of_steps({Step{}, step}, {}),
            "Where                       CPU  Limit Predicted     Low    High     Relay    HeldUp     Once    Recorded "
            "    Counted    State\n"
            "-------------------- ---------- ------ --------- ------- ------- --------- --------- -------- ----------- "
            "----------- --------\n"
            "7.0                     100.0 s     2%     1.00%   0.50%   0.75%   300.0ms    20.0ms   13.0ms        2000 "
            "          0     open\n"
            "  n1                    40.00 s      -         -   0.50%   0.68%   100.0ms    20.0ms    8.0ms           - "
            "          -     open\n"
            "  n2                    60.00 s      -         -   0.50%   0.58%   200.0ms         -    5.0ms           - "
            "          -     open\n"
            "  rank 3                50.00 s      -         -   0.50%   0.75%         -         -        -        2000 "
            "          0\n");
  step.job = 4294967294;
  step.step = kFirstRunNumber + 0xd5;
  EXPECT_THAT(render_overhead_of_steps({step}, {}), testing::HasSubstr("\n4294967294.mpirun-00000d5    100.0 s "));
  EXPECT_EQ(render_overhead_of_steps({Step{}}, {}), "");
}

TEST(Overhead, WithoutKnownCostsThereIsNothing) {
  EXPECT_TRUE(summarize_overhead({Step{}, Step{}}).empty());
  EXPECT_EQ(render_overhead({}, {}), "");
}

}  // namespace
}  // namespace lbf::report::overhead_test