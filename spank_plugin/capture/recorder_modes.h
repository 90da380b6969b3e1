// Recorder, modes part: what a call's way (recorder_attention.cpp) asks of the modes (recorder_modes.cpp).
#pragma once

#include <cstdint>

#include "spank_plugin/capture/procedure_times.h"
#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {

inline void update_estimate(Thread& thread) noexcept {
  const std::uint64_t calls = thread.header->recorded.executions.load(std::memory_order_relaxed);
  thread.header->capture_ticks_estimate.store(thread.cost.beside_calls_ticks + calls * thread.cost.call_ticks,
                                              std::memory_order_relaxed);
}

inline std::uint64_t recorded_calls(const Thread& thread) noexcept {
  return thread.header->recorded.executions.load(std::memory_order_relaxed);
}

// Whether the relay has not spoken yet.
inline bool has_own_grant(const Thread& thread) noexcept {
  return thread.header->grant.load(std::memory_order_relaxed) == thread.own_grants.recorded;
}

inline bool is_used_up(const Thread& thread) noexcept {
  const std::uint64_t grant = thread.header->grant.load(std::memory_order_relaxed);
  if (grant == 0) return false;
  return (has_own_grant(thread) ? recorded_use(thread) : recorded_calls(thread)) >= grant;
}

inline bool is_counting_used_up(const ring::Header& header) noexcept {
  const std::uint64_t grant = header.counted_grant.load(std::memory_order_relaxed);
  return grant != 0 && header.counted.executions.load(std::memory_order_relaxed) >= grant;
}

// The next call ends the capture where the counted ones are used up.
inline void look_at_counted_grant(Thread& thread) noexcept {
  if (is_counting_used_up(*thread.header)) thread.attention.expected_control.store(kNever, std::memory_order_relaxed);
}

// Where the capture is regulated a ring that fills closes the window before anything is lost: the relay has not
// kept up. Looked at as often as calls are sampled.
inline bool is_nearly_full(Thread& thread) noexcept {
  return thread.header->grant.load(std::memory_order_relaxed) != 0 && thread.ring.nearly_full();
}

// Sets which call of the thread leaves the fast way next: that of the next sample, or the one behind the grant.
inline void set_attention(Thread& thread) noexcept {
  if (thread.mode.counting) {
    thread.attention.recorded_at = 0;
    thread.attention.counted_at = has_counted_calls(thread) ? thread.cost.counted.due() : 0;
    return;
  }
  thread.attention.counted_at = 0;
  if (procedures_library() != nullptr) {
    thread.attention.recorded_at = 0;
    return;
  }
  const std::uint64_t grant = thread.header->grant.load(std::memory_order_relaxed);
  const std::uint64_t due = thread.cost.recorded.due();
  thread.attention.recorded_at = grant != 0 && grant < due ? grant : due;
}

// Another thread changed the mode.
void catch_up(Thread& thread) noexcept;

// Does what the relay wants by now. false: the capture is off.
bool attend(Thread& self, std::uint16_t function) noexcept;

// Without room for a record: it is lost as any, or nothing happens.
enum class Room { kOrLost, kOrNothing };
// COUNT messages or collectives at END that have no records. false: the record is not in the ring.
bool write_skipped(RingWriter& ring, const ChannelEnd& end, std::uint64_t count, std::uint64_t at,
                   std::uint16_t function, Room room) noexcept;
// What was counted into the ring, as having no time, as far as there is room. false: not all.
bool write_counts_of(ChannelCounts& counts, RingWriter& ring, std::uint16_t function) noexcept;
// The same of COMM, which is about to be freed.
bool write_counts_of(std::uint32_t comm, ChannelCounts& counts, RingWriter& ring, std::uint16_t function) noexcept;

}  // namespace lbf::capture
