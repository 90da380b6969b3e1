// Suspension: how long a process was stopped, by a signal or by its cgroup: Slurm stops its tasks and freezes
// their step.
//
// A process that is stopped neither works nor waits for anything that would end elsewhere sooner, and no other program
// keeps it from running: the stop is in no event, wherever the process was. The looks are half a second apart, so each
// end of a stop is known to a quarter of a second on average.
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
  // Records that were written after a stop have come: none of those that follow holds any of it.
  void settle() {
    if (!stopped_) credit_s_ = 0;
  }
  // The next records may hold a stop.
  bool is_owed() const { return credit_s_ > 0; }
  // Takes out of EVENT what it holds of a stop: of blocked time; and, if they hold most of it, of a call, of the time
  // between two capture windows, of regions and waits for a device beside their work.
  void shorten(Event& event);
  Seconds total_s() const { return total_s_; }

 private:
  bool is_stopped(std::int32_t pid, const ProcessStat& stat);
  void take_from(Duration& time, Seconds most_s);

  bool stopped_ = false;                     // at the last look
  std::optional<std::string> freezer_file_;  // once it was looked for
  Seconds total_s_ = 0;
  Seconds credit_s_ = 0;  // of it, what the next records may still hold
};

}  // namespace lbf::relay
