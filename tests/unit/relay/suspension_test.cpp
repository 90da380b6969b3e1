// A stop is in no event: neither waiting, nor work, nor what other programs took.
#include "spank_plugin/relay/suspension.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace lbf::relay {
namespace {

class SuspensionTest : public testing::Test {
 protected:
  // Stopped for 12 s, as looks half a second apart see it.
  SuspensionTest() {
    look(false);
    for (int i = 0; i < 24; ++i) look(true);
    look(false);
  }
  void look(bool stopped) {
    ProcessStat stat;
    stat.stopped = stopped;
    suspension_.observe(::getpid(), stat, 0.5);
  }
  Event shortened(Event event) {
    if (suspension_.is_owed()) suspension_.shorten(event);
    return event;
  }
  static Event call(Seconds call_s) {
    Event event = event_of_kind(EventKind::kRecv);
    event.process_s = 0.25;
    event.call_s = call_s;
    return event;
  }

  Suspension suspension_;
};

TEST_F(SuspensionTest, IsTakenOutOfTheGap) {
  Event blocked = event_of_kind(EventKind::kBlocked);
  blocked.off_s = 12.5;
  EXPECT_DOUBLE_EQ(shortened(blocked).off_s, 0.5);
  EXPECT_DOUBLE_EQ(shortened(call(20)).call_s, 20) << "once";
  EXPECT_DOUBLE_EQ(suspension_.total_s(), 12);
}

// Its ranks were frozen in a call of a capture window that the others had closed: 11 of the 12 s were in the
// prediction.
TEST_F(SuspensionTest, IsTakenOutOfTheCallThatHoldsIt) {
  EXPECT_DOUBLE_EQ(shortened(call(0.25)).call_s, 0.25) << "it ended before the stop";
  Event preempted = event_of_kind(EventKind::kPreempted);
  preempted.off_s = 13;
  EXPECT_DOUBLE_EQ(shortened(preempted).off_s, 13) << "ready to run is not stopped";
  const Event held = shortened(call(12.125));
  EXPECT_DOUBLE_EQ(held.call_s, 0.125);
  EXPECT_DOUBLE_EQ(held.process_s, 0.25);
  EXPECT_DOUBLE_EQ(shortened(call(14)).call_s, 14) << "once";
}

TEST_F(SuspensionTest, IsTakenOutOfTheTimeBetweenWindows) {
  Event open = window_open_event(3);
  open.call_s = 15;
  EXPECT_DOUBLE_EQ(shortened(open).call_s, 3);
}

// The driver slept for 13 of 14 s: the stop is of those.
TEST_F(SuspensionTest, IsTakenOutOfAWaitForADevice) {
  const std::vector<std::uint64_t> values = {1, 1'000'000'000};
  Event device = event_of_kind(EventKind::kDevice);
  device.process_s = 14;
  device.values = values;
  EXPECT_DOUBLE_EQ(shortened(device).process_s, 2);
}

TEST_F(SuspensionTest, IsTakenOutOfARegionBesideItsWork) {
  const std::vector<std::uint64_t> values = {1, 2, 2'000'000'000, 1'000'000'000, 500'000'000};
  Event regions = event_of_kind(EventKind::kRegions);
  regions.process_s = 13.5;
  regions.values = values;
  EXPECT_DOUBLE_EQ(shortened(regions).process_s, 1.5);
}

// A call that began after the stop took as long as it took.
TEST_F(SuspensionTest, IsInNothingThatFollows) {
  suspension_.settle();
  EXPECT_DOUBLE_EQ(shortened(call(12)).call_s, 12);
}

TEST_F(SuspensionTest, LeavesProcessorTimeOfLooks) {
  EXPECT_DOUBLE_EQ(shortened(vain_looks_event(1000, 13.0)).call_s, 13);
}

}  // namespace
}  // namespace lbf::relay
