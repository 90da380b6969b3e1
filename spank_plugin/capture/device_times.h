// Device times: how long a thread waited for its device, and how much of that it used the processor; arithmetic alone.
//
// Place in the event's way: inside *capture*, under the preload (devices.h), which measures, and the recorder
// (recorder_devices.cpp), which takes the sums of a gap. docs/adr/0013-devices.md. All times are in ticks.
#pragma once

#include <cstdint>

namespace lbf::capture {

// The waits of a thread since they were last taken.
struct DeviceSums {
  std::uint64_t calls = 0;
  std::uint64_t wall = 0;
  std::uint64_t clocked = 0;  // of `wall`, in calls around which the thread's processor time was read
  std::uint64_t busy = 0;     // on the processor, of `clocked`
  std::uint64_t cost = 0;     // what measuring took

  constexpr void add(std::uint64_t passed) noexcept {
    ++calls;
    wall += passed;
  }
  // PROCESSOR: what the thread used of it. Of a clock that is coarser than the call it may be more than `passed`.
  constexpr void add_clocked(std::uint64_t passed, std::uint64_t processor) noexcept {
    add(passed);
    clocked += passed;
    busy += processor < passed ? processor : passed;
  }
};

// Of the time in waits that was not read the same share was on the processor as of what was, BEFORE's too; where
// nothing was it is all of it: the libraries spin unless they are asked not to.
constexpr std::uint64_t busy_ticks(const DeviceSums& sums, const DeviceSums& before) noexcept {
  const std::uint64_t rest = sums.wall - sums.clocked;
  const std::uint64_t clocked = sums.clocked + before.clocked;
  if (clocked == 0) return sums.busy + rest;
  const double share = static_cast<double>(sums.busy + before.busy) / static_cast<double>(clocked);
  return sums.busy + static_cast<std::uint64_t>(share * static_cast<double>(rest));
}

}  // namespace lbf::capture
