// StreamCost: what relays say of costs, and what hostile ones may say.
#include "predictor/daemon/steps/step_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace lbf::step_cost_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json record_of(const std::string& state) {
  return {{"type", "cost"},         {"node_index", 1},
          {"limit_percent", 2.0},   {"predicted_percent", 0.5},
          {"corrected_percent", 4}, {"state", state},
          {"program_cpu_s", 100.0}, {"direct_s", 1.0},
          {"ideal_s", 0.5},         {"relay_cpu_s", 0.25},
          {"recorded_calls", 1000}, {"counted_calls", 3000},
          {"disbelieved", 0},       {"windows", 3},
          {"open_s", 25.0},         {"regulated_s", 100.0},
          {"pressed_s", 0.0},       {"ranks", {{0, 0.4, 0.2, 400, 1000, 50.0}, {1, 0.6, 0.3, 600, 2000, 50.0}}}};
}

// As it comes from the wire: counts are unsigned then.
daemon::StreamCost cost_of(const json& record, std::uint32_t node) {
  json typed = record;
  typed["type"] = "cost";
  return daemon::stream_cost_of(std::get<protocol::CostRecord>(*protocol::decode_control(typed.dump())), node, 4);
}

TEST(StepCost, NodesAddUp) {
  const daemon::StreamCost one = cost_of(record_of("open"), 0);
  json other = record_of("counting");
  other["limit_percent"] = 1.5;
  other["predicted_percent"] = 1.5;
  other["ranks"] = json::array({json::array({3, 1.0, 0.5, 1000, 3000, 100.0})});
  const daemon::StreamCost two = cost_of(other, 1);
  const db::CostRecord cost = daemon::cost_of_step({one, two}, 0.6, true);
  EXPECT_EQ(cost.limit_percent, 1.5);
  EXPECT_EQ(cost.predicted_percent, 1.0);
  EXPECT_EQ(cost.state, "counting");
  EXPECT_DOUBLE_EQ(cost.low_percent().value(), 100 * (2.0 + 0.5) / 200);
  EXPECT_DOUBLE_EQ(cost.high_percent().value(), 100 * (3.0 + 0.5) / 200);
  EXPECT_EQ(cost.recorded_calls, 2000u);
  EXPECT_EQ(cost.seen_share, 0.6);
  ASSERT_EQ(cost.ranks.size(), 3u);
  EXPECT_EQ(cost.ranks[2].rank, 3);
  EXPECT_THAT(daemon::cost_notes(cost, 60), ElementsAre(HasSubstr("60.0 % of the run was captured, in 3 windows")));
}

TEST(StepCost, WhatIsSpentOnceIsKnownOfAllNodesOrOfNone) {
  json record = record_of("open");
  record["once_capture_s"] = 0.5;
  record["once_relay_s"] = 0.25;
  record["recording_s"] = 0.75;
  const db::CostRecord cost = daemon::cost_of_step({cost_of(record, 0), cost_of(record, 1)}, 1, true);
  EXPECT_DOUBLE_EQ(cost.once_s().value(), 1.5);
  EXPECT_DOUBLE_EQ(cost.recording_s.value(), 1.5);
  EXPECT_DOUBLE_EQ(cost.low_percent().value(), 100 * (2.0 + 0.5) / 200) << "what has a limit is as it was";
  EXPECT_DOUBLE_EQ(cost.total_low_percent().value(), 100 * (2.0 + 0.5 + 1.5) / 200);
  EXPECT_DOUBLE_EQ(cost.total_high_percent().value(), 100 * (3.0 + 0.5 + 1.5) / 200);
  EXPECT_DOUBLE_EQ(cost.nodes[1].once_capture_s.value(), 0.5);

  const db::CostRecord mixed = daemon::cost_of_step({cost_of(record, 0), cost_of(record_of("open"), 1)}, 1, true);
  EXPECT_FALSE(mixed.once_s());
  EXPECT_FALSE(mixed.recording_s);
  EXPECT_FALSE(mixed.total_high_percent());
}

