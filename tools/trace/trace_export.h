// lbf-trace export: a trace into the files of another tool.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tools/trace/export_ti.h"
#include "tools/whatif/whatif_targets.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {

struct TraceExportOptions {
  std::string format;  // "goal", "ti", "timeline", "otf2"
  std::string output = "-";
  double flops_per_second = kDefaultFlopsPerSecond;
  WhatIfOptions target;  // of a predicted run
};

// Whether the format is a predicted run, which takes a target.
inline bool exports_a_prediction(const std::string& format) {
  return format == "timeline" || format == "otf2";
}

// What the other format cannot say, a line each. Errors: those of reading and writing, and of the target.
Result<std::vector<std::string>> export_trace(const TraceExportOptions& options, WhatIfTrace& trace);

}  // namespace lbf::tools
