// See devices.h.
#include "spank_plugin/capture/devices.h"

#include "spank_plugin/capture/clock.h"
#include "spank_plugin/capture/regions.h"
#include "spank_plugin/capture/ring.h"

namespace lbf::capture {
namespace {

constexpr std::uint64_t kClockReadsOfWait = 2;  // that read the CPU clock
constexpr std::uint8_t kShortReads = 4;         // waits that are read after one that was long enough for it

struct DeviceThread {
  DeviceWatch watch;
  DeviceSums sums;
  DeviceSums seen;
  // By function: waits since one of which reading the CPU clock was a hundredth, as far as they were read.
  std::uint8_t short_waits[kDeviceFunctions] = {};
  bool waits = false;
};
thread_local constinit DeviceThread device_thread __attribute__((tls_model("initial-exec")));

// Who waited in a function has the library, whatever its file is called.
constexpr std::uint32_t library_of(DeviceFunction function) noexcept {
  return function < DeviceFunction::k_hipDeviceSynchronize ? ring::kCudaLibrary : ring::kHipLibrary;
}

std::uint8_t& short_waits_in(DeviceFunction function) noexcept {
  return device_thread.short_waits[static_cast<std::uint32_t>(function)];
}

}  // namespace

bool measures_device_waits() noexcept {
  const DeviceThread& self = device_thread;
  return self.watch.where != nullptr && !self.waits && !is_measuring_over() &&
         self.watch.where->load(std::memory_order_relaxed) == ring::kInProgram && !is_in_region();
}

DeviceWait::DeviceWait(DeviceFunction function) noexcept
    : function_(function), reads_cpu_(short_waits_in(function) < kShortReads) {
  device_thread.waits = true;
  begin_ = ticks_now();  // first: a thread that returns from the kernel may lose its processor, and waits all the same
  if (reads_cpu_) cpu_begin_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

DeviceWait::~DeviceWait() {
  const std::uint64_t wall = ticks_now() - begin_;
  DeviceThread& self = device_thread;
  self.waits = false;
  if (reads_cpu_) {
    self.sums.add_clocked(wall, ticks_from_ns(read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin_ns_));
  } else {
    self.sums.add(wall);
  }
  self.sums.cost += 2 * tick_clock.tick_read + (reads_cpu_ ? kClockReadsOfWait * tick_clock.cpu_read : 0);
  std::uint8_t& short_waits = short_waits_in(function_);
  if (wall >= kClockReadsOfWait * tick_clock.cpu_threshold) {
    short_waits = 0;
  } else if (reads_cpu_) {
    ++short_waits;
  }
  if (self.watch.where == nullptr) return;  // the capture has ended meanwhile
  *self.watch.attention = 0;
  const std::uint32_t known = self.watch.libraries->load(std::memory_order_relaxed);
  if ((known & library_of(function_)) == 0)
    self.watch.libraries->store(known | library_of(function_), std::memory_order_relaxed);
}

namespace {

void watch_device_waits(const DeviceWatch& wanted) {
  device_thread.watch = wanted;
  device_thread.sums = {};
}

DeviceSums* device_sums() {
  return &device_thread.sums;
}

DeviceSums* device_sums_before() {
  return &device_thread.seen;
}

}  // namespace

constinit DeviceHost device_host{watch_device_waits, device_sums, device_sums_before, loaded_device_libraries};

}  // namespace lbf::capture
