// The records that the stores read and write: what http-v1.md calls STEP and PREDICTION, with units in the
// names.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "db/cost_record.h"
#include "db/procedure_record.h"
#include "protocol/prediction_fields.h"
#include "protocol/step_fields.h"

namespace lbf::db {

inline constexpr const auto& kStepFields = protocol::kStepTable<protocol::Side::kLbfd>;
inline constexpr const auto& kPredictionFields = protocol::kPredictionTable<protocol::Side::kLbfd>;

using protocol::name_of;
using protocol::StepState;
using CallRecord = protocol::CallTotal;

// What a step's program did: what it is recognised by when it runs again (docs/lbfd.md, "Programs and outcomes").
struct ProgramRun {
  std::string build_id;  // "gnu:HEX", "file:BYTES-CRC32C"; of several programs in one step joined by '+'
  std::string script;    // of an interpreter: "NAME:BYTES-CRC32C" or "-m NAME"; empty: the executable is all
  std::string name;      // for people: base name of the script or of the executable
  std::vector<std::pair<std::string, double>> calls_per_rank;  // by function; without polls and local calls
  Seconds work_s = 0;                                          // process time of a rank, the mean
  std::optional<double> sent_bytes;  // of a rank, the mean; nothing: not all of the run was captured
  std::uint64_t calls = 0;           // of all ranks, of every function
  Seconds rank_s = 0;                // sum of the ranks' times from MPI_Init to MPI_Finalize
  // The capture ended before the program: `calls` and `rank_s` are of the time until then, this is the ranks' process
  // time in what was recorded of it, all together, and the rest is not known. Such a run is not recognised, but tells
  // how often the program calls.
  std::optional<Seconds> seen_process_s;

  std::string identity() const { return script.empty() ? build_id : build_id + ' ' + script; }
};

// What lbfd stores and sends of a step: the fields of protocol/step_fields.h, and the parts that are records.
struct StepRecord : protocol::StepFields<protocol::Side::kLbfd> {
  Seconds longest_stop_s = 0;                 // of measured_s, in a suspended job; not stored
  bool is_disturbed = false;                  // others had its processors for too long; not stored
  std::optional<ProgramRun> program;          // written with a complete step only; not read back
  std::optional<CostRecord> cost;             // as the relays reported it
  std::optional<ProcedureReport> procedures;  // where some were asked for
};

using StepRow = std::int64_t;  // step.step_row

using TopologyRecord = protocol::Topology;

// What a target is recognised by among those of a step: what it is called, network, contention, speed.
using TargetName = std::tuple<std::string, std::string, std::string, double>;

struct PredictionRecord : protocol::PredictionFields<protocol::Side::kLbfd> {
  TargetName name() const { return {target, network, contention, speed}; }
  // Without rank_finish_s, which is most of the bytes of a large step.
  PredictionRecord without_ranks() const;
};

}  // namespace lbf::db
