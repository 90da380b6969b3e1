// Steps, answers to people: see steps.h.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "predictor/daemon/steps/steps_entry.h"
#include "predictor/daemon/users.h"

namespace lbf::daemon {
namespace {

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
    const db::PredictionRecord* const fastest = db::fastest_of(view.predictions);
    for (const db::PredictionRecord& prediction : view.predictions) {
      if (db::is_listed(prediction, fastest)) copy.predictions.push_back(prediction.without_ranks());
    }
    return copy;
  }
  copy.predictions.reserve(view.predictions.size());
  for (const db::PredictionRecord& prediction : view.predictions) {
    copy.predictions.push_back(prediction.without_ranks());
  }
  return copy;
}

// Leaves of the jobs that one user had under one number the latest, with its restarts. A job is over when its number
// is submitted again: what began before that, and was not requeued less often, is another job's.
template <typename Step, typename RecordOf>
void leave_latest_jobs(std::vector<Step>& steps, const RecordOf& record_of) {
  using Number = std::tuple<std::string, std::uint32_t, uid_t>;
  std::map<Number, std::map<std::uint64_t, std::uint32_t>> jobs;  // submit time -> fewest restarts then and later
  for (const Step& step : steps) {
    const db::StepRecord& record = record_of(step);
    const auto [at, is_new] =
        jobs[{record.cluster, record.job, record.uid}].try_emplace(record.submit_s, record.restart);
    at->second = std::min(at->second, record.restart);
  }
  for (auto& [number, submits] : jobs) {
    std::uint32_t fewest = std::numeric_limits<std::uint32_t>::max();
    for (auto at = submits.rbegin(); at != submits.rend(); ++at) fewest = at->second = std::min(at->second, fewest);
  }
  std::erase_if(steps, [&](const Step& step) {
    const db::StepRecord& record = record_of(step);
    const auto& submits = jobs[{record.cluster, record.job, record.uid}];
    const auto start_s = static_cast<std::uint64_t>(std::max(record.start_s, 0.0));
    const auto later = submits.upper_bound(std::max(record.submit_s, start_s));
    return later != submits.end() && later->second <= record.restart;
  });
}

}  // namespace

void Steps::count_end(const StepView& view) {
  ++(view.record.state == db::StepState::kComplete ? counts_->complete_steps : counts_->partial_steps);
  for (const db::PredictionRecord& prediction : view.predictions)
    ++(prediction.why_deferred.empty() ? counts_->predictions : counts_->deferred_targets);
}

StepsNow Steps::now() const {
  StepsNow now;
  now.running = running();
  now.replay_threads = options_.replay_threads;
  now.memory_bytes = accounts_->of_all();
  now.memory_limit_bytes = options_.bounds.all_memory_bytes;
  for (const EntryPtr& entry : entries()) {
    const MutexLock lock(entry->mutex);
    now.lag_s = std::max(now.lag_s, entry->arrivals.lag_s(Clock::now()));
    now.backlog_bytes += entry->arrivals.backlog_bytes();
  }
  now.traces_disk_full = trace_disk_.is_full();
  now.database_disk_full = database_disk_.is_full();
  now.writes_without_room = trace_disk_.all_refused() + database_disk_.all_refused();
  now.failed_writes = trace_disk_.all_errors() + database_disk_.all_errors();
  struct statvfs disk {};
  if (::statvfs(traces_.directory().c_str(), &disk) == 0) {
    now.disk_bytes = Bytes{disk.f_blocks} * disk.f_frsize;
    now.disk_free_bytes = Bytes{disk.f_bavail} * disk.f_frsize;
  }
  for (const char* end : {"", "-wal"}) {
    struct stat file {};
    if (::stat((database_.path() + end).c_str(), &file) == 0) now.database_bytes += static_cast<Bytes>(file.st_size);
  }
  return now;
}

Result<std::vector<StepView>> Steps::find(const db::StepQuery& query, StepDetail detail) {
  auto found = find_without_predictions(query, detail);
  if (!found) return found.error();
  if (auto read = read_predictions(*found, detail); !read) return read.error();
  std::vector<StepView> views;
  views.reserve(found->size());
  for (FoundStep& step : *found) views.push_back(std::move(step.view));
  return views;
}

