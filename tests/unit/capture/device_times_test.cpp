// Waits for a device, by parts: what is known of the processor in some of them says what is likely of the others.
#include "spank_plugin/capture/device_times.h"

#include <gtest/gtest.h>

namespace lbf::capture::device_times_test {
namespace {

TEST(DeviceTimes, SpinUnlessItIsKnownBetter) {
  DeviceSums sums;
  sums.add(400);
  sums.add(100);
  EXPECT_EQ(sums.calls, 2U);
  EXPECT_EQ(sums.wall, 500U);
  EXPECT_EQ(busy_ticks(sums, {}), 500U);
}

// A wait of 1,000 used the processor for 10; another one of 1,000 all the time. Of 400 that were not read it is the
// same share: 202.
TEST(DeviceTimes, ReadWaitsSayWhatOthersAreLike) {
  DeviceSums sums;
  sums.add_clocked(1000, 10);
  sums.add_clocked(1000, 1000);
  sums.add(400);
  EXPECT_EQ(busy_ticks(sums, {}), 1010U + 202U);
  DeviceSums later;
  later.add(1000);
  EXPECT_EQ(busy_ticks(later, sums), 505U);
}

// A wait that sleeps, read before, and a call that has nothing to wait for: it says little of one that is not read.
TEST(DeviceTimes, ShortWaitsSayLittleOfLongOnes) {
  DeviceSums before, sums;
  before.add_clocked(99'990, 0);
  sums.add_clocked(10, 10);
  sums.add(100'000);
  EXPECT_EQ(busy_ticks(sums, before), 10U + 10U);
}

// The processor's clock may be ahead of the counter.
TEST(DeviceTimes, BusyIsAtMostTheWait) {
  DeviceSums sums;
  sums.add_clocked(1000, 1100);
  EXPECT_EQ(busy_ticks(sums, {}), 1000U);
}

}  // namespace
}  // namespace lbf::capture::device_times_test
