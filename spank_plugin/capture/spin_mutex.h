// SpinMutex: the capture's lock. A thread that waits for it gives its processor away soon: the holder may have lost its
// own.
#pragma once

#include <sched.h>

#include <atomic>

#include "base/thread_annotations.h"

namespace lbf::capture {

class CAPABILITY("mutex") SpinMutex {
 public:
  void lock() noexcept ACQUIRE() {
    for (int spins = 0; flag_.test_and_set(std::memory_order_acquire); ++spins) {
      if (spins > 64) sched_yield();
    }
  }
  bool try_lock() noexcept TRY_ACQUIRE(true) { return !flag_.test_and_set(std::memory_order_acquire); }
  void unlock() noexcept RELEASE() { flag_.clear(std::memory_order_release); }
  // In the child of a fork: the thread that held it is not there.
  void reset() noexcept { flag_.clear(std::memory_order_relaxed); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

}  // namespace lbf::capture
