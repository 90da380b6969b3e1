// DiskWatch: says in lbfd's log that there is no room to write, once and not for every batch, and that there
// is room again.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "base/result.h"

namespace lbf::daemon {

// Thread-safe.
class DiskWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // For the log: `what` is written, and `consequence` becomes of what cannot be.
  DiskWatch(std::string what, std::string consequence) : what_(std::move(what)), consequence_(std::move(consequence)) {}

  // What a write came to. Errors other than kLimit are logged as they come, some a minute. `whose`: the step.
  void failed(const std::string& whose, const Error& error, Clock::time_point now = Clock::now());
  void succeeded();

  // About once a second: says that there is room again, once writes have succeeded for a while.
  void tick(Clock::time_point now = Clock::now());

  bool is_full() const { return full_; }
  // Since lbfd's start: for want of room, for other reasons.
  std::uint64_t all_refused() const { return all_refused_; }
  std::uint64_t all_errors() const { return all_errors_; }

 private:
  void say(const std::string& whose, const Error& error, Clock::time_point now) REQUIRES(mutex_);
  const std::string what_;
  const std::string consequence_;
  std::atomic<bool> full_{false};
  std::atomic<std::uint64_t> all_refused_{0};
  std::atomic<std::uint64_t> all_errors_{0};
  Mutex mutex_;
  bool success_since_ GUARDED_BY(mutex_) = false;
  std::uint64_t refused_ GUARDED_BY(mutex_) = 0;
  std::uint64_t errors_ GUARDED_BY(mutex_) = 0;  // others than kLimit, since errors_since_
  Clock::time_point errors_since_ GUARDED_BY(mutex_){};
  Clock::time_point began_ GUARDED_BY(mutex_){};
  Clock::time_point last_failed_ GUARDED_BY(mutex_){};
  Clock::time_point last_said_ GUARDED_BY(mutex_){};
};

}  // namespace lbf::daemon
