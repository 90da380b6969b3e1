// Step, TargetPrediction: one job step as lbfd describes it (docs/formats/http-v1.md, STEP and PREDICTION).
//
// Place in the event's way: db -> lbfd -> HTTP -> *report*. What was not sent is std::nullopt or empty: the
// report then leaves it out or says "-", it never makes up a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::report {

// Above it a run counts as seen whole: what is missing does not show in any figure.
inline constexpr double kWholeShare = 0.9995;

struct TargetPrediction {
  std::string target;  // "2 nodes, block"
  std::optional<std::uint32_t> nodes;
  std::optional<std::uint32_t> cores;  // processors per node
  std::string placement;               // block, cyclic, plane=K, map=N0,N1,...
  std::string network;
  std::string contention;
  std::optional<double> speed;
  std::string kind;  // self, LBF, NF, LBF+NF (TSE Sec. 2, 3)
  std::optional<Seconds> predicted_s;
  std::optional<double> speedup;  // measured / predicted
  std::optional<double> self_error_percent;
  bool partial = false;
  std::string
      why_stuck;  // not empty: the program would wait for ever there; predicted_s and speedup are unknown
  std::string why_deferred;  // not empty: lbfd had no room to replay all of it; predicted_s and speedup are unknown
  bool deferred_for_good = false;  // with why_deferred: it will not be taken up any more
  bool taken_up = false;           // it was deferred when the step ended, and replayed later
  std::string topology_file;  // Slurm's; empty: all nodes were taken to be equally far apart
  std::vector<std::string> topology_nodes;
  std::optional<Seconds> progress_s;
  std::optional<Seconds> measured_at_progress_s;
  // Of a run that was captured in windows: the share of it that was seen, the 95 % interval of predicted_s.
  std::optional<double> seen_share;
  std::optional<Seconds> low_s;
  std::optional<Seconds> high_s;

  bool seen_in_part() const { return seen_share && *seen_share < kWholeShare; }
  bool is_self() const { return kind == "self"; }
};

struct CallTotal {
  std::string function;  // "MPI_Win_fence"
  std::uint64_t count = 0;
  Seconds seconds = 0;
};

// What the capture of one node's ranks, or of one rank, cost; times are processor time. Of a rank the relay's part and
// what was spent once are not known: they are its node's.
struct CostPart {
  std::uint64_t number = 0;  // of the node in the step, or the rank
  std::string state;         // of a node: open, counting, off
  Seconds program_cpu_s = 0;
  Seconds direct_s = 0;
  Seconds ideal_s = 0;
  std::optional<Seconds> relay_cpu_s;
  std::optional<Seconds> held_up_s;  // of a node: other ranks, by the relay; empty: an lbfd that does not know
  std::optional<Seconds> once_s;
  std::optional<std::uint64_t> recorded_calls;  // of a rank
  std::optional<std::uint64_t> counted_calls;
};

// What the capture cost, in percent of the processor time of the program (docs/cost-system.md).
struct Cost {
  std::optional<double> limit_percent;
  std::optional<double> predicted_percent;  // before the first call
  std::optional<double> corrected_percent;  // of recording every call, by what was seen
  std::optional<double> low_percent;        // observed
  std::optional<double> high_percent;
  std::optional<Seconds> once_capture_s;  // spent once, before the first event: in the ranks
  std::optional<Seconds> once_relay_s;    // in the relays
  std::optional<double> total_low_percent;  // observed, with what was spent once
  std::optional<double> total_high_percent;
  std::string state;  // open, counting, off
  std::optional<double> seen_share;
  std::optional<std::uint64_t> windows;
  std::optional<std::uint64_t> recorded_calls;
  std::optional<std::uint64_t> counted_calls;
  std::optional<Seconds> program_cpu_s;
  std::vector<CostPart> nodes;  // where lbfd was asked for them
  std::vector<CostPart> ranks;

  std::optional<Seconds> once_s() const {
    if (!once_capture_s || !once_relay_s) return std::nullopt;
    return *once_capture_s + *once_relay_s;
  }
  bool over_limit() const { return limit_percent && high_percent && *high_percent > *limit_percent; }
  bool seen_in_part() const { return seen_share && *seen_share < kWholeShare; }
};

// A procedure that the run measured (docs/procedures.md). Times are of all ranks; predicted run times are of the
// configuration that ran, unknown where nothing was predicted.
struct Procedure {
  std::string name;
  std::string state;  // measured, off, refused
  std::string note;
  std::optional<std::uint64_t> ranks;  // that measured it
  std::optional<std::uint64_t> calls;
  std::optional<Seconds> inclusive_s;
  std::optional<Seconds> exclusive_s;
  std::optional<Seconds> critical_path_s;
  std::optional<Seconds> receiver_s;  // if it ran in the receiver of its messages
  std::optional<Seconds> sender_s;
  std::optional<Seconds> zeroed_s;  // if it took no time
  std::optional<Seconds> stayed_receiver_s;
  std::optional<Seconds> stayed_sender_s;
  std::optional<double> predicted_cost_percent;  // of the ranks' time, before it was patched
  std::string predicted_from;                    // history, limit (at most so much), default
  std::optional<double> observed_cost_percent;
  std::optional<Seconds> sampled_s;  // of what was not measured, as statistical samples say
  std::optional<Seconds> sampled_low_s;
  std::optional<Seconds> sampled_high_s;
  // What is predicted of it rests on samples.
  bool is_sampled() const { return sampled_s.has_value() && receiver_s.has_value(); }
};

