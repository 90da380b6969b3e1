// Learner: runs of one program with several rank counts -> its message pattern as a function of the rank count.
//
// Place in the way: events -> operations (skeleton/) -> *pattern* -> events at another rank count -> match -> replay.
// Process grids, their transposition and butterflies are tried as rules; what is learnt is executed at the rank counts
// that ran, and must do there what the ranks did (Wu & Mueller, "ScalaExtrap", PPoPP 2011, has the idea for stencils).
#pragma once

#include <vector>

#include "base/result.h"
#include "pattern/program.h"
#include "skeleton/operation.h"

namespace lbf::pattern {

class Learner {
 public:
  void add(skeleton::ProgramTrace run) { runs_.push_back(std::move(run)); }

  // Errors (kInvalidInput): why there is no program: one rank count alone, communicators that are no part of a grid,
  // iterations that differ, a statement of which no rule tells who executes it; with the call and the rank.
  Result<Program> learn() const;

 private:
  std::vector<skeleton::ProgramTrace> runs_;
};

}  // namespace lbf::pattern
