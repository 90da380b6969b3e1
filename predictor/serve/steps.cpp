// Steps, see steps.h.
#include "predictor/serve/steps.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "predictor/serve/users.h"

namespace lbf {
namespace {

using Clock = std::chrono::steady_clock;

// A finished step is kept in memory so long: late retries of its relays are answered without reading the
// trace.
constexpr std::chrono::seconds kKeepFinished{60};
// Ended steps that wait for their replay after a start are loaded so many at a time.
constexpr std::size_t kBacklogInMemory = 4;

StepView copy_of(const StepView& view, StepDetail detail) {
  if (detail == StepDetail::kFull) return view;
  StepView copy;
  copy.generation = view.generation;
  copy.record = view.record;
  if (detail == StepDetail::kBrief) {
    copy.record.calls.clear();
    copy.record.procedures.reset();
    return copy;
  }
  if (detail == StepDetail::kSummary) {
    const db::PredictionRecord* fastest = nullptr;
    for (const db::PredictionRecord& prediction : view.predictions) {
      const bool ends = prediction.why_stuck.empty() && prediction.why_deferred.empty();
      if (ends && (fastest == nullptr || prediction.predicted_s < fastest->predicted_s)) fastest = &prediction;
    }
    for (const db::PredictionRecord& prediction : view.predictions) {
      if (prediction.kind == "self" || &prediction == fastest)
        copy.predictions.push_back(prediction.without_ranks());
    }
    return copy;
  }
  copy.predictions.reserve(view.predictions.size());
  for (const db::PredictionRecord& prediction : view.predictions) {
    copy.predictions.push_back(prediction.without_ranks());
  }
  return copy;
}

}  // namespace

struct Steps::Entry {
  std::shared_ptr<StepTrace> trace;

  std::mutex mutex;              // of the members below, up to the empty line
  std::shared_ptr<StepRun> run;  // null: finished and in the database before it was loaded
  std::map<std::uint32_t, Clock::time_point> last_heard;
  Clock::time_point loaded = Clock::now();
  std::optional<Clock::time_point> finished;
  bool final_persisted = false;
  // Replayed again for targets that were deferred: until that is done, the database is what people see.
  bool is_again = false;
  std::uint64_t persisted_generation = 0;
  Clock::time_point last_persisted{};

  std::mutex persist_mutex;         // an older view must not be written after a newer one
  std::atomic<unsigned> wanted{0};  // calls of schedule() that no replay turn has answered yet

  void heard(std::uint32_t stream) {
    const std::scoped_lock lock(mutex);
    last_heard[stream] = Clock::now();
  }
  std::shared_ptr<StepRun> current_run() {
    const std::scoped_lock lock(mutex);
    return run;
  }
  bool is_finished() {
    const std::scoped_lock lock(mutex);
    return finished.has_value();
  }
  // Nobody sees this replay yet.
  bool is_hidden() {
    const std::scoped_lock lock(mutex);
    return is_again && !finished;
  }
};

Steps::Steps(TraceStore& traces, db::Database& database, const NetworkCatalog& networks, StepsOptions options)
    : traces_(traces),
      database_(database),
      step_store_(database),
      prediction_store_(database),
      program_store_(database),
      accuracy_store_(database),
      networks_(networks),
      options_(options),
      replay_pool_(std::max(1u, options.replay_threads)) {}

Steps::~Steps() {
  stop();
}

void Steps::stop() {
  if (stopping_.exchange(true)) return;
  replay_pool_.stop();
  replay_pool_.join();
  for (const EntryPtr& entry : entries()) persist(*entry);
}

std::vector<Steps::EntryPtr> Steps::entries() const {
  const std::scoped_lock lock(mutex_);
  std::vector<EntryPtr> all;
  all.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) all.push_back(entry);
  return all;
}

Steps::EntryPtr Steps::find_loaded(const StepKey& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second;
}

