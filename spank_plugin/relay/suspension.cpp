// Suspension, see suspension.h.
#include "spank_plugin/relay/suspension.h"

#include <algorithm>

#include "spank_plugin/relay/freezer.h"

namespace lbf::relay {
namespace {

// Of the time in regions, or in waits for a device: the thread did not work.
Seconds idle_part_s(const Event& event) {
  std::uint64_t busy_ns = 0;
  if (event.kind == EventKind::kRegions && event.values.size() == kRegionValues)
    busy_ns = event.values[3] + event.values[4];  // critical part, fork and join
  else if (event.kind == EventKind::kDevice && event.values.size() == kDeviceValues)
    busy_ns = event.values[1];
  else
    return 0;
  return std::max(0.0, event.process_s - seconds_from_ns(static_cast<Nanoseconds>(busy_ns)));
}

}  // namespace

bool Suspension::is_stopped(std::int32_t pid, const ProcessStat& stat) {
  if (stat.stopped || (stopped_ && stat.uninterruptible)) return true;
  if (!freezer_file_) freezer_file_ = freezer_file_of(pid);
  return is_frozen(*freezer_file_);
}

void Suspension::observe(std::int32_t pid, const ProcessStat& stat, Seconds since_last_look_s) {
  const bool stopped = is_stopped(pid, stat);
  if (!stopped && !stopped_) return;
  const Seconds part_s = stopped && stopped_ ? since_last_look_s : since_last_look_s / 2;
  total_s_ += part_s;
  credit_s_ += part_s;
  stopped_ = stopped;
}

void Suspension::take_from(Duration& time, Seconds most_s) {
  const Seconds taken_s = std::min(most_s, credit_s_);
  time -= taken_s;
  credit_s_ -= taken_s;
}

// Calls that ended before the stop, or began after it, are shorter than half of it, or hardly longer than a look.
void Suspension::shorten(Event& event) {
  const auto holds_most = [this](Seconds part_s) { return 2 * part_s >= credit_s_; };
  if (event.kind == EventKind::kBlocked) return take_from(event.off_s, event.off_s);
  if (const Seconds idle_s = idle_part_s(event); holds_most(idle_s)) take_from(event.process_s, idle_s);
  // The call_s of kCompute is processor time.
  if (event.kind != EventKind::kCompute && holds_most(event.call_s)) take_from(event.call_s, event.call_s);
}

}  // namespace lbf::relay
