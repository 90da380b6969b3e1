// Trust: how far predictions from a trace may be off, how a prediction is therefore said, and a gain with its interval.
// All outputs ask this: the line at the end of srun, tables, JSON, drawings and pages of all commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// On a network of public figures, which are best cases, above: assumed.
inline constexpr double kNominalPercent = 25.0;
// Of a program with another number of ranks than its runs had (docs/adr/0018-pattern.md), above. Runs with two rank
// counts: assumed. With three and more: beside how far laws of work are off; chosen after
// bench/results/2026-11-29-scaling-public.txt, of which 7 of 10 outcomes were inside with 5. Of -public-2 and -scaling,
// 16 of 16 are.
inline constexpr double kOtherRanksPercent = 30.0;
inline constexpr double kOtherRanksLeastPercent = 15.0;
// A self-prediction error above it says that the model misses something of this run: TSE Fig. 7 and Fig. 10 stay within
// 8 %.
inline constexpr double kDoubtfulSelfErrorPercent = 10.0;
// A prediction that may be off by more is said as a range, not as a number.
inline constexpr double kWidestNumberPercent = 25.0;
// One that may be off by so much tells nothing: its range begins at 0.
inline constexpr double kWidestRangePercent = 100.0;

// Why predictions from a run are no numbers. The first that holds counts.
enum class Doubt : std::uint8_t {
  kNone,
  kSeenTooLittle,      // protocol::SeenRun
  kLostToOthers,       // its processors: the self-prediction error says little of the model
  kSelfErrorTooLarge,  // above kDoubtfulSelfErrorPercent
};

// How a prediction is said.
struct Saying {
  enum class Form : std::uint8_t {
    kNumber,
    kRange,      // it cannot be trusted, or may be off by more than kWidestNumberPercent
    kAtBest,     // no network is described between its nodes: low_s alone counts
    kCannotTell  // too little was seen, or it may be off by all of it
  };
  Form form = Form::kCannotTell;
  Seconds predicted_s = 0;
  Seconds low_s = 0;              // but for kCannotTell
  Seconds high_s = 0;             // kNumber, kRange
  double half_width_percent = 0;  // in percent of predicted_s
  std::string why;                // of all but kNumber: what is not known
  std::string remedy;             // the one thing that helps, as one says it to a user; empty: `why` says it

  bool is_number() const { return form == Form::kNumber; }
  bool has_interval() const { return form == Form::kNumber || form == Form::kRange; }
  // Where a drawing has its mark. A range has none.
  Seconds mark_s() const { return form == Form::kAtBest ? low_s : predicted_s; }
  // "12.30 s", "9.80 s to 14.2 s", "at best 1.57 s", "cannot tell". DIGITS: format_duration.
  std::string in_words(int digits = 4) const;
  // "8.7 %", "13 %": of a number.
  std::string give_or_take() const;
};
// How a time is said that may be off by HALF_WIDTH_PERCENT, on so many nodes of NETWORK, from a run without a doubt.
Saying::Form form_of(double half_width_percent, std::string_view network, std::uint32_t nodes);
// In JSON: "number", "range", "at_best", "cannot_tell".
std::string_view name_of(Saying::Form form);

// What lbfd knows of predictions that were made for another configuration than the one that ran, and of what
// was measured there later (docs/lbfd.md, "Programs and outcomes").
struct OutcomeErrors {
  std::uint64_t outcomes = 0;
  double p90_percent = 0;  // 90 % of them were at most so far off
};

// What is not known of one target's time, in percent of it.
struct TargetUnknowns {
  double memory_percent = 0;    // what memory bandwidth may add or save
  double exchange_percent = 0;  // what exchanges would add if all of them took turns: at High
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
  double other_ranks_percent = 0;          // no run had so many ranks
  double unknown_collectives_percent = 0;  // of a library that is known by its family alone
  std::string too_little_seen;             // not empty: why there is no prediction (SeenRun::why_no_prediction)
  bool is_lost_to_others = false;          // others than the job had its processors, and it shows
  std::string network;                     // the one that ran; empty: not known
  std::uint32_t nodes = 1;                 // that ran

  // What the interval rests on.
  enum class Basis { kAssumption, kSelfError, kSite, kProgram };
  Basis basis() const;
  // Half width of a prediction's interval, in percent of the prediction: by the self-prediction error and how much the
  // prediction changes (kElsewherePercent), and what is lost, not seen, unmodelled, unknown or left to chance on top of
  // it. With outcomes their 90th percentile, at least the error of this run; that of the program's own has what is
  // unmodelled, unknown and left to chance in it already. `change`: predicted time there over that of what ran.
  // REQUIRES: change > 0.
  double half_width_percent(double change) const;
  Doubt doubt() const;
  // The one rule of how a prediction is said. NETWORK, NODES, UNKNOWN: of its target; CHANGE: as above. The half width
  // is that at High. REQUIRES: change > 0.
  Saying say(Seconds predicted_s, double change, std::string_view network, std::uint32_t nodes,
             const TargetUnknowns& unknown = {}) const;
  // One line for each thing that is not as it should be.
  std::vector<std::string> notes() const;

 private:
  void explain(Saying& saying, double change, std::string_view network, std::uint32_t nodes,
               const TargetUnknowns& unknown) const;
};

// What to do about a network that is not described, or from public figures.
inline constexpr std::string_view kMeasureNetwork = "measure the network: lbf-calibrate --name NAME";

// Trust::other_ranks_percent. WORK_PERCENT: pattern::Program's.
double other_ranks_percent(std::optional<double> work_percent);

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