// REQUIRES: load_mutex_ is held.
Steps::EntryPtr Steps::adopt(std::shared_ptr<StepTrace> trace, bool replay) {
  auto entry = std::make_shared<Entry>();
  entry->trace = std::move(trace);
  if (replay) {
    entry->run = std::make_shared<StepRun>(entry->trace, networks_, options_.run);
  } else {
    entry->finished = Clock::now();
    entry->final_persisted = true;
  }
  const std::scoped_lock lock(mutex_);
  entries_[entry->trace->key()] = entry;
  return entry;
}

Result<Steps::EntryPtr> Steps::find_or_load(const StepKey& key) {
  if (EntryPtr entry = find_loaded(key)) return entry;
  const std::scoped_lock lock(load_mutex_);
  if (EntryPtr entry = find_loaded(key)) return entry;
  auto trace = traces_.open_step(key);
  if (!trace) {
    if (trace.error().code != ErrorCode::kNotFound) return trace.error();
    return Error{ErrorCode::kNotFound, "step " + key.text() + " has no trace here"};
  }
  auto state = step_store_.state_of(key.cluster, key.job, key.step, key.restart);
  if (!state) return state.error();
  const bool finished = state->has_value() && **state != db::StepState::kRunning;
  EntryPtr entry = adopt(std::move(trace).value(), !finished);
  if (!finished) schedule(entry);
  return entry;
}

void Steps::recover() {
  for (const StepKey& key : traces_.list()) {
    const auto state = step_store_.state_of(key.cluster, key.job, key.step, key.restart);
    if (!state) {
      spdlog::error("{}", state.error().message);
      continue;
    }
    if (state->has_value() && **state != db::StepState::kRunning) continue;
    const std::scoped_lock lock(load_mutex_);
    auto trace = traces_.open_step(key);
    if (!trace) {
      if (trace.error().code == ErrorCode::kNotFound) {
        traces_.remove_empty(key);
      } else {
        spdlog::error("step {}: {}", key.text(), trace.error().message);
      }
      continue;
    }
    if ((*trace)->all_ended()) {
      backlog_.push_back(key);
      continue;
    }
    spdlog::info("step {}: taken up again, {} bytes of its trace are here", key.text(),
                 (*trace)->stored_bytes());
    schedule(adopt(std::move(trace).value(), true));
  }
  load_backlog();
  prune();
}

// Steps whose relays were done, but whose prediction was not, when lbfd ended.
void Steps::load_backlog() {
  const std::scoped_lock lock(load_mutex_);
  while (!backlog_.empty()) {
    std::size_t replaying = 0;
    for (const EntryPtr& entry : entries())
      replaying += !entry->is_finished() && entry->trace->all_ended() ? 1 : 0;
    if (replaying >= kBacklogInMemory) return;
    const StepKey key = backlog_.front();
    backlog_.pop_front();
    if (find_loaded(key) != nullptr) continue;
    auto trace = traces_.open_step(key);
    if (!trace) {
      spdlog::error("step {}: {}", key.text(), trace.error().message);
      continue;
    }
    spdlog::info("step {}: ended before, its prediction is completed now", key.text());
    schedule(adopt(std::move(trace).value(), true));
  }
}

bool Steps::others_wait(const EntryPtr& entry) const {
  const auto all = entries();
  return std::any_of(all.begin(), all.end(),
                     [&](const EntryPtr& other) { return other != entry && other->wanted > 0; });
}

