// A run that did not take place, with another number of ranks than those that did (docs/adr/0018-pattern.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {

// Of the program of TRACES, as open_trace takes them, with RANKS. Errors: open_trace's; why nothing can be learnt from
// these runs (pattern::Learner); libraries that differ.
Result<std::unique_ptr<WhatIfTrace>> open_extrapolated(const std::vector<std::string>& traces, Rank ranks,
                                                       const std::string& server);

}  // namespace lbf::tools
