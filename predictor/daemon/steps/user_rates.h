// UserRates: how fast users begin steps.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

#include "base/mutex.h"
#include "predictor/daemon/bounds.h"

namespace lbf::daemon {

// Thread-safe. NOW only grows.
class UserRates {
 public:
  using Clock = std::chrono::steady_clock;
  explicit UserRates(const Bounds& bounds) : bounds_(bounds) {}

  // Whether the user may begin one more step now; counts it.
  bool begin_step(uid_t user, Clock::time_point now);

 private:
  struct Rate {
    double steps = 0;  // begun, less those that the rate allows since
    Clock::time_point at{};
  };
  Rate& rate_of(uid_t user, Clock::time_point now) REQUIRES(mutex_);

  const Bounds bounds_;
  Mutex mutex_;
  std::map<uid_t, Rate> rates_ GUARDED_BY(mutex_);
};

}  // namespace lbf::daemon
