// StepRun: what people see of it: records of the step and of its predictions. See step_run.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "predictor/daemon/steps/step_run.h"
#include "predictor/daemon/users.h"

namespace lbf::daemon {
namespace {

constexpr std::chrono::milliseconds kPublishInterval{1000};

// For people: what a shell gets a program with, and not what a user makes of it.
std::vector<std::string> shortened(const std::vector<std::string>& command, std::size_t most_bytes) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    if (word.size() + 1 > most_bytes) break;
    most_bytes -= word.size() + 1;
    words.push_back(word);
  }
  return words;
}

std::string command_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  return line;
}

void note_statistics(const engine::PredictorStats& stats, std::vector<std::string>& notes) {
  if (stats.approximated_collectives > 0) {
    notes.push_back(fmt::format("{} of {} collective calls are replayed with the closest algorithm, not the real one",
                                stats.approximated_collectives, stats.collectives));
  }
  if (stats.wildcard_receives > 0) {
    notes.push_back(
        fmt::format("{} receives had a wildcard (MPI_ANY_SOURCE, MPI_ANY_TAG): the match that happened "
                    "is the match that is replayed",
                    stats.wildcard_receives));
  }
}

// How many of ALL have SAYS, and what the first one's is. Nothing: none has.
struct Said {
  std::ptrdiff_t count = 0;
  std::string first;
};
std::optional<Said> said_of(const std::vector<db::PredictionRecord>& all, std::string db::PredictionRecord::*says) {
  const auto has = [says](const db::PredictionRecord& prediction) { return !(prediction.*says).empty(); };
  const auto first = std::find_if(all.begin(), all.end(), has);
  if (first == all.end()) return std::nullopt;
  return Said{std::count_if(all.begin(), all.end(), has), (*first).*says};
}

Bytes view_bytes(const StepView& view) {
  Bytes bytes = view.record.node_of_rank.capacity() * sizeof(std::uint32_t);
  for (const db::PredictionRecord& prediction : view.predictions)
    bytes += prediction.rank_finish_s.capacity() * sizeof(Seconds) + sizeof prediction;
  return bytes;
}

bool has_no_interval(const std::vector<db::PredictionRecord>& all) {
  return !all.empty() && all.front().seen_share < 1 && all.front().why_stuck.empty() && !all.front().high_s;
}

}  // namespace

void StepRun::describe_step(db::StepRecord& record) const {
  const protocol::StepDescription& step = trace_->description();
  record.cluster = trace_->key().cluster;
  record.job = trace_->key().job;
  record.step = trace_->key().step;
  record.restart = trace_->key().restart;
  record.submit_s = trace_->key().submit_s;
  record.uid = trace_->owner();
  record.user_name = user_name_of(trace_->owner(), step.user);
  record.account = step.account;
  record.partition = step.partition;
  record.job_name = step.job_name;
  record.array_job = step.array_job;
  record.array_task = step.array_task;
  record.het_job = step.het_job;
  record.het_offset = step.het_offset;
  record.command_words = shortened(step.command, options_.bounds.step_command_bytes);
  record.command = command_line(*record.command_words);
  record.command_cut = step.command_cut || record.command_words->size() < step.command.size();
  for (const std::uint32_t node : configuration_.nodes) record.nodes.push_back(step.nodes[node]);
  if (configuration_.nodes.empty()) record.nodes = step.nodes;  // not known yet
  record.ranks = ranks_;
  record.node_of_rank = configuration_.ran.node_of_rank;
  record.network = networks_.own()->name();
  record.ranks_per_domain = configuration_.ranks_per_domain;
  const engine::KnownDemand& demand = configuration_.demand;
  record.memory_demand_MBps = demand.bytes_per_s / 1e6;
  if (demand.most_bytes_per_s < engine::KnownDemand::kAny) record.memory_most_MBps = demand.most_bytes_per_s / 1e6;
  record.start_s = seconds_from_ns(step.start_realtime_ns > 0 ? step.start_realtime_ns : trace_->created_realtime_ns());
}

void StepRun::describe_end(db::StepRecord& record) const {
  record.state = !finished_                   ? db::StepState::kRunning
                 : remarks_.reasons().empty() ? db::StepState::kComplete
                                              : db::StepState::kPartial;
  record.why_partial.clear();
  for (const std::string& reason : remarks_.reasons())
    record.why_partial += (record.why_partial.empty() ? "" : "; ") + reason;
  Nanoseconds end_ns = 0;
  for (const StreamState& state : trace_->streams()) {
    if (state.end) end_ns = std::max(end_ns, state.end->realtime_ns);
  }
  if (finished_ && end_ns > 0) record.end_s = seconds_from_ns(end_ns);
}

MeasuredRun StepRun::measured_run(const db::StepRecord& record) const {
  const Seconds measured_s = record.measured_s.value_or(0);
  return {finished_,
          !remarks_.reasons().empty(),
          measured_s,
          totals_.longest_stop_s(),
          protocol::noticeable_loss_s(record.others_s + record.limited_s, measured_s),
          record.threads};
}

