// StepPredictions: the replays of one step on its targets, and what they predict.
//
// Place in the event's way: events of all ranks -> *StepPredictions* -> db. The configuration that ran is fed with the
// events as they are read. With a budget all other targets go behind or beside it, in passes of their own (TracePass),
// while there is room for them; a target that has no room is deferred.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "db/records.h"
#include "predictor/daemon/intake/step_trace.h"
#include "predictor/daemon/steps/measured_run.h"
#include "predictor/daemon/steps/replay_budget.h"
#include "predictor/daemon/steps/step_configuration.h"
#include "predictor/daemon/steps/step_remarks.h"
#include "predictor/daemon/steps/step_run_options.h"
#include "predictor/daemon/steps/trace_pass.h"
#include "predictor/engine/metric/predictor.h"
#include "predictor/engine/replay/memory_sharing.h"

namespace lbf::daemon {

class StepPredictions {
 public:
  // REQUIRES: `options` and `remarks` outlive the predictions.
  StepPredictions(std::shared_ptr<const StepTrace> trace, const StepRunOptions& options, StepRemarks& remarks);

  // Makes the replays of `configuration`, whose targets it takes and which outlives them. What hinders a prediction is
  // among the reasons.
  void begin(StepConfiguration& configuration);
  // False: there is no prediction.
  bool has_begun() const { return has_begun_; }
  bool is_running() const { return predictor_ != nullptr && !failed_; }

  // Of the configuration that ran.
  void set_mpi(const engine::MpiSetup& setup);
  void begin_turn() { turn_.begin(); }  // in the thread that has it
  void feed(Rank rank, std::span<const Event> events);
  // False: nothing was fed, they are wanted as events.
  bool feed_rounds(Rank rank, const Rounds& rounds);
  void close(Rank rank);
  std::uint64_t events_in_flight() const;
  // After a batch was fed.
  void count_memory();
  // After an exception.
  void stop_feeding() { failed_ = true; }
  bool ran_out() const { return ran_out_; }  // of what EngineLimits allow; until release()
  bool has_passes() const { return !passes_.empty(); }
  Bytes memory_bytes() const;
  // The step's memory is counted with what memory_bytes() says now.
  void note_counted() { turn_.count(predictor_ == nullptr ? 0 : predictor_->memory_bytes()); }
  // Gives the replays' memory back; what they predicted stays. REQUIRES: nothing is fed any more.
  void release();

  // What there is to do beside the configuration that ran.
  struct Further {
    bool has_begun = false;          // in this turn, which is enough for a turn
    std::vector<TracePass*> passes;  // that have a batch to replay, the foremost first; side by side or not
  };
  // What the step's replays may take of processor time.
  struct CpuRoom {
    std::string why_none;      // empty: there is some
    bool is_plentiful = true;  // half of it is left
  };
  // Begins passes where none has a batch to replay.
  Further further(const std::vector<StreamState>& streams, bool trace_is_complete, bool any_event, const CpuRoom& cpu);
  // After TracePass::work() of some of these passes.
  void passes_worked();
  void give_up_further_targets();
  // True: it was under way.
  bool give_up_composition();
  // Of the replays that were stopped it is the only one.
  bool is_only_composition_stopped() const;
  // What the longest path is made of where each rank and thread has a processor (docs/adr/0016-scaling.md): replayed
  // once the trace is complete and all targets have begun, if there is room then. Nothing: it was not, or the program
  // does not end so.
  const std::optional<engine::Composed>& composition() const { return composition_; }

  void set_capture_cost(const engine::CaptureCost& cost);
  // What holds the program up on all targets. REQUIRES: is_running().
  Result<void> diagnosis() const;
  void advance();
  engine::PredictorStats stats() const { return predictor_ == nullptr ? kept_stats_ : predictor_->stats(); }

  // The configuration that ran first. REQUIRES: has_begun().
  std::vector<db::PredictionRecord> records(const MeasuredRun& run) const;

 private:
  // Of one target, and why it is deferred ('': it is not).
  struct Predicted {
    engine::Prediction prediction;
    std::string why_deferred;
  };
  std::vector<Predicted> predicted(bool run_is_finished) const;
  // The same processors for each rank, on any network.
  bool is_place_that_ran(const engine::Target& target) const;
  db::PredictionRecord record_of(std::size_t target, const Predicted& predicted, const MeasuredRun& run) const;
  // Why no pass for COUNT targets may begin; empty: it may.
  std::string why_no_room(std::size_t count) const;
  void begin_passes();
  void begin_composition();
  void set_why_deferred(std::string why);

  const std::shared_ptr<const StepTrace> trace_;
  const StepRunOptions& options_;
  StepRemarks& remarks_;
  void stop_at(const Result<void>& replayed);

  const engine::Target* ran_ = nullptr;
  std::vector<engine::Target> targets_;           // ranked; the configuration that ran first
  engine::KnownDemand demand_;                    // of memory
  std::unique_ptr<engine::Predictor> predictor_;  // of the first `main_targets_` of them
  ReplayTurn turn_;                               // of predictor_
  std::size_t main_targets_ = 0;
  bool has_begun_ = false;
  bool failed_ = false;
  bool ran_out_ = false;
  std::vector<engine::Prediction> kept_;  // after release()
  engine::PredictorStats kept_stats_;
  struct FurtherPass {
    std::vector<std::size_t> targets;  // by number
    std::unique_ptr<TracePass> replay;
  };
  std::vector<FurtherPass> passes_;      // `targets_per_pass` at a time, in groups
  std::size_t begun_targets_ = 0;        // by predictor_ and passes_: the foremost
  std::unique_ptr<TracePass> composed_;  // with composed clocks; under way
  bool is_composed_ = false;             // ... or was, or cannot be
  std::optional<engine::Composed> composition_;
  std::string why_deferred_;  // of those for which there was no room at the last look
  std::unique_ptr<ReplayMemoryShare> memory_share_;
};

}  // namespace lbf::daemon
