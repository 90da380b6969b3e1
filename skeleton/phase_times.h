// The computation of a phase: which part of it lies before which term, as a function of the rank count.
#pragma once

#include "skeleton/phase_fit.h"

namespace lbf::skeleton {

// What a rank computed before an operation is the sum of what lies before the terms since its last one: those
// without a peer (a border of the grid) leave their computation to the next. So the seconds before each term
// are, for each run, the least squares' solution that is nowhere negative, and then a law over the runs.
// Errors: a term with more than kSmallShare of a run's computation whose law is off by more than
// `time_tolerance`. Smaller ones get the nearest law.
Result<void> fit_times(const std::vector<RankStretch>& stretches, const Geometry& geometry,
                       const PhaseFitOptions& options, PhaseFit& fit);

}  // namespace lbf::skeleton
