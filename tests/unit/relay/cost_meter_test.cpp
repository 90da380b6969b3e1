// CostMeter: sampled cost, and counters that cannot be true.
#include "spank_plugin/relay/cost_meter.h"

#include <gtest/gtest.h>

#include <limits>

#include "spank_plugin/relay/pace.h"
#include "spank_plugin/relay/primitive_probe.h"

namespace lbf::relay::cost_meter_test {
namespace {

constexpr PrimitiveCosts kNode{60e-9, 6e-9, 90e-9};

// Ticks are ns.
RingStatus status_of(PrimitiveReading recorded, PrimitiveReading counted = {}) {
  RingStatus status;
  status.recorded = recorded;
  status.counted = counted;
  return status;
}

TEST(CostMeter, SampledMeansStandForAllExecutions) {
  CostMeter meter;
  RankCost cost;
  // 1000 executions, 10 timed at 100 ns; 80 ns ideal. Counting: never timed, 5 ns ideal.
  meter.observe(status_of({1000, 10, 1000, 80 * 256}, {2000, 0, 0, 5 * 256}), 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.observed.direct_s, 1000 * 100e-9 + 2000 * 5e-9, 1e-12);
  EXPECT_NEAR(cost.observed.ideal_s, 1000 * 80e-9 + 2000 * 5e-9, 1e-12);
  EXPECT_NEAR(cost.observed.high_s() - cost.observed.low_s(), 1000 * 20e-9, 1e-12);
  EXPECT_EQ(cost.recorded_calls, 1000u);
  EXPECT_EQ(cost.counted_calls, 2000u);
  // The next 1000 were slower; the first ones do not become so.
  meter.observe(status_of({2000, 20, 3000, 80 * 256}, {2000, 0, 0, 5 * 256}), 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.observed.direct_s, 1000 * 100e-9 + 1000 * 200e-9 + 2000 * 5e-9, 1e-12);
  EXPECT_EQ(cost.disbelieved, 0u);
}

// A call of thousands of requests took 90 us and was taken for one that had lost its processor.
TEST(CostMeter, DearCallsCountAsTimedBesideTheSamples) {
  CostMeter meter;
  RankCost cost;
  // 1000 executions, 10 of them timed at 100 ns; what 20 dear ones took beside that: 90 us each.
  meter.observe(status_of({1000, 10, 1000, 80 * 256, 20 * 90'000}), 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.observed.direct_s, 1000 * 100e-9 + 20 * 90e-6, 1e-12);
  EXPECT_NEAR(cost.observed.ideal_s, 1000 * 80e-9 + 20 * 90e-6, 1e-12);
  meter.observe(status_of({2000, 20, 2000, 80 * 256, 20 * 90'000}), 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.observed.direct_s, 2000 * 100e-9 + 20 * 90e-6, 1e-12);
  // A thread cannot spend more than passed; nor is anything taken back.
  meter.observe(status_of({3000, 30, 3000, 80 * 256, 9'000'000'000}), 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.observed.direct_s, 1.002, 1e-3);
  meter.observe(status_of({4000, 40, 4000, 80 * 256, 0}), 1e-9, 1, kNode, cost);
  EXPECT_EQ(cost.disbelieved, 1u);
}

TEST(CostMeter, TheNodesMeasurementStandsInUntilTheCaptureHasItsOwn) {
  CostMeter meter;
  RankCost cost;
  meter.observe(status_of({1000, 0, 0, 0}, {1000, 0, 0, 0}), 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.observed.direct_s, 1000 * 66e-9, 1e-12);
  EXPECT_NEAR(cost.observed.ideal_s, 1000 * 66e-9, 1e-12);
}

TEST(CostMeter, SamplesScatterBelowTheIdealCostButNothingIsFaster) {
  CostMeter meter;
  RankCost cost;
  meter.observe(status_of({}, {1000, 10, 10, 3 * 256}), 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.observed.low_s(), 1000 * 3e-9, 1e-12);
  EXPECT_NEAR(cost.observed.high_s(), 1000 * 3e-9, 1e-12);
}

TEST(CostMeter, AThreadThatWasPutOffTheProcessorWhileItWasTimedCountsAsTheOthers) {
  CostMeter meter;
  RankCost cost;
  meter.observe(status_of({1000, 10, 1000, 80 * 256}), 1e-9, 1, kNode, cost);
  const Seconds before_s = cost.observed.direct_s;
  // One sample of 4 ms among 10.
  meter.observe(status_of({2000, 20, 4'002'000, 80 * 256}), 1e-9, 1, kNode, cost);
  EXPECT_LT(cost.observed.direct_s - before_s, 1000 * 20e-6);
}

TEST(CostMeter, HostileCountersCountForNothing) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  CostMeter meter;
  RankCost cost;
  meter.observe(status_of({1000, 10, 1000, 80 * 256}), 1e-9, 1, kNode, cost);
  const RankCost sound = cost;
  const PrimitiveReading hostile[] = {
      {500, 10, 1000, 80 * 256},    // back
      {kHuge, 10, 1000, 80 * 256},  // more than fit into the time
      {600, 20, 2000, 80 * 256},    // back from there
      {700, 5, 2000, 80 * 256},     // fewer sampled than before
      {800, 15, kHuge - 5, kHuge},  // believable counts, impossible times
  };
  for (const PrimitiveReading& reading : hostile) {
    meter.observe(status_of(reading), 1e-9, 0.05, kNode, cost);
    ASSERT_GE(cost.observed.direct_s, sound.observed.direct_s);
    ASSERT_LE(cost.observed.direct_s, sound.observed.direct_s + 0.05);
    ASSERT_LT(cost.recorded_calls, 2000u);
  }
  EXPECT_EQ(cost.disbelieved, 4u);
  // From there on it is believed again.
  const std::uint64_t before = cost.recorded_calls;
  meter.observe(status_of({1800, 25, kHuge - 4, 0}), 1e-9, 0.05, kNode, cost);
  EXPECT_EQ(cost.recorded_calls, before + 1000);
}

TEST(CostMeter, NoMoreThanPassed) {
  CostMeter meter;
  RankCost cost;
  meter.observe(status_of({1'000'000, 1, 20'000, 256 * 20'000}), 1e-9, 0.001, kNode, cost);
  EXPECT_LE(cost.observed.direct_s, 0.001);
  EXPECT_LE(cost.observed.ideal_s, 0.001);
}

TEST(PrimitiveProbe, MeasuresSomethingThatCanBe) {
  const PrimitiveCosts costs = measure_primitives();
  EXPECT_GT(costs.recorded_s, 1e-9);
  EXPECT_LT(costs.recorded_s, 1e-4);
  EXPECT_GT(costs.counted_s, 1e-11);
  EXPECT_LT(costs.counted_s, costs.recorded_s);
  EXPECT_GT(costs.relayed_s, 1e-9);
  EXPECT_LT(costs.relayed_s, 1e-4);
}

TEST(Pace, HoldsItsRateFromOneSecondOn) {
  Pace pace(1000);
  std::uint64_t now_ns = 5'000'000'000;
  const std::uint64_t begin_ns = now_ns;
  Bytes sent = 0;
  for (int i = 0; i < 100; ++i) {
    now_ns = pace.free_ns(now_ns);
    pace.sent(700, now_ns);
    sent += 700;
    const double passed_s = static_cast<double>(now_ns - begin_ns) * 1e-9;
    ASSERT_LE(static_cast<double>(sent), 1000 * (passed_s + 1) + 700);
  }
  EXPECT_GT(static_cast<double>(sent), 0.95 * 1000 * static_cast<double>(now_ns - begin_ns) * 1e-9);
}

TEST(Pace, WithoutALimitNothingWaits) {
  Pace pace(0);
  pace.sent(Bytes{1} << 40, 7);
  EXPECT_EQ(pace.free_ns(8), 8u);
}

TEST(CostMeter, MeasuredProceduresAreChargedWhatACallCosts) {
  CostMeter meter;
  RankCost cost;
  RingStatus status = status_of({0, 0, 0, 80 * 256});
  status.procedures = {1'000'000, 40 * 256, 5'000'000};
  meter.observe(status, 1e-9, 1, kNode, cost);
  EXPECT_NEAR(cost.procedures_s, 0.04 + 0.005, 1e-12);
  EXPECT_NEAR(cost.observed.low_s(), 0.045, 1e-12);
  EXPECT_NEAR(cost.observed.high_s(), 0.045, 1e-12);
  EXPECT_EQ(cost.procedure_calls, 1'000'000u);
  meter.observe(status, 1e-9, 1, kNode, cost);  // nothing new
  EXPECT_NEAR(cost.procedures_s, 0.045, 1e-12);
  // Of a long stretch without MPI calls it is told at its end: more than one look's time.
  meter.observe(status, 1e-9, 1, kNode, cost);
  status.procedures.calls += 50'000'000;
  meter.observe(status, 1e-9, 0.001, kNode, cost);
  EXPECT_NEAR(cost.procedures_s, 0.045 + 2.0, 1e-9);
}

TEST(CostMeter, ProceduresCostNoMoreThanPassedAndHostileCountsNothing) {
  CostMeter meter;
  RankCost cost;
  RingStatus status = status_of({});
  status.procedures = {std::numeric_limits<std::uint64_t>::max(), 1'000'000'000, 0};
  meter.observe(status, 1e-9, 0.5, kNode, cost);
  EXPECT_LE(cost.procedures_s, 0.5);
  status.procedures = {1, 256, 0};
  meter.observe(status, 1e-9, 0.5, kNode, cost);
  EXPECT_EQ(cost.disbelieved, 1u);
}

}  // namespace
}  // namespace lbf::relay::cost_meter_test