// Steps, intake: what relays send. See steps.h.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "predictor/daemon/steps/steps_entry.h"
#include "predictor/daemon/users.h"

namespace lbf::daemon {
namespace {

// Not a new job of the same number: that begins after the old one's end.
bool is_of_the_past(const protocol::StepDescription& description, const db::StepRecord& known) {
  return known.state != db::StepState::kRunning && known.end_s && description.start_realtime_ns > 0 &&
         seconds_from_ns(description.start_realtime_ns) <= *known.end_s;
}

}  // namespace

// Of one user who does too much the others are to feel nothing: his relays keep what they have and try again.
Result<void> Steps::may_begin(uid_t owner, const protocol::StepDescription& description,
                              std::size_t description_bytes) {
  const Bounds& bounds = options_.bounds;
  std::uint64_t ranks = 0;
  std::uint32_t steps = 0;
  for (const EntryPtr& entry : entries()) {
    if (entry->is_finished() || entry->trace->owner() != owner) continue;
    ++steps;
    ranks += static_cast<std::uint64_t>(entry->trace->description().tasks);
  }
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::kLimit, "user " + user_name_of(owner) + " " + why};
  };
  if (ranks + static_cast<std::uint64_t>(description.tasks) > bounds.user_ranks)
    return refuse(fmt::format("has steps of {} ranks under way; {} more are too many: try again when some have ended",
                              ranks, description.tasks));
  if (bounds.user_steps > 0 && steps >= bounds.user_steps)
    return refuse(
        fmt::format("has {} steps under way, as many as user_steps allows: try again when some have ended", steps));
  const Bytes needed = StepTrace::bytes_of_description(description_bytes) + accounts_->of_user(owner);
  if (bounds.user_memory_bytes > 0 && needed > bounds.user_memory_bytes)
    return refuse(
        fmt::format("has steps that fill {} MiB of lbfd's memory (user_memory_mb): try again when some have "
                    "ended",
                    bounds.user_memory_bytes >> 20));
  if (!rates_.begin_step(owner, Clock::now()))
    return refuse(fmt::format("begins more than {:g} steps a second: try again later", bounds.user_starts_per_s));
  return {};
}

