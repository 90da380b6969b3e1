// Trust, see trust.h.
#include "advisor/advice/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lbf::advisor {

double Trust::half_width_percent() const {
  const double self = self_error_percent ? std::max(std::fabs(*self_error_percent), kLeastErrorPercent)
                                         : kAssumedErrorPercent;
  return self + lost_percent + unmodelled_percent + kErrorPerWildcard * wildcard_percent;
}

std::vector<std::string> Trust::notes() const {
  std::vector<std::string> lines;
  if (self_error_percent) {
    lines.push_back(fmt::format("self-prediction error {:+.1f} %", *self_error_percent));
  } else {
    lines.push_back(
        fmt::format("the trace has no measured time, so there is no self-prediction error: {:g} % is taken",
                    kAssumedErrorPercent));
  }
  if (!why_partial.empty()) lines.push_back("the trace is partial: " + why_partial);
  if (lost_percent > 0) lines.push_back(fmt::format("{:.1f} % of the events were lost", lost_percent));
  if (unmodelled_percent > 0)
    lines.push_back(
        fmt::format("{:.1f} % of the time is in calls that are not modelled", unmodelled_percent));
  if (wildcard_percent > 0)
    lines.push_back(
        fmt::format("{:.1f} % of the messages were received with a wildcard: elsewhere they may come "
                    "in another order",
                    wildcard_percent));
  if (approximated_percent > 0)
    lines.push_back(fmt::format("{:.1f} % of the collectives are replayed with the closest algorithm",
                                approximated_percent));
  return lines;
}

Gain gain_of(double now, double then, const Trust& trust) {
  const double half = trust.half_width_percent() / 100;
  const auto percent = [now](double value) { return 100 * (1 - value / now); };
  return {percent(then), percent(then * (1 + half)), percent(then * std::max(0.0, 1 - half))};
}

}  // namespace lbf::advisor
