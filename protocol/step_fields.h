// A job step: STEP of docs/formats/http-v1.md without its parts that are lists of records (cost, procedures,
// predictions). A new field is a member, its line in the table, and, if it is stored, a migration.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "protocol/field.h"

namespace lbf::protocol {

enum class StepState { kRunning, kComplete, kPartial };

inline constexpr StepState kStepStates[] = {StepState::kRunning, StepState::kComplete, StepState::kPartial};

constexpr const char* name_of(StepState state) {
  switch (state) {
    case StepState::kRunning:
      return "running";
    case StepState::kComplete:
      return "complete";
    case StepState::kPartial:
      return "partial";
  }
  return "running";
}

constexpr std::optional<StepState> state_of_name(std::string_view name) {
  for (const StepState state : kStepStates) {
    if (name == name_of(state)) return state;
  }
  return std::nullopt;
}

struct CallTotal {
  std::string function;     // "MPI_Send"
  std::uint64_t calls = 0;  // of all ranks
  Seconds total_s = 0;
};

// The words of a command, or the line that they were joined to where the words were not stored.
struct CommandView {
  const std::string& line;
  const std::optional<std::vector<std::string>>& words;
};

// LOST_S of a run of MEASURED_S that others than the job took: others_s and limited_s. 0: so little that it does not
// show.
constexpr Seconds noticeable_loss_s(Seconds lost_s, Seconds measured_s) {
  constexpr double kNoticeableShare = 0.02;
  return lost_s > kNoticeableShare * measured_s ? lost_s : 0;
}

template <Side kSide>
struct StepFields {
  std::string cluster;
  std::uint32_t job = 0;
  std::uint32_t step = 0;
  std::uint32_t restart = 0;
  std::uint64_t submit_s = 0;              // of the job, since the epoch; 0: not said
  std::optional<std::uint32_t> array_job;  // of an array's task: with array_task
  std::optional<std::uint32_t> array_task;
  std::optional<std::uint32_t> het_job;  // of a heterogeneous job's component: with het_offset
  std::optional<std::uint32_t> het_offset;
  std::string user_name;
  Known<kSide, uid_t> uid{};
  std::string account;    // Slurm's; empty: not said
  std::string partition;  // Slurm's; empty: not said
  std::string job_name;
  std::string command;  // the words with blanks between them; a reader's: quoted for a shell
  std::optional<std::vector<std::string>> command_words;  // lbfd's; nothing: stored by lbf before it kept them
  bool command_cut = false;                               // words, or ends of words, are missing
  StepState state = StepState::kRunning;
  std::string why_partial;
  std::vector<std::string> nodes;
  Known<kSide, Rank> ranks{};
  std::string network;                // the one that ran
  Known<kSide, double> start_s{};     // since the epoch
  std::optional<double> end_s;        // since the epoch
  std::optional<Seconds> measured_s;  // longest rank's time from MPI_Init to MPI_Finalize
  Known<kSide, std::uint64_t> events{};
  Known<kSide, std::uint64_t> messages{};
  Known<kSide, std::uint64_t> collectives{};
  Known<kSide, Bytes> wire_bytes{};    // of batches, as the relays sent them
  Known<kSide, Bytes> stored_bytes{};  // of the trace
  Known<kSide, std::uint64_t> wildcard_receives{};
  Known<kSide, Seconds> mpi_s{};          // inside MPI calls, all ranks
  Known<kSide, Seconds> unmodelled_s{};   // of it in calls without a model
  Known<kSide, std::uint64_t> threads{};  // of the largest team of a parallel region; 0: none was seen
  Known<kSide, Seconds> regions_s{};      // in parallel regions, all ranks
  Known<kSide, Seconds> region_work_s{};  // of all threads in them
  std::string library;                    // ProcessRecord::library of the run; empty: no rank said so
  std::string devices;                    // libraries that ranks have loaded: "CUDA", "HIP", "CUDA,HIP"; empty: none
  Known<kSide, Seconds> device_s{};       // in calls that wait for a device, all ranks
  Known<kSide, Seconds> device_busy_s{};  // of it on the processor
  // Of the memory domains where it ran: the most processors of one that computed; 0: the network file says nothing of
  // them. And what each rank demands, and demands at most, in 10^6 bytes a second; 0: not known.
  Known<kSide, std::uint32_t> ranks_per_domain{};
  Known<kSide, double> memory_demand_MBps{};
  Known<kSide, double> memory_most_MBps{};
  // What the program is recognised by: build id, of an interpreter its script, too. Empty: not known, or not complete.
  std::string program_id;
  // What the longest path through the run is made of (docs/adr/0016-scaling.md), on the network that ran, where each
  // rank and thread has a processor; of a step that is complete. Nothing: it was not replayed for that.
  std::optional<Seconds> path_work_s;
  std::optional<Seconds> path_rank_work_s;  // not of the path: work of a rank, the mean
  std::optional<Seconds> path_copies_s;     // and reductions, in collectives
  std::optional<Seconds> path_overhead_s;   // protocol processing of messages
  std::optional<Seconds> path_latency_inside_s;
  std::optional<Seconds> path_latency_between_s;
  std::optional<Seconds> path_bytes_inside_s;
  std::optional<Seconds> path_bytes_between_s;
  std::optional<Seconds> path_kept_s;    // first contacts, blocked time
  std::optional<Seconds> path_unseen_s;  // between capture windows
  Known<kSide, Seconds> capture_s{};
  Known<kSide, Seconds> relay_cpu_s{};
  Known<kSide, Seconds> lbfd_cpu_s{};  // processor time of its replays
  Known<kSide, std::uint64_t> lost_events{};
  // Of the rank that lost most to others than the job: ready to run without a processor; of it, what other programs ran
  // meanwhile, and what its cgroup's CPU limit took.
  Known<kSide, Seconds> delayed_s{};
  Known<kSide, Seconds> others_s{};
  Known<kSide, Seconds> limited_s{};
  // Of the processors of the node where it is most.
  Known<kSide, double> stolen_percent{};
  Known<kSide, double> softirq_percent{};
  std::vector<std::uint32_t> node_of_rank;
  std::vector<CallTotal> unmodelled_calls;
  std::vector<std::string> notes;
  std::vector<CallTotal> calls;
  // Where a list asks for them: the number of `nodes`; of all targets, those that are deferred, and those that were
  // when the step ended, but are no longer.
  Known<kSide, std::uint64_t> node_count{};
  Known<kSide, std::uint64_t> targets_deferred{};
  Known<kSide, std::uint64_t> targets_taken_up{};

