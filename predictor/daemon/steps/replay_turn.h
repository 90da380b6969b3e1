// ReplayTurn: what one replay computes in the turn at hand and holds more than before it, for those who may stop it.
//
// Place: StepRun -> *ReplayTurn* -> engine::EngineLimits. Replays of a step may have their turns side by side, each in
// a thread of its own, so each counts only what is its own.
#pragma once

#include <functional>
#include <utility>

#include "base/cpu_time.h"
#include "base/units.h"
#include "predictor/engine/metric/predictor.h"

namespace lbf::daemon {

struct ReplayLimits {
  Bytes memory_bytes = 0;  // as engine::EngineLimits
  // As engine::EngineLimits::stop, of a replay that has computed for CPU_S in its turn and holds MORE bytes than when
  // the step's memory was counted last (it wraps where that is less). Thread-safe. Empty: the replay goes on.
  std::function<bool(Seconds cpu_s, Bytes more)> stop;
};

// Not thread-safe.
class ReplayTurn {
 public:
  // Sets the limits of PREDICTOR. REQUIRES: the turn outlives it, and stays where it is.
  void limit(engine::Predictor& predictor, ReplayLimits limits) {
    predictor.set_limits({limits.memory_bytes, [this, &predictor, stop = std::move(limits.stop)] {
                            return stop && stop(thread_cpu_s() - begin_s_, predictor.memory_bytes() - counted_bytes_);
                          }});
  }
  // In the thread that has the turn.
  void begin() { begin_s_ = thread_cpu_s(); }
  // The replay holds BYTES, and the step's memory is counted with them.
  void count(Bytes bytes) { counted_bytes_ = bytes; }

 private:
  Seconds begin_s_ = 0;
  Bytes counted_bytes_ = 0;
};

}  // namespace lbf::daemon
