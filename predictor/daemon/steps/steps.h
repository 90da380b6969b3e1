// Steps: all steps that lbfd has in hand: takes what relays send into the trace store, replays it in the
// background, answers what people ask, and writes the results to the database.
//
// Place in the event's way: HTTP -> *Steps* -> trace store -> StepRun -> db. Taking and answering never wait
// for a replay: replays have threads of their own, and a step gets one batch's turn at a time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "db/accuracy.h"
#include "db/prediction_store.h"
#include "db/program_store.h"
#include "db/step_list.h"
#include "db/step_store.h"
#include "predictor/daemon/disk_watch.h"
#include "predictor/daemon/intake/trace_store.h"
#include "predictor/daemon/network_catalog.h"
#include "predictor/daemon/steps/daemon_counts.h"
#include "predictor/daemon/steps/replay_marks.h"
#include "predictor/daemon/steps/step_run.h"
#include "predictor/daemon/steps/steps_now.h"
#include "predictor/daemon/steps/turn_queue.h"
#include "predictor/daemon/steps/user_rates.h"

namespace lbf::daemon {

struct Caller {
  uid_t uid = 0;
  bool is_operator = false;  // root, SlurmUser, the listed operators: may read and write everybody's steps
};

// Of a cluster that has networks and switches of its own.
struct ClusterMachine {
  std::shared_ptr<const NetworkCatalog> networks;
  std::shared_ptr<const engine::TopologyFile> topology;  // as StepRunOptions::topology
  std::vector<std::string> notes;                        // likewise
};

struct StepsOptions {
  StepRunOptions run;
  std::map<std::string, ClusterMachine, std::less<>> clusters;  // by name; the others have Steps' networks, and `run`
  std::chrono::milliseconds stream_timeout{120'000};            // a silent stream is ended after it
  std::chrono::milliseconds persist_interval{2000};             // between two writes of a running step to the database
  Retention retention;
  std::chrono::hours step_retention{0};  // steps that ended longer ago leave the database; 0: none does
  std::chrono::seconds prune_interval{3600};
  unsigned replay_threads = 3;
  bool replay_when_idle = false;             // while a program runs: on processors that it leaves idle (idle_turns.h)
  std::uint64_t step_trace_limit_bytes = 0;  // of one step; what comes above it is not kept; 0: no limit
  std::string marks_path;                    // of ReplayMarks' file; empty: none is kept
  Bounds bounds;
  Seconds picture_limit_s = 0;  // how long a picture may be made; 0: no limit
};

// The answer to a relay that registers its stream.
struct Registered {
  std::uint64_t next_sequence = 1;
  // db::ProgramStore::expected_cost(); nothing: no run tells.
  std::optional<double> expected_calls_per_s;
  std::optional<Seconds> expected_call_s;
  std::optional<double> expected_relay_share;
};

// Thread-safe.
struct FoundStep {
  StepView view;
  std::optional<db::StepRow> unread;  // its predictions are still in the database
};

class Steps {
 public:
  // REQUIRES: everything passed by reference outlives the object.
  Steps(TraceStore& traces, db::Database& database, const NetworkCatalog& networks, StepsOptions options);
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // After a start: takes up the steps that the trace store has and the database does not call finished,
  // prunes.
  void recover();

  // To be called about once a second: ends silent streams, writes running steps to the database, prunes.
  void tick();

  // The replays end, within their batches. What is asked is answered as before.
  void end_replays() { ending_ = true; }
  // The same, waits for them, and writes the views of running steps to the database.
  void stop();

  // Errors of these three: kPermission (another user's step, one that is set aside), kNotFound, kInvalidInput, kLimit
  // (disk full, too much of one user: nothing was stored, try again), kUnavailable (try again soon), kIo.
  Result<Registered> register_stream(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                     std::string_view description_json);
  Result<AppendResult> append(const Caller& caller, const StepKey& key, std::uint32_t stream, std::uint64_t sequence,
                              std::span<const std::byte> batch);
  Result<AppendResult> end_stream(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                  const protocol::StreamEnd& end);

