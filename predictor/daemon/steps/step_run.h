// StepRun: one step under way: its stored batches -> events of all ranks -> Predictor -> what people see of
// it.
//
// Place in the event's way: trace store -> *StepRun* -> match -> replay -> metrics -> db. It reads batches
// from the trace store only (they are durable before they are replayed), so a step that was under way when
// lbfd died is simply replayed from its first batch. Its parts: what ranks and relays say (StepTotals), the
// replays (StepPredictions), procedures (ProcedurePredictions).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "db/records.h"
#include "predictor/daemon/intake/step_trace.h"
#include "predictor/daemon/intake/stored_trace_reader.h"
#include "predictor/daemon/network_catalog.h"
#include "predictor/daemon/steps/measured_run.h"
#include "predictor/daemon/steps/memory_accounts.h"
#include "predictor/daemon/steps/procedure_predictions.h"
#include "predictor/daemon/steps/replay_marks.h"
#include "predictor/daemon/steps/step_configuration.h"
#include "predictor/daemon/steps/step_predictions.h"
#include "predictor/daemon/steps/step_remarks.h"
#include "predictor/daemon/steps/step_run_options.h"
#include "predictor/daemon/steps/step_totals.h"
#include "protocol/procedure_list.h"

namespace lbf::daemon {

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
    kFinished,  // all streams ended and were replayed: the view is final, and all else is given back
  };
  // One turn: a batch of each replay at most; of the configuration that ran more, while others are under way on threads
  // that are lent. Thread-safe; one call at a time does the work. Targets for which there is no room when
  // all streams have ended are deferred: the view says so, and another StepRun without a budget takes them up.
  // MARK: what is at hand is noted there.
  Progress work(ReplayMarks::Mark* mark = nullptr);

  // Thread-safe, does not wait for a batch that is being replayed: then the view is the one before.
  std::shared_ptr<const StepView> view();

  // Of the batches that came. Thread-safe, does not wait.
  Bytes replayed_bytes() const { return replayed_bytes_; }

  // Which procedures all ranks are to measure (`--lbf-procedures=auto`); nullptr: nothing was decided. Thread-safe,
  // does not wait for a batch.
  std::shared_ptr<const protocol::ProcedureList> procedure_list() const;

 private:
  // Reading and feeding: step_run.cpp.
  bool ready_to_begin() const;
  void begin() REQUIRES(mutex_);
  // A batch and, on threads that are lent, passes beside it; or passes alone. COMPLETE: all streams have ended.
  Progress work_on(const std::vector<StreamState>& states, bool complete, ReplayMarks::Mark* mark) REQUIRES(mutex_);
  // The stream to read next; nothing: there is none, or it is too far ahead of one that has nothing here now.
  std::optional<std::uint32_t> next_stream(const std::vector<StreamState>& states) const REQUIRES(mutex_);
  void read_batch(std::uint32_t stream) REQUIRES(mutex_);
  // The same, with passes beside it: then further batches, until these have had their turn.
  void read_batches(std::uint32_t stream, const std::vector<StreamState>& states, bool complete,
                    ReplayMarks::Mark* mark) REQUIRES(mutex_);
  void take_events(std::uint32_t stream, Rank rank, std::span<const Event> events, StoredTraceReader::Origin origin)
      REQUIRES(mutex_);
  // The same of rounds. False: nothing was taken, they are wanted as events.
  bool take_rounds(std::uint32_t stream, Rank rank, const Rounds& rounds, StoredTraceReader::Origin origin)
      REQUIRES(mutex_);
  void check_origin(std::uint32_t stream, Rank rank, StoredTraceReader::Origin origin) REQUIRES(mutex_);
  void take_control(std::uint32_t stream, const protocol::ControlRecord& record) REQUIRES(mutex_);
  void count_relay(const protocol::RelayRecord& record) REQUIRES(mutex_);
  // VERSION: MPI_Get_library_version.
  void take_library(const protocol::ProcessRecord& process) REQUIRES(mutex_);
  void close_rank(Rank rank) REQUIRES(mutex_);
  enum class Stop { kNo, kLbfdEnds, kTurn, kMemory };
  // Bounds: step_run_bounds.cpp. Within a turn the replays ask must_stop(), after it settle() gives up what is too
  // much.
  StepRunOptions with_limits(StepRunOptions options);
  bool must_stop(Seconds cpu_s, Bytes more);  // as ReplayLimits::stop
  Stop asked_stop() const;
  std::string why_no_memory(Bytes bytes) const;  // held by the step
  Bytes held_bytes() const REQUIRES(mutex_);
  void count_held() REQUIRES(mutex_);
  void settle() REQUIRES(mutex_);
  void give_up_replays(const std::string& why) REQUIRES(mutex_);
  // What is known stays in the view; all else is given back.
  void release() REQUIRES(mutex_);
  // Replays beside the configuration that ran. False: there is nothing to do for them now.
  bool work_further(const std::vector<StreamState>& states, bool complete) REQUIRES(mutex_);
  void give_up_further(const std::exception& exception) REQUIRES(mutex_);
  StepPredictions::CpuRoom cpu_room() const REQUIRES(mutex_);
  void finish(const std::vector<StreamState>& states) REQUIRES(mutex_);

  // What people see: step_run_view.cpp.
  void publish() REQUIRES(mutex_);
  void publish_if_due() REQUIRES(mutex_);
  MeasuredRun measured_run(const db::StepRecord& record) const REQUIRES(mutex_);
  void describe(StepView& view) REQUIRES(mutex_);
  void describe_step(db::StepRecord& record) const REQUIRES(mutex_);
  void describe_end(db::StepRecord& record) const REQUIRES(mutex_);
  void describe_path(db::StepRecord& record) const REQUIRES(mutex_);
  void describe_replay(StepView& view, std::vector<std::string>& notes) REQUIRES(mutex_);
  void describe_cost(StepView& view, std::vector<std::string>& notes) const REQUIRES(mutex_);

  const std::shared_ptr<StepTrace> trace_;
  const NetworkCatalog& networks_;
  const StepRunOptions options_;
  const Clock::time_point created_ = Clock::now();

  const Rank ranks_;

  Mutex mutex_;  // taken before view_mutex_
  bool finished_ GUARDED_BY(mutex_) = false;
  bool released_ GUARDED_BY(mutex_) = false;                // the view is all that is left
  bool interrupted_ GUARDED_BY(mutex_) = false;             // lbfd ends: nothing more is replayed or said
  mutable Mutex stop_mutex_;                                // taken last: replays of a turn are in several threads
  Stop stop_ GUARDED_BY(stop_mutex_) = Stop::kNo;           // asked for within the turn at hand
  std::string why_stop_ GUARDED_BY(stop_mutex_);            // of the turn at hand
  std::string why_stopped_ GUARDED_BY(mutex_);              // of the last turn that was stopped
  std::atomic<Seconds> lent_cpu_s_{0};                      // of lent threads, in the turn at hand
  const std::unique_ptr<MemoryAccounts::Account> account_;  // changes between the turns of replays alone
  std::atomic<Bytes> counted_bytes_{0};                     // held, as count_held() found it
  Bytes beside_replays_bytes_ GUARDED_BY(mutex_) = 0;       // as count_held() found it
  Clock::time_point trace_counted_ GUARDED_BY(mutex_){};
  Bytes trace_bytes_ GUARDED_BY(mutex_) = 0;
  Bytes view_bytes_ GUARDED_BY(mutex_) = 0;
  StepRemarks remarks_ GUARDED_BY(mutex_);
  std::optional<StoredTraceReader> reader_ GUARDED_BY(mutex_);  // once the replay has begun
  StepConfiguration configuration_ GUARDED_BY(mutex_);          // likewise
  StepTotals totals_ GUARDED_BY(mutex_);
  StepPredictions predictions_ GUARDED_BY(mutex_);
  ProcedurePredictions procedures_ GUARDED_BY(mutex_);
  std::string library_ GUARDED_BY(mutex_);
  Seconds cpu_spent_s_ GUARDED_BY(mutex_) = 0;
  std::atomic<Bytes> replayed_bytes_{0};
  Clock::time_point last_publish_ GUARDED_BY(mutex_){};
  std::uint64_t generation_ GUARDED_BY(mutex_) = 0;

  mutable Mutex view_mutex_;
  std::shared_ptr<const StepView> view_ GUARDED_BY(view_mutex_);
  std::shared_ptr<const protocol::ProcedureList> procedure_list_ GUARDED_BY(view_mutex_);
};

}  // namespace lbf::daemon
