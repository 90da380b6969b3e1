// Replays that leave the processors to the programs: for an lbfd on the machine on which they run (`replay_when_idle`).
#pragma once

#include "base/units.h"

namespace lbf::daemon {

// A thread that has a processor to itself takes as much processor time as time passes; one that others push aside takes
// less, and every moment of it holds one of them up (in ranks that wait for each other, all of them). So a replay looks
// at its own turns: where they took much longer than they computed, it rests.
class IdleTurns {
 public:
  // A turn computed for CPU_S and took WALL_S. Seconds to rest before the next one; 0 where a processor was idle, and
  // until there is enough to tell.
  Seconds rest_after(Seconds cpu_s, Seconds wall_s) {
    cpu_s_ += cpu_s;
    wall_s_ += wall_s;
    if (wall_s_ < kTellingS) return 0;
    const bool was_idle = cpu_s_ > kIdleShare * wall_s_;
    const Seconds rest_s = was_idle ? 0 : cpu_s_ / kBusyShare;
    cpu_s_ = wall_s_ = 0;
    return rest_s < kLongestRestS ? rest_s : kLongestRestS;
  }

 private:
  static constexpr Seconds kTellingS = 1e-3;
  static constexpr double kIdleShare = 0.8;
  static constexpr double kBusyShare = 0.002;  // of one processor, where all are busy
  static constexpr Seconds kLongestRestS = 10;

  Seconds cpu_s_ = 0;
  Seconds wall_s_ = 0;
};

}  // namespace lbf::daemon
