// StepSayings, see step_sayings.h.
#include "predictor/daemon/http/step_sayings.h"

#include <algorithm>

#include "advisor/trust/step_trust.h"

namespace lbf::daemon {

StepSayings::StepSayings(const StepView& step) {
  const auto found = std::ranges::find_if(step.predictions, &db::PredictionRecord::is_self);
  protocol::SeenRun seen;
  if (found != step.predictions.end()) {
    self_ = &*found;
    seen.share = self_->seen_share;
    seen.has_interval = self_->low_s && self_->high_s;
  }
  if (const auto& cost = step.record.cost) {
    seen.limit_percent = cost->limit_percent;
    seen.corrected_percent = cost->corrected_percent;
  }
  trust_ = advisor::trust_of(step.record, self_, seen);
}

protocol::SayingFields StepSayings::of(const db::PredictionRecord& prediction) const {
  if (const auto saying = advisor::saying_of(trust_, self_, prediction)) return advisor::fields_of(*saying);
  if (!prediction.seen_too_little() || trust_.too_little_seen.empty()) return {};
  advisor::Saying too_little;
  too_little.why = trust_.too_little_seen;
  return advisor::fields_of(too_little);
}

}  // namespace lbf::daemon