Result<std::vector<FoundStep>> Steps::find_without_predictions(const db::StepQuery& query, StepDetail detail) {
  const bool brief = detail == StepDetail::kBrief;
  const bool summary = detail == StepDetail::kSummary;
  std::map<StepKey, FoundStep> found;
  auto stored = step_store_.find(query, !brief && !summary);
  if (!stored) return stored.error();
  for (db::StoredStepRecord& step : *stored) {
    FoundStep& of_key = found[StepKey::of(step.record)];
    of_key.view.record = std::move(step.record);
    if (!brief) of_key.unread = step.row;
  }
  for (const EntryPtr& entry : entries()) {
    const std::shared_ptr<StepRun> run = entry->current_run();
    if (run == nullptr || entry->is_hidden()) continue;
    const auto view = run->view();
    const StepKey& key = entry->trace->key();
    found.erase(key);  // the view is the newer one, whether it still matches or not
    if (!query.matches(view->record)) continue;
    found.emplace(key, FoundStep{copy_of(*view, detail), std::nullopt});
  }
  std::vector<FoundStep> steps;
  steps.reserve(found.size());
  for (auto& [key, step] : found) steps.push_back(std::move(step));
  if (query.duplicates == db::Duplicates::kLatest) {
    leave_latest_jobs(steps, [](const FoundStep& step) -> const db::StepRecord& { return step.view.record; });
  }
  std::stable_sort(steps.begin(), steps.end(), [](const FoundStep& a, const FoundStep& b) {
    return a.view.record.start_s < b.view.record.start_s;
  });
  if (steps.size() > query.limit) steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(query.limit));
  return steps;
}

Result<void> Steps::read_predictions(std::span<FoundStep> steps, StepDetail detail) const {
  std::vector<db::StepRow> rows;
  for (const FoundStep& step : steps) {
    if (step.unread) rows.push_back(*step.unread);
  }
  if (rows.empty()) return {};
  auto read = detail == StepDetail::kSummary ? prediction_store_.summaries(rows)
                                             : prediction_store_.of_steps(rows, detail == StepDetail::kFull);
  if (!read) return read.error();
  auto predictions = read->begin();
  for (FoundStep& step : steps) {
    if (!step.unread) continue;
    step.view.predictions = std::move(*predictions++);
    step.unread.reset();
  }
  return {};
}

Result<void> Steps::read_predictions(std::span<db::ListedStep> steps, const db::ListValues& values) const {
  return db::read_predictions(database_, values, steps);
}

Result<std::vector<db::ListedStep>> Steps::list(const db::StepQuery& query, const db::ListValues& values) {
  // The numbers tell which of them are under way.
  db::ListValues with_key = values;
  for (const std::string_view part : {"cluster", "job", "step", "restart", "submit_s", "uid"}) {
    if (std::find(with_key.step.begin(), with_key.step.end(), part) == with_key.step.end())
      with_key.step.push_back(part);
  }
  auto listed = db::list_steps(database_, query, with_key);
  if (!listed) return listed.error();
  std::set<StepKey> under_way;
  std::vector<db::ListedStep> running;
  for (const EntryPtr& entry : entries()) {
    const std::shared_ptr<StepRun> run = entry->current_run();
    if (run == nullptr || entry->is_hidden()) continue;
    const auto view = run->view();
    under_way.insert(entry->trace->key());  // the view is the newer one, whether it still matches or not
    if (!query.matches(view->record)) continue;
    StepView copy = copy_of(*view, values.every_target ? StepDetail::kList : StepDetail::kSummary);
    copy.record.node_count = copy.record.nodes.size();
    for (const db::PredictionRecord& prediction : view->predictions) {
      copy.record.targets_deferred += prediction.why_deferred.empty() ? 0 : 1;
      copy.record.targets_taken_up += prediction.taken_up ? 1 : 0;
    }
    running.push_back({std::move(copy.record), std::move(copy.predictions)});
  }
  const auto leave_latest = [&] {
    if (query.duplicates == db::Duplicates::kLatest) {
      leave_latest_jobs(*listed, [](const db::ListedStep& step) -> const db::StepRecord& { return step.record; });
    }
  };
  if (under_way.empty()) {
    leave_latest();
    return listed;
  }
  std::erase_if(*listed, [&](const db::ListedStep& step) { return under_way.contains(StepKey::of(step.record)); });
  std::move(running.begin(), running.end(), std::back_inserter(*listed));
  leave_latest();
  std::stable_sort(listed->begin(), listed->end(), [](const db::ListedStep& a, const db::ListedStep& b) {
    return a.record.start_s < b.record.start_s;
  });
  if (listed->size() > query.limit)
    listed->erase(listed->begin(), listed->end() - static_cast<std::ptrdiff_t>(query.limit));
  return listed;
}

