// UserRates: how fast users begin steps, and how much of the answering threads' time their requests take.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

#include "base/mutex.h"
#include "base/units.h"
#include "predictor/daemon/bounds.h"

namespace lbf::daemon {

// Thread-safe. NOW only grows.
class UserRates {
 public:
  using Clock = std::chrono::steady_clock;
  // THREADS that answer.
  UserRates(const Bounds& bounds, unsigned threads) : bounds_(bounds), threads_(threads) {}

  // Whether the user may begin one more step now; counts it.
  bool begin_step(uid_t user, Clock::time_point now);
  // Whether requests of the user are to be answered now: not while another user is there and this one takes more than
  // its share.
  bool may_be_answered(uid_t user, Clock::time_point now);
  void count_cpu(uid_t user, Seconds cpu_s, Clock::time_point now);

 private:
  struct Rate {
    double steps = 0;   // begun, less those that the rate allows since
    Seconds cpu_s = 0;  // of the last seconds: what is older counts less
    Clock::time_point at{};
  };
  Rate& rate_of(uid_t user, Clock::time_point now) REQUIRES(mutex_);

  const Bounds bounds_;
  const unsigned threads_;
  Mutex mutex_;
  std::map<uid_t, Rate> rates_ GUARDED_BY(mutex_);
};

}  // namespace lbf::daemon
