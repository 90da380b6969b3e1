// TracePass: a replay of a step's stored batches for some of its targets, which goes on when there is room for it.
//
// Place in the event's way: trace store -> *TracePass* -> match -> replay. The stored trace is the log: a pass may
// begin late and rest as long as it must, and gives the same numbers as one that was there from the first batch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/procedure_table.h"
#include "predictor/daemon/intake/stored_trace_reader.h"
#include "predictor/daemon/steps/procedure_translation.h"
#include "predictor/daemon/steps/replay_budget.h"
#include "predictor/daemon/steps/replay_turn.h"
#include "predictor/daemon/steps/sampled_times.h"
#include "predictor/engine/metric/predictor.h"

namespace lbf::daemon {

// Procedures that a pass is about (docs/procedures.md). Without any their times are process time like other.
struct TraceProcedures {
  engine::ProcedurePlan plan{};
  std::vector<std::string> names{};              // of the plan's numbers
  engine::TimelineObserver* observer = nullptr;  // of the only target; outlives the pass
  // By rank: of procedures (the plan's numbers) whose time is not in the trace: it is this share of the process time of
  // every interval between two events. What the trace says of them on that rank is left out.
  std::map<Rank, std::vector<SampledShare>> sampled{};
};

class TracePass {
 public:
  // `node_of_rank`: where the ranks ran: their collectives follow it. `memory` may be nullptr, else it outlives the
  // pass. Errors: those of Predictor::make.
  static Result<std::unique_ptr<TracePass>> make(std::shared_ptr<const StepTrace> trace,
                                                 const std::vector<std::uint32_t>& node_of_rank,
                                                 std::vector<engine::Target> targets, ReplayMemory* memory,
                                                 ReplayLimits limits, TraceProcedures procedures = {},
                                                 engine::Clocks clocks = engine::Clocks::kPlain);
  ~TracePass();
  TracePass(const TracePass&) = delete;
  TracePass& operator=(const TracePass&) = delete;

  // Whether a batch is here that it has not replayed, or only its end is missing.
  bool has_work(const std::vector<StreamState>& streams, bool trace_is_complete) const;
  // One batch, or the end. Passes share nothing: several may be at work at once. REQUIRES: has_work().
  void work(const std::vector<StreamState>& streams);

  bool is_done() const { return done_; }
  // Not empty: it stopped there, and is done.
  const std::string& failure() const { return failure_; }
  bool was_stopped() const { return was_stopped_; }  // by ReplayLimits::stop: who stopped it says why
  std::vector<engine::Prediction> predictions();
  const engine::Predictor& predictor() const { return *predictor_; }
  Bytes memory_bytes() const { return reader_.memory_bytes() + predictor_->memory_bytes(); }
  void set_capture_cost(const engine::CaptureCost& cost) { predictor_->set_capture_cost(cost); }
  // Of the program as these targets see it (Predictor::diagnosis). REQUIRES: is_done().
  Result<void> diagnosis() const { return predictor_->diagnosis(); }

 private:
  TracePass(std::shared_ptr<const StepTrace> trace, std::vector<std::uint32_t> node_of_rank,
            std::unique_ptr<engine::Predictor> predictor, std::size_t targets, ReplayMemory* memory,
            ReplayLimits limits, const std::vector<std::string>& procedures,
            std::map<Rank, std::vector<SampledShare>> sampled);
  void read_next(const std::vector<StreamState>& streams);
  void take_control(const protocol::ControlRecord& record);
  void fail(const Result<void>& replayed);
  void take_events(Rank rank, std::span<const Event> events, StoredTraceReader::Origin origin);
  // The same of rounds; false: as events.
  Result<bool> take_rounds(Rank rank, const Rounds& rounds, StoredTraceReader::Origin origin);

  StoredTraceReader reader_;
  const std::vector<std::uint32_t> node_of_rank_;
  const Rank ranks_;
  const std::size_t targets_;
  ReplayTurn turn_;
  std::unique_ptr<engine::Predictor> predictor_;
  std::vector<bool> closed_;
  bool any_event_ = false;
  bool library_seen_ = false;
  bool done_ = false;
  bool was_stopped_ = false;
  std::string failure_;
  ProcedureTable procedures_;
  std::size_t planned_procedures_ = 0;
  SampledTimes sampled_;
  ProcedureTranslation translation_;
  ReplayMemoryShare memory_;
};

}  // namespace lbf::daemon
