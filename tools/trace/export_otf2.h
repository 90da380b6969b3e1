// A predicted run as an OTF2 archive (Open Trace Format 2: Vampir, Cube, otf2-print): one location for each
// rank, MPI functions as regions, messages and collectives as records. Implements
// docs/formats/interchange.md.
#pragma once

#include <memory>
#include <string>

#include "tools/trace/export_timeline.h"

namespace lbf::tools {

// As TimelineExport::make; the archive is in `folder` once finish() was called. Errors: those of
// Predictor::make, kIo, kLimit, kInvalidInput where `folder` is there already or this build has no OTF2.
Result<std::unique_ptr<TimelineExport>> make_otf2_export(Rank ranks, const engine::Target& target,
                                                         const std::string& folder);

}  // namespace lbf::tools