// Targets that were deferred, from the stored traces of steps that are over: oldest first, one step at a time, all of
// its targets in one pass without a budget.
void Steps::take_up_deferred() {
  const std::scoped_lock lock(load_mutex_);
  if (deferred_ != nullptr) {
    if (!deferred_->is_finished()) return schedule(deferred_);
    deferred_ = nullptr;
  }
  auto row = prediction_store_.next_deferred(deferred_row_);
  if (!row) return;
  if (!*row) {
    deferred_row_ = 0;
    return;
  }
  deferred_row_ = **row;
  db::StepQuery query;
  query.row = **row;
  auto found = step_store_.find(query, false);
  if (!found || found->empty()) return;
  const db::StepRecord& step = found->front().record;
  const StepKey key{step.cluster, step.job, step.step, step.restart};
  if (find_loaded(key) != nullptr) return;  // just over: its turn comes when it has left memory
  auto trace = traces_.open_step(key);
  if (!trace) {
    if (trace.error().code != ErrorCode::kNotFound) {
      spdlog::error("step {}: {}", key.text(), trace.error().message);
      return;
    }
    const std::string why = "its trace is not stored any more (retention)";
    if (auto given_up = prediction_store_.give_up_deferred(**row, why); !given_up) {
      spdlog::error("step {}: {}", key.text(), given_up.error().message);
    } else {
      spdlog::info("step {}: deferred targets are given up: {}", key.text(), why);
    }
    return;
  }
  auto entry = std::make_shared<Entry>();
  entry->trace = std::move(trace).value();
  entry->is_again = true;
  StepRunOptions options = options_.run;
  options.budget = {};
  options.memory = nullptr;
  options.cpu_spent_before_s = step.lbfd_cpu_s;
  entry->run = std::make_shared<StepRun>(entry->trace, networks_, options);
  {
    const std::scoped_lock map_lock(mutex_);
    entries_[key] = entry;
  }
  spdlog::info("step {}: its deferred targets are taken up", key.text());
  deferred_ = entry;
  schedule(entry);
}

void Steps::schedule(const EntryPtr& entry) {
  if (entry->wanted.fetch_add(1) == 0) {
    boost::asio::post(replay_pool_, [this, entry] { replay_once(entry); });
  }
}

// One batch, then the turn goes to the next step in the pool's queue.
void Steps::replay_once(const EntryPtr& entry) {
  if (stopping_) return;
  const unsigned seen = entry->wanted.load();
  const std::shared_ptr<StepRun> run = entry->current_run();
  StepRun::Progress progress = StepRun::Progress::kIdle;
  if (run != nullptr && !entry->is_finished()) {
    try {
      progress = run->work();
    } catch (const std::exception& exception) {
      spdlog::error("step {}: replay: {}", entry->trace->key().text(), exception.what());
    }
  }
  if (progress == StepRun::Progress::kFinished) {
    const auto view = run->view();
    {
      const std::scoped_lock lock(entry->mutex);
      if (entry->run == run) entry->finished = Clock::now();
    }
    persist(*entry);
    const db::StepRecord& record = view->record;
    spdlog::info("step {}: {}, user {}, {} ranks, {} events, measured {:.3f} s, {} predictions{}{}",
                 entry->trace->key().text(), db::name_of(record.state), record.user_name, record.ranks,
                 record.events, record.measured_s.value_or(0), view->predictions.size(),
                 record.why_partial.empty() ? "" : ": ", record.why_partial);
  }
  // Steps under way go first: then it goes on with the next tick.
  const bool yields = progress == StepRun::Progress::kMore && entry->is_hidden() && others_wait(entry);
  if (yields) progress = StepRun::Progress::kIdle;
  if (progress == StepRun::Progress::kMore || entry->wanted.fetch_sub(seen) != seen) {
    boost::asio::post(replay_pool_, [this, entry] { replay_once(entry); });
  }
}

// Returns whether the newest view is in the database.
bool Steps::persist(Entry& entry) {
  const std::scoped_lock one_writer(entry.persist_mutex);
  const std::shared_ptr<StepRun> run = entry.current_run();
  if (run == nullptr || entry.is_hidden()) return true;
  const auto view = run->view();
  {
    const std::scoped_lock lock(entry.mutex);
    if (entry.persisted_generation == view->generation) return true;
    entry.last_persisted = Clock::now();
  }
  const auto stored = step_store_.put(view->record, view->predictions);
  if (!stored) {
    database_disk_.failed("step " + entry.trace->key().text(), stored.error());
    return false;  // tick() tries again
  }
  database_disk_.succeeded();
  const std::scoped_lock lock(entry.mutex);
  if (entry.run == run) {
    entry.persisted_generation = view->generation;
    entry.final_persisted = view->record.state != db::StepState::kRunning;
  }
  return true;
}

