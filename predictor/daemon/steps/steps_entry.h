// One step that lbfd has in hand, as the files of Steps share it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "predictor/daemon/steps/idle_turns.h"
#include "predictor/daemon/steps/steps.h"

namespace lbf::daemon {

struct Steps::Entry {
  std::shared_ptr<StepTrace> trace;

  std::mutex mutex;              // of the members below, up to the empty line
  std::shared_ptr<StepRun> run;  // null: finished and in the database before it was loaded
  std::map<std::uint32_t, Clock::time_point> last_heard;
  Clock::time_point loaded = Clock::now();
  std::optional<Clock::time_point> finished;
  bool final_persisted = false;
  // Replayed again for targets that were deferred: until that is done, the database is what people see.
  bool is_again = false;
  std::uint64_t persisted_generation = 0;
  Clock::time_point last_persisted{};

  std::mutex persist_mutex;         // an older view must not be written after a newer one
  std::atomic<unsigned> wanted{0};  // calls of schedule() that no replay turn has answered yet
  IdleTurns idle_turns;             // of the replay turn, of which there is one at a time

  void heard(std::uint32_t stream) {
    const std::scoped_lock lock(mutex);
    last_heard[stream] = Clock::now();
  }
  std::shared_ptr<StepRun> current_run() {
    const std::scoped_lock lock(mutex);
    return run;
  }
  bool is_finished() {
    const std::scoped_lock lock(mutex);
    return finished.has_value();
  }
  // Nobody sees this replay yet.
  bool is_hidden() {
    const std::scoped_lock lock(mutex);
    return is_again && !finished;
  }
};

}  // namespace lbf::daemon
