// See recorder_regions.h.
#include "spank_plugin/capture/recorder_regions.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "spank_plugin/capture/recorder.h"
#include "spank_plugin/capture/recorder_devices.h"
#include "spank_plugin/capture/regions.h"

namespace lbf::capture {
namespace {

// The runtime has bound this thread alone.
bool binds_threads() noexcept {
  for (const char* const name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    if (getenv(name) != nullptr) return true;
  }
  return false;
}

// Of this rank. Where the launcher binds nothing, ranks share the node's processors alike.
std::uint32_t own_processors() noexcept {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const auto all = static_cast<std::uint32_t>(online > 0 ? online : 1);
  cpu_set_t mask;
  const bool is_known = !binds_threads() && sched_getaffinity(0, sizeof(mask), &mask) == 0;
  const auto allowed = is_known ? static_cast<std::uint32_t>(CPU_COUNT(&mask)) : all;
  const std::uint32_t ranks = ranks_on_node();
  if (allowed < all || ranks == 0) return allowed > 0 ? allowed : 1;
  return all > ranks ? all / ranks : 1;
}

void write_record(Thread& thread, std::uint64_t enter, std::uint16_t function) noexcept {
  const RegionSums& sums = *thread.regions;
  const RegionTimes all = all_regions(sums, *preload_regions().seen());
  thread.ring.begin_call(enter, 0);
  if (ring::Record* const record = thread.ring.try_append(EventKind::kRegions, ring::kRegionWords)) {
    ring::write_regions(RingWriter::values_of(record),
                        {sums.regions(), sums.largest_team(), all.work, all.critical, all.fork_join, all.wall});
    record->flags = 0;  // no MPI call begins here
  }
  thread.ring.commit(enter);
  thread.ring.begin_call(enter, function);
}

}  // namespace

void start_regions(Thread& thread) noexcept {
  preload_regions().start(tick_clock, own_processors());
  watch_regions(thread);
}

void watch_regions(Thread& thread) noexcept {
  if (thread.mode.counting) return unwatch_regions();
  watch_devices(thread);
  thread.regions = preload_regions().sums();
  preload_regions().watch({&thread.attention.recorded_at, &thread.last_leave});
}

void unwatch_regions() noexcept {
  unwatch_devices();
  preload_regions().watch({});
}

void stop_regions() noexcept {
  preload_regions().stop();
}

// Threads of a team spin between regions, threads that call MPI tell of themselves, and a device's library has threads
// of its own.
void judge_pool(Thread& thread, std::uint64_t gap, std::uint64_t enter, std::uint16_t function,
                GapSplit& split) noexcept {
  const bool is_alone =
      !thread.mode.shared && process.threads.load(std::memory_order_relaxed) == &thread && thread.next == nullptr;
  if (thread.regions == nullptr || !is_alone || has_regions(thread) || has_devices(thread) ||
      preload_regions().seen()->wall != 0)
    return;
  if (!thread.pool.is_due(gap)) return;
  thread.cost.beside_calls_ticks += tick_clock.cpu_read;
  const std::uint64_t others = thread.pool.others_in(gap, thread.clock.cpu_ns());
  const std::uint64_t cpu = gap - split.preempted - split.blocked;
  const PoolGap pool = pool_gap(cpu, split.blocked, others, thread.pool.threads(), tick_clock.off_cpu_tolerance);
  if (pool.threads == 0) return;
  thread.pool.note_threads(pool.threads);
  split.blocked -= pool.unblocked;
  adjust_gap(thread, split);
  split = {};
  thread.regions->add(pool.times, pool.threads);
  write_record(thread, enter, function);
  thread.regions->clear();
}

void write_regions(Thread& thread, std::uint64_t enter, std::uint16_t function) noexcept {
  RegionSums& sums = *thread.regions;
  RegionTimes& seen = *preload_regions().seen();
  if (sums.regions() != 0) write_record(thread, enter, function);
  add(thread.header->recorded.dear_ticks, sums.cost);
  thread.own_grants.dear_ticks += sums.cost;
  seen.wall += sums.times.wall;
  seen.work += sums.times.work;
  seen.critical += sums.times.critical;
  seen.fork_join += sums.times.fork_join;
  sums.clear();
}

}  // namespace lbf::capture