void Steps::end_silent_streams(const EntryPtr& entry) {
  const auto now = Clock::now();
  const auto nodes = static_cast<std::uint32_t>(entry->trace->description().nodes.size());
  for (std::uint32_t number = 0; number < nodes; ++number) {
    {
      const std::scoped_lock lock(entry->mutex);
      const auto heard = entry->last_heard.find(number);
      if (now - (heard == entry->last_heard.end() ? entry->loaded : heard->second) < options_.stream_timeout)
        continue;
    }
    const auto state = entry->trace->stream(number);
    if (state && state->end) continue;
    if (!state && entry->trace->all_registered()) continue;  // it runs no rank of this program
    Result<void> ended;
    if (!state) {
      ended = entry->trace->end_missing_stream(number);
    } else {
      auto result = entry->trace->end_stream(
          number, {state->next_sequence - 1, 0, std::string(kReasonStreamTimeout), 0});
      if (!result) ended = result.error();
    }
    if (ended) {
      spdlog::warn("step {}: nothing came from node {} for {} s: its stream is ended",
                   entry->trace->key().text(), entry->trace->description().nodes[number],
                   std::chrono::duration_cast<std::chrono::seconds>(options_.stream_timeout).count());
    } else {
      trace_disk_.failed("step " + entry->trace->key().text(), ended.error());
    }
    schedule(entry);
  }
}

void Steps::tick() {
  const std::unique_lock only_one(tick_mutex_, std::try_to_lock);
  if (!only_one || stopping_) return;
  const auto now = Clock::now();
  for (const EntryPtr& entry : entries()) {
    bool finished = false;
    bool persisted = false;
    bool due = false;
    bool old = false;
    {
      const std::scoped_lock lock(entry->mutex);
      finished = entry->finished.has_value();
      persisted = entry->final_persisted;
      due = now - entry->last_persisted >= options_.persist_interval;
      old = finished && now - *entry->finished >= kKeepFinished;
    }
    if (!finished && !entry->is_hidden()) {
      end_silent_streams(entry);
      schedule(entry);  // the wait for relays to register may be over
    }
    if (due && !(finished && persisted)) persisted = persist(*entry) && finished;
    if (old && persisted) {
      const std::scoped_lock lock(load_mutex_, mutex_);
      if (entry->is_finished()) entries_.erase(entry->trace->key());
    }
  }
  trace_disk_.tick(now);
  database_disk_.tick(now);
  load_backlog();
  take_up_deferred();
  if (now - last_prune_ >= options_.prune_interval) prune();
  if (database_has_old_steps_) prune_database();
}

// A turn's worth: a report or a batch that comes meanwhile waits for one short transaction, not for all.
void Steps::prune_database() {
  constexpr std::size_t kStepsPerTurn = 200;
  constexpr int kPagesPerTurn = 2000;  // 8 MB
  database_has_old_steps_ = false;
  if (options_.step_retention.count() == 0) return;
  const double now_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double before_s = now_s - std::chrono::duration<double>(options_.step_retention).count();
  const auto has_trace = [this](const db::StepRecord& step) {
    const StepKey key{step.cluster, step.job, step.step, step.restart};
    return find_loaded(key) != nullptr || traces_.contains(key);
  };
  const auto removed = step_store_.remove_ended_before(before_s, kStepsPerTurn, has_trace);
  if (!removed) {
    spdlog::error("retention: {}", removed.error().message);
    return;
  }
  if (*removed > 0) spdlog::info("retention: {} old steps removed from the database", *removed);
  const auto left = database_.give_back(kPagesPerTurn);
  if (!left) spdlog::error("retention: {}", left.error().message);
  database_has_old_steps_ = *removed == kStepsPerTurn || (left && *left > 0);
}