struct CriticalPath {
  Seconds as_it_ran_s = 0;  // what the replay says without any change
  Seconds length_s = 0;
  std::uint64_t ends_at = 0;  // rank
  Seconds other_work_s = 0;
  Seconds mpi_s = 0;
  Seconds blocked_s = 0;
  Seconds unseen_s = 0;  // between capture windows
  std::vector<std::pair<std::optional<std::uint64_t>, Seconds>> ranks;  // nothing: all others
  std::vector<std::pair<std::string, Seconds>> functions;
  bool partial = false;  // of a part of the run
  // What is known of its way.
  Seconds seen_s() const { return std::max(length_s - unseen_s, 0.0); }
};

struct ProcedureTimes {
  std::vector<Procedure> procedures;
  std::optional<CriticalPath> path;
  std::string why_deferred;
};

enum class StepState { kRunning, kComplete, kPartial };

struct Step {
  std::string cluster;
  std::uint64_t job = 0;
  std::uint64_t step = 0;
  std::uint64_t restart = 0;
  std::optional<std::uint64_t> array_job;
  std::optional<std::uint64_t> array_task;
  std::optional<std::uint64_t> het_job;
  std::optional<std::uint64_t> het_offset;
  std::string user;
  std::optional<std::uint64_t> uid;
  std::string account;
  std::string partition;
  std::string job_name;
  std::string command;         // one line
  bool command_exact = false;  // a shell that reads `command` starts the same program with the same arguments
  StepState state = StepState::kRunning;
  std::string why_partial;
  std::vector<std::string> nodes;
  std::optional<std::uint64_t> node_count;  // where lbfd told this and not their names
  std::optional<std::uint64_t> ranks;
  std::string network;            // that ran
  std::optional<double> start_s;  // since the epoch
  std::optional<double> end_s;
  std::optional<Seconds> measured_s;
  std::optional<std::uint64_t> events;
  std::optional<std::uint64_t> messages;
  std::optional<std::uint64_t> bytes_on_wire;
  std::optional<std::uint64_t> bytes_stored;
  std::optional<std::uint64_t> wildcard_receives;
  std::optional<Seconds> mpi_s;  // sums over the ranks
  std::optional<Seconds> unmodelled_s;
  std::vector<CallTotal> unmodelled_calls;
  std::vector<CallTotal> calls;
  std::vector<std::string> notes;
  std::optional<Seconds> capture_s;    // sum over the ranks
  std::optional<Seconds> relay_cpu_s;  // sum over the relays
  std::optional<Seconds> lbfd_cpu_s;   // of the replays
  std::optional<std::uint64_t> lost_events;
  std::optional<Cost> cost;
  std::optional<ProcedureTimes> procedures;  // where some were asked for
  std::vector<TargetPrediction> predictions;
  // Of all targets, where lbfd told this and not them: not replayed for want of room; and taken_up.
  std::optional<std::uint64_t> targets_deferred;
  std::optional<std::uint64_t> targets_taken_up;
  bool stands_for_job = false;  // one_per_job: job_id() is without the step

  bool running() const { return state == StepState::kRunning; }
  // The prediction of the configuration that ran; nullptr where there is none.
  const TargetPrediction* self() const;
  // Percent of the self target: 100 (predicted - measured) / measured.
  std::optional<double> self_error_percent() const;
  // Processor time of capture and relay in percent of the processor time that the ranks had (measured_s
  // each).
  std::optional<double> overhead_percent() const;
  // unmodelled_s in percent of mpi_s; 0 where nothing was unmodelled.
  std::optional<double> unmodelled_percent() const;
};

// "complete", "partial", "running"
std::string_view state_name(StepState state);

// "12.0", "12.batch", "12_3.0" (array task), "12+1.0" (heterogeneous component): as sacct writes it.
std::string job_id(const Step& step);
// Always the job's own id: "12.0".
std::string raw_job_id(const Step& step);
// Of each job (and restart) the step that ran longest, in the order of the jobs: sacct -X.
std::vector<Step> one_per_job(std::vector<Step> steps);
// The word for Slurm's reserved step numbers ("batch", "extern", "interactive"), else the number.
std::string step_name(std::uint64_t step);
// Programs that mpirun started have numbers that Slurm never gives a step (docs/relay.md) and are called
// "mpirun-" and seven hex digits.
inline constexpr std::uint64_t kFirstRunNumber = 0xe0000000;
inline constexpr std::uint64_t kLastRunNumber = 0xefffffff;
inline constexpr std::string_view kRunPrefix = "mpirun-";
// "lmp -in melt.in": the command with the base name of the program; "" where lbfd did not tell.
std::string command_line(const Step& step);

// The steps in lbfd's answer {"steps":[...]}, by job, step and restart, or a single STEP. Unknown keys are ignored, missing and null
// ones are unknown values. Errors (kInvalidInput, naming step and key): no JSON, job or step number missing,
// a known key with a value of another type, a time that is negative.
Result<std::vector<Step>> parse_steps(std::string_view json);

}  // namespace lbf::report
