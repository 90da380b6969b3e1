// A run that did not take place, with another number of ranks than those that did (docs/adr/0018-pattern.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pattern/learner.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {

// What the runs of a program have in common.
class LearntProgram {
 public:
  LearntProgram(pattern::Program program, std::string library, std::vector<std::string> mpi_settings);
  // Its trace with RANKS. Errors: pattern::Program::check's.
  Result<std::unique_ptr<WhatIfTrace>> with_ranks(Rank ranks) const;
  const std::vector<std::string>& notes() const { return program_->notes; }

 private:
  std::shared_ptr<const pattern::Program> program_;
  std::string library_;
  std::vector<std::string> mpi_settings_;
};

class ProgramLearner {
 public:
  // Reads TRACE, which messages about others call NAME. After an error it is left out. Errors: those of the trace and
  // of skeleton::OperationReader; a library that is not that of the others.
  Result<void> add(const std::string& name, WhatIfTrace& trace);
  // Errors: pattern::Learner's.
  Result<LearntProgram> learn() const;

 private:
  pattern::Learner learner_;
  std::string first_;  // its name; empty: there is none
  std::string library_;
  std::vector<std::string> mpi_settings_;
  double unmodelled_s_ = 0;
};

// Of the program of TRACES, as open_trace takes them, with RANKS. Errors: open_trace's; why nothing can be learnt from
// these runs.
Result<std::unique_ptr<WhatIfTrace>> open_extrapolated(const std::vector<std::string>& traces, Rank ranks,
                                                       const std::string& server);

}  // namespace lbf::tools
