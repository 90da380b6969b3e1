// StepRun: one step under way: its stored batches -> events of all ranks -> Predictor -> what people see of
// it.
//
// Place in the event's way: trace store -> *StepRun* -> match -> replay -> metrics -> db. It reads batches
// from the trace store only (they are durable before they are replayed), so a step that was under way when
// lbfd died is simply replayed from its first batch.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/records.h"
#include "event/wire.h"
#include "predictor/daemon/intake/step_trace.h"
#include "predictor/engine/metric/predictor.h"
#include "predictor/daemon/network_catalog.h"
#include "predictor/daemon/steps/procedure_pass.h"
#include "predictor/daemon/steps/procedure_search.h"
#include "predictor/daemon/steps/program_profile.h"
#include "predictor/daemon/steps/replay_budget.h"
#include "predictor/daemon/steps/trace_pass.h"
#include "predictor/daemon/steps/run_picture.h"
#include "predictor/daemon/steps/step_procedures.h"
#include "protocol/control_records.h"

namespace lbf::daemon {

struct StreamCost;

struct StepRunOptions {
  // How long the replay waits for the relays of all nodes to register. Where each rank runs is known for sure
  // only then; after it, the rest is taken to be placed in blocks.
  std::chrono::milliseconds stream_start_timeout{5000};
  // Above it, streams that are ahead of another one are left on disk until the other one has caught up.
  std::uint64_t events_in_flight_limit = 20'000'000;
  // Which switches the cluster's nodes are on; nullptr: nobody said, all nodes are equally far apart.
  std::shared_ptr<const engine::Topology> topology;
  // What the targets beside the configuration that ran may take while the step runs (docs/lbfd.md, "Budgets").
  ReplayBudget budget;
  std::size_t targets_per_pass = 8;  // of those that have passes of their own
  std::shared_ptr<ReplayMemory> memory;  // of all steps; nullptr: nobody counts
  // Processor time of the calling thread; empty: the system's clock.
  std::function<Seconds()> cpu_clock;
  Seconds cpu_spent_before_s = 0;  // by replays of this step that were before this one
  // Not nullptr: a run for this picture, which replays no other target than the picture's and whose view says
  // nothing of predictions; it outlives the run.
  RunPicture* picture = nullptr;
  // Of a step that is replayed again: which of its targets were deferred when it ended.
  std::set<db::TargetName> deferred_before;
  // Calls per second of a rank that earlier runs of the program let expect of its procedures, by name.
  std::map<std::string, double> procedure_history;
  std::vector<std::string> notes{};  // the view's first
};

// What is known of a step at one moment.
struct StepView {
  db::StepRecord record;
  std::vector<db::PredictionRecord> predictions;  // the configuration that ran first
  std::uint64_t generation = 0;                   // grows with each view of a step
};

// How much of a step is wanted. A list of steps of 64 k ranks with a dozen targets each would be mostly
// rank_finish_s.
enum class StepDetail {
  kBrief,    // without calls and predictions
  kSummary,  // the predictions that a list shows: self and the fastest; without calls, notes and node_of_rank
  kList,     // without the predictions' rank_finish_s
  kFull,
};

class StepRun {
 public:
  using Clock = std::chrono::steady_clock;

  // REQUIRES: `networks` outlives the run.
  StepRun(std::shared_ptr<StepTrace> trace, const NetworkCatalog& networks, StepRunOptions options);
  ~StepRun();
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  enum class Progress {
    kMore,      // call again: there is more to do now
    kIdle,      // everything that is here was replayed, or has to wait; call again when something came
    kFinished,  // all streams ended and were replayed: the view is final
  };
  // Replays one batch at most. Thread-safe; one call at a time does the work. Targets for which there is no room when
  // all streams have ended are deferred: the view says so, and another StepRun without a budget takes them up.
  Progress work();

  // Thread-safe, does not wait for a batch that is being replayed: then the view is the one before.
  std::shared_ptr<const StepView> view();

  // Which procedures all ranks are to measure (`--lbf-procedures=auto`); nullptr: nothing was decided. Thread-safe, does
  // not wait for a batch.
  std::shared_ptr<const protocol::ProcedureList> procedure_list() const;

 private:
  struct Stream;
  struct RankState;

