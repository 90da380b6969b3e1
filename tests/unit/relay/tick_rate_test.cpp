// TickRate: ticks of the processor's counter as seconds.
#include "spank_plugin/relay/tick_rate.h"

#include <gtest/gtest.h>

namespace lbf::relay::tick_rate_test {
namespace {

TEST(TickRate, NeedsABaselineAndIsFixedInTheEnd) {
  TickRate rate({0, 1'000'000'000});
  rate.observe({120'000'000, 1'040'000'000});
  EXPECT_FALSE(rate.ready());
  rate.observe({180'000'000, 1'060'000'000});  // 3 ticks per ns
  ASSERT_TRUE(rate.ready());
  EXPECT_DOUBLE_EQ(rate.seconds_per_tick(), 1e-9 / 3);
  rate.observe({6'300'000'000, 3'000'000'000});
  const double fixed = rate.seconds_per_tick();
  EXPECT_DOUBLE_EQ(fixed, 2.0 / 6'300'000'000);
  rate.observe({1, 9'000'000'000});
  rate.observe({100'000'000'000, 9'000'000'000});
  EXPECT_DOUBLE_EQ(rate.seconds_per_tick(), fixed);
}

// Each step of 10 ms was kept until its relay was 50 ms old.
TEST(TickRate, AStepThatIsOverWaitsForAShortBaselineOnly) {
  TickRate rate({0, 1'000'000'000});
  rate.observe_last({3'000'000, 1'001'000'000});
  EXPECT_FALSE(rate.ready());
  rate.observe_last({9'000'000, 1'003'000'000});  // 3 ticks per ns
  ASSERT_TRUE(rate.ready());
  EXPECT_DOUBLE_EQ(rate.seconds_per_tick(), 1e-9 / 3);
  rate.observe_last({40'000'000, 1'010'000'000});
  EXPECT_DOUBLE_EQ(rate.seconds_per_tick(), 1e-9 / 3) << "one rate for all that is left";
}

TEST(TickRate, OwnReadingsAgreeWithTheMonotonicClock) {
  if (!has_tick_counter()) GTEST_SKIP() << "no tick counter on this machine";
  const ClockReading first = read_clocks();
  TickRate rate(first);
  while (!rate.ready()) rate.observe(read_clocks());
  const ClockReading now = read_clocks();
  const double by_ticks_s = static_cast<double>(now.ticks - first.ticks) * rate.seconds_per_tick();
  const double by_clock_s = static_cast<double>(now.monotonic_ns - first.monotonic_ns) * 1e-9;
  EXPECT_NEAR(by_ticks_s / by_clock_s, 1, 0.01);
}

}  // namespace
}  // namespace lbf::relay::tick_rate_test