  CommandView command_view() const { return {command, command_words}; }
};

// In the order of the document, in which COST stands before what a summary does not have. In SQL s is the table step, r
// run.
template <Side kSide>
inline constexpr auto kStepTable = [] {
  using S = StepFields<kSide>;
  constexpr auto command = [] {
    if constexpr (kSide == Side::kLbfd) {
      return &S::command_view;
    } else {
      return &S::command;
    }
  }();
  // clang-format off
  return std::tuple{
      Field{&S::cluster, "cluster", "cluster", Unit::kNone, {"Cluster", 10, Align::kLeft}, "Slurm's name of it"},
      Field{&S::job, "job", "job", Unit::kNone, kNoColumn, "Slurm's number"},
      Field{&S::step, "step", "step", Unit::kNone, kNoColumn, "Slurm's number"},
      Field{&S::restart, "restart", "restart", Unit::kNone, {"Restart", 7}, "how often Slurm had started the job before"},
      Field{&S::submit_s, "submit", "submit_s", Unit::kEpochSeconds, {"Submit", 19}, "of the job, by Slurm; tells jobs of one number apart; 0 if unknown"},
      Field{&S::array_job, "array_job", "array_job", Unit::kNone, kNoColumn, "null unless it is a task of an array"},
      Field{&S::array_task, "array_task", "array_task", Unit::kNone, kNoColumn, "likewise"},
      Field{&S::het_job, "het_job", "het_job", Unit::kNone, kNoColumn, "null unless it is a component of a heterogeneous job"},
      Field{&S::het_offset, "het_offset", "het_offset", Unit::kNone, kNoColumn, "likewise"},
      Field{&S::user_name, "user", "user_name", Unit::kNone, kNoColumn, "name of its owner"},
      Field{&S::uid, "uid", "uid", Unit::kNone, {"UID", 6}, "of its owner"},
      Field{&S::account, "account", "account", Unit::kNone, {"Account", 10}, "Slurm's; \"\" if unknown"},
      Field{&S::partition, "partition", "partition_name", Unit::kNone, {"Partition", 10}, "Slurm's; \"\" if unknown"},
      Field{&S::job_name, "job_name", "job_name", Unit::kNone, {"JobName", 10}, "Slurm's"},
      Field{&S::command, kNoKey, "command", Unit::kNone, kNoColumn, ""},
      Field{&S::command_words, kNoKey, "command_json", Unit::kNone, kNoColumn, ""},
      Field{command, "command", kNotStored, Unit::kCommandLine, kNoColumn, "the words; one text with blanks between them in steps that were stored as a text"},
      Field{&S::command_cut, "command_cut", "command_cut", Unit::kNone, kNoColumn, "words, or ends of words, are missing"},
      Field{&S::state, "state", "state", Unit::kNone, {"State", 8}, "`running`, `complete` or `partial`"},
      Field{&S::why_partial, "why_partial", "why_partial", Unit::kNone, {"Reason", 24, Align::kLeft}, "reasons, if `state` is `partial`"},
      Field{&S::nodes, "nodes", "nodes_json", Unit::kNodes, {"NodeList", 15}, "names"},
      Field{&S::ranks, "ranks", "ranks", Unit::kCount, {"NTasks", 6}, "of MPI_COMM_WORLD"},
      Field{&S::network, "network", "network", Unit::kNone, {"RunNetwork", 14, Align::kLeft}, "name of the network that ran"},
      Field{&S::start_s, "start", "start_s", Unit::kEpochSeconds, {"Start", 19}, "of the step"},
      Field{&S::end_s, "end", "end_s", Unit::kEpochSeconds, kNoColumn, "null until it is known"},
      Field{&S::measured_s, "measured_s", "measured_s", Unit::kSeconds, {"Measured", 10}, "the longest rank's time from MPI_Init to MPI_Finalize, without what is between MPI_Pcontrol(0) and (1); null until it is known"},
      Field{&S::events, "events", "events", Unit::kCount, {"Events", 12}, "of all ranks"},
      Field{&S::messages, "messages", "messages", Unit::kCount, {"Messages", 12}, "that were matched"},
      Field{&S::collectives, "collectives", "collectives", Unit::kCount, kNoColumn, "calls that were matched", In::kDocuments},
      Field{&S::wire_bytes, "bytes_on_wire", "wire_bytes", Unit::kBytes, {"BytesOnWire", 12}, "of batches, as the relays sent them"},
      Field{&S::stored_bytes, "bytes_stored", "stored_bytes", Unit::kBytes, {"BytesStored", 12}, "of the trace"},
      Field{&S::wildcard_receives, "wildcard_receives", "wildcard_receives", Unit::kCount, {"Wildcards", 9}, "with MPI_ANY_SOURCE or MPI_ANY_TAG"},
      Field{&S::mpi_s, "mpi_s", "mpi_s", Unit::kSeconds, {"MPITime", 10}, "sum over all ranks and their threads, without Init and Finalize"},
      Field{&S::unmodelled_s, "unmodelled_s", "unmodelled_s", Unit::kSeconds, {"Unmodelled", 10}, "of `mpi_s`, in calls without a model"},
      Field{&S::threads, "threads", "threads", Unit::kCount, {"NThreads", 8}, "of the largest team of an OpenMP region; 0 if none was seen"},
      Field{&S::regions_s, "regions_s", "regions_s", Unit::kSeconds, {"RegionTime", 10}, "sum over all ranks, in OpenMP regions"},
      Field{&S::region_work_s, "region_work_s", "region_work_s", Unit::kSeconds, {"RegionWork", 10}, "sum over all threads in them"},
      Field{&S::library, "library", "library", Unit::kNone, {"Library", 24, Align::kLeft}, "the MPI library that ran, as in `process` records; \"\" if no rank said so"},
      Field{&S::devices, "devices", "devices", Unit::kNone, {"Devices", 8, Align::kLeft}, "libraries of devices that ranks have loaded: `CUDA`, `HIP` or `CUDA,HIP`; \"\" if none was seen"},
      Field{&S::device_s, "device_s", "device_s", Unit::kSeconds, {"DeviceTime", 10}, "sum over all ranks, in calls that wait for a device"},
      Field{&S::device_busy_s, "device_busy_s", "device_busy_s", Unit::kSeconds, {"DeviceBusy", 10}, "of `device_s`, on the processor (spinning)"},
      Field{&S::ranks_per_domain, "ranks_per_domain", "ranks_per_domain", Unit::kCount, {"DomainRanks", 11}, "ranks, one for each processor at most, of the fullest memory domain where it ran; 0 if the network file has no `[memory]`"},
      Field{&S::memory_demand_MBps, "memory_demand_MBps", "memory_demand_MBps", Unit::kFactor, {"MemoryDemand", 12}, "of a rank with a memory domain for itself, 10^6 bytes per second, from earlier runs with other numbers of ranks per domain; 0 if unknown, or too little to show"},
      Field{&S::memory_most_MBps, "memory_most_MBps", "memory_most_MBps", Unit::kFactor, kNoColumn, "`memory_demand_MBps` is not more than this; 0 if unknown"},
      Field{&S::program_id, "program_id", computed("ifnull((SELECT p.build_id || iif(p.script = '', '', ' ' || p.script) FROM run p WHERE p.step_row = s.step_row), '')"), Unit::kNone, kNoColumn, "what the program is recognised by; \"\" if not known, or while it runs", In::kFull | In::kRows},
      Field{&S::path_work_s, "path_work_s", "path_work_s", Unit::kSeconds, kNoColumn, "of the longest path, on the network that ran with a processor for each rank and thread: work; null if the step is not complete or was not replayed for that, and so are all `path_` keys", In::kFull | In::kRows},
      Field{&S::path_rank_work_s, "path_rank_work_s", "path_rank_work_s", Unit::kSeconds, kNoColumn, "work of a rank, the mean; not of the path", In::kFull | In::kRows},
      Field{&S::path_copies_s, "path_copies_s", "path_copies_s", Unit::kSeconds, kNoColumn, "of the path: copies and reductions in collectives", In::kFull | In::kRows},
      Field{&S::path_overhead_s, "path_overhead_s", "path_overhead_s", Unit::kSeconds, kNoColumn, "of the path: protocol processing of messages", In::kFull | In::kRows},
      Field{&S::path_latency_inside_s, "path_latency_inside_s", "path_latency_inside_s", Unit::kSeconds, kNoColumn, "of the path: empty messages inside a node", In::kFull | In::kRows},
      Field{&S::path_latency_between_s, "path_latency_between_s", "path_latency_between_s", Unit::kSeconds, kNoColumn, "of the path: empty messages between nodes", In::kFull | In::kRows},
      Field{&S::path_bytes_inside_s, "path_bytes_inside_s", "path_bytes_inside_s", Unit::kSeconds, kNoColumn, "of the path: what longer messages take more, inside a node", In::kFull | In::kRows},
      Field{&S::path_bytes_between_s, "path_bytes_between_s", "path_bytes_between_s", Unit::kSeconds, kNoColumn, "of the path: what longer messages take more, between nodes", In::kFull | In::kRows},
      Field{&S::path_kept_s, "path_kept_s", "path_kept_s", Unit::kSeconds, kNoColumn, "of the path: first contacts and blocked time", In::kFull | In::kRows},
      Field{&S::path_unseen_s, "path_unseen_s", "path_unseen_s", Unit::kSeconds, kNoColumn, "of the path: between capture windows", In::kFull | In::kRows},
      Field{&S::capture_s, "capture_s", "capture_s", Unit::kSeconds, {"CaptureTime", 11}, "sum over all ranks and their threads"},
      Field{&S::relay_cpu_s, "relay_cpu_s", "relay_cpu_s", Unit::kSeconds, {"RelayCPU", 10}, "sum over the nodes' relays"},
      Field{&S::lbfd_cpu_s, "lbfd_cpu_s", computed("r.lbfd_cpu_s"), Unit::kSeconds, {"LbfdCPU", 10}, "processor time of the step's replays"},
      Field{&S::lost_events, "lost_events", "lost_events", Unit::kCount, {"LostEvents", 10}, "not replayed"},
      Field{&S::delayed_s, "delayed_s", "delayed_s", Unit::kSeconds, {"Delayed", 10}, "ready to run without a processor, of the rank whose `others_s` and `limited_s` are most"},
      Field{&S::others_s, "others_s", "others_s", Unit::kSeconds, {"Others", 10}, "of `delayed_s`, other programs ran"},
      Field{&S::limited_s, "limited_s", "limited_s", Unit::kSeconds, {"Limited", 10}, "of `delayed_s`, the CPU limit of the job's cgroup was used up"},
      Field{&S::stolen_percent, "stolen_percent", "stolen_percent", Unit::kPercent, {"Stolen", 7}, "of the processors' time the host took (steal), on the worst node"},
      Field{&S::softirq_percent, "softirq_percent", "softirq_percent", Unit::kPercent, {"SoftIRQ", 7}, "of the processors' time softirqs took, which counts as the ranks' work, on the worst node"},
      Field{&S::node_of_rank, "node_of_rank", "node_of_rank_json", Unit::kNone, kNoColumn, "index in `nodes`; not with `summary=1`", In::kBrief | In::kList | In::kFull},
      Field{&S::unmodelled_calls, "unmodelled_calls", kNotStored, Unit::kNone, kNoColumn, "function, calls and seconds of all ranks, longest first; not with `summary=1`", In::kBrief | In::kList | In::kFull},
      Field{&S::notes, "notes", "notes_json", Unit::kNone, {"Notes", 40, Align::kLeft}, "not with `summary=1`", In::kBrief | In::kList | In::kFull | In::kRows},
      Field{&S::calls, "calls", kNotStored, Unit::kNone, kNoColumn, "as `unmodelled_calls`, of all functions; not with `brief=1` and `summary=1`", In::kList | In::kFull},
      Field{&S::node_count, "node_count", computed("iif(json_valid(s.nodes_json), json_array_length(s.nodes_json), 0)"), Unit::kCount, kNoColumn, "the number of `nodes`", In::kRows},
      Field{&S::targets_deferred, "targets_deferred", computed("(SELECT count(*) FROM prediction d WHERE d.step_row = s.step_row AND d.why_deferred <> '')"), Unit::kCount, kNoColumn, "the number of targets whose PREDICTION has `why_deferred`", In::kRows},
      Field{&S::targets_taken_up, "targets_taken_up", computed("(SELECT count(*) FROM prediction d WHERE d.step_row = s.step_row AND d.taken_up = 1)"), Unit::kCount, kNoColumn, "the number of targets whose PREDICTION has `taken_up`", In::kRows},
  };
  // clang-format on
}();

}  // namespace lbf::protocol
