// Step, TargetPrediction: one job step as lbfd describes it (docs/formats/http-v1.md, STEP and PREDICTION). Their
// fields are those of protocol/step_fields.h and protocol/prediction_fields.h.
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
#include "protocol/cost_fields.h"
#include "protocol/prediction_fields.h"
#include "protocol/procedure_fields.h"
#include "protocol/seen_run.h"
#include "protocol/step_fields.h"

namespace lbf::report {

using protocol::CallTotal;
using protocol::kWholeShare;
using protocol::name_of;
using protocol::StepState;

struct TargetPrediction : protocol::PredictionFields<protocol::Side::kReader> {
  bool seen_in_part() const { return seen_share && *seen_share < kWholeShare; }
  // Takes the numbers away that an older lbfd has of a moment of the run.
  void keep_what_is_known();
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
struct Cost : protocol::CostFields<protocol::Side::kReader> {
  std::vector<CostPart> nodes;  // where lbfd was asked for them
  std::vector<CostPart> ranks;

  bool over_limit() const { return limit_percent && high_percent && *high_percent > *limit_percent; }
  bool seen_in_part() const { return seen_share && *seen_share < kWholeShare; }
};

// A procedure that the run measured (docs/procedures.md). Times are of all ranks; predicted run times are of the
// configuration that ran, unknown where nothing was predicted.
struct Procedure : protocol::ProcedureFields<protocol::Side::kReader> {
  // What is predicted of it rests on samples.
  bool is_sampled() const { return sampled_s.has_value() && receiver_s.has_value(); }
};

struct CriticalPath : protocol::CriticalPathFields {
  std::vector<std::pair<std::optional<std::uint64_t>, Seconds>> ranks;  // nothing: all others
  std::vector<std::pair<std::string, Seconds>> functions;
  // What is known of its way.
  Seconds seen_s() const { return std::max(length_s - unseen_s, 0.0); }
};

struct ProcedureTimes {
  std::vector<Procedure> procedures;
  std::optional<CriticalPath> path;
  std::string why_deferred;
};

struct Step : protocol::StepFields<protocol::Side::kReader> {
  bool command_exact = false;  // a shell that reads `command` starts the same program with the same arguments
  std::optional<Cost> cost;
  std::optional<ProcedureTimes> procedures;  // where some were asked for
  std::vector<TargetPrediction> predictions;
  // That a job in the step's partition can get now, where somebody asked Slurm (tools/report/usable_nodes.h).
  std::optional<std::uint64_t> usable_nodes;
  bool stands_for_job = false;  // one_per_job: job_id() is without the step

  bool running() const { return state == StepState::kRunning; }
  // The prediction of the configuration that ran; nullptr where there is none.
  const TargetPrediction* self() const;
  // As the prediction of the configuration that ran has it; without one, all of it.
  protocol::SeenRun seen() const;
  // Percent of the ranks' time that was recorded. Empty: not known, or a call took longer than others were recorded.
  std::optional<double> mpi_percent() const;
  // Percent of the self target: 100 (predicted - measured) / measured.
  std::optional<double> self_error_percent() const;
  // Processor time of the relays but for their start.
  std::optional<Seconds> running_relay_s() const;
  // Processor time of capture and running relays in percent of the processor time that the ranks
  // had (measured_s each).
  std::optional<double> overhead_percent() const;
  // unmodelled_s in percent of mpi_s; 0 where nothing was unmodelled.
  std::optional<double> unmodelled_percent() const;
};

// "12.0", "12.batch", "12_3.0" (array task), "12+1.0" (heterogeneous component): as sacct writes it. With
// ClusterNames::kShown "@CLUSTER" stands behind it.
std::string job_id(const Step& step);
enum class ClusterNames : std::uint8_t { kHidden, kShown };
// Of this process from here on. Not thread-safe.
void set_cluster_names(ClusterNames names);
bool are_of_several_clusters(const std::vector<Step>& steps);
// Always the job's own id: "12.0".
std::string raw_job_id(const Step& step);
// Of each job (and restart) the step that ran longest, in the order of the jobs: sacct -X.
std::vector<Step> one_per_job(std::vector<Step> steps);
// "c/12/0/0/1700000000": the step's key in lbfd's addresses (docs/formats/http-v1.md).
std::string key_of(const Step& step);
// The word for Slurm's reserved step numbers ("batch", "extern", "interactive"), else the number.
std::string step_name(std::uint64_t step);
// Programs that mpirun started have numbers that Slurm never gives a step (docs/relay.md) and are called
// "mpirun-" and seven hex digits.
inline constexpr std::uint64_t kFirstRunNumber = 0xe0000000;
inline constexpr std::uint64_t kLastRunNumber = 0xefffffff;
inline constexpr std::string_view kRunPrefix = "mpirun-";
// "lmp -in melt.in": the command with the base name of the program; "" where lbfd did not tell.
std::string command_line(const Step& step);
// Its first word; "-" where lbfd did not tell.
std::string program_of(const Step& step);

// The steps in lbfd's answer {"steps":[...]}, by job, step, submit time and restart, or a single STEP. Unknown keys are
// ignored, missing and null ones are unknown values. Errors (kInvalidInput, naming step and key): no JSON, job or step
// number missing, a known key with a value of another type, a time that is negative.
Result<std::vector<Step>> parse_steps(std::string_view json);

}  // namespace lbf::report
