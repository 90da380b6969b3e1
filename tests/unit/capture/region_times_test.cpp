#include "spank_plugin/capture/region_times.h"

#include <gtest/gtest.h>

#include <array>

#include "spank_plugin/capture/pool_clock.h"

namespace lbf::region_times_test {
namespace {

using namespace capture;

BodyTimes body(std::uint64_t wall, std::uint64_t waited = 0, std::uint64_t off = 0) {
  BodyTimes times;
  times.wall = wall;
  times.waited = waited;
  times.off = off;
  return times;
}

TEST(MemberTimes, SpinningAtABarrierIsNoWork) {
  const MemberTimes spins = member_times(10, body(100, 40));
  EXPECT_EQ(spins.begin, 10U);
  EXPECT_EQ(spins.end, 110U);
  EXPECT_EQ(spins.work, 60U);
  EXPECT_EQ(spins.busy, 60U);
  EXPECT_EQ(spins.path, 100U);
}

TEST(MemberTimes, TimeOffTheProcessorIsFirstTheWaiting) {
  EXPECT_EQ(member_times(0, body(100, 40, 40)).work, 60U);  // slept at the barrier
  EXPECT_EQ(member_times(0, body(100, 40, 40)).path, 100U);
  EXPECT_EQ(member_times(0, body(100, 40, 70)).work, 30U);  // 30 more were another program's
  EXPECT_EQ(member_times(0, body(100, 40, 70)).path, 70U);
  EXPECT_EQ(member_times(0, body(100, 0, 100)).work, 0U);
}

// 100 ticks, of which 50 are in a region of its own: two threads with 40 and 45, 5 to fork and join.
TEST(MemberTimes, ARegionInsideIsTheOuterOnes) {
  BodyTimes outer = body(100);
  outer.inner_wall = 50;
  outer.inner_work = 85;
  outer.inner_critical = 50;
  const MemberTimes member = member_times(0, outer);
  EXPECT_EQ(member.work, 135U);
  EXPECT_EQ(member.busy, 100U);
}

std::array<MemberTimes, 2> two(const MemberTimes& a, const MemberTimes& b) {
  return {a, b};
}

TEST(RegionTimes, AreTheSumTheLongestAndTheRest) {
  const auto members = two(member_times(3, body(90)), member_times(5, body(60)));
  const RegionTimes times = region_times(members.data(), 2, 2, TeamProcessors::kOwn, 0, 100);
  EXPECT_EQ(times.wall, 100U);
  EXPECT_EQ(times.work, 150U);
  EXPECT_EQ(times.critical, 90U);
  EXPECT_EQ(times.fork_join, 10U);
}

// Phases of 10 and 2, then 2 and 10: both threads work 12, the region takes 20.
TEST(RegionTimes, PhasesBetweenBarriersAddUpWhereThreadsHaveProcessors) {
  const auto members = two(member_times(0, body(20, 8)), member_times(0, body(20, 8)));
  const RegionTimes own = region_times(members.data(), 2, 2, TeamProcessors::kOwn, 0, 20);
  EXPECT_EQ(own.work, 24U);
  EXPECT_EQ(own.critical, 20U);
  EXPECT_EQ(own.fork_join, 0U);
}

// Two threads on one processor: each waits while the other one works.
TEST(RegionTimes, WaitsForAProcessorAreNoCriticalPart) {
  const auto members = two(member_times(0, body(20, 10)), member_times(0, body(20, 10)));
  const RegionTimes shared = region_times(members.data(), 2, 2, TeamProcessors::kShared, 0, 22);
  EXPECT_EQ(shared.work, 20U);
  EXPECT_EQ(shared.critical, 10U);
  EXPECT_EQ(shared.fork_join, 2U);
}

TEST(RegionTimes, OthersTimeIsNoForkAndJoin) {
  const auto members = two(member_times(0, body(90, 0, 30)), member_times(0, body(40)));
  const RegionTimes times = region_times(members.data(), 2, 2, TeamProcessors::kOwn, 0, 95);
  EXPECT_EQ(times.critical, 60U);
  EXPECT_EQ(times.fork_join, 5U);
}

TEST(RegionTimes, OfATeamWithoutRoomAreThoseOfTheMeasured) {
  const auto members = two(member_times(0, body(90)), member_times(0, body(70)));
  EXPECT_EQ(region_times(members.data(), 2, 6, TeamProcessors::kOwn, 0, 100).work, 480U);
  EXPECT_EQ(region_times(members.data(), 0, 0, TeamProcessors::kOwn, 0, 100).work, 0U);
}

TEST(RegionTimes, CriticalIsNeverMoreThanTheWork) {
  const auto members = two(member_times(0, body(100, 99)), member_times(0, body(100, 98)));
  const RegionTimes times = region_times(members.data(), 2, 2, TeamProcessors::kOwn, 0, 100);
  EXPECT_EQ(times.work, 3U);
  EXPECT_EQ(times.critical, 3U);
}

RegionSums sums_of(const RegionTimes& region, std::uint64_t times) {
  RegionSums sums;
  for (std::uint64_t i = 0; i < times; ++i) sums.add(region, 4);
  return sums;
}

TEST(RegionSums, TakeThePassedOnesAsTheMeasuredOnes) {
  RegionSums sums = sums_of({100, 300, 90, 10}, 2);
  EXPECT_EQ(all_regions(sums, {}).work, 600U);
  sums.passed = 5;
  sums.passed_wall = 400;
  EXPECT_EQ(sums.regions(), 7U);
  EXPECT_EQ(sums.threads, 4U);
  const RegionTimes all = all_regions(sums, {});
  EXPECT_EQ(all.wall, 600U);
  EXPECT_EQ(all.work, 1800U);
  EXPECT_EQ(all.critical, 540U);
  EXPECT_EQ(all.fork_join, 60U);
}

TEST(RegionSums, TakeThePassedOnesAsThoseBeforeWhereNoneIsMeasured) {
  RegionSums sums;
  sums.passed = 5;
  sums.passed_wall = 100;
  EXPECT_EQ(all_regions(sums, {1000, 3500, 900, 100}).work, 350U);
  EXPECT_EQ(all_regions(sums, {}).work, 100U);  // nothing is known of them
  EXPECT_EQ(all_regions(sums, {}).critical, 100U);
}

// The thread waits 900 of 1,000 ticks for three others.
TEST(PoolGap, WaitingForAPoolIsNoBlocking) {
  const PoolGap gap = pool_gap(100, 900, 2700, 0, 0);
  EXPECT_EQ(gap.unblocked, 900U);
  EXPECT_EQ(gap.times.wall, 1000U);
  EXPECT_EQ(gap.times.work, 2800U);
  EXPECT_EQ(gap.times.critical, 1000U);
  EXPECT_EQ(gap.threads, 3U);
}

// Half of it serial, then four threads: two and a half work at once on average, but four were seen before.
TEST(PoolGap, HasAsManyThreadsAsWereSeenAtOnce) {
  EXPECT_EQ(pool_gap(1000, 0, 1500, 0, 0).threads, 3U);
  EXPECT_EQ(pool_gap(1000, 0, 1500, 4, 0).threads, 4U);
  EXPECT_EQ(pool_gap(1000, 0, 200, 0, 0).threads, 2U);
}

TEST(PoolGap, IsNoneWhereOthersHardlyWork) {
  EXPECT_EQ(pool_gap(1000, 0, 90, 4, 0).threads, 0U);
  EXPECT_EQ(pool_gap(0, 0, 0, 4, 0).threads, 0U);
  EXPECT_EQ(pool_gap(107'612, 0, 12'334, 0, 48'000).threads, 0U) << "5 us between two reads";
  EXPECT_EQ(pool_gap(0, 1000, 50, 4, 0).unblocked, 50U);  // one worker alone, in 50 of 1,000 blocked ticks
}

// A thread that drives MPI, or spins, was taken for half of a pool: the serial rank got twice as long on one processor.
TEST(Helper, WhoRunsOnInCallsIsNoPool) {
  Helper helper;
  EXPECT_EQ(helper.without(1000, 1000), 1000U) << "no call has told yet";
  helper.note_call(500, 490);
  helper.note_call(500, 500);
  EXPECT_EQ(helper.without(1000, 1000), 0U);
  EXPECT_EQ(helper.without(1000, 1000 + 3000), 3010U) << "three workers beside it";
}

TEST(Helper, OnFewProcessorsRunsLessInSomeCalls) {
  Helper helper;
  helper.note_call(1000, 400);
  EXPECT_EQ(helper.without(1000, 900), 0U);
}

TEST(Helper, AWorkerThatSpinsForAWhileIsNone) {
  Helper helper;
  helper.note_call(1000, 100);
  EXPECT_EQ(helper.without(1000, 1000), 900U);
  Helper many;
  many.note_call(1000, 7000);
  EXPECT_EQ(many.without(1000, 7000), 6000U) << "of eight threads that spin in calls one is taken for a helper";
}

// A gap with one short region, of which the wall time alone was read: it had a team of 0, for which the relay closed
// the ring.
TEST(RegionSums, WhereNoneWasMeasuredTheTeamIsThatOfThoseBefore) {
  RegionSums sums;
  sums.passed = 1;
  EXPECT_EQ(sums.largest_team(), 1U) << "nobody knows";
  sums.add({100, 180, 90, 10}, 4);
  EXPECT_EQ(sums.largest_team(), 4U);
  sums.clear();
  EXPECT_EQ(sums.regions(), 0U);
  sums.passed = 1;
  EXPECT_EQ(sums.largest_team(), 4U);
  sums.clear();
  sums.add({100, 180, 90, 10}, 2);
  EXPECT_EQ(sums.largest_team(), 2U);
}

}  // namespace
}  // namespace lbf::region_times_test