void Steps::prune() {
  last_prune_ = Clock::now();
  database_has_old_steps_ = options_.step_retention.count() > 0;
  if (options_.retention.age.count() == 0 && options_.retention.limit_bytes == 0) return;
  const std::scoped_lock lock(load_mutex_);
  const auto in_use = [this](const StepKey& key) {
    if (find_loaded(key) != nullptr) return true;
    const auto state = step_store_.state_of(key.cluster, key.job, key.step, key.restart);
    // What is not in the database would be lost with its trace.
    return !state || !state->has_value() || **state == db::StepState::kRunning;
  };
  const PruneResult pruned = traces_.prune(options_.retention, in_use,
                                           [](const Error& error) { spdlog::error("{}", error.message); });
  if (!pruned.removed.empty()) {
    spdlog::info("retention: {} old traces removed, {} bytes are left", pruned.removed.size(),
                 pruned.stored_bytes);
  }
  if (options_.retention.limit_bytes > 0 && pruned.stored_bytes > options_.retention.limit_bytes) {
    spdlog::warn("the traces of steps under way take {} bytes, more than trace_store_limit_mb",
                 pruned.stored_bytes);
  }
}

Result<Steps::EntryPtr> Steps::may_write(const Caller& caller, const StepKey& key) {
  auto entry = find_or_load(key);
  if (!entry) return entry;
  if (!caller.is_operator && (*entry)->trace->owner() != caller.uid) {
    return Error{ErrorCode::kPermission, "step " + key.text() + " belongs to user " +
                                             user_name_of((*entry)->trace->owner()) + ", not to " +
                                             user_name_of(caller.uid)};
  }
  return entry;
}

// A relay came back after lbfd had given it up (a suspended job, a network that was away): the stream goes
// on, and a prediction that was finished without it is made again.
Result<void> Steps::reopen_if_timed_out(const EntryPtr& entry, std::uint32_t stream) {
  const auto state = entry->trace->stream(stream);
  if (!state || !state->end || state->end->reason != kReasonStreamTimeout) return {};
  const std::scoped_lock lock(load_mutex_);
  const bool had_ended = entry->trace->all_ended();  // some of its targets may have been closed
  if (auto reopened = entry->trace->reopen_stream(stream); !reopened) return reopened;
  spdlog::info("step {}: stream {} is back", entry->trace->key().text(), stream);
  {
    const std::scoped_lock entry_lock(entry->mutex, mutex_);
    entry->last_heard[stream] = Clock::now();
    if (entry->finished || entry->is_again || had_ended) {
      entry->is_again = false;
      entry->finished.reset();
      entry->final_persisted = false;
      entry->persisted_generation = 0;
      entry->run = std::make_shared<StepRun>(entry->trace, networks_, options_.run);
    }
    entries_[entry->trace->key()] = entry;
  }
  schedule(entry);
  return {};
}

// Faults of the disk go into the log; what a client did wrong is in its answer.
template <typename T>
Result<T> Steps::watched(const StepKey& key, std::uint32_t stream, Result<T> result) {
  if (!result && (result.error().code == ErrorCode::kLimit || result.error().code == ErrorCode::kIo)) {
    trace_disk_.failed(fmt::format("step {}, stream {}", key.text(), stream), result.error());
  }
  return result;
}

// A convenience for the relay's cost system: without it, it starts from a default.
std::optional<double> Steps::expected_calls_per_s(uid_t owner, const StepDescription& description) const {
  db::ProgramHint hint;
  hint.uid = owner;
  hint.ranks = description.tasks;
  hint.command = description.command;
  const auto build_id = description.raw.find("build_id");
  if (build_id != description.raw.end() && build_id->is_string()) hint.build_id = build_id->get<std::string>();
  const auto expected = program_store_.expected_calls_per_s(hint);
  return expected ? *expected : std::nullopt;
}

