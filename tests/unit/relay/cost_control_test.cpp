// CostControl on simulated nodes with a clock of their own.
#include "spank_plugin/relay/cost_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "cost/first_grant.h"
#include "tests/unit/relay/simulated_capture.h"

namespace lbf::relay::cost_control_test {
namespace {

CostSettings settings_of(double limit, std::uint32_t ranks) {
  CostSettings settings;
  settings.limit = limit;
  settings.seed = window_seed("c/7/0/0");
  settings.ranks = ranks;
  return settings;
}

std::vector<SimulatedRank> ranks_of(std::size_t count, double limit, std::function<double(Seconds)> calls_per_s) {
  std::vector<SimulatedRank> ranks(count);
  for (SimulatedRank& rank : ranks) {
    rank.calls_per_s = calls_per_s;
    rank.first_grant = cost::first_grant(limit);
  }
  return ranks;
}

double share_recording(const std::vector<SimulatedMoment>& moments, Seconds from_s) {
  std::size_t recording = 0;
  std::size_t all = 0;
  for (const SimulatedMoment& moment : moments) {
    if (moment.at_s < from_s) continue;
    ++all;
    recording += moment.recording > 0 ? 1 : 0;
  }
  return static_cast<double>(recording) / static_cast<double>(all);
}

struct Case {
  std::size_t ranks;
  double calls_per_s;  // of one rank
  double limit;
};

class LimitHoldsOnRings : public testing::TestWithParam<Case> {};

TEST_P(LimitHoldsOnRings, FromTwoSecondsOn) {
  const auto [count, calls_per_s, limit] = GetParam();
  CostControl control(settings_of(limit, static_cast<std::uint32_t>(count)));
  auto ranks = ranks_of(count, limit, [rate = calls_per_s](Seconds) { return rate; });
  const auto moments = simulate(control, ranks, 20);
  for (const SimulatedMoment& moment : moments) {
    if (moment.at_s < 2) continue;
    ASSERT_LE(moment.cost_s, 1.02 * limit * moment.program_cpu_s) << "after " << moment.at_s << " s";
  }
  EXPECT_GT(share_recording(moments, 0), 0.0);
}

INSTANTIATE_TEST_SUITE_P(CostControl, LimitHoldsOnRings,
                         testing::Values(Case{1, 100, 0.005}, Case{4, 20'000, 0.02}, Case{4, 1'000'000, 0.02},
                                         Case{64, 100'000, 0.01}, Case{2, 1'000'000, 0.10}, Case{4, 200'000, 0.05}));

TEST(CostControl, AStormAfterSilenceIsBounded) {
  CostControl control(settings_of(0.02, 4));
  auto ranks = ranks_of(4, 0.02, [](Seconds at_s) { return at_s < 20 ? 0.0 : 1'000'000.0; });
  const auto moments = simulate(control, ranks, 40);
  const double full_s = 0.02 * 2 * 4;
  for (std::size_t from = 0; from < moments.size(); from += 97) {
    for (std::size_t to = from + 1; to < moments.size(); to += 101) {
      ASSERT_LE(moments[to].cost_s - moments[from].cost_s,
                0.02 * (moments[to].program_cpu_s - moments[from].program_cpu_s) + 1.05 * full_s);
    }
  }
  // Windows of all ranks come again, with a number that grew.
  EXPECT_GT(control.windows(), 3u);
  for (const SimulatedRank& rank : ranks) {
    EXPECT_GT(rank.windows_seen, 2u);
    EXPECT_EQ(rank.last_window, ranks.front().last_window);
    EXPECT_GT(rank.last_window, 1'795'000'000u);
  }
}

TEST(CostControl, SilenceStaysOpenAndSleepsToItsOwnPace) {
  CostControl control(settings_of(0.02, 4));
  auto ranks = ranks_of(4, 0.02, [](Seconds) { return 0.0; });
  for (const SimulatedMoment& moment : simulate(control, ranks, 10)) {
    ASSERT_EQ(moment.state, cost::CaptureState::kOpen);
  }
  EXPECT_EQ(control.windows(), 1u);
  EXPECT_GT(control.until_ns(), kSimulationStartNs + 1'000'000'000'000);
}

TEST(CostControl, OneBusyRankAmongManyGetsWhatTheOthersDoNotNeed) {
  CostControl control(settings_of(0.02, 32));
  auto ranks = ranks_of(32, 0.02, [](Seconds) { return 10.0; });
  // Alone it costs 0.16 of one processor: half of what 32 ranks are allowed.
  ranks[7].calls_per_s = [](Seconds at_s) { return at_s < 3 ? 10.0 : 1'500'000.0; };
  const auto moments = simulate(control, ranks, 15);
  EXPECT_EQ(control.state(), cost::CaptureState::kOpen);
  EXPECT_GT(ranks[7].recorded, 0.9 * 1'500'000 * 11);
  EXPECT_EQ(ranks[7].recording_window, ranks[7].last_window);
}

TEST(CostControl, RingsThatMayCountNoMoreEndTheCapture) {
  for (const double limit : {0.001, 0.005, 0.01}) {
    CostControl control(settings_of(limit, 2));
    auto ranks = ranks_of(2, limit, [](Seconds at_s) { return at_s < 5 ? 0.0 : 7'000'000.0; });
    SimulatedCosts costs;
    costs.counted_s = 20e-9;
    const auto moments = simulate(control, ranks, 12, costs);
    EXPECT_EQ(control.state(), cost::CaptureState::kOff) << limit;
    for (const SimulatedRank& rank : ranks) EXPECT_TRUE(rank.off);
    // Noticed late: each ring may count what all of them may.
    ASSERT_LE(moments.back().cost_s, 1.2 * limit * moments.back().program_cpu_s) << limit;
  }
}

TEST(CostControl, ARingThatCountsAloneIsNotEndedForTheOthers) {
  CostControl control(settings_of(0.02, 16));
  auto ranks = ranks_of(16, 0.02, [](Seconds) { return 1'000.0; });
  // Recording it is too much; counting it is 3 % of one processor of 16.
  ranks[3].calls_per_s = [](Seconds at_s) { return at_s < 3 ? 10.0 : 4'000'000.0; };
  simulate(control, ranks, 15);
  EXPECT_NE(control.state(), cost::CaptureState::kOff);
  EXPECT_FALSE(ranks[3].off);
}

TEST(CostControl, GrantsNeverSumUpToMoreThanIsGranted) {
  CostControl control(settings_of(0.01, 3));
  std::vector<RingUse> rings{{1, 0, 0, true, false}, {2, 0, 0, true, false}, {3, 0, 0, true, false}};
  cost::NodeUsage usage;
  std::uint64_t calls = 0;
  for (int look = 0; look < 40; ++look) {
    usage.program_cpu_s += 0.15;
    rings[0].recorded_calls += 3'000;
    rings[1].recorded_calls += 10;
    calls += 3'010;
    usage.recorded_calls = calls;
    usage.capture_s = static_cast<double>(calls) * 100e-9;
    const auto orders = control.decide(kSimulationStartNs + Nanoseconds{look} * 50'000'000, usage, rings);
    if (control.state() != cost::CaptureState::kOpen) continue;
    double granted = 0;
    for (std::size_t i = 0; i < rings.size(); ++i) {
      ASSERT_GE(orders[i].grant, 1u);
      ASSERT_GE(orders[i].grant, rings[i].recorded_calls);
      granted += static_cast<double>(orders[i].grant - rings[i].recorded_calls);
    }
    // At most the full bucket, at the predicted cost of a call.
    EXPECT_LE(granted, 0.01 * 2 * 3 / 50e-9);
    EXPECT_GT(orders[2].grant, 100u) << "a silent ring may begin to call";
  }
}

TEST(CostControl, ARingThatUsedUpItsGrantClosesAllUntilTheNextWindow) {
  CostControl control(settings_of(0.02, 2));
  std::vector<RingUse> rings{{1, 100, 0, true, false}, {2, 100, 0, true, false}};
  cost::NodeUsage usage;
  usage.program_cpu_s = 1;
  usage.recorded_calls = 200;
  auto orders = control.decide(kSimulationStartNs, usage, rings);
  ASSERT_EQ(orders[0].order, ring::CaptureOrder::kOpen);
  rings[0].recorded_calls = orders[0].grant;
  rings[0].recording = false;
  rings[0].counted_calls = 5;
  orders = control.decide(kSimulationStartNs + 50'000'000, usage, rings);
  EXPECT_EQ(orders[0].order, ring::CaptureOrder::kCounting);
  EXPECT_EQ(orders[1].order, ring::CaptureOrder::kCounting);
  EXPECT_EQ(control.grants_used_up(), 1u);
  rings[1].recording = false;
  // The window on the grid is everybody's.
  orders = control.decide(control.until_ns(), usage, rings);
  EXPECT_EQ(orders[0].order, ring::CaptureOrder::kOpen);
  EXPECT_EQ(orders[0].window, orders[1].window);
  EXPECT_GT(orders[0].window, 1u);
}

TEST(CostControl, ARankThatNeverAnswersDoesNotStopTheOthers) {
  CostControl control(settings_of(0.02, 4));
  auto ranks = ranks_of(4, 0.02, [](Seconds) { return 400'000.0; });
  ranks[2].answers = false;
  const auto moments = simulate(control, ranks, 20);
  EXPECT_EQ(ranks[2].recorded, 0);
  EXPECT_GT(control.windows(), 4u);
  EXPECT_GT(ranks[0].windows_seen, 4u);
  EXPECT_LE(moments.back().cost_s, 1.02 * 0.02 * moments.back().program_cpu_s);
}

TEST(CostControl, ARankThatComesLateIsRegulatedAtOnce) {
  CostControl control(settings_of(0.01, 4));
  auto ranks = ranks_of(4, 0.01, [](Seconds) { return 500'000.0; });
  ranks[3].starts_s = 5;
  const auto moments = simulate(control, ranks, 20);
  EXPECT_LE(moments.back().cost_s, 1.02 * 0.01 * moments.back().program_cpu_s);
  EXPECT_GT(ranks[3].windows_seen, 2u);
}

TEST(CostControl, ClosesWhileTheSenderIsPressed) {
  CostControl control(settings_of(0.02, 2));
  auto ranks = ranks_of(2, 0.02, [](Seconds) { return 1'000.0; });
  const auto moments = simulate(control, ranks, 20, {}, [](Seconds at_s) { return at_s > 5 && at_s < 10; });
  for (const SimulatedMoment& moment : moments) {
    if (moment.at_s > 5.1 && moment.at_s < 10) {
      ASSERT_EQ(moment.state, cost::CaptureState::kCounting) << moment.at_s;
    }
    if (moment.at_s > 12.1 || moment.at_s < 5) {
      ASSERT_EQ(moment.state, cost::CaptureState::kOpen) << moment.at_s;
    }
  }
}

TEST(CostControl, TheRelaysOwnLimitHoldsToo) {
  CostSettings settings = settings_of(0.02, 4);
  settings.relay_limit = 0.002;
  CostControl control(settings);
  auto ranks = ranks_of(4, 0.02, [](Seconds) { return 30'000.0; });
  SimulatedCosts costs;
  const auto moments = simulate(control, ranks, 30, costs);
  double recorded = 0;
  for (const SimulatedRank& rank : ranks) recorded += rank.recorded;
  const Seconds relay_s = recorded * costs.relayed_s + 30 / 0.05 * costs.relay_look_s;
  // Without it all calls would be recorded, and the relay take 0.36 %.
  EXPECT_LE(relay_s, 1.05 * 0.002 * moments.back().program_cpu_s);
  EXPECT_GT(recorded, 0.2 * 4 * 30 * 30'000);
}

TEST(CostControl, ALimitOfZeroIsOff) {
  CostControl control(settings_of(0, 2));
  auto ranks = ranks_of(2, 0, [](Seconds) { return 100'000.0; });
  simulate(control, ranks, 2);
  for (const SimulatedRank& rank : ranks) EXPECT_TRUE(rank.off);
}

TEST(CostControl, PredictsFromTheHistoryAndCorrectsByWhatItSees) {
  CostSettings settings = settings_of(0.05, 2);
  settings.primitives = {100e-9, 8e-9, 100e-9, 20e-6};
  CostControl control(settings);
  // The relay looks 5 times a second: at nothing in particular, and at two rings.
  const double looks = 5 * (cost::kDefaultLookS + 2 * 20e-6) / 2;
  EXPECT_NEAR(control.predicted_share(), 10'000 * 200e-9 + looks, 1e-9);
  control.expect({50'000, 0, 0});
  EXPECT_NEAR(control.predicted_share(), 50'000 * 200e-9 + looks, 1e-9);
  for (const double nonsense : {-1.0, 1e300, std::nan("")}) control.expect({nonsense, nonsense, nonsense});
  EXPECT_NEAR(control.predicted_share(), 10'000 * 200e-9 + looks, 1e-9) << "what no run tells is the default";
  control.expect({50'000, 300e-9, 0.004});
  EXPECT_NEAR(control.predicted_share(), 50'000 * (300e-9 + 100e-9) + 0.004 / 2, 1e-9);
  auto ranks = ranks_of(2, 0.05, [](Seconds) { return 100'000.0; });
  simulate(control, ranks, 20);
  EXPECT_NEAR(control.predicted_share(), 0.022, 1e-9) << "what was said before stays";
  EXPECT_NEAR(control.corrected_share(), 100'000 * 200e-9, 0.004);
  control.expect({1, 0, 0});
  EXPECT_NEAR(control.corrected_share(), 100'000 * 200e-9, 0.004) << "history is nothing against what is seen";
}

// lbfd's answer may come when the program already calls: the prediction is the same as if it had come before.
TEST(CostControl, AHistoryThatComesLatePredictsAsWell) {
  const auto predicted = [](bool late) {
    CostControl control(settings_of(0.05, 2));
    if (!late) control.expect({300, 250e-9, 0.003});
    auto ranks = ranks_of(2, 0.05, [](Seconds) { return 5'000.0; });
    simulate(control, ranks, 0.1);
    if (late) control.expect({300, 250e-9, 0.003});
    simulate(control, ranks, 1);
    return control.predicted_share();
  };
  EXPECT_DOUBLE_EQ(predicted(true), predicted(false));
  EXPECT_NEAR(predicted(true), 300 * (250e-9 + cost::kDefaultRecordedCallS / 2) + 0.003 / 2, 1e-12);
}

// A program that hardly calls costs what the relay's looks do: of that the correction knows, too.
TEST(CostControl, TheCorrectionHasTheRelaysLooksInIt) {
  CostControl control(settings_of(0.02, 2));
  auto ranks = ranks_of(2, 0.02, [](Seconds) { return 10.0; });
  SimulatedCosts costs;
  costs.relay_look_s = 400e-6;
  const auto moments = simulate(control, ranks, 10, costs);
  const double observed = moments.back().cost_s / moments.back().program_cpu_s;
  EXPECT_GT(observed, 0.003);
  EXPECT_NEAR(control.corrected_share(), observed, 0.1 * observed);
}

TEST(WindowSeed, IsTheSteps) {
  EXPECT_EQ(window_seed("c/7/0/0"), window_seed("c/7/0/0"));
  EXPECT_NE(window_seed("c/7/0/0"), window_seed("c/7/1/0"));
}

}  // namespace
}  // namespace lbf::relay::cost_control_test