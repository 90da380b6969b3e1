// Recorder, regions part: parallel regions of OpenMP between two recorded calls (adr/0012-threads.md).
//
// Place in the event's way: regions.h (preload) -> *recorder* -> ring. A region makes its thread's next call attentive;
// a call that follows none costs nothing more.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/clock.h"
#include "spank_plugin/capture/region_times.h"
#include "spank_plugin/capture/thread.h"

namespace lbf::capture {

// When the run begins, on THREAD.
void start_regions(Thread& thread) noexcept;
// The calling thread, which is THREAD, records, or only counts: its regions, and its waits for devices, are measured or
// not from here on.
void watch_regions(Thread& thread) noexcept;
// Of the calling thread none are measured any more.
void unwatch_regions() noexcept;
// Of no thread, for good.
void stop_regions() noexcept;

// Or a part of one that goes on, which took something to measure.
inline bool has_regions(const Thread& thread) noexcept {
  return thread.regions != nullptr && (thread.regions->regions() | thread.regions->cost) != 0;
}
// Time off the processor since the last call that was waiting for the team.
inline std::uint64_t waited_in_regions(const Thread& thread) noexcept {
  return thread.regions != nullptr ? thread.regions->off + thread.regions->waited : 0;
}
// The record of the gap that a call ends at ENTER, and what measuring cost. REQUIRES: has_regions; the gap is judged;
// nothing of the call is in the ring yet.
void write_regions(Thread& thread, std::uint64_t enter, std::uint16_t function) noexcept;

// What of the gap that a call ends is no process time, as SPLIT: before the records of the gap.
inline void adjust_gap(Thread& thread, const GapSplit& split) noexcept {
  if ((split.preempted | split.blocked) != 0) thread.ring.adjust(split.preempted, split.blocked, 0);
  if (split.blocked != 0 && thread.mode.last_was_failed_poll) thread.ring.note_look_sleep(split.blocked);
}

// The long gap of GAP ticks that a call ends at ENTER, judged as SPLIT: where other threads of the process worked in it
// it is one region, written as write_regions does, and what the thread waited for them is no longer blocked.
void judge_pool(Thread& thread, std::uint64_t gap, std::uint64_t enter, std::uint16_t function,
                GapSplit& split) noexcept;

}  // namespace lbf::capture
