// Region time: what parallel regions take with another number of threads (docs/adr/0012-threads.md, "Model").
//
// Place in the event's way: match/region_table.h -> *region time* -> the replays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "predictor/engine/match/region_table.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

// Fork and join of a region with two threads, where nobody measured them. Each doubling costs as much.
inline constexpr Seconds kNominalForkJoinS = 1e-6;

// Of one region, as measured. Beyond that each doubling costs as much. REQUIRES: measured.known(), threads >= 1.
inline Seconds fork_join_s(const CountCurve& measured, std::uint32_t threads) {
  const auto& [most, longest_s] = measured.points().back();
  if (threads <= most || most == 1) return measured.at(threads);
  return longest_s * std::log2(threads) / std::log2(most);
}

// What regions want of the processors, in seconds at speed 1.
struct RegionDemand {
  Seconds alone_s = 0;     // one thread: fork, join, and what the others wait for
  Seconds together_s = 0;  // then each of `threads` threads
  std::uint32_t threads = 1;
};

// So much of the work that one thread has while the others wait, that it takes `critical_s` with the threads that ran.
inline Seconds undivided_s(const RegionWork& ran) {
  if (ran.threads <= 1) return 0;
  const double threads = ran.threads;
  return std::clamp((ran.critical_s - ran.work_s / threads) * threads / (threads - 1), 0.0, ran.work_s);
}

// What ran has the program's own gaps between regions, which a calibration does not: only ratios are taken from that.
inline Seconds fork_join_s(const RegionWork& ran, const CountCurve& measured, std::uint32_t threads) {
  if (threads == ran.threads) return ran.fork_join_s;
  if (threads == 1) return 0;
  if (!measured.known()) {
    if (ran.threads == 1) return ran.regions * kNominalForkJoinS * std::log2(threads);
    return ran.fork_join_s * std::log2(threads) / std::log2(ran.threads);
  }
  if (ran.threads == 1) return ran.regions * fork_join_s(measured, threads);
  const Seconds each_ran_s = fork_join_s(measured, ran.threads);
  return each_ran_s > 0 ? ran.fork_join_s * fork_join_s(measured, threads) / each_ran_s : ran.fork_join_s;
}

// With TARGET.threads threads, or as many as ran.
inline RegionDemand demand_of(const RegionWork& ran, const Target& target) {
  const std::uint32_t threads = target.threads != 0 ? target.threads : ran.threads;
  const Seconds undivided = undivided_s(ran);
  return {fork_join_s(ran, target.network->fork_join_s(), threads) + undivided, (ran.work_s - undivided) / threads,
          threads};
}

// The time where `processors` are this rank's alone.
inline Seconds region_time_s(const RegionDemand& demand, double processors) {
  const double threads = demand.threads;
  return demand.alone_s + demand.together_s * (threads / std::min(threads, std::max(processors, 1.0)));
}

}  // namespace lbf::engine