TEST(StepCost, WhatRelaysHoldUpIsInTheUpperBoundOnly) {
  json record = record_of("open");
  record["held_up_s"] = 0.125;
  const db::CostRecord cost =
      daemon::cost_of_step({cost_of(record, 0), cost_of(record, 1), cost_of(record_of("open"), 2)}, 1, true);
  EXPECT_DOUBLE_EQ(cost.held_up_s, 0.25);
  EXPECT_DOUBLE_EQ(cost.nodes[1].held_up_s, 0.125);
  EXPECT_DOUBLE_EQ(cost.nodes[2].held_up_s, 0);
  EXPECT_DOUBLE_EQ(cost.low_percent().value(), 100 * (3.0 + 0.75) / 300);
  EXPECT_DOUBLE_EQ(cost.high_percent().value(), 100 * (4.5 + 0.75 + 0.25) / 300);
}

TEST(StepCost, HooksAreNoCostOfCounting) {
  json record = record_of("open");
  record["recording_s"] = 0.25;
  record["procedures_s"] = 0.5;
  EXPECT_DOUBLE_EQ(daemon::capture_cost_of({cost_of(record, 0)}).counting_s, 0.25);  // direct_s 1.0
}

TEST(StepCost, WhatWasSeenWholeNeedsNoNote) {
  EXPECT_TRUE(daemon::cost_notes(daemon::cost_of_step({cost_of(record_of("open"), 0)}, 1, true), 60).empty());
}

TEST(StepCost, ACaptureThatEndedSaysSo) {
  const db::CostRecord cost =
      daemon::cost_of_step({cost_of(record_of("off"), 0), cost_of(record_of("open"), 1)}, 1, false);
  EXPECT_EQ(cost.state, "off");
  EXPECT_DOUBLE_EQ(cost.seen_share, 0.25) << "the replay knows nothing of the rest";
  EXPECT_THAT(daemon::cost_notes(cost, 0), testing::Contains(HasSubstr("ended before the program on 1 of 2 nodes")));
  const db::CostRecord whole =
      daemon::cost_of_step({cost_of(record_of("off"), 0), cost_of(record_of("open"), 1)}, 0.005, true);
  EXPECT_DOUBLE_EQ(whole.seen_share, 0.005);
  EXPECT_THAT(daemon::cost_notes(whole, 60),
              testing::Contains(HasSubstr("the capture ended after 0.3 s of 60 on 1 of 2 nodes")));
}

TEST(StepCost, HostileRecordsGiveFiniteNumbers) {
  json hostile = record_of("maybe");
  hostile["program_cpu_s"] = -5;
  hostile["direct_s"] = "much";
  hostile["ideal_s"] = 1e308;
  hostile["recorded_calls"] = -1;
  hostile["counted_calls"] = 18446744073709551615ULL;
  hostile["limit_percent"] = json::array();
  hostile["ranks"] = {{-1, 0, 0, 0, 0, 0},
                      {9, 0, 0, 0, 0, 0},
                      {0, -1, 0, 0, 0, 0},
                      {0, 0},
                      "x",
                      {1, 1e308, 0, 18446744073709551615ULL, 0, 0}};
  const db::CostRecord cost =
      daemon::cost_of_step({cost_of(hostile, 0)}, std::numeric_limits<double>::quiet_NaN(), true);
  EXPECT_EQ(cost.state, "open");
  EXPECT_EQ(cost.program_cpu_s, 0);
  EXPECT_FALSE(cost.low_percent());
  EXPECT_FALSE(cost.limit_percent);
  EXPECT_LE(cost.ideal_s, 1e12);
  EXPECT_EQ(cost.recorded_calls, 0u);
  EXPECT_LE(cost.counted_calls, std::uint64_t{1} << 62);
  EXPECT_EQ(cost.seen_share, 1);
  ASSERT_EQ(cost.ranks.size(), 1u);
  EXPECT_LE(cost.ranks[0].direct_s, 1e12);
}

}  // namespace
}  // namespace lbf::step_cost_test