Result<Registered> Steps::register_stream(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                             std::string_view description_json) {
  auto description = StepDescription::parse(description_json);
  if (!description) return description.error();
  if ((!description->cluster.empty() && description->cluster != key.cluster) ||
      *description->job != key.job || *description->step != key.step ||
      description->restart.value_or(key.restart) != key.restart) {
    return invalid_input("the step description is about another step than the request, " + key.text());
  }
  if (description->node_index != stream) {
    return invalid_input(fmt::format("stream {}: 'node_index' is {}: a stream's number is its node's index",
                                     stream, description->node_index));
  }
  if (description->uid && *description->uid != caller.uid && !caller.is_operator) {
    return Error{ErrorCode::kPermission, "the step description says uid " +
                                             std::to_string(*description->uid) +
                                             ", but the request comes from user " + user_name_of(caller.uid)};
  }
  auto entry = may_write(caller, key);
  if (!entry && entry.error().code == ErrorCode::kNotFound) {
    const std::scoped_lock lock(load_mutex_);
    EntryPtr made = find_loaded(key);
    if (made == nullptr) {
      const uid_t owner = description->uid.value_or(caller.uid);
      // A trace that retention has removed leaves its row, and that stays its user's.
      db::StepQuery query;
      query.cluster = key.cluster;
      query.job = key.job;
      query.step = key.step;
      query.restart = key.restart;
      query.limit = 1;
      auto known = step_store_.find(query, false);
      if (!known) return known.error();
      if (!known->empty() && !caller.is_operator && known->front().record.uid != caller.uid) {
        return Error{ErrorCode::kPermission, "step " + key.text() + " belongs to user " +
                                                 known->front().record.user_name + ", not to " +
                                                 user_name_of(caller.uid)};
      }
      auto trace = watched(key, stream, traces_.create(key, *description, owner));
      if (!trace) return trace.error();
      made = adopt(std::move(trace).value(), true);
      spdlog::info("step {}: started, user {}, {} ranks on {} nodes", key.text(),
                   user_name_of(owner, description->user), description->tasks, description->nodes.size());
    } else if (!caller.is_operator && made->trace->owner() != caller.uid) {
      return Error{ErrorCode::kPermission, "step " + key.text() + " belongs to another user"};
    }
    entry = made;
  }
  if (!entry) return entry.error();
  (*entry)->heard(stream);
  if (auto reopened = reopen_if_timed_out(*entry, stream); !reopened) return reopened.error();
  auto next = watched(key, stream, (*entry)->trace->register_stream(*description));
  if (!next) return next.error();
  schedule(*entry);
  return Registered{*next, expected_calls_per_s((*entry)->trace->owner(), *description)};
}

Result<AppendResult> Steps::append(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                   std::uint64_t sequence, std::span<const std::byte> batch) {
  auto entry = may_write(caller, key);
  if (!entry) return entry.error();
  (*entry)->heard(stream);
  const std::shared_ptr<StepTrace>& trace = (*entry)->trace;
  auto state = trace->stream(stream);
  const std::uint64_t limit_bytes = options_.step_trace_limit_bytes;
  if (limit_bytes > 0 && state && !state->end && sequence == state->next_sequence &&
      trace->stored_bytes() + batch.size() > limit_bytes) {
    auto ended = watched(key, stream,
                         trace->end_stream(stream, {state->next_sequence - 1, 1, std::string(kReasonTraceLimit), 0}));
    if (!ended) return ended.error();
    spdlog::warn("step {}: its traces reach step_trace_limit_mb: what comes from stream {} is not kept any more",
                 key.text(), stream);
    schedule(*entry);
    state = trace->stream(stream);
  }
  // Taken and dropped: a relay that kept it could not deliver it later either.
  if (state && state->end && state->end->reason == kReasonTraceLimit && sequence >= state->next_sequence)
    return AppendResult{AppendOutcome::kDuplicate, sequence + 1};
  auto result = trace->append(stream, sequence, batch);
  if (result && result->outcome == AppendOutcome::kEnded) {
    if (auto reopened = reopen_if_timed_out(*entry, stream); !reopened) return reopened.error();
    result = trace->append(stream, sequence, batch);
  }
  result = watched(key, stream, std::move(result));
  if (result && result->outcome == AppendOutcome::kStored) {
    trace_disk_.succeeded();
    schedule(*entry);
  }
  return result;
}

