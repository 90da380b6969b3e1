// SeenRun, see seen_run.h.
#include "protocol/seen_run.h"

#include <cmath>

#include "base/number.h"

namespace lbf::protocol {

std::optional<double> SeenRun::limit_to_see_percent() const {
  constexpr double kRecorded = 0.1;
  constexpr double kCountedCall = 20.0 / 300;  // of a recorded one (docs/cost-system.md)
  constexpr double kUsable = 0.75;             // of the limit: the regulator keeps back the rest
  if (!corrected_percent || !limit_percent) return std::nullopt;
  const double needed = *corrected_percent * (kRecorded + (1 - kRecorded) * kCountedCall) / kUsable;
  if (needed <= *limit_percent) return std::nullopt;
  return std::ceil(needed);
}

std::string SeenRun::in_words() const {
  return "only " + format_number(100 * share, "%.2g") + " % of the run was captured";
}

std::string SeenRun::why_no_prediction() const {
  std::string out = in_words();
  if (limit_percent) out += ", to keep the overhead below " + format_number(*limit_percent, "%g") + " %";
  out += ": too little to predict from";
  if (const auto limit = limit_to_see_percent())
    out += ". With an overhead limit of " + format_number(*limit, "%g") + " % about a tenth of it would be";
  return out;
}

}  // namespace lbf::protocol
