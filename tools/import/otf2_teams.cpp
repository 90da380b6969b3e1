// See otf2_teams.h.
#include "tools/import/otf2_teams.h"

#include <algorithm>
#include <utility>

namespace lbf::tools::otf2 {

Teams::Thread& Teams::thread(std::uint16_t number) {
  if (number >= threads_.size()) threads_.resize(number + std::size_t{1});
  return threads_[number];
}

void Teams::on(const Record& record) {
  switch (record.kind) {
    case Record::Kind::kFork:
      if (depth_++ > 0) return;
      fork_ns_ = record.ns;
      has_call_ = false;
      for (Thread& each : threads_) each = {};
      return;
    case Record::Kind::kJoin:
      if (depth_ == 0 || --depth_ > 0) return;
      return join(record.ns);
    case Record::Kind::kTeamBegin: {
      Thread& mine = thread(record.thread);
      if (depth_ != 1 || mine.took_part) return;
      mine.in_team = mine.took_part = true;
      mine.begin_ns = record.ns;
      return;
    }
    case Record::Kind::kTeamEnd: {
      Thread& mine = thread(record.thread);
      if (depth_ != 1 || !mine.in_team) return;
      mine.in_team = false;
      mine.end_ns = record.ns;
      return;
    }
    default:
      return;
  }
}

void Teams::enter_barrier(std::uint16_t number, Nanoseconds ns) {
  if (depth_ == 1) thread(number).barrier_begin_ns = ns;
}

void Teams::leave_barrier(std::uint16_t number, Nanoseconds ns) {
  Thread& mine = thread(number);
  if (depth_ != 1 || !mine.in_team) return;
  mine.last_wait_ns = std::max<Nanoseconds>(ns - std::max(mine.barrier_begin_ns, mine.begin_ns), 0);
  mine.last_wait_end_ns = ns;
  mine.waited_ns += mine.last_wait_ns;
}

void Teams::join(Nanoseconds ns) {
  std::uint64_t team = 0;
  Nanoseconds work = 0;
  Nanoseconds longest = 0;
  Nanoseconds first_begin = ns;
  Nanoseconds last_end = fork_ns_;
  for (const Thread& each : threads_) {
    if (!each.took_part) continue;
    // The barrier at the region's end is no part of the longest thread's way; those before it are.
    constexpr Nanoseconds kAtOnce = 1000;
    const Nanoseconds end = each.in_team ? ns : each.end_ns;
    const bool ends_waiting = each.last_wait_end_ns >= 0 && end - each.last_wait_end_ns <= kAtOnce;
    const Nanoseconds last_wait = ends_waiting ? each.last_wait_ns : 0;
    ++team;
    work += std::max<Nanoseconds>(end - each.begin_ns - each.waited_ns, 0);
    longest = std::max(longest, end - each.begin_ns - last_wait);
    first_begin = std::min(first_begin, each.begin_ns);
    last_end = std::max(last_end, end - last_wait);
  }
  if (team == 0) return;
  if (has_call_) {
    ++with_calls_;
    return;
  }
  ++regions_;
  most_threads_ = std::max(most_threads_, team);
  wall_ns_ += ns - fork_ns_;
  work_ns_ += work;
  critical_ns_ += std::min(longest, work);
  outside_ns_ += std::max<Nanoseconds>(first_begin - fork_ns_, 0) + std::max<Nanoseconds>(ns - last_end, 0);
}

std::optional<Teams::Sum> Teams::take() {
  if (regions_ == 0 || depth_ > 0) return std::nullopt;
  Sum sum{wall_ns_, {}};
  for (const std::uint64_t value : {regions_, most_threads_, static_cast<std::uint64_t>(work_ns_),
                                    static_cast<std::uint64_t>(critical_ns_), static_cast<std::uint64_t>(outside_ns_)})
    sum.values.push_back(value);
  regions_ = most_threads_ = 0;
  wall_ns_ = work_ns_ = critical_ns_ = outside_ns_ = 0;
  return sum;
}

}  // namespace lbf::tools::otf2
