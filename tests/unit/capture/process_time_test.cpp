// Decisions 6 and 7 as arithmetic, and the clocks that feed them.
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include "spank_plugin/capture/clock.h"

namespace lbf::capture::process_time_test {
namespace {

TEST(SplitGapTest, AllOnTheProcessor) {
  const GapSplit split = split_gap(1000, 1500, 500, 0, 20);
  EXPECT_EQ(split.preempted, 0u);
  EXPECT_EQ(split.blocked, 0u);
}

TEST(SplitGapTest, ALittleOffTheProcessorIsNoise) {
  EXPECT_EQ(split_gap(1000, 980, 0, 0, 20).blocked, 0u);
  EXPECT_EQ(split_gap(1000, 979, 0, 0, 20).blocked, 21u);
}

TEST(SplitGapTest, RunDelayIsPreemptionTheRestIsBlocked) {
  const GapSplit split = split_gap(1000, 400, 0, 250, 20);
  EXPECT_EQ(split.preempted, 250u);
  EXPECT_EQ(split.blocked, 350u);
}

TEST(SplitGapTest, RunDelayBeyondTheGapBelongsElsewhere) {
  const GapSplit split = split_gap(1000, 400, 0, 5000, 20);
  EXPECT_EQ(split.preempted, 600u);
  EXPECT_EQ(split.blocked, 0u);
}

TEST(SplitGapTest, CpuTimeIsClampedToTheGap) {
  // More trusted than used: the short intervals before were off the processor; never below zero.
  const GapSplit all_off = split_gap(1000, 300, 500, 0, 20);
  EXPECT_EQ(all_off.blocked, 1000u);
  // More used than there is: never above the gap.
  EXPECT_EQ(split_gap(1000, 9999, 0, 700, 20).preempted, 0u);
}

// Two ranks of two threads on two processors: of 40 ms off the processor 30 were in a region, with a run delay of 30 ms
// in all. The 10 ms of sleep that followed were taken for other programs' time.
TEST(SplitGapTest, RunDelayInRegionsIsNotThatOfTheSleepBesideThem) {
  const std::uint64_t in_sleep = delay_outside_parts(10'000, 30'000, 30'000);
  EXPECT_EQ(in_sleep, 7'500u);
  const GapSplit split = split_gap(50'000, 10'000 + 30'000, 0, in_sleep, 20);
  EXPECT_EQ(split.preempted, 7'500u);
  EXPECT_EQ(split.blocked, 2'500u);
}

TEST(SplitGapTest, RunDelayIsNeverMoreThanTheTimeOffTheProcessor) {
  EXPECT_EQ(delay_outside_parts(10'000, 0, 30'000), 30'000u) << "bounded where it is taken";
  for (const std::uint64_t in_parts : {0u, 900u, 5'000u, 90'000u}) {
    const GapSplit split = split_gap(1000, in_parts, 0, delay_outside_parts(1000, in_parts, 50'000), 20);
    EXPECT_LE(split.preempted + split.blocked, in_parts < 1000 ? 1000 - in_parts : 0);
  }
}

TEST(DelayShareTest, IsReadWhereThatIsWorthIt) {
  DelayShare share;
  EXPECT_FALSE(share.is_worth_reading(99 * 10, 10));
  EXPECT_TRUE(share.is_worth_reading(100 * 10, 10));
  share.estimate(600);
  EXPECT_FALSE(share.is_worth_reading(399, 10));
  EXPECT_TRUE(share.is_worth_reading(400, 10)) << "many short ones are worth as much";
}

TEST(DelayShareTest, CallsBetweenTwoReadingsHaveTheShareOfTheLastOne) {
  DelayShare share;
  EXPECT_EQ(share.estimate(1000), 0u) << "nothing was read yet";
  EXPECT_EQ(share.settle(1000, 500, true), 500u);
  EXPECT_EQ(share.estimate(400), 100u);
  EXPECT_EQ(share.estimate(800), 200u);
  EXPECT_EQ(share.unread(), 1200u);
}

TEST(DelayShareTest, TheNextReadingMakesGood) {
  DelayShare share;
  share.settle(1000, 500, true);
  share.estimate(600);  // 300
  EXPECT_EQ(share.settle(400, 700, true), 400u) << "700 in all, 300 given";
  EXPECT_EQ(share.unread(), 0u);
  share.estimate(1000);  // 700
  EXPECT_EQ(share.settle(100, 500, true), 0u) << "more was given than there was";
}

TEST(DelayShareTest, GapsTellNothingOfCalls) {
  DelayShare share;
  share.settle(1000, 100, true);
  EXPECT_EQ(share.settle(1000, 1000, false), 1000u);
  EXPECT_EQ(share.estimate(1000), 100u);
}

TEST(DelayShareTest, IsNeverMoreThanAll) {
  DelayShare share;
  share.settle(1000, 5000, true);
  EXPECT_EQ(share.estimate(1000), 1000u);
}

TEST(DelayInCallTest, IsTheRunDelay) {
  EXPECT_EQ(delay_in_call(10'000, 10'000, 4'000, 3'000), 3'000u);
  EXPECT_EQ(delay_in_call(10'000, 10'000, 4'000, 0), 0u);
}

// The reference may be that of an earlier call: what was lost before this one is not in it.
TEST(DelayInCallTest, IsAtMostHalfOfTheCall) {
  EXPECT_EQ(delay_in_call(10'000, 10'000, 1'000, 9'000), 5'000u);
  EXPECT_EQ(delay_in_call(10'000, 50'000, 1'000, 40'000), 5'000u);
}

TEST(DelayInCallTest, IsNeverMoreThanTheTimeOffTheProcessor) {
  EXPECT_EQ(delay_in_call(10'000, 10'000, 9'000, 3'000), 1'000u);
  EXPECT_EQ(delay_in_call(10'000, 10'000, 12'000, 3'000), 0u);
}

class ProcessClockTest : public testing::Test {
 protected:
  void SetUp() override {
    clock_start();
    nap(20);  // something to measure the rate over
    clock_calibrate();
    clock_.open();
    clock_.renew();
  }
  void TearDown() override { clock_.close(); }
  static void nap(long ms) {
    const timespec time{0, ms * 1'000'000};
    nanosleep(&time, nullptr);
  }
  static void compute(std::uint64_t ms) {
    const std::uint64_t end = read_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1'000'000;
    while (read_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
  }
  ProcessClock clock_;
};

TEST_F(ProcessClockTest, ThresholdKeepsTheReadingBelowOnePercent) {
  EXPECT_GE(tick_clock.cpu_threshold, kReadsInThreshold * tick_clock.cpu_read);
  EXPECT_GE(tick_clock.cpu_threshold + 1, ticks_from_ns(kDefaultCpuThresholdNs));
}

TEST_F(ProcessClockTest, SleepIsBlocked) {
  const std::uint64_t leave = ticks_now();
  nap(10);
  const std::uint64_t enter = ticks_now();
  const GapSplit split = clock_.end_gap(leave, enter);
  EXPECT_GE(split.blocked, ticks_from_ns(9'000'000));
  EXPECT_LE(split.blocked + split.preempted, enter - leave);
}

TEST_F(ProcessClockTest, ComputingIsNotBlocked) {
  const std::uint64_t leave = ticks_now();
  compute(10);
  const std::uint64_t enter = ticks_now();
  const GapSplit split = clock_.end_gap(leave, enter);
  // Whoever else runs on this machine may preempt it; what is left is the computing, to 10 %.
  const std::uint64_t process = enter - leave - split.preempted - split.blocked;
  EXPECT_GE(process, ticks_from_ns(9'900'000));
  EXPECT_LE(process, ticks_from_ns(11'000'000));
}

TEST_F(ProcessClockTest, OffCpuTimeInsideALongCallIsNotChargedToTheNextGap) {
  const std::uint64_t enter = ticks_now();
  nap(10);
  const std::uint64_t now = ticks_now();
  ASSERT_TRUE(clock_.wants_renewal(enter, now));
  clock_.renew_after_call(enter, now);
  const std::uint64_t leave = ticks_now();
  compute(5);
  const std::uint64_t next = ticks_now();
  const GapSplit split = clock_.end_gap(leave, next);
  EXPECT_GE(next - leave - split.preempted - split.blocked, ticks_from_ns(4'900'000));
}

TEST_F(ProcessClockTest, RenewalsBecomeRareWhileAllIsShort) {
  std::uint64_t renewals = 0;
  const std::uint64_t begin = ticks_now();
  const std::uint64_t length = 100 * tick_clock.cpu_threshold;
  for (std::uint64_t now = begin; now - begin < length; now = ticks_now()) {
    if (!clock_.wants_renewal(now, now)) continue;
    clock_.renew_after_call(now, now);
    ++renewals;
  }
  // 1 + 2 + 4 + 8 + 16 thresholds, then every 16: about 9 in 100; at one in each threshold it would be 100.
  EXPECT_GE(renewals, 3u);
  EXPECT_LE(renewals, 12u);
}

// A thread's mark, where the C library and the kernel have what it is made of.
class SwitchMarkTest : public testing::Test {
 protected:
  void SetUp() override {
    switch_marks_start();
    mark_.open();
    mark_.set();
    if (!intact_at_once()) GTEST_SKIP() << "no restartable sequences here";
  }
  void TearDown() override { mark_.close(); }
  // Between the two other programs may get the processor: in one of many tries none does.
  bool intact_at_once() {
    for (int i = 0; i < 1000; ++i) {
      mark_.set();
      if (mark_.intact()) return true;
    }
    return false;
  }
  SwitchMark mark_;
};

TEST_F(SwitchMarkTest, SleepBreaksIt) {
  for (int i = 0; i < 20; ++i) {
    mark_.set();
    const timespec moment{0, 1};
    nanosleep(&moment, nullptr);
    EXPECT_FALSE(mark_.intact());
  }
}

TEST_F(SwitchMarkTest, SystemCallsThatDoNotSleepLeaveIt) {
  bool left = false;
  for (int i = 0; i < 1000 && !left; ++i) {
    mark_.set();
    getppid();
    left = mark_.intact();
  }
  EXPECT_TRUE(left);
}

TEST_F(SwitchMarkTest, ClosedIsNotIntact) {
  mark_.set();
  mark_.close();
  EXPECT_FALSE(mark_.intact());
  mark_.set();
  EXPECT_FALSE(mark_.intact());
}

// Without a system call: gaps and calls below a millisecond in which the thread had its processor.
TEST_F(ProcessClockTest, WhereTheMarkIsIntactTheClockIsNotRead) {
  SwitchMark mark;
  mark.open();
  mark.set();
  if (!mark.intact()) GTEST_SKIP() << "no restartable sequences here";
  std::uint64_t unread = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t leave = ticks_now();
    while (ticks_now() - leave < 2 * tick_clock.cpu_threshold) {
    }
    const std::uint64_t spent = clock_.spent_ticks();
    const GapSplit split = clock_.end_gap(leave, ticks_now());
    if (clock_.spent_ticks() != spent) continue;
    ++unread;
    EXPECT_EQ(split.preempted + split.blocked, 0u);
  }
  EXPECT_GE(unread, 1u);
}

// 10 ms without a switch: read all the same, and what it says is what passed.
TEST_F(ProcessClockTest, TheClockIsReadNowAndThenWhateverTheMarkSays) {
  const std::uint64_t spent = clock_.spent_ticks();
  const std::uint64_t begin_cpu = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t begin = ticks_now();
  while (ticks_now() - begin < 30 * tick_clock.trusted_mark) {
    const std::uint64_t leave = ticks_now();
    while (ticks_now() - leave < tick_clock.cpu_threshold) {
    }
    clock_.end_gap(leave, ticks_now());
  }
  EXPECT_GT(clock_.spent_ticks(), spent);
  const double passed = static_cast<double>(read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu);
  EXPECT_NEAR(static_cast<double>(clock_.cpu_ns() - begin_cpu), passed, 0.1 * passed);
}

// A gap of half a millisecond is below what the mark is trusted for; asleep it is blocked all the same.
TEST_F(ProcessClockTest, ShortSleepsAreBlocked) {
  std::uint64_t blocked = 0, gaps = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t leave = ticks_now();
    const timespec time{0, 500'000};
    nanosleep(&time, nullptr);
    const std::uint64_t enter = ticks_now();
    const GapSplit split = clock_.end_gap(leave, enter);
    blocked += split.blocked + split.preempted;
    gaps += enter - leave;
  }
  EXPECT_GE(blocked, gaps - gaps / 5);
}

}  // namespace
}  // namespace lbf::capture::process_time_test
