// Control records: what a relay says about its step between the events of a batch (docs/formats/http-v1.md, "Control
// records").
//
// Place in the event's way: relay -> *control record* -> batch -> lbfd, lbf-whatif. One type per record, one encoder
// and one decoder. A record comes from the user's program or node, so it is hostile: a member of a wrong type counts as
// absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "protocol/procedure_list.h"

namespace lbf::protocol {

// `rank` of a record: its number in MPI_COMM_WORLD as the record says it, in any range. kNoRank: the record says none.
inline constexpr std::int64_t kNoRank = -1;

// How a process ended.
inline constexpr std::string_view kFinalized = "finalized";
inline constexpr std::string_view kKilled = "killed";
inline constexpr std::string_view kAborted = "aborted";

// Libraries of devices.
inline constexpr std::string_view kCuda = "CUDA";
inline constexpr std::string_view kHip = "HIP";
inline constexpr std::size_t kMostDeviceLibraries = 2;

inline constexpr std::size_t kMostMpiSettings = 32;

// What a remark says of a procedure.
inline constexpr std::string_view kRefused = "refused";
inline constexpr std::string_view kRemarked = "note";
inline constexpr std::string_view kSwitchedOff = "off";

// One process, before its first event.
struct ProcessRecord {
  std::int64_t rank = kNoRank;
  std::optional<std::int64_t> world_size{};
  std::int64_t pid = 0;
  std::optional<std::int64_t> node_index{};
  std::int64_t slurm_procid = -1;
  std::string executable{};
  std::string library{};  // MPI_Get_library_version
  std::string build_id{};
  std::string script{};
  std::int64_t thread_level = 0;
  std::int64_t start_realtime_ns = 0;
  Seconds init_s = 0;
  std::int64_t cpu_threshold_ns = 0;
  std::vector<std::string> mpi_settings{};  // of collectives, in the environment: "NAME=VALUE"
};

// One MPI function in one process.
struct FunctionTotal {
  std::uint64_t function = 0;  // id of event/mpi_functions.yml, in any range
  std::uint64_t count = 0;
  Seconds total_s = 0;
};

// Totals of one process, cumulative: the last record counts.
struct StatsRecord {
  std::int64_t rank = kNoRank;
  Seconds elapsed_s = 0;
  std::optional<std::vector<FunctionTotal>> calls{};
  std::uint64_t failed_polls = 0;
  std::uint64_t lost_records = 0;
  std::uint64_t abandoned_calls = 0;
  std::uint64_t events_without_communicator = 0;
  Seconds unread_gap_s = 0;
  Seconds capture_s = 0;
  // In which its first thread was ready to run and had no processor, so far; what others than the job took of it; what
  // its cgroup's CPU limit took. The rest the job's own ranks took from each other.
  Seconds delayed_s = 0;
  Seconds others_s = 0;
  Seconds limited_s = 0;
  std::vector<std::string> devices{};  // libraries that are loaded: kCuda, kHip
};

struct ProcessEndRecord {
  std::int64_t rank = kNoRank;
  std::string how{};  // kFinalized ...
  Seconds elapsed_s = 0;
};

// How the task ended that the rank was: one of the two, as Slurm tells it. After its ProcessEndRecord.
struct TaskExitRecord {
  std::int64_t rank = kNoRank;
  std::optional<std::uint64_t> exit_code{};
  std::optional<std::uint64_t> signal{};
};

// Why Slurm ended the step before its tasks ended by themselves.
struct StepKilledRecord {
  std::string by{};  // "scancel", "the job's time limit" ...: words for people
};

// The name of a rank's procedure, before the first event of it.
struct ProcedureRecord {
  std::int64_t rank = kNoRank;
  std::optional<std::uint64_t> id{};
  std::string name{};
  double call_ns = 0;  // cost of measuring a call; 0: not said
};

// What the samples of one rank say is worth measuring.
struct ProcedureCandidateRecord {
  std::int64_t rank = kNoRank;
  std::uint64_t number = 0;  // of `of`
  std::uint64_t of = 0;
  std::uint64_t samples = 0;  // in the first of `names`
  std::uint64_t own_samples = 0;
  std::vector<std::string> names{};  // the procedure, what calls it most, what calls that ...
  double call_ns = 0;
};

// From here on the processes of this stream measure `list`.
struct ProcedureListRecord {
  std::int64_t rank = kNoRank;  // one of them
  ProcedureList list;
};

// Samples of a procedure that is not measured, cumulative.
struct ProcedureSamplesRecord {
  std::int64_t rank = kNoRank;
  std::string name{};
  std::uint64_t inclusive = 0;
  std::uint64_t exclusive = 0;
  std::uint64_t of = 0;
};

struct ProcedureRemarkRecord {
  std::int64_t rank = kNoRank;
  std::string kind{};  // kRefused ...
  std::string name{};
  std::string text{};
  double calls_per_s = 0;  // of one that was switched off; 0: not said
};

// One line for the step's notes.
struct NoteRecord {
  std::string text{};
  Seconds stopped_s = 0;  // a rank stood still for so long
};

// The capture's cost in one rank.
struct RankCost {
  std::uint64_t rank = 0;
  Seconds direct_s = 0;
  Seconds ideal_s = 0;
  std::uint64_t recorded_calls = 0;
  std::uint64_t counted_calls = 0;
  Seconds program_cpu_s = 0;
};

struct PrimitiveTimes {
  double recorded = 0;
  double counted = 0;
  double relayed = 0;
  double looked = 0;
};

// What the capture costs on one node and what was decided about it, cumulative. The encoder leaves out what is not set.
struct CostRecord {
  std::optional<std::uint64_t> node_index;
  std::optional<double> limit_percent;
  std::optional<std::string> state;  // "open", "counting", "off"
  std::optional<double> predicted_percent;
  std::optional<double> corrected_percent;
  std::optional<std::uint64_t> windows;
  std::optional<Seconds> open_s;
  std::optional<Seconds> regulated_s;
  std::optional<std::uint64_t> grants_used_up;
  std::optional<Seconds> program_cpu_s;
  std::optional<Seconds> direct_s;
  std::optional<Seconds> ideal_s;
  std::optional<Seconds> recording_s;
  std::optional<Seconds> relay_cpu_s;
  std::optional<Seconds> held_up_s;
  std::optional<Seconds> once_capture_s;
  std::optional<Seconds> once_relay_s;
  std::optional<Seconds> watched_s;
  std::optional<std::uint64_t> recorded_calls;
  std::optional<std::uint64_t> counted_calls;
  std::optional<std::uint64_t> disbelieved;
  std::optional<Seconds> pressed_s;
  std::optional<PrimitiveTimes> primitives_ns;
  std::optional<std::uint64_t> procedure_calls;
  std::optional<Seconds> procedures_s;
  std::optional<std::vector<RankCost>> ranks;
};

// What the processors of a node did on which its ranks may run, before the end of its stream.
struct ProcessorsRecord {
  std::uint64_t node_index = 0;
  std::uint64_t processors = 0;
  Seconds passed_s = 0;  // of all of them together, as the following
  Seconds others_s = 0;  // other programs ran
  Seconds stolen_s = 0;  // the host had them (steal)
  Seconds softirq_s = 0;
  Seconds throttled_s = 0;  // the ranks' cgroup had used up its CPU limit
};

// The relay's own totals, before the end of its stream.
struct RelayRecord {
  std::uint64_t node_index = 0;
  Seconds cpu_s = 0;
  std::uint64_t max_rss_bytes = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t batches = 0;
  std::uint64_t spooled_batches = 0;
  std::uint64_t lost_batches = 0;
  std::uint64_t discarded_events = 0;
  std::uint64_t processes = 0;
  std::uint64_t processes_left_out = 0;
};

// A record of a type that this version does not know.
struct UnknownRecord {
  std::string type;
  std::int64_t rank = kNoRank;
};

using ControlRecord =
    std::variant<UnknownRecord, ProcessRecord, StatsRecord, ProcessEndRecord, TaskExitRecord, StepKilledRecord,
                 ProcedureRecord, ProcedureCandidateRecord, ProcedureListRecord, ProcedureSamplesRecord,
                 ProcedureRemarkRecord, NoteRecord, CostRecord, RelayRecord, ProcessorsRecord>;

// One JSON object. Bytes that are no UTF-8 become U+FFFD. Not for UnknownRecord.
std::string encode(const ProcessRecord& record);
std::string encode(const StatsRecord& record);
std::string encode(const ProcessEndRecord& record);
std::string encode(const TaskExitRecord& record);
std::string encode(const StepKilledRecord& record);
std::string encode(const ProcedureRecord& record);
std::string encode(const ProcedureCandidateRecord& record);
std::string encode(const ProcedureListRecord& record);
std::string encode(const ProcedureSamplesRecord& record);
std::string encode(const ProcedureRemarkRecord& record);
std::string encode(const NoteRecord& record);
std::string encode(const CostRecord& record);
std::string encode(const RelayRecord& record);
std::string encode(const ProcessorsRecord& record);

// Times are not negative. Calls and ranks that break their form are left out. Errors (kInvalidInput): TEXT is no JSON
// object with a string `type`.
Result<ControlRecord> decode_control(std::string_view text);

// Of a record that is about one rank; nothing: it is about a node.
std::optional<std::int64_t> rank_of(const ControlRecord& record);

}  // namespace lbf::protocol
