// A predicted run as a timeline in Chrome's trace event format, which Perfetto and chrome://tracing show: a
// row for each rank, grouped by node, arrows for messages. Implements docs/formats/interchange.md.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "event/event.h"
#include "predictor/engine/match/mpi_library.h"
#include "predictor/engine/metric/predictor.h"
#include "tools/trace/trace_output.h"

namespace lbf::tools {

struct TimelineResult {
  Seconds lbf_s = 0;
  std::string why_partial;  // empty: the timeline is whole
};

class TimelineExport {
 public:
  // REQUIRES: `output` outlives the export. Errors: those of Predictor::make, kIo.
  static Result<std::unique_ptr<TimelineExport>> make(Rank ranks, const engine::Target& target, TraceOutput& output);
  virtual ~TimelineExport() = default;
  // As Predictor::set_mpi.
  virtual void set_mpi(const engine::MpiSetup& setup) = 0;
  virtual Result<void> feed(Rank rank, const Event& event) = 0;
  // The output is not committed.
  virtual Result<TimelineResult> finish() = 0;
};

}  // namespace lbf::tools
