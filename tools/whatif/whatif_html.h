// lbf-whatif --html: one page, whole in itself, in the look of lbf-report's (report/html.h).
#pragma once

#include <string>

#include "tools/whatif/whatif_output.h"

namespace lbf::tools {

// The targets; where procedures were asked for, procedure LBF and Critical Path Zeroing of each, what was asked, the
// critical path, and the gain over the part of the time that is moved or saved, drawn as Coz does (docs/procedures.md).
// `version`: of lbf.
std::string whatif_html(const WhatIfResult& result, const std::string& version);

}  // namespace lbf::tools
