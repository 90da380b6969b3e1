// SeenRun: how much of a run was captured, and whether that is enough to predict the rest from (docs/cost-system.md,
// "Extrapolation"). advisor/trust asks this; it says how a prediction is said.
#pragma once

#include <optional>
#include <string>

namespace lbf::protocol {

// A prediction from less is one only with its interval.
inline constexpr double kLeastShare = 0.01;
// Above it a run counts as seen whole: what is missing does not show in any figure.
inline constexpr double kWholeShare = 0.9995;

struct SeenRun {
  double share = 1;                         // of the ranks' measured time
  bool has_interval = false;                // of the predicted time
  std::optional<double> limit_percent;      // of the overhead
  std::optional<double> corrected_percent;  // overhead of recording every call

  bool is_too_little() const { return share < kLeastShare && !has_interval; }
  // The overhead limit at which about a tenth of the run would be recorded. Empty: not known, or no higher than it was.
  std::optional<double> limit_to_see_percent() const;
  // "only 0.2 % of the run was captured"
  std::string in_words() const;
  // The same, why, and with which limit there would be a prediction; it does not end with a full stop.
  std::string why_no_prediction() const;
};

}  // namespace lbf::protocol
