// See recorder_devices.h.
#include "spank_plugin/capture/recorder_devices.h"

#include "spank_plugin/capture/devices.h"
#include "spank_plugin/capture/recorder.h"
#include "spank_plugin/capture/recorder_regions.h"

namespace lbf::capture {

void watch_devices(Thread& thread) noexcept {
  thread.devices = preload_devices().sums();
  preload_devices().watch({&thread.header->in_call, &thread.attention.recorded_at, &thread.header->device_libraries});
}

void unwatch_devices() noexcept {
  preload_devices().watch({});
}

std::uint64_t off_in_parts_of_gap(const Thread& thread) noexcept {
  const std::uint64_t in_regions = waited_in_regions(thread);
  if (!has_devices(thread)) return in_regions;
  return in_regions + thread.devices->wall - busy_ticks(*thread.devices, *preload_devices().seen());
}

void write_devices(Thread& thread, std::uint64_t enter, std::uint16_t function) noexcept {
  DeviceSums& sums = *thread.devices;
  DeviceSums& seen = *preload_devices().seen();
  thread.ring.begin_call(enter, 0);
  if (ring::Record* const record = thread.ring.try_append(EventKind::kDevice, ring::kDeviceWords)) {
    ring::write_device_waits(RingWriter::values_of(record), {sums.calls, busy_ticks(sums, seen), sums.wall});
    record->flags = 0;  // no MPI call begins here
  }
  thread.ring.commit(enter);
  thread.ring.begin_call(enter, function);
  add(thread.header->recorded.dear_ticks, sums.cost);
  thread.own_grants.dear_ticks += sums.cost;
  seen.clocked += sums.clocked;
  seen.busy += sums.busy;
  sums = {};
}

void note_device_libraries(Thread& thread) noexcept {
  thread.header->device_libraries.fetch_or(preload_devices().libraries(), std::memory_order_relaxed);
}

}  // namespace lbf::capture