  // What the answer to a relay carries for its ranks (StepRun::procedure_list); nullptr: nothing.
  std::shared_ptr<const protocol::ProcedureList> procedure_list(const StepKey& key) const;

  // Steps under way as they are now, finished ones from the database; oldest first, the latest `query.limit`.
  // REQUIRES: the caller may see what the query selects.
  Result<std::vector<StepView>> find(const db::StepQuery& query, StepDetail detail);
  // The same in two parts, for lists that are sent while they are read: what `read_predictions` reads is most of it.
  Result<std::vector<FoundStep>> find_without_predictions(const db::StepQuery& query, StepDetail detail);
  Result<void> read_predictions(std::span<FoundStep> steps, StepDetail detail) const;
  // Steps of which only some values are wanted (`rows=`), in two parts as well.
  Result<std::vector<db::ListedStep>> list(const db::StepQuery& query, const db::ListValues& values);
  Result<void> read_predictions(std::span<db::ListedStep> steps, const db::ListValues& values) const;
  // Errors: kNotFound; kPermission (another user's).
  Result<StepView> get(const Caller& caller, const StepKey& key, StepDetail detail);
  // What was predicted and measured later: the caller's own runs, or everybody's for operators (`query.uid`).
  std::vector<std::string> network_names() const;  // of all clusters, without repetition
  std::vector<std::string> cluster_names() const;  // that have a section in lbfd.toml
  Result<db::Accuracy> accuracy(const db::OutcomeQuery& query) const { return accuracy_store_.accuracy(query); }
  // What intervals of predictions from this step are fitted to. Errors: as get.
  Result<db::ErrorFit> fit_of(const Caller& caller, const StepKey& key);
  // For a copy of the stored trace. Errors: as get; kNotFound also when retention removed it.
  Result<std::shared_ptr<StepTrace>> trace(const Caller& caller, const StepKey& key);

  // The run and one of its targets, replayed from the stored trace (docs/formats/http-v1.md, PICTURE). One at a
  // time, only of steps with at most kPictureEvents events, and for at most picture_limit_s: it takes a thread of those
  // that answer for some seconds. Errors: as trace; kInvalidInput (no such target), kLimit (too many events, too long),
  // kUnavailable (another one is being made).
  Result<nlohmann::json> picture(const Caller& caller, const StepKey& key, std::size_t target, const PictureSize& size);
  static constexpr std::uint64_t kPictureEvents = 30'000'000;

  std::size_t running() const;
  // For metrics.
  const DaemonCounts& counts() const { return *counts_; }
  StepsNow now() const;