Result<AppendResult> Steps::end_stream(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                       const StreamEnd& end) {
  if (end.reason == kReasonStreamTimeout) return invalid_input("reason 'stream_timeout' is lbfd's own");
  if (end.reason == kReasonTraceLimit) return invalid_input("reason 'trace_limit' is lbfd's own");
  auto entry = may_write(caller, key);
  if (!entry) return entry.error();
  (*entry)->heard(stream);
  if (auto reopened = reopen_if_timed_out(*entry, stream); !reopened) return reopened.error();
  if (const auto state = (*entry)->trace->stream(stream);
      state && state->end && state->end->reason == kReasonTraceLimit) {
    return AppendResult{AppendOutcome::kDuplicate, end.last_sequence + 1};
  }
  auto result = watched(key, stream, (*entry)->trace->end_stream(stream, end));
  if (result && result->outcome == AppendOutcome::kStored) trace_disk_.succeeded();
  if (result) schedule(*entry);
  return result;
}

Result<std::vector<StepView>> Steps::find(const db::StepQuery& query, StepDetail detail) {
  const bool brief = detail == StepDetail::kBrief;
  const bool summary = detail == StepDetail::kSummary;
  std::map<StepKey, StepView> found;
  auto stored = step_store_.find(query, !brief && !summary);
  if (!stored) return stored.error();
  std::vector<std::vector<db::PredictionRecord>> summaries;
  if (summary) {
    std::vector<db::StepRow> rows;
    for (const db::StoredStepRecord& step : *stored) rows.push_back(step.row);
    auto read = prediction_store_.summaries(rows);
    if (!read) return read.error();
    summaries = std::move(read).value();
  }
  for (std::size_t i = 0; i < stored->size(); ++i) {
    db::StoredStepRecord& step = (*stored)[i];
    const StepKey key{step.record.cluster, step.record.job, step.record.step, step.record.restart};
    StepView view;
    view.record = std::move(step.record);
    if (summary) {
      view.predictions = std::move(summaries[i]);
    } else if (!brief) {
      auto predictions = prediction_store_.of_step(step.row, detail == StepDetail::kFull);
      if (!predictions) return predictions.error();
      view.predictions = std::move(predictions).value();
    }
    found.emplace(key, std::move(view));
  }
  for (const EntryPtr& entry : entries()) {
    const std::shared_ptr<StepRun> run = entry->current_run();
    if (run == nullptr || entry->is_hidden()) continue;
    const auto view = run->view();
    const StepKey& key = entry->trace->key();
    found.erase(key);  // the view is the newer one, whether it still matches or not
    if (!query.matches(view->record)) continue;
    found.emplace(key, copy_of(*view, detail));
  }
  std::vector<StepView> views;
  views.reserve(found.size());
  for (auto& [key, view] : found) views.push_back(std::move(view));
  std::stable_sort(views.begin(), views.end(),
                   [](const StepView& a, const StepView& b) { return a.record.start_s < b.record.start_s; });
  if (views.size() > query.limit)
    views.erase(views.begin(), views.end() - static_cast<std::ptrdiff_t>(query.limit));
  return views;
}

