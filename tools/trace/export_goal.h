// A trace as a GOAL schedule: the text that LogGOPSim's txt2bin reads. Implements
// docs/formats/interchange.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "event/event.h"
#include "predictor/engine/match/mpi_library.h"
#include "tools/trace/export_notes.h"
#include "tools/trace/trace_output.h"

namespace lbf::tools {

class GoalExport {
 public:
  // REQUIRES: `output` outlives the export. `spool_folder`: see RankSpool. Errors: kIo.
  static Result<std::unique_ptr<GoalExport>> make(Rank ranks, TraceOutput& output, const std::string& spool_folder);
  virtual ~GoalExport() = default;
  // As Predictor::set_mpi.
  virtual void set_mpi(const engine::MpiSetup& setup) = 0;
  virtual Result<void> feed(Rank rank, const Event& event) = 0;
  // Writes the schedule; the output is not committed.
  virtual Result<ExportNotes> finish() = 0;
};

}  // namespace lbf::tools
