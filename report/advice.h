// What the predictions of a step say to its user: which configuration is worth trying, with which srun flags,
// or that nothing is better by more than the predictions are wrong.
#pragma once

#include <optional>
#include <string>

#include "advisor/trust/trust.h"
#include "report/step.h"

namespace lbf::report {

// A gain below this is not advised however exact the prediction: two runs of the same job differ by more.
inline constexpr double kNoticeablePercent = 1.0;

// The measured time that `target` compares with: of the whole step, or, while not all of it was replayed, of
// the same part of the program (measured_at_progress_s).
std::optional<Seconds> reference_s(const Step& step, const TargetPrediction& target);

// lbfd's own value; without one reference_s / predicted_s.
std::optional<double> speedup(const Step& step, const TargetPrediction& target);

struct Advice {
  // The fastest target on the network that ran, and the fastest on another one; nullptr: none is surely faster than
  // the run, or (other network) none is surely faster than `here`: also where its prediction is too low by all that it
  // may be.
  const TargetPrediction* here = nullptr;
  const TargetPrediction* elsewhere = nullptr;
  // Where both are nullptr: the fastest of all that are predicted to be faster, though not surely.
  const TargetPrediction* doubtful = nullptr;
  // The fastest that is surely faster than the run and than first(), but on more nodes than the step's partition is
  // known to have: a what-if. None of the others is on as many.
  const TargetPrediction* beyond = nullptr;
  // The fastest that may be faster than the run and first(), on a network that nobody measured (is_unmeasured); those
  // on nodes that a new run gets come first. Never advised: no flags.
  const TargetPrediction* unmeasured = nullptr;
  bool self_known = false;  // false: no self-prediction to judge the others by

  const TargetPrediction* first() const { return here != nullptr ? here : elsewhere; }
};

// A new run gets so many nodes: usable_nodes; where they are not known, what the step had. Empty: nor is that.
std::optional<std::uint64_t> startable_nodes(const Step& step);

// How far the step's predictions may be off (advisor/trust).
advisor::Trust trust_of(const Step& step);

// How the target's prediction is said. Empty: it, or the one of the configuration that ran, is not known.
std::optional<advisor::Saying> saying_of(const Step& step, const TargetPrediction& target);

// Its nodes are connected by a network that nobody described, or by a nominal one that is not this cluster's own: what
// it says is no advice.
bool is_unmeasured(const Step& step, const TargetPrediction& target);

// The target's gain is one at the upper end of its interval, and noticeable.
bool is_sure_gain(const Step& step, const TargetPrediction& target);

// A gain is judged against both the measured time and the self target's predicted time: the smaller one
// counts, so that an error which all the targets share is never sold as a gain; and it must be one at the upper end of
// the prediction's interval (advisor/trust). REQUIRES: `step` outlives the advice.
Advice advise(const Step& step);

// "-N1 -n4", "-N2 -n4 --distribution=cyclic --ntasks-per-node=2", "-N1 -n4 --overcommit" (is_oversubscribed), "-N2
// -n4 --cpus-per-task=2 --export=ALL,OMP_NUM_THREADS=2" (other threads than ran). Empty: lbfd did not tell the nodes or
// the ranks.
std::string srun_flags(const Step& step, const TargetPrediction& target);

// Some node of the target has more ranks, or threads of their parallel regions, than processors.
bool is_oversubscribed(const Step& step, const TargetPrediction& target);

// "1 node", "2 nodes, cyclic, 4 threads", "2 nodes, cyclic, lan-fast" (`with_network`).
std::string describe(const TargetPrediction& target, bool with_network);

// The closing note of a step's report: whole sentences, lines of at most `width` columns.
std::string closing_note(const Step& step, std::size_t width);

// One line for the end of srun, without the line end.
std::string brief_line(const Step& step);

}  // namespace lbf::report
