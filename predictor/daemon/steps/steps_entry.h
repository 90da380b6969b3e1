// One step that lbfd has in hand, as the files of Steps share it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "predictor/daemon/steps/arrivals.h"
#include "predictor/daemon/steps/idle_turns.h"
#include "predictor/daemon/steps/steps.h"

namespace lbf::daemon {

struct Steps::Entry {
  enum class Turn { kFirst, kAgain };
  // No RUN_OF_STEP: the step is finished, and the database has its predictions.
  Entry(std::shared_ptr<StepTrace> trace_of_step, std::shared_ptr<StepRun> run_of_step, Turn turn = Turn::kFirst)
      : trace(std::move(trace_of_step)),
        run(std::move(run_of_step)),
        final_persisted(run == nullptr),
        is_again(turn == Turn::kAgain) {
    if (run == nullptr) finished = loaded;
    if (run != nullptr && turn == Turn::kFirst) arrivals.came(trace->stored_bytes(), loaded);
  }
  // Of a step without a run, whose trace is in memory all the same.
  void count_trace(const std::shared_ptr<MemoryAccounts>& accounts) {
    account = std::make_unique<MemoryAccounts::Account>(accounts, trace->owner());
    account->set(trace->memory_bytes());
  }

  const std::shared_ptr<StepTrace> trace;
  const Clock::time_point loaded = Clock::now();
  std::unique_ptr<MemoryAccounts::Account> account;

  Mutex mutex;
  std::shared_ptr<StepRun> run GUARDED_BY(mutex);
  std::map<std::uint32_t, Clock::time_point> last_heard GUARDED_BY(mutex);
  std::optional<Clock::time_point> finished GUARDED_BY(mutex);
  bool final_persisted GUARDED_BY(mutex);
  // Replayed again for targets that were deferred: until that is done, the database is what people see.
  bool is_again GUARDED_BY(mutex);
  std::uint64_t persisted_generation GUARDED_BY(mutex) = 0;
  Clock::time_point last_persisted GUARDED_BY(mutex){};
  Arrivals arrivals GUARDED_BY(mutex);

  Mutex persist_mutex;                  // an older view must not be written after a newer one; taken before the other
  std::atomic<bool> limit_said{false};  // in the log: once, not for each of its streams
  std::atomic<unsigned> wanted{0};      // calls of schedule() that no replay turn has answered yet
  IdleTurns idle_turns;                 // of the replay turn, of which there is one at a time

  void heard(std::uint32_t stream) {
    const MutexLock lock(mutex);
    last_heard[stream] = Clock::now();
  }
  void stored(Bytes bytes) {
    const MutexLock lock(mutex);
    arrivals.came(bytes, Clock::now());
  }
  void replayed(Bytes bytes) {
    const MutexLock lock(mutex);
    arrivals.replayed(bytes);
  }
  void caught_up() {
    const MutexLock lock(mutex);
    arrivals.caught_up();
  }
  std::shared_ptr<StepRun> current_run() {
    const MutexLock lock(mutex);
    return run;
  }
  Clock::time_point when_persisted() {
    const MutexLock lock(mutex);
    return last_persisted;
  }
  bool is_finished() {
    const MutexLock lock(mutex);
    return finished.has_value();
  }
  // Nobody sees this replay yet.
  bool is_hidden() {
    const MutexLock lock(mutex);
    return is_again && !finished;
  }
};

}  // namespace lbf::daemon
