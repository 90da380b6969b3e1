#include "cost/regulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/unit/cost/simulated_node.h"

namespace lbf::cost::regulator_test {
namespace {

const WindowGrid kGrid(1'000'000'000, 99);

RegulatorSettings limit_of(double limit) {
  RegulatorSettings settings;
  settings.limit = limit;
  return settings;
}

SimulatedProgram steady(double calls_per_s) {
  SimulatedProgram program;
  program.calls_per_s = [calls_per_s](Seconds) { return calls_per_s; };
  return program;
}

double share_open(const std::vector<Moment>& moments, Seconds from_s) {
  std::size_t open = 0;
  std::size_t all = 0;
  for (const Moment& moment : moments) {
    if (moment.at_s < from_s) continue;
    ++all;
    open += moment.state == CaptureState::kOpen ? 1 : 0;
  }
  return static_cast<double>(open) / static_cast<double>(all);
}

// Lengths of the windows that opened and closed after `from_s`.
std::vector<Seconds> windows(const std::vector<Moment>& moments, Seconds from_s) {
  std::vector<Seconds> lengths;
  Seconds opened_s = -1;
  for (std::size_t i = 1; i < moments.size(); ++i) {
    const bool open = moments[i].state == CaptureState::kOpen;
    const bool was = moments[i - 1].state == CaptureState::kOpen;
    if (open && !was) opened_s = moments[i].at_s;
    if (!open && was && opened_s >= from_s) lengths.push_back(moments[i].at_s - opened_s);
  }
  return lengths;
}

struct Case {
  double calls_per_s;
  double limit;
};

class LimitHolds : public testing::TestWithParam<Case> {};

TEST_P(LimitHolds, FromTwoSecondsOn) {
  const auto [calls_per_s, limit] = GetParam();
  for (const Moment& moment : simulate(steady(calls_per_s), limit_of(limit), kGrid, 30)) {
    if (moment.at_s < 2) continue;
    ASSERT_LE(moment.cost_s, 1.02 * limit * moment.program_cpu_s) << "after " << moment.at_s << " s";
  }
}

// Calls that are counted cost 0.8 % at a million a second: below that the capture ends.
INSTANTIATE_TEST_SUITE_P(Regulator, LimitHolds,
                         testing::Values(Case{100, 0.001}, Case{10'000, 0.001}, Case{100'000, 0.001},
                                         Case{10'000, 0.005}, Case{100'000, 0.005}, Case{10'000, 0.01},
                                         Case{100'000, 0.01}, Case{1'000'000, 0.01}, Case{100'000, 0.02},
                                         Case{1'000'000, 0.02}, Case{1'000'000, 0.05}, Case{2'000'000, 0.10},
                                         Case{1'000'000, 0.001}, Case{1'000'000, 0.005}, Case{7'000'000, 0.005},
                                         Case{7'000'000, 0.01}, Case{7'000'000, 0.02}, Case{7'000'000, 0.05},
                                         Case{7'000'000, 0.10}));

// The relay's own 20 us a second are all that is spent once the capture ended, and what was noticed late is 5 % of
// the bucket.
TEST(Regulator, HoldsALimitThatIsHardlyAnything) {
  SimulatedProgram program = steady(7'000'000);
  program.counted_call_s = 25e-9;  // more than anybody believed
  for (const Moment& moment : simulate(program, limit_of(0.001), kGrid, 30)) {
    if (moment.at_s < 2) continue;
    ASSERT_LE(moment.cost_s, 1.15 * 0.001 * moment.program_cpu_s) << "after " << moment.at_s << " s";
  }
}

TEST(Regulator, AStormAfterSilenceEndsTheCaptureBeforeItCostsMuch) {
  for (const double limit : {0.001, 0.005, 0.01, 0.02}) {
    SimulatedProgram program;
    program.calls_per_s = [](Seconds at_s) { return at_s < 20 ? 0.0 : 7'000'000.0; };
    program.counted_call_s = 20e-9;
    const auto moments = simulate(program, limit_of(limit), kGrid, 30);
    EXPECT_EQ(moments.back().state, CaptureState::kOff) << limit;
    const double full_s = limit * 2 * program.ranks;
    ASSERT_LE(moments.back().cost_s - moments[19'999].cost_s, 1.1 * full_s + limit * 4 * 10) << limit;
  }
}

// What was measured on a node before the program ran does not have in it what the relay takes, and holds up, on
// processors that are all the ranks'.
TEST(Regulator, AStormAfterSilenceIsBoundedWhereRecordingCostsMoreThanWasMeasured) {
  for (const double limit : {0.005, 0.01, 0.02}) {
    SimulatedProgram program;
    program.calls_per_s = [](Seconds at_s) { return at_s < 20 ? 0.0 : 7'000'000.0; };
    program.recorded_call_s = 100e-9;
    program.relayed_call_s = 240e-9;
    program.counted_call_s = 20e-9;
    RegulatorSettings settings = limit_of(limit);
    settings.recorded_call_s = 120e-9;
    settings.counted_call_s = 20e-9;
    const auto moments = simulate(program, settings, kGrid, 30);
    EXPECT_EQ(moments.back().state, CaptureState::kOff) << limit;
    // In its first second, which earns little of it.
    const double full_s = limit * 2 * program.ranks;
    EXPECT_LE(moments[20'999].cost_s - moments[19'999].cost_s, 1.3 * full_s) << limit;
  }
}

// Programs that make, use and free communicators all the time took 3.7 to 6.6 % under a limit of 2 %: what the relay
// does with the definitions that counting leaves went on as long as the program did.
TEST(Regulator, WhatTheRelayTakesForCountedCallsEndsTheCaptureAsTheirOwnCostDoes) {
  SimulatedProgram program = steady(100'000);
  program.recorded_call_s = program.relayed_call_s = 600e-9;
  program.counted_call_s = 100e-9;
  program.relayed_count_s = 250e-9;  // 3.5 % in all, 1 % without the relay
  program.bytes_of_count = 60;
  const auto moments = simulate(program, limit_of(0.02), kGrid, 30);
  EXPECT_EQ(moments.back().state, CaptureState::kOff);
  for (const Moment& moment : moments) {
    if (moment.at_s < 2) continue;
    ASSERT_LE(moment.cost_s, 1.1 * 0.02 * moment.program_cpu_s) << "after " << moment.at_s << " s";
  }
  // The relay's looks are not the counted calls': ending the capture would not help against them.
  program.relay_idle_per_s = 4 * 100'000 * program.relayed_count_s;
  program.relayed_count_s = program.bytes_of_count = 0;
  EXPECT_EQ(simulate(program, limit_of(0.02), kGrid, 30).back().state, CaptureState::kCounting);
}

// Where counting is too much, what is left goes into several windows, not one.
TEST(Regulator, ANodeThatIsAloneSeesMoreThanTheStart) {
  RegulatorSettings settings = limit_of(0.02);
  settings.alone = true;
  const auto moments = simulate(steady(5'000'000), settings, kGrid, 10);
  EXPECT_EQ(moments.back().state, CaptureState::kOff);
  std::size_t openings = 0;
  for (const Moment& moment : moments) openings += moment.opened ? 1 : 0;
  EXPECT_GE(openings, 3u);
  for (const Moment& moment : moments) {
    if (moment.at_s < 2) continue;
    ASSERT_LE(moment.cost_s, 1.02 * 0.02 * moment.program_cpu_s) << moment.at_s;
  }
}

TEST(Regulator, StaysOpenBelowTheLimit) {
  for (const Moment& moment : simulate(steady(20'000), limit_of(0.02), kGrid, 20)) {
    ASSERT_EQ(moment.state, CaptureState::kOpen) << moment.at_s;
  }
}

TEST(Regulator, UsesMostOfWhatIsAllowed) {
  const auto moments = simulate(steady(200'000), limit_of(0.02), kGrid, 60);
  // Open all the time it would cost 4 %.
  EXPECT_GT(moments.back().cost_s, 0.75 * 0.02 * moments.back().program_cpu_s);
  EXPECT_GT(share_open(moments, 5), 0.3);
}

TEST(Regulator, WindowsOfASteadyProgramAreSteady) {
  const auto moments = simulate(steady(500'000), limit_of(0.02), kGrid, 120);
  const auto lengths = windows(moments, 20);
  ASSERT_GT(lengths.size(), 10u);
  Seconds sum_s = 0;
  for (const Seconds length : lengths) {
    EXPECT_GE(length, 0.09);
    sum_s += length;
  }
  const Seconds mean_s = sum_s / static_cast<double>(lengths.size());
  // Openings lie anywhere in their cells, so the time to save up between two of them varies.
  for (const Seconds length : lengths) EXPECT_LE(length, 3 * mean_s);
}

TEST(Regulator, AStormAfterMinutesOfSilenceIsBounded) {
  SimulatedProgram program;
  program.calls_per_s = [](Seconds at_s) { return at_s < 60 ? 0.0 : 1'000'000.0; };
  const auto moments = simulate(program, limit_of(0.02), kGrid, 90);
  const double full_s = 0.02 * 2 * program.ranks;
  for (std::size_t from = 0; from < moments.size(); from += 97) {
    for (std::size_t to = from + 1; to < moments.size(); to += 101) {
      const Seconds cost_s = moments[to].cost_s - moments[from].cost_s;
      const Seconds cpu_s = moments[to].program_cpu_s - moments[from].program_cpu_s;
      ASSERT_LE(cost_s, 0.02 * cpu_s + 1.05 * full_s) << moments[from].at_s << " to " << moments[to].at_s;
    }
  }
  EXPECT_GT(share_open(moments, 70), 0.03);
}

TEST(Regulator, OpensUpAgainWhenCallsBecomeFewer) {
  SimulatedProgram program;
  program.calls_per_s = [](Seconds at_s) { return at_s < 30 ? 500'000.0 : 2'000.0; };
  const auto moments = simulate(program, limit_of(0.02), kGrid, 60);
  EXPECT_LT(share_open(moments, 5), 0.7);
  for (const Moment& moment : moments) {
    if (moment.at_s < 42) continue;
    ASSERT_EQ(moment.state, CaptureState::kOpen) << moment.at_s;
  }
}

TEST(Regulator, EndsTheCaptureWhereCountingAloneIsTooMuch) {
  const auto moments = simulate(steady(1'000'000), limit_of(0.001), kGrid, 60);
  EXPECT_EQ(moments.back().state, CaptureState::kOff);
  const auto off =
      std::find_if(moments.begin(), moments.end(), [](const Moment& m) { return m.state == CaptureState::kOff; });
  EXPECT_LT(off->at_s, 2);
  EXPECT_LE(moments.back().cost_s, 0.001 * moments.back().program_cpu_s);
}

TEST(Regulator, ABurstThatCountsTooMuchDoesNotEndTheCapture) {
  SimulatedProgram program;
  program.calls_per_s = [](Seconds at_s) { return at_s > 10 && at_s < 10.2 ? 2'000'000.0 : 10'000.0; };
  const auto moments = simulate(program, limit_of(0.005), kGrid, 60);
  EXPECT_NE(moments.back().state, CaptureState::kOff);
  EXPECT_GT(share_open(moments, 30), 0.2);
}

// Outside of the program's scope (MPI_Pcontrol) calls are counted, though the window is open.
TEST(Regulator, WhatIsCountedInAnOpenWindowIsNoCostOfRecording) {
  RegulatorSettings settings = limit_of(0.02);
  settings.counted_call_s = 12e-9;
  Regulator regulator(settings, kGrid);
  NodeUsage usage;
  for (int look = 0; look < 100; ++look) {
    usage.program_cpu_s += 0.2;
    usage.recorded_calls += 1000;
    usage.counted_calls += 10000;
    usage.capture_s += 1000 * 100e-9 + 10000 * 12e-9;
    regulator.decide(kStart_ns + Nanoseconds{look} * 50'000'000, usage);
  }
  EXPECT_EQ(regulator.state(), CaptureState::kOpen);
  EXPECT_NEAR(regulator.recorded_call_s(), 100e-9, 20e-9);
}

// A program that sleeps earns nothing, and the relay looks at it all the same.
TEST(Regulator, ASleepingProgramDoesNotEndTheCapture) {
  Regulator regulator(limit_of(0.02), kGrid);
  NodeUsage usage;
  for (int look = 0; look < 2000; ++look) {
    usage.relay_cpu_s += 200e-6;
    regulator.decide(kStart_ns + Nanoseconds{look} * 50'000'000, usage);
  }
  EXPECT_EQ(regulator.state(), CaptureState::kCounting);
  // It wakes, and is captured again.
  std::size_t open = 0;
  for (int look = 2000; look < 4000; ++look) {
    usage.program_cpu_s += 0.2;
    usage.relay_cpu_s += 200e-6;
    regulator.decide(kStart_ns + Nanoseconds{look} * 50'000'000, usage);
    open += regulator.state() == CaptureState::kOpen ? 1 : 0;
  }
  EXPECT_GT(open, 1500u);
}

TEST(Regulator, MustCloseEndsAWindowAndKeepsItClosed) {
  Regulator regulator(limit_of(0.02), kGrid);
  NodeUsage usage{1, 0, 0, 0, 0};
  ASSERT_EQ(regulator.decide(kStart_ns, usage).state, CaptureState::kOpen);
  usage.must_close = true;
  Order order;
  for (int look = 1; look < 100; ++look) {
    usage.program_cpu_s += 0.2;
    order = regulator.decide(kStart_ns + Nanoseconds{look} * 50'000'000, usage);
    ASSERT_EQ(order.state, CaptureState::kCounting);
  }
  usage.must_close = false;
  const Nanoseconds opening_ns = order.until_ns;
  order = regulator.decide(opening_ns, usage);
  EXPECT_EQ(order.state, CaptureState::kOpen);
  EXPECT_EQ(order.window, static_cast<std::uint32_t>(opening_ns / kGrid.cell_ns()));
}

TEST(Regulator, ExpectationsCountBeforeTheFirstCallOnly) {
  RegulatorSettings settings = limit_of(0.02);
  settings.recorded_call_s = 200e-9;
  Regulator regulator(settings, kGrid);
  EXPECT_DOUBLE_EQ(regulator.predicted_share(2), 10'000 * 200e-9 / 2);
  regulator.expect(100'000);
  EXPECT_DOUBLE_EQ(regulator.predicted_share(2), 0.01);
  regulator.decide(kStart_ns, {1, 0.001, 0, 10, 0});
  const double seen = regulator.predicted_share(2);
  regulator.expect(1);
  EXPECT_DOUBLE_EQ(regulator.predicted_share(2), seen);
}

TEST(Regulator, ALimitOfZeroIsOff) {
  Regulator regulator(limit_of(0), kGrid);
  EXPECT_EQ(regulator.decide(kStart_ns, {}).state, CaptureState::kOff);
}

TEST(Regulator, NodesOfDifferentLoadOpenTogether) {
  const auto busy = simulate(steady(1'000'000), limit_of(0.02), kGrid, 120);
  const auto light = simulate(steady(250'000), limit_of(0.02), kGrid, 120);
  std::size_t together = 0;
  std::size_t openings = 0;
  for (std::size_t i = 20'000; i < busy.size(); ++i) {
    if (!busy[i].opened) continue;
    ++openings;
    // A few milliseconds after the opening of the busy node the other one is open, too.
    together += light[std::min(i + 5, light.size() - 1)].state == CaptureState::kOpen ? 1 : 0;
  }
  ASSERT_GT(openings, 5u);
  // Not always: where an opening follows soon after a window, a node may not have earned enough yet.
  EXPECT_GE(10 * together, 9 * openings);
}

TEST(Regulator, TheGrantBoundsWhatIsSpentBeforeTheNextDecision) {
  Regulator regulator(limit_of(0.02), kGrid);
  const Order order = regulator.decide(kStart_ns, {});
  ASSERT_EQ(order.state, CaptureState::kOpen);
  EXPECT_LE(static_cast<double>(order.call_grant) * regulator.recorded_call_s(), regulator.budget().left_s());
  EXPECT_GT(order.call_grant, 10'000u);
}

TEST(Regulator, UsageThatGoesBackwardsIsNoChange) {
  Regulator regulator(limit_of(0.02), kGrid);
  regulator.decide(kStart_ns, {10, 0.01, 0.01, 1000, 0});
  const Seconds left_s = regulator.budget().left_s();
  regulator.decide(kStart_ns + 50'000'000, {5, 0.005, 0.005, 500, 0});
  EXPECT_DOUBLE_EQ(regulator.budget().left_s(), left_s);
  regulator.decide(kStart_ns + 40'000'000, {5, 0.005, 0.005, 500, 0});  // neither is time
}

}  // namespace
}  // namespace lbf::cost::regulator_test