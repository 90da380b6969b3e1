// Steps that cannot be loaded, or that end lbfd: see steps.h and docs/lbfd.md, "After a crash".
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>
#include <vector>

#include "predictor/daemon/steps/steps_entry.h"
#include "predictor/daemon/users.h"

namespace lbf::daemon {

db::StepQuery Steps::query_of(const StepKey& key) {
  db::StepQuery query;
  query.cluster = key.cluster;
  query.job = key.job;
  query.step = key.step;
  query.restart = key.restart;
  query.submit_s = key.submit_s;
  query.limit = 1;
  return query;
}

std::unique_ptr<ReplayMarks::Mark> Steps::mark_replay(const StepKey& key) {
  return marks_ == nullptr ? nullptr : std::make_unique<ReplayMarks::Mark>(*marks_, TraceStore::place_of(key));
}

// Its replay was under way when the lbfd before this one ended, which may be by chance: somebody killed it.
void Steps::count_death(const StepKey& key) {
  if (marks_ == nullptr) return;
  const auto mark = marks_->found().find(TraceStore::place_of(key));
  if (mark == marks_->found().end()) return;
  const auto counted = traces_.count_death(key, mark->second);
  if (!counted) spdlog::error("step {}: {}", key.text(), counted.error().message);
  spdlog::warn("step {}: lbfd ended while it replayed this step, at {}", key.text(), mark->second);
}

// At the same place that is its fault; at any places it is so when it goes on.
std::string Steps::why_set_aside(const StepKey& key) const {
  const TraceStore::Deaths deaths = traces_.deaths_in_replay(key);
  const Bounds& bounds = options_.bounds;
  if (deaths.in_a_row < bounds.deaths_in_a_row && deaths.all < bounds.deaths_in_replay) return {};
  return fmt::format(
      "lbfd ended while it replayed this step, {} times; with lbfd stopped, lbfd --retry {} has it "
      "replayed again",
      deaths.all, key.text());
}

Result<std::shared_ptr<StepTrace>> Steps::open_stored(const StepKey& key) {
  const auto mark = mark_replay(key);  // its batches are decoded
  auto trace = traces_.open_step(key);
  // What an admin or the disk can mend is no fault of the step.
  if (!trace && trace.error().code == ErrorCode::kInvalidInput)
    end_as_partial(key, "its trace cannot be read: " + trace.error().message);
  if (!trace && trace.error().code == ErrorCode::kIo) spdlog::error("step {}: {}", key.text(), trace.error().message);
  return trace;
}

// With what the database has of it.
void Steps::end_as_partial(const StepKey& key, const std::string& why) {
  const auto known = step_store_.find(query_of(key), true);
  if (!known) {
    spdlog::error("step {}: {}", key.text(), known.error().message);
    return;
  }
  db::StepRecord record;
  std::vector<db::PredictionRecord> predictions;
  if (!known->empty()) {
    record = known->front().record;
    if (record.state == db::StepState::kPartial && record.why_partial == why) return;  // said before
    if (auto read = prediction_store_.of_steps({known->front().row}, true); read && !read->empty())
      predictions = std::move(read->front());
  }
  record.cluster = key.cluster;
  record.job = key.job;
  record.step = key.step;
  record.restart = key.restart;
  const double now_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (known->empty()) {
    record.uid = traces_.owner_of(key).value_or(0);
    record.user_name = user_name_of(record.uid);
    record.start_s = now_s;
  }
  record.state = db::StepState::kPartial;
  record.why_partial = why;
  if (!record.end_s) record.end_s = now_s;
  if (const auto stored = step_store_.put(record, predictions); !stored) {
    database_disk_.failed("step " + key.text(), stored.error());
    return;
  }
  spdlog::error("step {}: partial from now on: {}", key.text(), why);
}

}  // namespace lbf::daemon