  // Whether traces or database could not be written for want of room, and that is not over.
  bool disk_full() const { return trace_disk_.is_full() || database_disk_.is_full(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry;  // steps_entry.h
  using EntryPtr = std::shared_ptr<Entry>;

  Result<EntryPtr> find_or_load(const StepKey& key);  // kNotFound: no such trace
  EntryPtr find_loaded(const StepKey& key) const;
  // kNoMore: the step is finished, and the database has its predictions.
  enum class Replay { kNow, kNoMore };
  EntryPtr adopt(std::shared_ptr<StepTrace> trace, Replay replay) REQUIRES(load_mutex_);
  // Opens a stored step. One that cannot be is partial from then on, and retention may remove it.
  Result<std::shared_ptr<StepTrace>> open_stored(const StepKey& key) REQUIRES(load_mutex_);
  // Why nothing of it is to be replayed; empty: nothing speaks against it.
  std::string why_set_aside(const StepKey& key) const;
  void count_death(const StepKey& key);
  void end_as_partial(const StepKey& key, const std::string& why) REQUIRES(load_mutex_);
  std::unique_ptr<ReplayMarks::Mark> mark_replay(const StepKey& key);
  static db::StepQuery query_of(const StepKey& key);
  bool others_wait(const EntryPtr& entry) const;
  Result<EntryPtr> may_write(const Caller& caller, const StepKey& key);
  Result<void> reopen_if_timed_out(const EntryPtr& entry, std::uint32_t stream);
  void schedule(const EntryPtr& entry);
  void replay_once(const EntryPtr& entry);
  void forget_replay(const Entry& entry, const StepView& view, bool was_again);
  void count_end(const StepView& view);
  void replay_after_rest(const EntryPtr& entry, Clock::time_point end_of_rest);
  bool programs_run() const;
  bool persist(Entry& entry);
  void end_silent_streams(const EntryPtr& entry);
  void prune() REQUIRES(tick_mutex_);
  void prune_database() REQUIRES(tick_mutex_);
  void load_backlog();
  void take_up_deferred();
  Registered registered(std::uint64_t next_sequence, uid_t owner, const protocol::StepDescription& description) const;
  StepRunOptions run_options(const StepTrace& trace);
  // options_.run with what is CLUSTER's.
  StepRunOptions options_of(const std::string& cluster) const;
  const NetworkCatalog& networks_of(const std::string& cluster) const;
  // Of lbfd's limits for one step: the lower of the site's and the user's. Into NOTES: where the user asked
  // for more.
  cost::Limits limits_of(const protocol::StepDescription& description, std::vector<std::string>* notes = nullptr) const;
  static db::ProgramHint hint_of(uid_t owner, const protocol::StepDescription& description);
  std::vector<EntryPtr> entries() const;
  Result<EntryPtr> begin_step(const Caller& caller, const StepKey& key, const protocol::StepDescription& description,
                              std::size_t description_bytes) REQUIRES(load_mutex_);
  Result<void> may_begin(uid_t owner, const protocol::StepDescription& description, std::size_t description_bytes);
  // A step of another user of which no batch ever came is no reason to refuse this one, once it is over.
  bool forget_empty(const EntryPtr& entry) REQUIRES(load_mutex_);
  // The reason for which a stream ends in lbfd's name instead of getting this batch; empty: it gets it.
  std::string_view why_not_kept(const StepTrace& trace, std::size_t batch_bytes) const;
  void enqueue(const EntryPtr& entry);
  void replay_next();
  // JOB on a replay thread, beside a turn of USER. False: none is free.
  bool lend_thread(uid_t user, std::function<void()> job);
  template <typename T>
  Result<T> watched(const StepKey& key, std::uint32_t stream, Result<T> result);

  TraceStore& traces_;
  db::Database& database_;
  db::StepStore step_store_;
  db::PredictionStore prediction_store_;
  db::ProgramStore program_store_;
  db::AccuracyStore accuracy_store_;
  const NetworkCatalog& networks_;
  const StepsOptions options_;

  DiskWatch trace_disk_{"traces", "nothing was stored, relays keep their events and try again"};
  DiskWatch database_disk_{"the database",
                           "written later; until then a restart makes the predictions again from the traces"};

  // Taken in this order: tick_mutex_, load_mutex_, an entry's, mutex_.
  mutable Mutex mutex_;  // no call of the database while it is held
  std::map<StepKey, EntryPtr> entries_ GUARDED_BY(mutex_);
  Mutex load_mutex_;                                     // creating, loading, reopening, removing traces: one at a time
  std::deque<StepKey> backlog_ GUARDED_BY(load_mutex_);  // stored steps that ended but are not in the database
  EntryPtr deferred_ GUARDED_BY(load_mutex_);            // deferred targets of steps that are over, one step at a time
  db::StepRow deferred_row_ GUARDED_BY(load_mutex_) = 0;  // looked at up to here
  Mutex tick_mutex_;
  Mutex picture_mutex_;  // one picture at a time
  Clock::time_point last_prune_ GUARDED_BY(tick_mutex_){};
  bool database_has_old_steps_ GUARDED_BY(tick_mutex_) = false;  // more than one turn removes
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ending_{false};  // stopping_, or about to be
  const std::shared_ptr<MemoryAccounts> accounts_;
  const std::shared_ptr<DaemonCounts> counts_ = std::make_shared<DaemonCounts>();
  UserRates rates_;
  std::unique_ptr<ReplayMarks> marks_;  // since recover()
  TurnQueue<EntryPtr> turns_;
  boost::asio::thread_pool replay_pool_;
};

}  // namespace lbf::daemon
