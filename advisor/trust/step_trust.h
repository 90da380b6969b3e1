// Trust in a step's predictions by the fields that lbfd has and sends of it: lbfd and the readers of its answers say a
// prediction alike because they ask this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "advisor/trust/trust.h"
#include "base/library_name.h"
#include "protocol/prediction_fields.h"
#include "protocol/saying_fields.h"
#include "protocol/seen_run.h"
#include "protocol/step_fields.h"

namespace lbf::advisor {

namespace of_fields {

template <typename T>
double number(const std::optional<T>& known) {
  return static_cast<double>(known.value_or(T{}));
}
template <typename T>
double number(T known) {
  return static_cast<double>(known);
}

inline double percent(double part, double all) {
  return all > 0 ? 100 * part / all : 0;
}

template <protocol::Side kSide>
double seen_share(const protocol::PredictionFields<kSide>& prediction) {
  return std::optional<double>(prediction.seen_share).value_or(1);
}

}  // namespace of_fields

// What of the interval comes from the part of the run that was not captured, as PREDICTION has it.
template <protocol::Side kSide>
void take_extrapolation(Trust& trust, const protocol::PredictionFields<kSide>& prediction) {
  if (of_fields::seen_share(prediction) >= protocol::kWholeShare) return;
  trust.unseen_percent = 100 * (1 - of_fields::seen_share(prediction));
  trust.extrapolated_percent.reset();
  const double predicted_s = of_fields::number(prediction.predicted_s);
  if (!(predicted_s > 0) || !prediction.low_s || !prediction.high_s) return;
  trust.extrapolated_percent =
      100 * std::max(*prediction.high_s - predicted_s, predicted_s - *prediction.low_s) / predicted_s;
}

// What the step says about how far its predictions may be off, by that of the configuration that ran (SELF; nullptr:
// there is none). Of outcomes it says nothing. SEEN: of SELF, with the limits of the step's cost.
template <protocol::Side kSide>
Trust trust_of(const protocol::StepFields<kSide>& step, const protocol::PredictionFields<kSide>* self,
               const protocol::SeenRun& seen) {
  using of_fields::number;
  using of_fields::percent;
  Trust trust;
  if (self != nullptr) trust.self_error_percent = self->self_error_percent;
  const double measured_s = step.measured_s.value_or(0);
  const double lost = number(step.lost_events);
  trust.lost_percent = percent(lost, lost + number(step.events));
  trust.wildcard_percent = percent(number(step.wildcard_receives), number(step.messages));
  const double recorded = self != nullptr && of_fields::seen_share(*self) < protocol::kWholeShare ? seen.share : 1;
  trust.unmodelled_percent =
      std::min(percent(number(step.unmodelled_s), recorded * measured_s * number(step.ranks)), 100.0);
  trust.why_partial = step.why_partial;
  if (step.library.find(kFamilyBySelfTest) != std::string::npos) trust.unknown_collectives_percent = 100;
  trust.is_lost_to_others = protocol::noticeable_loss_s(number(step.others_s) + number(step.limited_s), measured_s) > 0;
  if (seen.is_too_little()) trust.too_little_seen = seen.why_no_prediction();
  if (self == nullptr) return trust;
  trust.network = step.network.empty() ? self->network : step.network;
  trust.nodes = static_cast<std::uint32_t>(number(self->nodes));
  take_extrapolation(trust, *self);
  return trust;
}

// How the prediction of TARGET is said, by the trust in its step and SELF. Empty: one of the two has no time.
template <protocol::Side kSide>
std::optional<Saying> saying_of(Trust trust, const protocol::PredictionFields<kSide>* self,
                                const protocol::PredictionFields<kSide>& target) {
  const auto time_of = [](const protocol::PredictionFields<kSide>& one) {
    return one.is_known() ? std::optional<Seconds>(one.predicted_s) : std::nullopt;
  };
  const auto ran_s = self != nullptr ? time_of(*self) : std::nullopt;
  const auto there_s = time_of(target);
  if (!ran_s || !there_s) return std::nullopt;
  take_extrapolation(trust, target);
  return trust.say(*there_s, *ran_s > 0 && *there_s > 0 ? *there_s / *ran_s : 1, target.network,
                   static_cast<std::uint32_t>(of_fields::number(target.nodes)),
                   {of_fields::number(target.memory_percent), of_fields::number(target.exchange_percent)});
}

inline protocol::SayingFields fields_of(const Saying& saying) {
  protocol::SayingFields out;
  out.trust = name_of(saying.form);
  if (saying.form != Saying::Form::kCannotTell) out.interval_low_s = saying.low_s;
  if (saying.has_interval()) out.interval_high_s = saying.high_s;
  out.why_no_number = saying.why;
  out.remedy = saying.remedy;
  return out;
}

}  // namespace lbf::advisor
