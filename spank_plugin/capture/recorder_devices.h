// Recorder, devices part: waits for a device between two recorded calls (adr/0013-devices.md).
//
// Place in the event's way: devices.h (preload) -> *recorder* -> ring. A wait makes its thread's next call attentive;
// a call that follows none costs nothing more.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/thread.h"

namespace lbf::capture {

// The calling thread, which is THREAD, records: its waits are measured from here on.
void watch_devices(Thread& thread) noexcept;
// Of the calling thread none are measured any more.
void unwatch_devices() noexcept;

inline bool has_devices(const Thread& thread) noexcept {
  return thread.devices != nullptr && thread.devices->calls != 0;
}
// Time off the processor since the last call that was waiting for a device, or for the team of a region.
std::uint64_t off_in_parts_of_gap(const Thread& thread) noexcept;
// The record of the gap that a call ends at ENTER, and what measuring cost. REQUIRES: has_devices; the gap is judged;
// nothing of the call is in the ring yet.
void write_devices(Thread& thread, std::uint64_t enter, std::uint16_t function) noexcept;
// Which libraries of devices are loaded is in the ring's header.
void note_device_libraries(Thread& thread) noexcept;

}  // namespace lbf::capture
