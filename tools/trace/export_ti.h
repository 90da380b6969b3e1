// A trace as SimGrid's time-independent trace: a list of files, one for each rank, that `smpirun -replay`
// takes. Implements docs/formats/interchange.md.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "event/event.h"
#include "predictor/engine/match/mpi_library.h"
#include "tools/trace/export_notes.h"

namespace lbf::tools {

inline constexpr double kDefaultFlopsPerSecond = 1e9;

class TiExport {
 public:
  // Writes PATH, and the ranks' files in the folder PATH_files. Errors: kIo, kInvalidInput where one of them
  // is there already and is something else.
  static Result<std::unique_ptr<TiExport>> make(Rank ranks, const std::string& path, double flops_per_second);
  virtual ~TiExport() = default;
  // As Predictor::set_mpi.
  virtual void set_mpi(const engine::MpiSetup& setup) = 0;
  virtual Result<void> feed(Rank rank, const Event& event) = 0;
  virtual Result<ExportNotes> finish() = 0;
};

}  // namespace lbf::tools
