// SideBySide: the same job on further replay threads, beside a step's turn, as far as threads are free.
//
// Place: StepRun -> *SideBySide* -> Steps::lend_thread. The turn waits for all of them: between two turns nothing of a
// step is under way, so only what runs side by side needs to know of threads.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace lbf::daemon {

// Runs JOB on another thread, soon. False: none is free, and JOB does not run.
using LendThread = std::function<bool(std::function<void()> job)>;

class SideBySide {
 public:
  // Asks for THREADS threads at most, each of which runs JOB. LEND may be empty.
  SideBySide(const LendThread& lend, std::size_t threads, std::function<void()> job)
      : shared_(std::make_shared<Shared>(std::move(job))) {
    while (threads-- > 0 && lend && lend([shared = shared_] { run(*shared); })) {
    }
  }
  ~SideBySide() { close(); }
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;

  // Some thread runs the job now.
  bool is_under_way() const {
    const MutexLock lock(shared_->mutex);
    return shared_->running > 0;
  }
  // Waits until no thread runs the job. A thread that has not begun it will not. Throws what JOB threw.
  void join() {
    close();
    const MutexLock lock(shared_->mutex);
    if (shared_->thrown) std::rethrow_exception(std::exchange(shared_->thrown, nullptr));
  }

 private:
  // A thread that is lent may come when the turn is long over.
  struct Shared {
    explicit Shared(std::function<void()> the_job) : job(std::move(the_job)) {}
    const std::function<void()> job;
    Mutex mutex;
    Condition ended;
    std::size_t running GUARDED_BY(mutex) = 0;
    bool is_closed GUARDED_BY(mutex) = false;
    std::exception_ptr thrown GUARDED_BY(mutex);
  };

  static void run(Shared& shared) {
    {
      const MutexLock lock(shared.mutex);
      if (shared.is_closed) return;
      ++shared.running;
    }
    std::exception_ptr thrown;
    try {
      shared.job();
    } catch (...) {
      thrown = std::current_exception();
    }
    const MutexLock lock(shared.mutex);
    if (thrown) shared.thrown = thrown;
    --shared.running;
    shared.ended.notify_all();
  }
  void close() {
    const MutexLock lock(shared_->mutex);
    shared_->is_closed = true;
    while (shared_->running > 0) shared_->ended.wait(shared_->mutex);
  }

  const std::shared_ptr<Shared> shared_;
};

}  // namespace lbf::daemon
