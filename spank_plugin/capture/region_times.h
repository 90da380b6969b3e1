// Region times: what the threads of a parallel region did, put together; arithmetic alone.
//
// Place in the event's way: inside *capture*, under the preload (regions.h), which measures, and the recorder
// (recorder_regions.cpp), which takes the sums of a gap. docs/adr/0012-threads.md. All times are in ticks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbf::capture {

// One thread's part of a region. Not cleared: a region has room for many.
struct alignas(64) MemberTimes {
  std::uint64_t begin;  // of its body
  std::uint64_t end;    // of its body, or of the last task that it ran after it
  std::uint64_t work;   // busy, with all threads of the regions that it entered itself
  std::uint64_t busy;   // the same with their critical parts
  std::uint64_t path;   // on a processor, or waiting for other members
};

// A body's time by its parts.
struct BodyTimes {
  std::uint64_t wall = 0;
  std::uint64_t waited = 0;          // in barriers, for tasks
  std::uint64_t off = 0;             // off the processor; 0: not read
  std::uint64_t inner_wall = 0;      // in regions that it entered
  std::uint64_t inner_work = 0;      // of all their threads
  std::uint64_t inner_critical = 0;  // of them, with fork and join
};

constexpr std::uint64_t above(std::uint64_t a, std::uint64_t b) noexcept {
  return a > b ? a - b : 0;
}
constexpr std::uint64_t smaller(std::uint64_t a, std::uint64_t b) noexcept {
  return a < b ? a : b;
}

// Time off the processor is waiting as far as the body waited. What is more of it others had the processor for.
constexpr MemberTimes member_times(std::uint64_t begin, const BodyTimes& body) noexcept {
  const std::uint64_t lost = above(body.off, body.waited + body.inner_wall);
  const std::uint64_t own = above(body.wall, body.waited + body.inner_wall + lost);
  return {begin, begin + body.wall, own + body.inner_work, own + body.inner_critical, above(body.wall, lost)};
}

struct RegionTimes {
  std::uint64_t wall = 0;
  std::uint64_t work = 0;       // of all threads
  std::uint64_t critical = 0;   // of the longest one; at most `work`
  std::uint64_t fork_join = 0;  // besides: until bodies begin, and since the last one ended
};

// Whether each thread of the team may have a processor of its own. Else a wait in a barrier is mostly for processors,
// and says nothing of how the work is shared.
enum class TeamProcessors : std::uint8_t { kOwn, kShared };

// Of a region from `begin` to `end` with a team of `team`, of which MEASURED members have their times.
constexpr RegionTimes region_times(const MemberTimes* members, std::size_t measured, std::size_t team,
                                   TeamProcessors processors, std::uint64_t begin, std::uint64_t end) noexcept {
  RegionTimes times{end - begin, 0, 0, end - begin};
  if (measured == 0) return times;
  std::uint64_t first = end;
  std::uint64_t last = begin;
  std::uint64_t lost = 0;  // by the longest
  for (std::size_t i = 0; i < measured; ++i) {
    const MemberTimes& member = members[i];
    const std::uint64_t length = processors == TeamProcessors::kOwn ? member.path : member.busy;
    if (length > times.critical) {
      times.critical = length;
      lost = above(member.end - member.begin, member.path);
    }
    times.work += member.work;
    first = smaller(first, member.begin);
    last = member.end > last ? member.end : last;
  }
  if (team > measured) times.work = times.work / measured * team;
  times.critical = smaller(times.critical, smaller(times.work, times.wall));
  // Who begins late makes the region longer, too. Where threads wait for processors nobody knows what it was.
  times.fork_join = processors == TeamProcessors::kOwn ? above(times.wall, times.critical + lost)
                                                       : smaller(times.wall, above(first, begin) + above(end, last));
  return times;
}

// The regions of a thread since they were last taken.
struct RegionSums {
  std::uint64_t measured = 0;  // regions
  std::uint64_t threads = 0;   // of their largest team
  std::uint64_t threads_before = 0;
  RegionTimes times;         // of the measured ones
  std::uint64_t passed = 0;  // regions that were too short to be measured each time
  std::uint64_t passed_wall = 0;
  std::uint64_t off = 0;     // the entering thread's time off the processor, where its clock was read
  std::uint64_t waited = 0;  // its waits where it was not
  std::uint64_t cost = 0;    // what measuring took of this thread

  constexpr std::uint64_t regions() const noexcept { return measured + passed; }
  // Where none was measured, that of those before.
  constexpr std::uint64_t largest_team() const noexcept {
    if (threads != 0) return threads;
    return threads_before != 0 ? threads_before : 1;
  }
  // They are taken.
  constexpr void clear() noexcept {
    const std::uint64_t before = threads != 0 ? threads : threads_before;
    *this = {};
    threads_before = before;
  }
  constexpr void add(const RegionTimes& region, std::uint64_t team) noexcept {
    ++measured;
    if (team > threads) threads = team;
    times.wall += region.wall;
    times.work += region.work;
    times.critical += region.critical;
    times.fork_join += region.fork_join;
  }
};

// `part` of `whole` as much as of `other`.
constexpr std::uint64_t in_proportion(std::uint64_t part, std::uint64_t whole, std::uint64_t other) noexcept {
  return whole == 0 ? 0
                    : static_cast<std::uint64_t>(static_cast<double>(part) / static_cast<double>(whole) *
                                                 static_cast<double>(other));
}

// All regions of SUMS, those that were passed as the measured ones; where none was, as those of `before`.
constexpr RegionTimes all_regions(const RegionSums& sums, const RegionTimes& before) noexcept {
  const RegionTimes& like = sums.times.wall != 0 ? sums.times : before;
  const std::uint64_t wall = sums.passed_wall;
  if (wall == 0) return sums.times;
  if (like.wall == 0) return {sums.times.wall + wall, sums.times.work + wall, sums.times.critical + wall, 0};
  return {sums.times.wall + wall, sums.times.work + in_proportion(like.work, like.wall, wall),
          sums.times.critical + in_proportion(like.critical, like.wall, wall),
          sums.times.fork_join + in_proportion(like.fork_join, like.wall, wall)};
}

}  // namespace lbf::capture
