// ProcedurePredictions, see procedure_predictions.h.
#include "predictor/daemon/steps/procedure_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cost/procedure_limit.h"

namespace lbf::daemon {
namespace {

// While the step runs. Each begins at the first batch: names that come one by one must not cost a replay each.
constexpr unsigned kMostPasses = 4;
constexpr double kDefaultLimit = 0.02;  // of overhead, where the step does not say

Seconds steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProcedurePredictions::ProcedurePredictions(std::shared_ptr<const StepTrace> trace, const StepRunOptions& options,
                                           StepRemarks& remarks)
    : trace_(std::move(trace)), options_(options), remarks_(remarks) {
  said_.expect(options_.procedure_history);
  said_.set_bounds(options_.bounds.step_procedures, options_.bounds.step_procedure_bytes);
}

void ProcedurePredictions::take(std::uint32_t stream, Rank rank, const protocol::ProcedureRecord& record) {
  const auto defined = said_.define(rank, record.id.value_or(~std::uint64_t{0}), record.name, record.call_ns);
  if (!defined) remarks_.add_note(fmt::format("node {}: {}", stream, defined.error().message));
}

void ProcedurePredictions::take(std::uint32_t, Rank rank, const protocol::ProcedureRemarkRecord& record) {
  said_.remark(rank, record.kind, record.name, record.text, record.calls_per_s);
  if (record.kind == protocol::kSwitchedOff || record.kind == protocol::kRefused) search_.take_off(record.name);
}

void ProcedurePredictions::take(std::uint32_t, Rank rank, const protocol::ProcedureSamplesRecord& record) {
  said_.take_samples(rank, record.name, record.inclusive, record.exclusive, record.of);
}

void ProcedurePredictions::take(std::uint32_t, Rank rank, const protocol::ProcedureCandidateRecord& record) {
  search_.take_candidate(rank, record.number, record.of, record.own_samples, {record.names, record.samples});
  said_.say_call_ns(record.call_ns);
}

void ProcedurePredictions::take(std::uint32_t, Rank, const protocol::ProcedureListRecord& record) {
  const protocol::ProcedureList& list = record.list;
  if (list.generation > listed_generation_) {
    listed_generation_ = list.generation;
    said_.take_list(list.names);
    for (const std::string& name : list.names) said_.expect_within(name, cost_limit());
    remarks_.add_note(fmt::format("procedures: auto: list {} of all ranks, by the critical path as sampled: {}",
                                  list.generation, list.names.empty() ? "none" : list.text));
  }
  search_.take_list(list, steady_s());
}

// Share of a rank's time that measured calls may cost there.
double ProcedurePredictions::cost_limit() const {
  const double said = trace_->description().overhead_limit_percent.value_or(0) / 100;
  return cost::procedure_limit(said > 0 ? said : kDefaultLimit);
}

std::shared_ptr<const protocol::ProcedureList> ProcedurePredictions::search() {
  const auto ranks = static_cast<std::size_t>(trace_->description().tasks);
  const Seconds now_s = steady_s();
  if (!search_.is_active() || !search_.is_due(now_s, ranks)) return nullptr;
  ProcedureSearch::Evidence evidence;
  evidence.now_s = now_s;
  evidence.ranks = ranks;
  engine::PathProfile profile;
  if (pass_ != nullptr && pass_->failure().empty()) {
    profile = pass_->path();
    evidence.path_s = profile.length_s;
    evidence.path_of_rank = profile.rank_s;
    for (std::size_t i = 0; i < pass_->predicted().size() && i < profile.procedure_s.size(); ++i) {
      evidence.path_of_procedure[said_.names()[pass_->predicted()[i]]] = profile.procedure_s[i];
    }
  }
  evidence.cost_limit = cost_limit();
  evidence.known_cost = [this](const std::string& name) { return said_.known_cost(name); };
  if (!search_.decide(evidence)) return nullptr;
  return std::make_shared<const protocol::ProcedureList>(search_.list());
}

std::vector<std::string> ProcedurePredictions::predictable_names(bool complete) const {
  std::vector<std::string> names = said_.names();
  // Shares of the whole run are known at its end.
  if (!complete) return names;
  for (std::string& name : said_.sampled_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::uint32_t> ProcedurePredictions::foremost(const std::vector<std::string>& names, bool complete) const {
  std::set<std::uint32_t> chosen;
  if (complete) {
    for (const std::string& name : said_.sampled_names()) {
      if (chosen.size() == ProcedurePass::kMostPredicted) break;
      chosen.insert(static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    }
  }
  for (const std::uint32_t number : said_.foremost(ProcedurePass::kMostPredicted - chosen.size()))
    chosen.insert(number);
  return {chosen.begin(), chosen.end()};
}

bool ProcedurePredictions::wants_pass(bool complete, bool all_processes_seen) const {
  if (options_.picture != nullptr || choice_is_final_) return false;
  const std::vector<std::string> names = predictable_names(complete);
  // What ranks the critical path runs through is wanted before there are names.
  if (names.empty()) return !complete && pass_ == nullptr && search_.is_active();
  const std::vector<std::uint32_t> wanted = foremost(names, complete);
  if (complete) return pass_ == nullptr || pass_->predicted() != wanted || !said_.sampled_names().empty();
  // Ranks name theirs when they leave MPI_Init.
  if (pass_ == nullptr) return all_processes_seen;
  const bool all_in_it = pass_->predicted().size() == std::min(names.size(), ProcedurePass::kMostPredicted);
  return !all_in_it && passes_ < kMostPasses;
}

void ProcedurePredictions::begin_pass(const engine::Target& ran, bool complete) {
  choice_is_final_ = complete;
  pass_.reset();  // its memory first
  std::vector<std::string> names = predictable_names(complete);
  std::vector<std::uint32_t> wanted = foremost(names, complete);
  if (!wanted.empty()) ++passes_;
  std::map<Rank, std::vector<SampledShare>> sampled;
  if (complete) sampled = said_.sampled_shares(names);
  auto pass = ProcedurePass::make(trace_, ran, std::move(names), std::move(wanted), options_.memory.get(),
                                  options_.limits, std::move(sampled));
  if (pass) {
    pass_ = std::move(pass).value();
    return;
  }
  choice_is_final_ = true;
  remarks_.add_note("no prediction of procedures: " + pass.error().message);
}

void ProcedurePredictions::set_why_deferred(std::string why) {
  if (why != why_deferred_) remarks_.mark_changed();
  why_deferred_ = std::move(why);
}

bool ProcedurePredictions::has_work(const std::vector<StreamState>& streams, bool complete,
                                    bool all_processes_seen) const {
  return wants_pass(complete, all_processes_seen) || (pass_ != nullptr && pass_->has_work(streams, complete));
}

bool ProcedurePredictions::work(const engine::Target& ran, const std::vector<StreamState>& streams, bool complete,
                                bool all_processes_seen, const std::string& why_no_cpu) {
  const bool begins = wants_pass(complete, all_processes_seen);
  if (complete && !begins) choice_is_final_ = true;
  if (!begins && (pass_ == nullptr || !pass_->has_work(streams, complete))) return false;
  if (!why_no_cpu.empty()) {
    if (begins && complete) choice_is_final_ = false;
    set_why_deferred(why_no_cpu);
    return false;
  }
  if (begins) {
    const std::size_t targets = 3 * std::min(predictable_names(complete).size(), ProcedurePass::kMostPredicted) + 2;
    if (options_.memory && !options_.memory->has_room_for(replay_bytes(trace_->description().tasks, targets, 0))) {
      set_why_deferred("the replays of all steps fill replay_memory_mb");
      return false;
    }
    if (std::string why = options_.why_no_memory(replay_bytes(trace_->description().tasks, targets, 0)); !why.empty()) {
      set_why_deferred(std::move(why));
      return false;
    }
    begin_pass(ran, complete);
    return true;
  }
  set_why_deferred({});
  pass_->work(streams, complete);
  remarks_.mark_changed();
  return true;
}

void ProcedurePredictions::give_up() {
  pass_.reset();
  choice_is_final_ = true;
}

Bytes ProcedurePredictions::memory_bytes() const {
  return said_.memory_bytes() + search_.memory_bytes() + (pass_ == nullptr ? 0 : pass_->memory_bytes());
}

void ProcedurePredictions::clear() {
  give_up();
  said_ = {};
  search_ = {};
}

void ProcedurePredictions::set_capture_cost(const engine::CaptureCost& cost) {
  if (pass_ != nullptr) pass_->set_capture_cost(cost);
}

void ProcedurePredictions::describe(const MeasuredRun& run, db::StepRecord& record,
                                    std::vector<std::string>& notes) const {
  if (said_.empty() || options_.picture != nullptr) return;
  db::ProcedureReport report;
  report.procedures = said_.records();
  if (pass_ != nullptr && !pass_->predicted().empty()) pass_->describe(report, run.is_whole());
  if (!said_.names().empty() && (pass_ == nullptr || !pass_->is_done())) report.why_deferred = why_deferred_;
  if (run.is_finished && !report.why_deferred.empty())
    notes.push_back("procedures are deferred: " + report.why_deferred);
  for (std::string& note : said_.notes()) notes.push_back(std::move(note));
  if (said_.names().size() > ProcedurePass::kMostPredicted) {
    notes.push_back(fmt::format("of {} procedures the {} with most time are predicted", said_.names().size(),
                                ProcedurePass::kMostPredicted));
  }
  record.procedures = std::move(report);
}

}  // namespace lbf::daemon