void StepRun::describe_path(db::StepRecord& record) const {
  const std::optional<engine::Composed>& path = predictions_.composition();
  if (!path || !measured_run(record).is_whole()) return;
  using engine::Term;
  const auto of = [&path](auto... terms) { return std::max(0.0, (path->of(terms) + ...)); };  // but for rounding
  record.path_work_s = of(Term::kWork, Term::kOtherPrograms);
  record.path_rank_work_s = totals_.mean_work_s();
  record.path_copies_s = of(Term::kLocal);
  record.path_overhead_s = of(Term::kOverhead);
  record.path_latency_inside_s = of(Term::kLatencyInside);
  record.path_latency_between_s = of(Term::kLatencyBetween);
  record.path_bytes_inside_s = of(Term::kBytesInside);
  record.path_bytes_between_s = of(Term::kBytesBetween);
  record.path_kept_s = of(Term::kFirstContact, Term::kBlocked);
  record.path_unseen_s = of(Term::kNotCaptured);
}

void StepRun::describe_replay(StepView& view, std::vector<std::string>& notes) {
  if (!predictions_.has_begun()) return;
  db::StepRecord& record = view.record;
  const MeasuredRun run = measured_run(record);
  predictions_.advance();
  // Extrapolation leaves out what the capture itself took.
  const engine::CaptureCost cost = capture_cost_of(totals_.costs());
  predictions_.set_capture_cost(cost);
  procedures_.set_capture_cost(cost);
  const engine::PredictorStats stats = predictions_.stats();
  record.messages = stats.messages;
  record.collectives = stats.collectives;
  record.wildcard_receives = stats.wildcard_receives;
  record.lost_events = stats.lost_events;
  note_statistics(stats, notes);
  if (totals_.any_rank_seen() && options_.picture == nullptr) view.predictions = predictions_.records(run);
  record.lbfd_cpu_s = cpu_spent_s_;
  describe_path(record);
  const std::vector<db::PredictionRecord>& all = view.predictions;
  if (run.is_whole() && has_no_interval(all)) {
    notes.push_back(
        "the predictions have no interval: what was captured is too short, or too few calls, to tell how much the rest "
        "of the "
        "run may differ from it");
  }
  if (const auto deferred = said_of(all, &db::PredictionRecord::why_deferred); finished_ && deferred)
    notes.push_back(fmt::format("{} of {} targets are deferred: {}", deferred->count, all.size(), deferred->first));
  procedures_.describe(run, record, notes);
  if (const auto stuck = said_of(all, &db::PredictionRecord::why_stuck))
    notes.push_back(
        fmt::format("on {} of {} targets the program would not end: {}", stuck->count, all.size(), stuck->first));
}

void StepRun::describe_cost(StepView& view, std::vector<std::string>& notes) const {
  db::StepRecord& record = view.record;
  if (measured_run(record).is_whole()) record.program = totals_.program();
  if (record.program) record.program_id = record.program->identity();
  const std::vector<StreamCost> costs = totals_.costs();
  if (costs.empty()) return;
  record.cost = cost_of_step(costs, view.predictions.empty() ? 1 : view.predictions.front().seen_share, finished_);
  for (std::string& note : cost_notes(*record.cost, record.measured_s.value_or(0))) notes.push_back(std::move(note));
}

void StepRun::describe(StepView& view) {
  db::StepRecord& record = view.record;
  std::vector<std::string> notes = remarks_.notes();
  describe_step(record);
  record.library = library_;
  describe_end(record);
  totals_.describe(*trace_, record, notes);
  const Seconds lost_s = record.others_s + record.limited_s;
  record.is_disturbed = lost_s > options_.bounds.outcome_others_percent / 100 * record.measured_s.value_or(0);
  describe_replay(view, notes);
  describe_cost(view, notes);
  record.notes = std::move(notes);
}

void StepRun::publish() {
  auto view = std::make_shared<StepView>();
  if (released_) {
    {
      const MutexLock lock(view_mutex_);
      *view = *view_;
    }
    describe_end(view->record);
  } else {
    describe(*view);
    if (interrupted_ || asked_stop() == Stop::kLbfdEnds) return;  // it would say that the replay stopped
  }
  view->generation = ++generation_;
  view_bytes_ = view_bytes(*view);
  remarks_.mark_published();
  last_publish_ = Clock::now();
  const MutexLock lock(view_mutex_);
  view_ = std::move(view);
}

void StepRun::publish_if_due() {
  if (Clock::now() - last_publish_ >= kPublishInterval) publish();
}

std::shared_ptr<const StepView> StepRun::view() {
  if (mutex_.try_lock()) {
    const MutexLock lock(mutex_, std::adopt_lock);
    if (remarks_.has_changed() && !interrupted_) {
      predictions_.begin_turn();
      publish();
      settle();
    }
  }
  const MutexLock lock(view_mutex_);
  return view_;
}

std::shared_ptr<const protocol::ProcedureList> StepRun::procedure_list() const {
  const MutexLock lock(view_mutex_);
  return procedure_list_;
}

}  // namespace lbf::daemon
