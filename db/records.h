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

namespace lbf::db {

enum class StepState { kRunning, kComplete, kPartial };
const char* name_of(StepState state);

struct CallRecord {
  std::string function;     // "MPI_Send"
  std::uint64_t calls = 0;  // of all ranks
  Seconds total_s = 0;
};

// What a step's program did: what it is recognised by when it runs again (docs/lbfd.md, "Programs and outcomes").
struct ProgramRun {
  std::string build_id;  // "gnu:HEX", "file:BYTES-CRC32C"; of several programs in one step joined by '+'
  std::string script;    // of an interpreter: "NAME:BYTES-CRC32C" or "-m NAME"; empty: the executable is all
  std::string name;      // for people: base name of the script or of the executable
  std::vector<std::pair<std::string, double>> calls_per_rank;  // by function; without polls and local calls
  Seconds work_s = 0;                // process time of a rank, the mean
  std::optional<double> sent_bytes;  // of a rank, the mean; nothing: not all of the run was captured
  std::uint64_t calls = 0;           // of all ranks, of every function
  Seconds rank_s = 0;                // sum of the ranks' times from MPI_Init to MPI_Finalize
  // The capture ended before the program: `calls` and `rank_s` are of the time until then, this is the ranks' process time in
  // what was recorded of it, all together, and the rest is not known. Such a run is not recognised, but tells how often the
  // program calls.
  std::optional<Seconds> seen_process_s;

  std::string identity() const { return script.empty() ? build_id : build_id + ' ' + script; }
};

struct StepRecord {
  std::string cluster;
  std::uint32_t job = 0;
  std::uint32_t step = 0;
  std::uint32_t restart = 0;
  std::optional<std::uint32_t> array_job;  // of an array's task: with array_task
  std::optional<std::uint32_t> array_task;
  std::optional<std::uint32_t> het_job;  // of a heterogeneous job's component: with het_offset
  std::optional<std::uint32_t> het_offset;
  std::string user_name;
  uid_t uid = 0;
  std::string account;    // Slurm's; empty: not said
  std::string partition;  // Slurm's; empty: not said
  std::string job_name;
  std::string command;                                    // the words with blanks between them
  std::optional<std::vector<std::string>> command_words;  // nothing: stored by lbf before it kept them
  bool command_cut = false;                               // words, or ends of words, are missing
  StepState state = StepState::kRunning;
  std::string why_partial;
  std::vector<std::string> nodes;
  Rank ranks = 0;
  std::vector<std::uint32_t> node_of_rank;
  std::string network;                // the one that ran
  double start_s = 0;                 // since the epoch
  std::optional<double> end_s;        // since the epoch
  std::optional<Seconds> measured_s;  // longest rank's time from MPI_Init to MPI_Finalize
  Seconds longest_stop_s = 0;         // of it, in a suspended job; not stored
  std::uint64_t events = 0;
  std::uint64_t messages = 0;
  std::uint64_t collectives = 0;
  Bytes wire_bytes = 0;    // of batches, as the relays sent them
  Bytes stored_bytes = 0;  // of the trace
  std::uint64_t wildcard_receives = 0;
  std::uint64_t lost_events = 0;
  Seconds mpi_s = 0;         // inside MPI calls, all ranks
  Seconds unmodelled_s = 0;  // of it in calls without a model
  Seconds capture_s = 0;
  Seconds relay_cpu_s = 0;
  std::vector<CallRecord> calls;
  std::vector<CallRecord> unmodelled_calls;
  std::vector<std::string> notes;
  std::optional<ProgramRun> program;  // written with a complete step only; not read back
  Seconds lbfd_cpu_s = 0;             // processor time of its replays
  std::optional<CostRecord> cost;  // as the relays reported it
  std::optional<ProcedureReport> procedures;  // where some were asked for
};

using StepRow = std::int64_t;  // step.step_row

// Where a target's nodes are in Slurm's topology.
struct TopologyRecord {
  std::string file;                // empty: no topology; all nodes are equally far apart
  std::vector<std::string> nodes;  // names, in the order of the target's nodes
  bool operator==(const TopologyRecord&) const = default;
};

// What a target is recognised by among those of a step: what it is called, network, contention, speed.
using TargetName = std::tuple<std::string, std::string, std::string, double>;

// One target's prediction, as docs/formats/http-v1.md "PREDICTION" defines it.
struct PredictionRecord {
  std::string target;
  std::uint32_t nodes = 0;
  std::uint32_t cores_per_node = 0;
  std::string placement;
  std::string network;
  std::string contention;
  double speed = 1.0;
  std::string kind;
  std::string why_stuck;    // not empty: on this target the program would wait for ever; not in advice
  Seconds predicted_s = 0;  // where it is stuck: until then
  std::optional<double> speedup;
  std::optional<double> self_error_percent;
  bool partial = false;
  Seconds progress_s = 0;
  // Of the rank that came furthest, what had passed in the run at its last replayed event, by the clock. While it runs, of
  // a rank whose capture window is open: without what it was preempted and what passed in failed polls since the relay
  // told of that last (2 s at most while it records), and since its last record. Of one whose calls are only counted:
  // until its window closed.
  Seconds measured_at_progress_s = 0;
  TopologyRecord topology;
  // Of a run that was captured in windows: the share of its measured time that was seen, and the 95 % interval of
  // predicted_s, where it can be told.
  double seen_share = 1;
  std::optional<Seconds> low_s{};
  std::optional<Seconds> high_s{};
  std::vector<Seconds> rank_finish_s;
  std::string why_deferred;        // not empty: not all of the run was replayed for it, for want of room
  bool deferred_for_good = false;  // with why_deferred: it will not be taken up any more
  bool taken_up = false;  // it was deferred when the step ended, and replayed later

  TargetName name() const { return {target, network, contention, speed}; }
  PredictionRecord without_ranks() const {
    return {target,      nodes,      cores_per_node,
            placement,   network,    contention,
            speed,       kind,       why_stuck,
            predicted_s, speedup,    self_error_percent,
            partial,     progress_s, measured_at_progress_s,
            topology,    seen_share, low_s,
            high_s,      {},         why_deferred,
            deferred_for_good, taken_up};
  }
};

}  // namespace lbf::db