  bool ready_to_build() const;
  void build();
  std::vector<std::uint32_t> place_tasks(const std::map<std::uint32_t, protocol::StreamDescription>& streams);
  void find_topology_nodes();
  void leave_out_idle_nodes();
  std::vector<engine::Target> make_targets();
  std::size_t first_late_target(std::size_t pass) const {
    return main_targets_ + pass * options_.targets_per_pass;
  }
  // Further targets while there is room. False: there is nothing to do for them now.
  bool work_late(const std::vector<StreamState>& states, bool complete);
  void begin_late_pass();
  // The replay of the step's procedures, before that of further targets: the user named them. False: as work_late.
  bool work_procedures(const std::vector<StreamState>& states, bool complete);
  bool wants_procedure_pass(bool complete) const;
  void begin_procedure_pass(bool complete);
  // names() of the step's procedures and, where that can be told (`complete`), behind them what is only sampled.
  std::vector<std::string> predictable_names(bool complete) const;
  std::vector<std::uint32_t> foremost_procedures(const std::vector<std::string>& names, bool complete) const;
  void search_procedures();
  double procedure_cost_limit() const;
  void describe_procedures(db::StepRecord& record, std::vector<std::string>& notes) const;
  Result<void> diagnose() const;
  Seconds rank_time_s() const;
  Stream* next_stream(const std::vector<StreamState>& states);
  void apply_batch(Stream& stream);
  Result<void> take_events(Stream& stream, Rank rank, std::span<const Event> events);
  void take_control(Stream& stream, std::string_view text);
  // RANK is one of the step's, where the record is about a rank.
  void take(Stream& stream, Rank rank, const protocol::ProcessRecord& record);
  void take(Stream& stream, Rank rank, const protocol::StatsRecord& record);
  void take(Stream& stream, Rank rank, const protocol::ProcessEndRecord& record);
  void take(Stream& stream, Rank rank, const protocol::ProcedureRecord& record);
  void take(Stream& stream, Rank rank, const protocol::ProcedureCandidateRecord& record);
  void take(Stream& stream, Rank rank, const protocol::ProcedureListRecord& record);
  void take(Stream& stream, Rank rank, const protocol::ProcedureSamplesRecord& record);
  void take(Stream& stream, Rank rank, const protocol::ProcedureRemarkRecord& record);
  void take(Stream& stream, Rank rank, const protocol::NoteRecord& record);
  void take(Stream& stream, Rank rank, const protocol::CostRecord& record);
  void take(Stream& stream, Rank rank, const protocol::RelayRecord& record);
  void take(Stream&, Rank, const protocol::UnknownRecord&) {}
  // `version`: MPI_Get_library_version.
  void take_library(const std::string& version);
  void close_rank(Rank rank);
  void finish(const std::vector<StreamState>& states);
  void add_reason(std::string reason);
  void add_note(std::string note);
  void publish();
  void describe_calls(db::StepRecord& record, std::vector<std::string>& notes) const;
  // Of one target, and why it is deferred ('': it is not).
  struct Predicted {
    engine::Prediction prediction;
    std::string why_deferred;
  };
  std::vector<StreamCost> stream_costs() const;
  void tell_capture_cost();
  std::vector<Predicted> predicted() const;
  std::vector<db::PredictionRecord> describe_predictions(const db::StepRecord& record) const;

  const std::shared_ptr<StepTrace> trace_;
  const NetworkCatalog& networks_;
  const StepRunOptions options_;
  const Clock::time_point created_ = Clock::now();

  std::mutex mutex_;  // of everything below but the view
  bool built_ = false;
  bool finished_ = false;
  bool changed_ = true;
  Rank ranks_ = 0;
  engine::Target ran_;
  std::vector<std::uint32_t> nodes_;  // ran_'s nodes: their indices among the description's nodes, ascending
  CommunicatorTable communicators_;
  std::vector<engine::Target> targets_;           // ranked; the configuration that ran first
  std::unique_ptr<engine::Predictor> predictor_;  // of the first `main_targets_` of them
  std::size_t main_targets_ = 0;
  std::vector<std::unique_ptr<TracePass>> late_passes_;  // of the next ones, `targets_per_pass` each
  std::string why_deferred_;                             // of those for which there was no room at the last look
  Seconds cpu_spent_s_ = 0;
  std::unique_ptr<ReplayMemoryShare> memory_share_;
  StepProcedures procedures_;
  ProcedureSearch procedure_search_;
  std::uint64_t listed_generation_ = 0;  // of the newest list that a relay gave to its ranks
  std::unique_ptr<ProcedurePass> procedure_pass_;
  unsigned procedure_passes_ = 0;         // begun so far
  bool procedure_choice_is_final_ = false;  // made when all streams had ended
  std::string why_procedures_deferred_;
  ProgramProfile profile_;
  bool predictor_failed_ = false;
  std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
  std::vector<RankState> rank_states_;
  std::uint64_t events_ = 0;
  bool any_rank_seen_ = false;
  bool library_seen_ = false;
  std::map<std::uint16_t, std::pair<std::uint64_t, Seconds>>
      unmodelled_events_;  // by function: count, seconds
  std::uint64_t spawned_processes_ = 0;
  struct IoTotal {
    std::uint64_t calls = 0;  // waits for non-blocking ones too
    Seconds total_s = 0;
    Bytes bytes_read = 0;
    Bytes bytes_written = 0;
  };
  IoTotal io_;
  std::vector<std::string> reasons_;
  std::vector<std::string> notes_;
  Seconds longest_stop_s_ = 0;  // of a rank, in a suspended job
  std::string batch_;
  Clock::time_point last_publish_{};
  std::uint64_t generation_ = 0;

  mutable std::mutex view_mutex_;
  std::shared_ptr<const StepView> view_;
  std::shared_ptr<const protocol::ProcedureList> procedure_list_;
};

// The placement's name where it has one: "block", "cyclic", "plane=K", else "map=N0,N1,...".
std::string placement_name(const std::vector<std::uint32_t>& node_of_rank, std::uint32_t nodes);

}  // namespace lbf::daemon
