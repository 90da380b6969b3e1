// trust_of_replay, see replay_trust.h.
#include "tools/whatif/replay_trust.h"

#include <algorithm>
#include <numeric>

namespace lbf::tools {

advisor::Trust trust_of_replay(const engine::PredictorStats& stats, const engine::Prediction& first,
                               const engine::MpiRules& rules, const std::string& why_partial) {
  const auto percent = [](auto part, auto whole) {
    return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  advisor::Trust trust;
  const Seconds all_ranks_s = std::accumulate(first.rank_measured_s.begin(), first.rank_measured_s.end(), 0.0);
  trust.lost_percent = percent(stats.lost_events, stats.lost_events + stats.events);
  trust.wildcard_percent = percent(stats.wildcard_receives, stats.messages);
  trust.unmodelled_percent = percent(stats.unmodelled_s, all_ranks_s);
  trust.approximated_percent = percent(stats.approximated_collectives, stats.collectives);
  if (rules.family_only) trust.unknown_collectives_percent = trust.approximated_percent;
  trust.unseen_percent = 100 * (1 - first.seen_share);
  if (first.seen_share < 1) {
    trust.extrapolated_percent.reset();
    if (first.high_s != kNeverS && first.lbf_s > 0)
      trust.extrapolated_percent = 100 * std::max(first.high_s - first.lbf_s, first.lbf_s - first.low_s) / first.lbf_s;
  }
  trust.why_partial = why_partial;
  return trust;
}

}  // namespace lbf::tools