bool Steps::forget_empty(const EntryPtr& entry) {
  {
    const MutexLock lock(entry->mutex);
    if (!entry->finished || !entry->final_persisted) return false;
  }
  if (entry->trace->stored_bytes() > 0) return false;
  const StepKey& key = entry->trace->key();
  if (const auto removed = traces_.remove(key); !removed) {
    spdlog::error("{}", removed.error().message);
    return false;
  }
  const MutexLock lock(mutex_);
  entries_.erase(key);
  return true;
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
  const MutexLock lock(load_mutex_);
  const bool had_ended = entry->trace->all_ended();  // some of its targets may have been closed
  if (auto reopened = entry->trace->reopen_stream(stream); !reopened) return reopened;
  spdlog::info("step {}: stream {} is back", entry->trace->key().text(), stream);
  // Of the database, whose lock is held where it asks whether a step is in the map (prune_database).
  StepRunOptions options = run_options(*entry->trace);
  {
    const MutexLock entry_lock(entry->mutex);
    const MutexLock map_lock(mutex_);
    entry->last_heard[stream] = Clock::now();
    if (entry->finished || entry->is_again || had_ended) {
      entry->is_again = false;
      entry->finished.reset();
      entry->final_persisted = false;
      entry->persisted_generation = 0;
      entry->run =
          std::make_shared<StepRun>(entry->trace, networks_of(entry->trace->key().cluster), std::move(options));
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

db::ProgramHint Steps::hint_of(uid_t owner, const protocol::StepDescription& description) {
  db::ProgramHint hint;
  hint.uid = owner;
  hint.ranks = description.tasks;
  hint.command = description.command;
  hint.before_s = static_cast<double>(description.start_realtime_ns) * 1e-9;
  const auto build_id = description.raw.find("build_id");
  if (build_id != description.raw.end() && build_id->is_string()) hint.build_id = build_id->get<std::string>();
  return hint;
}

// A convenience for the relay's cost system: without it, it starts from a default.
Registered Steps::registered(std::uint64_t next_sequence, uid_t owner,
                             const protocol::StepDescription& description) const {
  Registered answer{next_sequence, {}, {}, {}};
  const auto expected = program_store_.expected_cost(hint_of(owner, description));
  if (!expected) return answer;
  if (expected->calls_per_s > 0) answer.expected_calls_per_s = expected->calls_per_s;
  if (expected->call_s > 0) answer.expected_call_s = expected->call_s;
  if (expected->relay_share > 0) answer.expected_relay_share = expected->relay_share;
  return answer;
}

cost::Limits Steps::limits_of(const protocol::StepDescription& description, std::vector<std::string>* notes) const {
  constexpr double kMiB = 1 << 20;
  cost::Limits limits;
  if (options_.run.budget.is_limited()) limits[cost::Limit::kStepCpu] = options_.run.budget.cpu_percent;
  if (options_.step_trace_limit_bytes > 0)
    limits[cost::Limit::kStepTrace] = static_cast<double>(options_.step_trace_limit_bytes) / kMiB;
  for (const cost::Limit limit : cost::lower(limits, description.limits)) {
    if (notes == nullptr) continue;
    notes->push_back(fmt::format("{}={}: more than this lbfd allows; {} is used", cost::rule_of(limit).name,
                                 cost::shown_number(*description.limits[limit]),
                                 cost::shown_limit(limit, *limits[limit])));
  }
  return limits;
}

// With what earlier runs of the program say of its procedures; without it, predicted costs start from a default.
StepRunOptions Steps::run_options(const StepTrace& trace) {
  StepRunOptions options = options_of(trace.key().cluster);
  options.bounds = options_.bounds;
  options.accounts = accounts_;
  options.counts = counts_;
  options.lbfd_ends = [this] { return ending_.load(); };
  options.threads = turns_.threads_of_user();
  options.lend_thread = [this, user = trace.owner()](std::function<void()> job) {
    return lend_thread(user, std::move(job));
  };
  db::ProgramHint hint = hint_of(trace.owner(), trace.description());
  hint.cluster = trace.key().cluster;
  if (auto known = program_store_.procedure_calls_per_s(hint)) options.procedure_history = std::move(known).value();
  if (auto known = program_store_.work_by_density(hint)) options.work_by_density = std::move(known).value();
  options.budget.cpu_percent = limits_of(trace.description(), &options.notes)[cost::Limit::kStepCpu].value_or(0);
  return options;
}

std::shared_ptr<const protocol::ProcedureList> Steps::procedure_list(const StepKey& key) const {
  const EntryPtr entry = find_loaded(key);
  const std::shared_ptr<StepRun> run = entry == nullptr ? nullptr : entry->current_run();
  return run == nullptr ? nullptr : run->procedure_list();
}

Result<Steps::EntryPtr> Steps::begin_step(const Caller& caller, const StepKey& key,
                                          const protocol::StepDescription& description, std::size_t description_bytes) {
  const uid_t owner = description.uid.value_or(caller.uid);
  const auto known = step_store_.find(query_of(key), false);
  if (!known) return known.error();
  if (!known->empty()) {
    // A trace that retention has removed leaves its row, and that stays its user's; but for one that nothing came of.
    const db::StepRecord& record = known->front().record;
    const bool is_empty = record.state != db::StepState::kRunning && record.events == 0;
    if (!caller.is_operator && record.uid != caller.uid && !is_empty) {
      return Error{ErrorCode::kPermission, "step " + key.text() + " belongs to user " + record.user_name + ", not to " +
                                               user_name_of(caller.uid)};
    }
    if (record.uid == owner && is_of_the_past(description, record)) {
      return invalid_input("step " + key.text() +
                           " is over and its trace is not stored any more (retention): what comes late is not taken");
    }
  }
  if (!caller.is_operator) {
    if (auto may = may_begin(owner, description, description_bytes); !may) return may.error();
  }
  auto trace = watched(key, description.node_index, traces_.create(key, description, owner));
  if (!trace) return trace.error();
  EntryPtr made = adopt(std::move(trace).value(), Replay::kNow);
  ++counts_->started_steps;
  spdlog::info("step {}: started, user {}, {} ranks on {} nodes", key.text(), user_name_of(owner, description.user),
               description.tasks, description.nodes.size());
  return made;
}

Result<Registered> Steps::register_stream(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                          std::string_view description_json) {
  auto description = protocol::decode_step_description(description_json);
  if (!description) return description.error();
  if ((!description->cluster.empty() && description->cluster != key.cluster) || *description->job != key.job ||
      *description->step != key.step || description->restart.value_or(key.restart) != key.restart ||
      description->submit_s != key.submit_s) {
    return invalid_input("the step description is about another step than the request, " + key.text());
  }
  if (description->node_index != stream) {
    return invalid_input(fmt::format("stream {}: 'node_index' is {}: a stream's number is its node's index", stream,
                                     description->node_index));
  }
  if (description->uid && *description->uid != caller.uid && !caller.is_operator) {
    return Error{ErrorCode::kPermission, "the step description says uid " + std::to_string(*description->uid) +
                                             ", but the request comes from user " + user_name_of(caller.uid)};
  }
  auto entry = may_write(caller, key);
  const bool is_new = !entry && entry.error().code == ErrorCode::kNotFound;
  if (is_new || (!entry && entry.error().code == ErrorCode::kPermission)) {
    const MutexLock lock(load_mutex_);
    const EntryPtr loaded = find_loaded(key);
    if (loaded == nullptr ? is_new : forget_empty(loaded)) {
      entry = begin_step(caller, key, *description, description_json.size());
    } else if (loaded != nullptr && (caller.is_operator || loaded->trace->owner() == caller.uid)) {
      entry = loaded;  // another stream of it came meanwhile
    } else if (loaded != nullptr) {
      entry = Error{ErrorCode::kPermission, "step " + key.text() + " belongs to another user"};
    }
  }
  if (!entry) return entry.error();
  (*entry)->heard(stream);
  if (auto reopened = reopen_if_timed_out(*entry, stream); !reopened) return reopened.error();
  auto next = watched(key, stream, (*entry)->trace->register_stream(*description));
  if (!next) return next.error();
  schedule(*entry);
  return registered(*next, (*entry)->trace->owner(), *description);
}

std::string_view Steps::why_not_kept(const StepTrace& trace, std::size_t batch_bytes) const {
  const auto limit_mb = limits_of(trace.description())[cost::Limit::kStepTrace];
  const auto limit_bytes = static_cast<std::uint64_t>(limit_mb.value_or(0) * (1 << 20));
  if (limit_bytes > 0 && trace.stored_bytes() + batch_bytes > limit_bytes) return kReasonTraceLimit;
  const Bytes most_bytes = options_.bounds.step_memory_bytes / 2;  // the other half is the replays'
  if (most_bytes > 0 && trace.check_bytes() > most_bytes) return kReasonMemoryLimit;
  return {};
}

Result<AppendResult> Steps::append(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                   std::uint64_t sequence, std::span<const std::byte> batch) {
  auto entry = may_write(caller, key);
  if (!entry) return entry.error();
  (*entry)->heard(stream);
  const std::shared_ptr<StepTrace>& trace = (*entry)->trace;
  auto state = trace->stream(stream);
  if (state && !state->end && sequence == state->next_sequence) {
    if (const std::string_view reason = why_not_kept(*trace, batch.size()); !reason.empty()) {
      auto ended = watched(key, stream, trace->end_stream(stream, {state->next_sequence - 1, 1, std::string(reason)}));
      if (!ended) return ended.error();
      if (!(*entry)->limit_said.exchange(true)) {
        spdlog::warn("step {}: {}: what comes from stream {} is not kept any more", key.text(),
                     reason == kReasonTraceLimit ? "its traces reach step_trace_limit_mb"
                                                 : "its communicators need more than half of step_memory_mb",
                     stream);
      }
      schedule(*entry);
      state = trace->stream(stream);
    }
  }
  // Taken and dropped: a relay that kept it could not deliver it later either.
  if (state && state->end && is_limit(state->end->reason) && sequence >= state->next_sequence)
    return AppendResult{AppendOutcome::kDuplicate, sequence + 1};
  auto result = trace->append(stream, sequence, batch);
  if (result && result->outcome == AppendOutcome::kEnded) {
    if (auto reopened = reopen_if_timed_out(*entry, stream); !reopened) return reopened.error();
    result = trace->append(stream, sequence, batch);
  }
  result = watched(key, stream, std::move(result));
  if (result && result->outcome == AppendOutcome::kStored) {
    trace_disk_.succeeded();
    ++counts_->stored_batches;
    counts_->stored_bytes += batch.size();
    (*entry)->stored(batch.size());
    schedule(*entry);
  }
  return result;
}

Result<AppendResult> Steps::end_stream(const Caller& caller, const StepKey& key, std::uint32_t stream,
                                       const protocol::StreamEnd& end) {
  if (end.reason == kReasonStreamTimeout) return invalid_input("reason 'stream_timeout' is lbfd's own");
  if (is_limit(end.reason)) return invalid_input("reason '" + end.reason + "' is lbfd's own");
  auto entry = may_write(caller, key);
  if (!entry) return entry.error();
  (*entry)->heard(stream);
  if (auto reopened = reopen_if_timed_out(*entry, stream); !reopened) return reopened.error();
  if (const auto state = (*entry)->trace->stream(stream); state && state->end && is_limit(state->end->reason)) {
    return AppendResult{AppendOutcome::kDuplicate, end.last_sequence + 1};
  }
  auto result = watched(key, stream, (*entry)->trace->end_stream(stream, end));
  if (result && result->outcome == AppendOutcome::kStored) trace_disk_.succeeded();
  if (result) schedule(*entry);
  return result;
}

}  // namespace lbf::daemon
