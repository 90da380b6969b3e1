// Trust, see trust.h.
#include "advisor/trust/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  const double of_this_trace = unmodelled_percent + kErrorPerWildcard * wildcard_percent +
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

Gain gain_of(double now, double then, double half_width_percent, double waiting) {
  const double half = half_width_percent / 100;
  const auto percent = [&](double factor) { return 100 * (1 - (waiting + (then - waiting) * factor) / now); };
  return {percent(1), percent(1 + half), percent(std::max(0.0, 1 - half))};
}

}  // namespace lbf::advisor
