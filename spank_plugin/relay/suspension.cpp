// Suspension, see suspension.h.
#include "spank_plugin/relay/suspension.h"

#include <algorithm>

#include "spank_plugin/relay/freezer.h"

namespace lbf::relay {

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

void Suspension::shorten(Event& event) {
  if (event.kind != EventKind::kBlocked || credit_s_ <= 0) return;
  const Seconds taken_s = std::min<Seconds>(event.off_s, credit_s_);
  event.off_s -= taken_s;
  credit_s_ -= taken_s;
}

}  // namespace lbf::relay
