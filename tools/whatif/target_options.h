// The options that name targets, the same in lbf-whatif and lbf-trace export.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/whatif/whatif_targets.h"

namespace lbf::tools {

// `group`: the heading in --help; empty: the command's own. REQUIRES: `options` outlives `command`.
void add_target_options(CLI::App& command, WhatIfOptions& options, const std::string& group = "");

// What is wrong with the options that were given, in one line; empty: nothing.
std::string check_target_options(const CLI::App& command, const WhatIfOptions& options);

// A CLI11 check: a number above 0.
std::string check_positive(const std::string& text);

}  // namespace lbf::tools
