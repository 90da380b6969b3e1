// Steps, see steps.h: what goes on by itself. steps_intake.cpp: what relays send; steps_answers.cpp: what people ask.
#include "predictor/daemon/steps/steps.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <ctime>
#include <map>
#include <memory>
#include <utility>

#include "base/cpu_time.h"
#include "predictor/daemon/steps/steps_entry.h"

namespace lbf::daemon {
namespace {

// A finished step is kept in memory so long: late retries of its relays are answered without reading the
// trace.
constexpr std::chrono::seconds kKeepFinished{60};
// Ended steps that wait for their replay after a start are loaded so many at a time.
constexpr std::size_t kBacklogInMemory = 4;
// Streams of one step that have fallen silent are ended so many at a time, each with files to synchronise: other steps'
// turns come between them.
constexpr std::size_t kEndedPerTick = 64;
// Views of running steps are written so long when lbfd ends.
constexpr std::chrono::seconds kStopPatience{1};
// A resting replay looks so often whether the programs have ended.
constexpr std::chrono::milliseconds kLookDuringRest{20};

}  // namespace

Steps::Steps(TraceStore& traces, db::Database& database, const NetworkCatalog& networks, StepsOptions options)
    : traces_(traces),
      database_(database),
      step_store_(database),
      prediction_store_(database),
      program_store_(database),
      accuracy_store_(database),
      networks_(networks),
      options_(std::move(options)),
      accounts_(std::make_shared<MemoryAccounts>(options_.bounds)),
      rates_(options_.bounds),
      turns_(options_.replay_threads),
      replay_pool_(std::max(1u, options_.replay_threads)) {}

Steps::~Steps() {
  stop();
}

void Steps::stop() {
  ending_ = true;
  if (stopping_.exchange(true)) return;
  replay_pool_.stop();
  replay_pool_.join();
  // What is not written in time is made again from the traces.
  const Clock::time_point end = Clock::now() + kStopPatience;
  for (const EntryPtr& entry : entries()) {
    if (Clock::now() < end) persist(*entry);
    if (const auto forgotten = traces_.forget_deaths(entry->trace->key()); !forgotten)
      spdlog::error("{}", forgotten.error().message);
  }
}

const NetworkCatalog& Steps::networks_of(const std::string& cluster) const {
  const auto found = options_.clusters.find(cluster);
  return found == options_.clusters.end() ? networks_ : *found->second.networks;
}

StepRunOptions Steps::options_of(const std::string& cluster) const {
  StepRunOptions options = options_.run;
  if (const auto found = options_.clusters.find(cluster); found != options_.clusters.end()) {
    options.topology = found->second.topology;
    options.notes = found->second.notes;
  }
  return options;
}

std::vector<std::string> Steps::network_names() const {
  std::vector<std::string> names = networks_.names();
  for (const auto& [cluster, machine] : options_.clusters) {
    for (std::string& name : machine.networks->names()) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> Steps::cluster_names() const {
  std::vector<std::string> names;
  for (const auto& [cluster, machine] : options_.clusters) names.push_back(cluster);
  return names;
}

std::vector<Steps::EntryPtr> Steps::entries() const {
  const MutexLock lock(mutex_);
  std::vector<EntryPtr> all;
  all.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) all.push_back(entry);
  return all;
}

Steps::EntryPtr Steps::find_loaded(const StepKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second;
}

Steps::EntryPtr Steps::adopt(std::shared_ptr<StepTrace> trace, Replay replay) {
  std::shared_ptr<StepRun> run;
  if (replay == Replay::kNow)
    run = std::make_shared<StepRun>(trace, networks_of(trace->key().cluster), run_options(*trace));
  const auto entry = std::make_shared<Entry>(std::move(trace), std::move(run));
  if (replay == Replay::kNoMore) entry->count_trace(accounts_);
  const MutexLock lock(mutex_);
  entries_[entry->trace->key()] = entry;
  return entry;
}

Result<Steps::EntryPtr> Steps::find_or_load(const StepKey& key) {
  if (EntryPtr entry = find_loaded(key)) return entry;
  const MutexLock lock(load_mutex_);
  if (EntryPtr entry = find_loaded(key)) return entry;
  if (std::string why = why_set_aside(key); !why.empty())
    return Error{ErrorCode::kPermission, "step " + key.text() + " is set aside: " + why};
  auto trace = open_stored(key);
  if (!trace) {
    if (trace.error().code != ErrorCode::kNotFound) return trace.error();
    return Error{ErrorCode::kNotFound, "step " + key.text() + " has no trace here"};
  }
  auto state = step_store_.state_of(key.cluster, key.job, key.step, key.restart, key.submit_s);
  if (!state) return state.error();
  // A stream that came back has taken its end back: such a step goes on, whatever the database says.
  const bool finished = state->has_value() && **state != db::StepState::kRunning && !traces_.has_open_stream(key) &&
                        !traces_.is_retried(key);
  EntryPtr entry = adopt(std::move(trace).value(), finished ? Replay::kNoMore : Replay::kNow);
  if (!finished) schedule(entry);
  return entry;
}

void Steps::recover() {
  if (!options_.marks_path.empty()) {
    auto marks = ReplayMarks::open(options_.marks_path);
    if (!marks) spdlog::error("a step whose replay ends lbfd is not found out: {}", marks.error().message);
    if (marks) marks_ = std::move(marks).value();
  }
  for (const StepKey& key : traces_.list()) {
    count_death(key);
    if (const std::string why = why_set_aside(key); !why.empty()) {
      const MutexLock lock(load_mutex_);
      end_as_partial(key, why);
      ++counts_->set_aside_steps;
      continue;
    }
    const auto state = step_store_.state_of(key.cluster, key.job, key.step, key.restart, key.submit_s);
    if (!state) {
      spdlog::error("{}", state.error().message);
      continue;
    }
    if (state->has_value() && **state != db::StepState::kRunning && !traces_.has_open_stream(key) &&
        !traces_.is_retried(key))
      continue;
    const MutexLock lock(load_mutex_);
    auto trace = open_stored(key);
    if (!trace) {
      if (trace.error().code == ErrorCode::kNotFound) traces_.remove_empty(key);
      continue;
    }
    if ((*trace)->all_ended()) {
      backlog_.push_back(key);
      continue;
    }
    spdlog::info("step {}: taken up again, {} bytes of its trace are here", key.text(), (*trace)->stored_bytes());
    schedule(adopt(std::move(trace).value(), Replay::kNow));
  }
  load_backlog();
  const MutexLock only_one(tick_mutex_);
  prune();
}

// Steps whose relays were done, but whose prediction was not, when lbfd ended.
void Steps::load_backlog() {
  const MutexLock lock(load_mutex_);
  while (!backlog_.empty()) {
    std::size_t replaying = 0;
    for (const EntryPtr& entry : entries()) replaying += !entry->is_finished() && entry->trace->all_ended() ? 1 : 0;
    if (replaying >= kBacklogInMemory) return;
    const StepKey key = backlog_.front();
    backlog_.pop_front();
    if (find_loaded(key) != nullptr) continue;
    auto trace = open_stored(key);
    if (!trace) continue;
    spdlog::info("step {}: ended before, its prediction is completed now", key.text());
    schedule(adopt(std::move(trace).value(), Replay::kNow));
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
  const MutexLock lock(load_mutex_);
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
  const StepKey key = StepKey::of(step);
  if (find_loaded(key) != nullptr) return;  // just over: its turn comes when it has left memory
  std::string why = why_set_aside(key);
  auto trace = why.empty() ? traces_.open_step(key) : Result<std::shared_ptr<StepTrace>>(invalid_input(why));
  if (!trace) {
    why = trace.error().code == ErrorCode::kNotFound ? "its trace is not stored any more (retention)"
                                                     : trace.error().message;
    if (auto given_up = prediction_store_.give_up_deferred(**row, why); !given_up) {
      spdlog::error("step {}: {}", key.text(), given_up.error().message);
    } else {
      spdlog::info("step {}: deferred targets are given up: {}", key.text(), why);
    }
    return;
  }
  if (!(*trace)->all_ended()) return;  // a stream of it is back: it is replayed whole when that has ended
  StepRunOptions options = run_options(**trace);
  options.budget = {};
  options.memory = nullptr;
  options.cpu_spent_before_s = step.lbfd_cpu_s;
  if (auto before = prediction_store_.deferred_targets(**row)) options.deferred_before = std::move(*before);
  const auto entry = std::make_shared<Entry>(
      *trace, std::make_shared<StepRun>(*trace, networks_of(key.cluster), options), Entry::Turn::kAgain);
  {
    const MutexLock map_lock(mutex_);
    entries_[key] = entry;
  }
  spdlog::info("step {}: its deferred targets are taken up", key.text());
  deferred_ = entry;
  schedule(entry);
}

void Steps::schedule(const EntryPtr& entry) {
  if (entry->wanted.fetch_add(1) == 0) enqueue(entry);
}

void Steps::enqueue(const EntryPtr& entry) {
  turns_.add(entry->trace->owner(), entry);
  boost::asio::post(replay_pool_, [this] { replay_next(); });
}

void Steps::replay_next() {
  const auto turn = turns_.take();
  if (!turn) return;  // its user has as many turns as may be; done() tells when that is over
  replay_once(turn->second);
  if (turns_.done(turn->first)) boost::asio::post(replay_pool_, [this] { replay_next(); });
}

bool Steps::lend_thread(uid_t user, std::function<void()> job) {
  if (ending_ || (options_.replay_when_idle && programs_run()) || !turns_.lend(user)) return false;
  boost::asio::post(replay_pool_, [this, user, job = std::move(job)] {
    job();
    if (turns_.done(user)) boost::asio::post(replay_pool_, [this] { replay_next(); });
  });
  return true;
}

bool Steps::programs_run() const {
  const std::vector<EntryPtr> all = entries();
  return std::any_of(all.begin(), all.end(), [](const EntryPtr& entry) { return !entry->trace->all_ended(); });
}

// The rest ends early with the last program: nobody is held up any more.
void Steps::replay_after_rest(const EntryPtr& entry, Clock::time_point end_of_rest) {
  const auto timer = std::make_shared<boost::asio::steady_timer>(replay_pool_, kLookDuringRest);
  timer->async_wait([this, entry, end_of_rest, timer](const boost::system::error_code& error) {
    if (error || ending_) return;
    if (Clock::now() < end_of_rest && programs_run()) return replay_after_rest(entry, end_of_rest);
    enqueue(entry);
  });
}

// One batch, then the turn goes to the next step in the pool's queue.
void Steps::replay_once(const EntryPtr& entry) {
  if (ending_) return;
  const auto mark = mark_replay(entry->trace->key());
  const Seconds cpu_begin_s = thread_cpu_s();
  const Clock::time_point begin = Clock::now();
  const unsigned seen = entry->wanted.load();
  const std::shared_ptr<StepRun> run = entry->current_run();
  StepRun::Progress progress = StepRun::Progress::kIdle;
  if (run != nullptr && !entry->is_finished()) {
    try {
      progress = run->work(mark.get());
    } catch (const std::exception& exception) {
      spdlog::error("step {}: replay: {}", entry->trace->key().text(), exception.what());
      ++counts_->replay_errors;
    }
  }
  if (run != nullptr) entry->replayed(run->replayed_bytes());
  if (progress == StepRun::Progress::kFinished) {
    const auto view = run->view();
    bool was_again = false;
    {
      const MutexLock lock(entry->mutex);
      was_again = entry->is_again;
      if (entry->run == run) entry->finished = Clock::now();
    }
    if (!was_again) count_end(*view);
    const bool is_stored = persist(*entry);
    if (is_stored) forget_replay(*entry, *view, was_again);
    const db::StepRecord& record = view->record;
    spdlog::info("step {}: {}, user {}, {} ranks, {} events, measured {:.3f} s, {} predictions{}{}",
                 entry->trace->key().text(), db::name_of(record.state), record.user_name, record.ranks, record.events,
                 record.measured_s.value_or(0), view->predictions.size(), record.why_partial.empty() ? "" : ": ",
                 record.why_partial);
  }
  // Steps under way go first: then it goes on with the next tick.
  const bool yields = progress == StepRun::Progress::kMore && entry->is_hidden() && others_wait(entry);
  if (yields) progress = StepRun::Progress::kIdle;
  if (progress == StepRun::Progress::kMore || entry->wanted.fetch_sub(seen) != seen) {
    if (options_.replay_when_idle && programs_run()) {
      const Seconds wall_s = std::chrono::duration<Seconds>(Clock::now() - begin).count();
      if (const Seconds rest_s = entry->idle_turns.rest_after(thread_cpu_s() - cpu_begin_s, wall_s); rest_s > 0) {
        const auto rest = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<Seconds>(rest_s));
        return replay_after_rest(entry, Clock::now() + rest);
      }
    }
    return enqueue(entry);
  }
  entry->caught_up();
}

// The step is over and in the database.
void Steps::forget_replay(const Entry& entry, const StepView& view, bool was_again) {
  const StepKey& key = entry.trace->key();
  traces_.forget_retry(key);
  if (const auto forgotten = traces_.forget_deaths(key); !forgotten) spdlog::error("{}", forgotten.error().message);
  if (!was_again) return;
  // There was all the room that there is: it would be taken up for ever.
  const auto deferred =
      std::ranges::find_if(view.predictions, [](const auto& one) { return !one.why_deferred.empty(); });
  if (deferred == view.predictions.end()) return;
  const auto row = step_store_.find(query_of(key), false);
  if (row && !row->empty()) (void)prediction_store_.give_up_deferred(row->front().row, deferred->why_deferred);
}

// Returns whether the newest view is in the database.
bool Steps::persist(Entry& entry) {
  const MutexLock one_writer(entry.persist_mutex);
  const std::shared_ptr<StepRun> run = entry.current_run();
  if (run == nullptr || entry.is_hidden()) return true;
  const auto view = run->view();
  {
    const MutexLock lock(entry.mutex);
    if (entry.persisted_generation == view->generation) return true;
    entry.last_persisted = Clock::now();
  }
  const auto stored = step_store_.put(view->record, view->predictions);
  if (!stored) {
    database_disk_.failed("step " + entry.trace->key().text(), stored.error());
    return false;  // tick() tries again
  }
  database_disk_.succeeded();
  const MutexLock lock(entry.mutex);
  if (entry.run == run) {
    entry.persisted_generation = view->generation;
    entry.final_persisted = view->record.state != db::StepState::kRunning;
  }
  return true;
}

void Steps::end_silent_streams(const EntryPtr& entry) {
  const auto now = Clock::now();
  const auto nodes = static_cast<std::uint32_t>(entry->trace->description().nodes.size());
  std::size_t ended_now = 0;
  std::string silent;  // the first of them
  std::size_t silent_count = 0;
  for (std::uint32_t number = 0; number < nodes && ended_now < kEndedPerTick; ++number) {
    {
      const MutexLock lock(entry->mutex);
      const auto heard = entry->last_heard.find(number);
      if (now - (heard == entry->last_heard.end() ? entry->loaded : heard->second) < options_.stream_timeout) continue;
    }
    const auto state = entry->trace->stream(number);
    if (state && state->end) continue;
    if (!state && entry->trace->all_registered()) continue;  // it runs no rank of this program
    ++ended_now;
    Result<void> ended;
    if (!state) {
      ended = entry->trace->end_missing_stream(number);
    } else {
      auto result = entry->trace->end_stream(number, {state->next_sequence - 1, 0, std::string(kReasonStreamTimeout)});
      if (!result) ended = result.error();
    }
    if (ended) {
      if (silent_count++ == 0) silent = entry->trace->description().nodes[number];
    } else {
      trace_disk_.failed("step " + entry->trace->key().text(), ended.error());
    }
    schedule(entry);
  }
  if (silent_count == 0) return;
  spdlog::warn("step {}: nothing came from node {}{} for {} s: its stream is ended", entry->trace->key().text(), silent,
               silent_count == 1 ? std::string() : fmt::format(" and {} more", silent_count - 1),
               std::chrono::duration_cast<std::chrono::seconds>(options_.stream_timeout).count());
}

void Steps::tick() {
  if (!tick_mutex_.try_lock()) return;
  const MutexLock only_one(tick_mutex_, std::adopt_lock);
  if (ending_) return;
  const auto now = Clock::now();
  std::map<uid_t, Seconds> written;  // to the database, in this tick
  // Who was written longest ago goes first: where a user's time is over, the others' turn comes next time.
  std::vector<std::pair<Clock::time_point, EntryPtr>> all;
  for (const EntryPtr& entry : entries()) all.emplace_back(entry->when_persisted(), entry);
  std::ranges::stable_sort(all, {}, &std::pair<Clock::time_point, EntryPtr>::first);
  for (const auto& [when_persisted, entry] : all) {
    bool finished = false;
    bool persisted = false;
    bool due = false;
    bool old = false;
    {
      const MutexLock lock(entry->mutex);
      finished = entry->finished.has_value();
      persisted = entry->final_persisted;
      due = now - entry->last_persisted >= options_.persist_interval;
      old = finished && now - *entry->finished >= kKeepFinished;
    }
    if (!finished && !entry->is_hidden()) {
      end_silent_streams(entry);
      schedule(entry);  // the wait for relays to register may be over
    }
    Seconds& written_s = written[entry->trace->owner()];
    if (due && !(finished && persisted) && written_s < options_.bounds.user_write_s) {
      const auto begin = Clock::now();
      persisted = persist(*entry) && finished;
      written_s += std::chrono::duration<Seconds>(Clock::now() - begin).count();
    }
    if (old && persisted) {
      const MutexLock load_lock(load_mutex_);  // meanwhile no stream is reopened
      if (!entry->is_finished()) continue;
      const MutexLock lock(mutex_);
      entries_.erase(entry->trace->key());
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
  const double now_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double before_s = now_s - std::chrono::duration<double>(options_.step_retention).count();
  const auto has_trace = [this](const db::StepRecord& step) {
    const StepKey key = StepKey::of(step);
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
  const MutexLock lock(load_mutex_);
  const auto in_use = [this](const StepKey& key) {
    if (find_loaded(key) != nullptr) return true;
    const auto state = step_store_.state_of(key.cluster, key.job, key.step, key.restart, key.submit_s);
    // What is not in the database would be lost with its trace.
    return !state || !state->has_value() || **state == db::StepState::kRunning;
  };
  const PruneResult pruned =
      traces_.prune(options_.retention, in_use, [](const Error& error) { spdlog::error("{}", error.message); });
  if (!pruned.removed.empty()) {
    spdlog::info("retention: {} old traces removed, {} bytes are left", pruned.removed.size(), pruned.stored_bytes);
  }
  if (options_.retention.limit_bytes > 0 && pruned.stored_bytes > options_.retention.limit_bytes) {
    spdlog::warn("the traces of steps under way take {} bytes, more than trace_store_limit_mb", pruned.stored_bytes);
  }
}

std::size_t Steps::running() const {
  std::size_t count = 0;
  for (const EntryPtr& entry : entries()) count += entry->is_finished() || entry->is_hidden() ? 0 : 1;
  return count;
}

}  // namespace lbf::daemon
