// Trust: how far predictions from a trace may be off, and a gain with its interval. What lbf-advise, lbf-report and the
// line at the end of srun call a gain is one by this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace lbf::advisor {

// Without a self-prediction error this is taken: TSE Fig. 7 and Fig. 10 stay within 8 %.
inline constexpr double kAssumedErrorPercent = 8.0;
// Half width of the interval of a prediction for another configuration, where there are no outcomes to fit it to:
// kElsewherePercent + kPerSelfError |measured / predicted - 1| of what ran + kPerFactorPercent |ln(predicted there /
// predicted as it ran)|. Fitted to the predictions of bench/accuracy, of which 90 % lie within it
// (bench/results/2026-11-24-advisor-intervals.txt).
inline constexpr double kElsewherePercent = 5.0;
inline constexpr double kPerSelfError = 1.25;
inline constexpr double kPerFactorPercent = 8.0;
// Where the interval of an extrapolation cannot be told.
inline constexpr double kUnknownExtrapolationPercent = 100.0;
// Two runs of the same job differ by more than this (report/advice.h).
inline constexpr double kLeastErrorPercent = 1.0;
// Of a prediction's error for each percent of receives whose match another placement may change: assumed
// where there are no outcomes to fit it to.
inline constexpr double kErrorPerWildcard = 0.1;
// The same for each percent of collectives of a library that is known by its family alone. Assumed.
inline constexpr double kErrorPerUnknownCollective = 0.05;
// So many outcomes make a fit: the 90th percentile of fewer is hardly more than the worst of them.
inline constexpr std::uint64_t kLeastOutcomesOfProgram = 5;
inline constexpr std::uint64_t kLeastOutcomesOfSite = 10;

// What lbfd knows of predictions that were made for another configuration than the one that ran, and of what
// was measured there later (docs/lbfd.md, "Programs and outcomes").
struct OutcomeErrors {
  std::uint64_t outcomes = 0;
  double p90_percent = 0;  // 90 % of them were at most so far off
};

// What the trace does not say, in percent.
struct Trust {
  std::optional<double> self_error_percent;  // 100 (predicted - measured) / measured of what ran
  double lost_percent = 0;                   // events that are not in the trace
  double wildcard_percent = 0;               // receives that took whatever came first
  double unmodelled_percent = 0;             // of the run's time: calls that are kept as they were measured
  double approximated_percent = 0;           // collectives replayed with the closest algorithm; a note only
  std::string why_partial;                   // empty: the trace is whole
  OutcomeErrors program;                     // of this program with this kind of input
  OutcomeErrors site;                        // of all programs
  double unseen_percent = 0;                 // of the run's time: the capture was closed, or had ended
  // Half width of the interval that what was seen gives for the run that was captured; nothing: it cannot be told.
  std::optional<double> extrapolated_percent = 0.0;
  double unknown_collectives_percent = 0;  // of a library that is known by its family alone

  // What the interval rests on.
  enum class Basis { kAssumption, kSelfError, kSite, kProgram };
  Basis basis() const;
  // Half width of a prediction's interval, in percent of the prediction: by the self-prediction error and how much the
  // prediction changes (kElsewherePercent), and what is lost, not seen, unmodelled, unknown or left to chance on top of
  // it. With outcomes their 90th percentile, at least the error of this run; that of the program's own has what is
  // unmodelled, unknown and left to chance in it already. `change`: predicted time there over that of what ran.
  // REQUIRES: change > 0.
  double half_width_percent(double change) const;
  // One line for each thing that is not as it should be.
  std::vector<std::string> notes() const;
};

// Of the objective's value, in percent of `now`.
struct Gain {
  double percent = 0;
  double low_percent = 0;  // if the prediction is too low by the half width of its interval
  double high_percent = 0;

  bool is_certain() const { return low_percent > 0; }
};
// `now`, `then`: values of the objective (seconds or node-hours); `waiting`: the part of `then` that no
// prediction is in. REQUIRES: now > 0.
Gain gain_of(double now, double then, double half_width_percent, double waiting = 0);

}  // namespace lbf::advisor
