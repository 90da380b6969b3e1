// Suspension: how long a process was stopped, by a signal or by its cgroup: Slurm stops its tasks and freezes
// their step.
//
// A process that is stopped neither works nor waits for anything that would end elsewhere sooner. The looks
// are half a second apart, so each end of a stop is known to a quarter of a second on average.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "event/event.h"
#include "spank_plugin/relay/process_probe.h"

namespace lbf::relay {

class Suspension {
 public:
  // Process PID, whose state is STAT, SINCE_LAST_LOOK_S after the look before.
  void observe(std::int32_t pid, const ProcessStat& stat, Seconds since_last_look_s);
  // Records that were written after a stop have come: what they did not hold of it was spent inside a call.
  void settle() {
    if (!stopped_) credit_s_ = 0;
  }
  // The gap in which a process was stopped comes as blocked time: that much of it is taken away again.
  void shorten(Event& event);
  Seconds total_s() const { return total_s_; }

 private:
  bool is_stopped(std::int32_t pid, const ProcessStat& stat);

  bool stopped_ = false;                     // at the last look
  std::optional<std::string> freezer_file_;  // once it was looked for
  Seconds total_s_ = 0;
  Seconds credit_s_ = 0;  // of it, what the next records may still hold as blocked time
};

}  // namespace lbf::relay
