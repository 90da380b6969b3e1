// Devices: how long threads wait for a GPU, measured while the program runs, and what the recorder is told.
//
// Place in the event's way: entry of CUDA or HIP (device_entries.cpp) -> *devices* -> sums of the thread that waits ->
// recorder (recorder_devices.cpp) -> ring. In the preload; docs/adr/0013-devices.md. Only threads that record MPI calls
// measure, and only between these calls: what an MPI library does with a device is in the call's time. noexcept, no
// heap, no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "spank_plugin/capture/device_functions.h"
#include "spank_plugin/capture/device_times.h"

namespace lbf::capture {

// What the recorder gives of a thread, and what it looks at.
struct DeviceWatch {
  const std::atomic<std::uint32_t>* where = nullptr;  // ring::Header::in_call; nullptr: nothing is measured
  std::uint64_t* attention = nullptr;                 // becomes 0 with each wait
  std::atomic<std::uint32_t>* libraries = nullptr;    // ring::Header::device_libraries
};

// What the preload offers the recorder (dispatch.h).
struct DeviceHost {
  void (*watch)(const DeviceWatch& watch);  // the calling thread
  DeviceSums* (*sums)();                    // of the calling thread; valid as long as the thread
  DeviceSums* (*seen)();                    // all that it took
  std::uint32_t (*libraries)();             // loaded_device_libraries()
};
extern constinit DeviceHost device_host;

// Whether a wait of the calling thread is measured that begins now: it records, it is in no MPI call, in no other wait
// and in no parallel region, which has the wait in its time.
bool measures_device_waits() noexcept;

// A wait for a device, as long as this lives. REQUIRES: measures_device_waits().
class DeviceWait {
 public:
  explicit DeviceWait(DeviceFunction function) noexcept;
  ~DeviceWait();
  DeviceWait(const DeviceWait&) = delete;
  DeviceWait& operator=(const DeviceWait&) = delete;

 private:
  DeviceFunction function_;
  bool reads_cpu_;
  std::uint64_t cpu_begin_ns_ = 0;
  std::uint64_t begin_;
};

}  // namespace lbf::capture