Result<StepView> Steps::get(const Caller& caller, const StepKey& key, StepDetail detail) {
  db::StepQuery query;
  query.cluster = key.cluster;
  query.job = key.job;
  query.step = key.step;
  query.restart = key.restart;
  if (key.submit_s > 0) query.submit_s = key.submit_s;
  auto found = find(query, detail);
  if (!found) return found.error();
  if (found->empty()) return Error{ErrorCode::kNotFound, "step " + key.text() + " is not known here"};
  const auto may_see = [&caller](const StepView& view) { return caller.is_operator || view.record.uid == caller.uid; };
  // A client that does not know SUBMIT means the very step without one, else the latest that it may see.
  auto wanted = std::find_if(found->begin(), found->end(),
                             [&key](const StepView& view) { return view.record.submit_s == key.submit_s; });
  if (wanted == found->end()) {
    const auto latest = std::find_if(found->rbegin(), found->rend(), may_see);
    wanted = latest == found->rend() ? found->end() - 1 : latest.base() - 1;
  }
  StepView& view = *wanted;
  if (!may_see(view)) {
    return Error{ErrorCode::kPermission, "step " + key.text() + " belongs to user " + view.record.user_name +
                                             ", not to " + user_name_of(caller.uid)};
  }
  return std::move(view);
}

Result<db::ErrorFit> Steps::fit_of(const Caller& caller, const StepKey& key) {
  auto step = get(caller, key, StepDetail::kBrief);
  if (!step) return step.error();
  return accuracy_store_.fit_of(key.cluster, key.job, key.step, key.restart, step->record.submit_s);
}

Result<std::shared_ptr<StepTrace>> Steps::trace(const Caller& caller, const StepKey& asked) {
  auto step = get(caller, asked, StepDetail::kBrief);
  if (!step) return step.error();
  const StepKey key = StepKey::of(step->record);
  if (EntryPtr entry = find_loaded(key)) return entry->trace;
  auto trace = traces_.open_to_read(key);
  if (!trace && trace.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound, "the trace of step " + key.text() + " is not stored any more (retention)"};
  }
  return trace;
}

Result<nlohmann::json> Steps::picture(const Caller& caller, const StepKey& key, std::size_t target,
                                      const PictureSize& size) {
  const auto step = get(caller, key, StepDetail::kList);
  if (!step) return step.error();
  if (target >= step->predictions.size()) {
    return invalid_input(
        fmt::format("step {} has {} predictions: there is no number {}", key.text(), step->predictions.size(), target));
  }
  if (step->record.events > kPictureEvents) {
    return Error{ErrorCode::kLimit,
                 fmt::format("step {} has {} events; a picture is made of {} at most: lbf-trace export makes a "
                             "timeline of any trace",
                             key.text(), step->record.events, kPictureEvents)};
  }
  if (!picture_mutex_.try_lock()) {
    return Error{ErrorCode::kUnavailable, "another picture is being made: try again in some seconds"};
  }
  const MutexLock alone(picture_mutex_, std::adopt_lock);
  auto stored = trace(caller, key);
  if (!stored) return stored.error();
  RunPicture picture(target, size);
  StepRunOptions options = options_of(key.cluster);
  options.bounds = options_.bounds;
  options.bounds.step_memory_bytes /=
      3;  // beside the step, which may be running; on nobody's account, for there is one
  options.lbfd_ends = [this] { return ending_.load(); };
  options.picture = &picture;
  options.stream_start_timeout = std::chrono::milliseconds(0);
  StepRun run(std::move(stored).value(), networks_of(key.cluster), options);
  const auto began = Clock::now();
  // More came meanwhile where the step is running: that is for the next picture.
  while (!ending_ && run.work() == StepRun::Progress::kMore) {
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
    return Error{ErrorCode::kNotFound, fmt::format("step {} cannot be replayed{}{}", key.text(),
                                                   why_partial.empty() ? "" : ": ", why_partial)};
  }
  nlohmann::json json = picture.to_json();
  json["why_partial"] = why_partial;
  return json;
}

}  // namespace lbf::daemon