Result<StepView> Steps::get(const Caller& caller, const StepKey& key, StepDetail detail) {
  db::StepQuery query;
  query.cluster = key.cluster;
  query.job = key.job;
  query.step = key.step;
  query.restart = key.restart;
  auto found = find(query, detail);
  if (!found) return found.error();
  if (found->empty()) return Error{ErrorCode::kNotFound, "step " + key.text() + " is not known here"};
  StepView& view = found->front();
  if (!caller.is_operator && view.record.uid != caller.uid) {
    return Error{ErrorCode::kPermission, "step " + key.text() + " belongs to user " + view.record.user_name +
                                             ", not to " + user_name_of(caller.uid)};
  }
  return std::move(view);
}

Result<db::ErrorFit> Steps::fit_of(const Caller& caller, const StepKey& key) {
  auto step = get(caller, key, StepDetail::kBrief);
  if (!step) return step.error();
  return accuracy_store_.fit_of(key.cluster, key.job, key.step, key.restart);
}

Result<std::shared_ptr<StepTrace>> Steps::trace(const Caller& caller, const StepKey& key) {
  auto step = get(caller, key, StepDetail::kBrief);
  if (!step) return step.error();
  if (EntryPtr entry = find_loaded(key)) return entry->trace;
  const std::scoped_lock lock(load_mutex_);
  auto trace = traces_.open_step(key);
  if (!trace && trace.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound,
                 "the trace of step " + key.text() + " is not stored any more (retention)"};
  }
  return trace;
}

Result<nlohmann::json> Steps::picture(const Caller& caller, const StepKey& key, std::size_t target,
                                      const PictureSize& size) {
  const auto step = get(caller, key, StepDetail::kList);
  if (!step) return step.error();
  if (target >= step->predictions.size()) {
    return invalid_input(fmt::format("step {} has {} predictions: there is no number {}", key.text(),
                                     step->predictions.size(), target));
  }
  if (step->record.events > kPictureEvents) {
    return Error{ErrorCode::kLimit,
                 fmt::format("step {} has {} events; a picture is made of {} at most: lbf-trace export makes a "
                             "timeline of any trace",
                             key.text(), step->record.events, kPictureEvents)};
  }
  const std::unique_lock alone(picture_mutex_, std::try_to_lock);
  if (!alone) {
    return Error{ErrorCode::kUnavailable, "another picture is being made: try again in some seconds"};
  }
  auto stored = trace(caller, key);
  if (!stored) return stored.error();
  RunPicture picture(target, size);
  StepRunOptions options = options_.run;
  options.picture = &picture;
  options.stream_start_timeout = std::chrono::milliseconds(0);
  StepRun run(std::move(stored).value(), networks_, options);
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  // More came meanwhile where the step is running: that is for the next picture.
  while (!stopping_ && run.work() == StepRun::Progress::kMore) {
    const std::chrono::duration<double> taken = Clock::now() - began;
    if (options_.picture_limit_s > 0 && taken.count() > options_.picture_limit_s) {
      return Error{ErrorCode::kLimit,
                   fmt::format("the picture of step {} ({} events) was not made within {:g} s, picture_limit_s of "
                               "lbfd.toml: lbf-trace export makes a timeline of any trace",
                               key.text(), step->record.events, options_.picture_limit_s)};
    }
  }
  const auto view = run.view();
  const std::string& why_partial = view->record.why_partial;
  if (!picture.started()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("step {} cannot be replayed{}{}", key.text(), why_partial.empty() ? "" : ": ",
                             why_partial)};
  }
  nlohmann::json json = picture.to_json();
  json["why_partial"] = why_partial;
  return json;
}

std::size_t Steps::running() const {
  std::size_t count = 0;
  for (const EntryPtr& entry : entries()) count += entry->is_finished() || entry->is_hidden() ? 0 : 1;
  return count;
}

}  // namespace lbf
