// Trust, see trust.h.
#include "advisor/trust/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/network_name.h"
#include "base/times.h"

namespace lbf::advisor {

Trust::Basis Trust::basis() const {
  if (program.outcomes >= kLeastOutcomesOfProgram) return Basis::kProgram;
  if (site.outcomes >= kLeastOutcomesOfSite) return Basis::kSite;
  return self_error_percent ? Basis::kSelfError : Basis::kAssumption;
}

double Trust::half_width_percent(double change) const {
  const double not_seen = lost_percent + extrapolated_percent.value_or(kUnknownExtrapolationPercent);
  // In percent of the prediction, as the interval is; the error itself is in percent of the measured time.
  const double error = self_error_percent.value_or(0);
  const double self = std::max(error > -100 ? std::fabs(error / (1 + error / 100)) : 100, kLeastErrorPercent);
  const double of_change = kPerFactorPercent * std::fabs(std::log(change));
  const double of_this_trace = other_ranks_percent + unmodelled_percent + kErrorPerWildcard * wildcard_percent +
                               kErrorPerUnknownCollective * unknown_collectives_percent;
  switch (basis()) {
    case Basis::kProgram:
      return std::max(self, program.p90_percent) + not_seen;
    case Basis::kSite:
      return std::max(self, site.p90_percent) + not_seen + of_this_trace;
    case Basis::kSelfError:
      return kElsewherePercent + kPerSelfError * self + of_change + not_seen + of_this_trace;
    case Basis::kAssumption:
      break;
  }
  return kAssumedErrorPercent + of_change + not_seen + of_this_trace;
}

Saying::Form form_of(double half_width_percent, std::string_view network, std::uint32_t nodes) {
  if (is_bound(network, nodes)) return Saying::Form::kAtBest;
  if (half_width_percent >= kWidestRangePercent) return Saying::Form::kCannotTell;
  return half_width_percent > kWidestNumberPercent ? Saying::Form::kRange : Saying::Form::kNumber;
}

std::string_view name_of(Saying::Form form) {
  constexpr std::array<std::string_view, 4> kNames{"number", "range", "at_best", "cannot_tell"};
  return kNames[static_cast<std::size_t>(form)];
}

std::string Saying::in_words(int digits) const {
  switch (form) {
    case Form::kNumber:
      return format_duration(predicted_s, digits);
    case Form::kRange:
      return format_duration(low_s, digits) + " to " + format_duration(high_s, digits);
    case Form::kAtBest:
      return "at best " + format_duration(low_s, digits);
    case Form::kCannotTell:
      break;
  }
  return "cannot tell";
}

std::string Saying::give_or_take() const {
  return fmt::format("{:.{}f} %", half_width_percent, half_width_percent < 9.95 ? 1 : 0);
}

Doubt Trust::doubt() const {
  if (!too_little_seen.empty()) return Doubt::kSeenTooLittle;
  if (is_lost_to_others) return Doubt::kLostToOthers;
  return std::fabs(self_error_percent.value_or(0)) > kDoubtfulSelfErrorPercent ? Doubt::kSelfErrorTooLarge
                                                                               : Doubt::kNone;
}

Saying Trust::say(Seconds predicted_s, double change, std::string_view of_network, std::uint32_t of_nodes,
                  const TargetUnknowns& unknown) const {
  Saying saying;
  saying.predicted_s = predicted_s;
  const double low = half_width_percent(change) + unknown.memory_percent;
  const double half = low + unknown.exchange_percent + (of_nodes > 1 && is_nominal(of_network) ? kNominalPercent : 0);
  saying.half_width_percent = half;
  if (doubt() == Doubt::kSeenTooLittle) {
    saying.why = too_little_seen;
    return saying;
  }
  saying.low_s = predicted_s * std::max(0.0, 1 - low / 100);
  saying.high_s = predicted_s * (1 + half / 100);
  saying.form = form_of(half, of_network, of_nodes);
  if (saying.form == Saying::Form::kAtBest) {
    saying.why = "the network between nodes is not described";
    saying.remedy = kMeasureNetwork;
    return saying;
  }
  if (saying.is_number() && doubt() != Doubt::kNone) saying.form = Saying::Form::kRange;
  if (!saying.is_number()) explain(saying, change, of_network, of_nodes, unknown);
  return saying;
}

// Why it is no number, and what to do: of a doubt of the run, else of what widens the interval most.
void Trust::explain(Saying& saying, double change, std::string_view of_network, std::uint32_t of_nodes,
                    const TargetUnknowns& unknown) const {
  const auto say = [&saying](std::string why, std::string_view remedy) {
    saying.why = std::move(why);
    saying.remedy = remedy;
  };
  const std::string captured = fmt::format("only {:.3g} % of the run was captured", 100 - unseen_percent);
  constexpr std::string_view kRaiseLimit = "raise the overhead limit";
  if (unseen_percent > 0 && !extrapolated_percent) return say(captured, kRaiseLimit);
  if (doubt() == Doubt::kLostToOthers)
    return say("others had its processors", "run it alone, its ranks pinned (srun --cpu-bind=cores)");
  if (doubt() == Doubt::kSelfErrorTooLarge) {
    const std::string why = fmt::format("the self-prediction error is {:+.1f} %", *self_error_percent);
    if (is_bound(network, nodes)) return say(why + ", because the network is not described", kMeasureNetwork);
    if (!network.empty() && of_network != network && change < 1)
      return say(why, fmt::format("run it once on network {}", of_network));
    return say(why, "pin the ranks (srun --cpu-bind=cores) and run it again");
  }
  if (other_ranks_percent > 0) return say("no run had so many ranks", "run it once with them");
  if (of_nodes > 1 && is_nominal(of_network))
    return say(fmt::format("{} is from public figures, not measured here", of_network), kMeasureNetwork);
  if (extrapolated_percent.value_or(0) > kWidestNumberPercent / 2) return say(captured, kRaiseLimit);
  if (lost_percent > kWidestNumberPercent / 2)
    return say(fmt::format("{:.1f} % of the events were lost", lost_percent), "give the capture larger rings");
  if (unmodelled_percent > kWidestNumberPercent / 2) {
    return say(fmt::format("{:.1f} % of the time is in calls that are not modelled", unmodelled_percent),
               "run it once there");
  }
  if (unknown.exchange_percent > kWidestNumberPercent / 2)
    return say("ranks that send each other large messages may take turns there", "run it once there");
  say("it differs too much from the run", "run it once there");
}

std::vector<std::string> Trust::notes() const {
  std::vector<std::string> lines;
  if (self_error_percent) {
    lines.push_back(fmt::format("self-prediction error {:+.1f} %", *self_error_percent));
  } else {
    lines.push_back("the trace has no measured time, so there is no self-prediction error");
    if (basis() == Basis::kAssumption) lines.back() += fmt::format(": {:g} % is taken", kAssumedErrorPercent);
  }
  const auto fitted = [&](const char* whose, const OutcomeErrors& errors) {
    lines.push_back(
        fmt::format("the interval is fitted to {} outcomes of {}: 90 % of its predictions for other "
                    "configurations were within {:.1f} % of what was measured there later",
                    errors.outcomes, whose, errors.p90_percent));
  };
  if (basis() == Basis::kProgram) fitted("this program", program);
  if (basis() == Basis::kSite) fitted("this site (too few of this program)", site);
  if (basis() == Basis::kSelfError)
    lines.push_back(
        "the interval is by the self-prediction error and how much the prediction changes: there are too few outcomes "
        "to fit it to");
  if (!why_partial.empty()) lines.push_back("the trace is partial: " + why_partial);
  if (lost_percent > 0) lines.push_back(fmt::format("{:.1f} % of the events were lost", lost_percent));
  if (unseen_percent > 0) {
    lines.push_back(
        fmt::format("{:.1f} % of the run was captured: times are extrapolated from it", 100 - unseen_percent));
    lines.back() += extrapolated_percent ? fmt::format(", within {:.1f} % (95 %)", *extrapolated_percent)
                                         : fmt::format(", and too little was seen to say within what: {:g} % is taken",
                                                       kUnknownExtrapolationPercent);
  }
  if (unmodelled_percent > 0)
    lines.push_back(fmt::format("{:.1f} % of the time is in calls that are not modelled", unmodelled_percent));
  if (wildcard_percent > 0)
    lines.push_back(
        fmt::format("{:.1f} % of the messages were received with a wildcard: elsewhere they may come "
                    "in another order",
                    wildcard_percent));
  if (unknown_collectives_percent > 0)
    lines.push_back(
        fmt::format("the MPI library is known by its family alone: its algorithms of collectives are taken to "
                    "cost up to {:g} % more or less",
                    kErrorPerUnknownCollective * unknown_collectives_percent));
  if (approximated_percent > 0)
    lines.push_back(
        fmt::format("{:.1f} % of the collectives are replayed with the closest algorithm", approximated_percent));
  return lines;
}

double other_ranks_percent(std::optional<double> work_percent) {
  return work_percent ? kOtherRanksLeastPercent + *work_percent : kOtherRanksPercent;
}

Gain gain_of(double now, double then, double half_width_percent, double waiting) {
  const double half = half_width_percent / 100;
  const auto percent = [&](double factor) { return 100 * (1 - (waiting + (then - waiting) * factor) / now); };
  return {percent(1), percent(1 + half), percent(std::max(0.0, 1 - half))};
}

}  // namespace lbf::advisor
