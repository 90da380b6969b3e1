// Runs at two or more rank counts -> ScalableProgram.
#pragma once

#include <vector>

#include "base/result.h"
#include "skeleton/scalable_program.h"

namespace lbf::skeleton {

struct ScalableOptions {
  double threshold_step = 0.02;    // as SignatureOptions
  double largest_threshold = 0.2;  // of sizes, over iterations and over the ranks of a run
  double time_tolerance = 0.05;    // how far a law may be off measured computation
  // Run times of the recorded runs, where they are known better; by trace, 0: the longest rank's.
  std::vector<Seconds> application_s;
};

// Loops must be the same on all ranks of a run, and their iterations follow a law over the runs; phases are
// fit_phase's. What runs of two rank counts do not tell apart is taken for the simpler; where another
// geometry of the ranks would do, too, and differs at a rank count up to 64, a warning names it.
//
// Errors, kInvalidInput, with what stood in the way of the attempt that explained most: fewer than two rank
// counts, two runs with the same one, loops that differ, a communicator, peer, size, time without a formula,
// requests under way from one iteration to the next, cancelled or freed requests. Wildcard receives are taken
// for receives from whom they got their message.
Result<ScalableProgram> fit_scalable(const std::vector<ProgramTrace>& traces, const ScalableOptions& options);

}  // namespace lbf::skeleton
