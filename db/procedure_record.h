// ProcedureRecord: what is known and predicted of one procedure of a step; CriticalPathRecord: the longest path through
// the step (docs/formats/http-v1.md, PROCEDURES).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "protocol/procedure_fields.h"

namespace lbf::db {

inline constexpr const auto& kProcedureFields = protocol::kProcedureTable<protocol::Side::kLbfd>;

using ProcedureRecord = protocol::ProcedureFields<protocol::Side::kLbfd>;

struct CriticalPathRecord : protocol::CriticalPathFields {
  std::vector<std::pair<std::int32_t, Seconds>> ranks;     // longest first; -1: all others
  std::vector<std::pair<std::string, Seconds>> functions;  // MPI functions
};

struct ProcedureReport {
  std::vector<ProcedureRecord> procedures;
  std::optional<CriticalPathRecord> path;
  std::string why_deferred;  // not empty: lbfd had no room to replay all of the run for them
};

}  // namespace lbf::db
