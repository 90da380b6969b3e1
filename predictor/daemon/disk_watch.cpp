// DiskWatch, see disk_watch.h.
#include "predictor/daemon/disk_watch.h"

#include <spdlog/spdlog.h>

namespace lbf::daemon {
namespace {

constexpr std::chrono::seconds kRepeat{60};
// On a disk that is all but full a short batch finds room where a long one did not.
constexpr std::chrono::seconds kQuiet{3};

constexpr std::uint64_t kMostErrors = 20;  // said in kRepeat

std::int64_t whole_seconds(DiskWatch::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

void DiskWatch::failed(const std::string& whose, const Error& error, Clock::time_point now) {
  ++(error.code == ErrorCode::kLimit ? all_refused_ : all_errors_);
  const MutexLock lock(mutex_);
  if (error.code != ErrorCode::kLimit) return say(whose, error, now);
  if (!full_) {
    full_ = true;
    began_ = now;
    refused_ = 0;
    last_said_ = {};
  }
  ++refused_;
  success_since_ = false;
  last_failed_ = now;
  if (last_said_ != Clock::time_point{} && now - last_said_ < kRepeat) return;
  last_said_ = now;
  spdlog::error("no room for {}: {}: {}; {} (writes refused: {}, in {} s)", what_, whose, error.message, consequence_,
                refused_, whole_seconds(now - began_));
}

// A request can meet an error of its step again and again.
void DiskWatch::say(const std::string& whose, const Error& error, Clock::time_point now) {
  if (now - errors_since_ >= kRepeat) {
    if (errors_ > kMostErrors) spdlog::error("{}: {} more errors in the time before", what_, errors_ - kMostErrors);
    errors_since_ = now;
    errors_ = 0;
  }
  if (++errors_ <= kMostErrors) spdlog::error("{}: {}", whose, error.message);
}

void DiskWatch::succeeded() {
  if (!full_) return;
  const MutexLock lock(mutex_);
  success_since_ = true;
}

void DiskWatch::tick(Clock::time_point now) {
  if (!full_) return;
  const MutexLock lock(mutex_);
  if (!success_since_ || now - last_failed_ < kQuiet) return;
  full_ = false;
  spdlog::info("there is room for {} again (writes refused: {}, in {} s)", what_, refused_,
               whole_seconds(last_failed_ - began_));
}

}  // namespace lbf::daemon
