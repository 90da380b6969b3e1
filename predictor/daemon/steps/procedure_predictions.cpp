// StepRun: procedure LBF of the step's procedures. See step_run.h; docs/lbfd.md, "Procedures".
#include <fmt/format.h>

#include <algorithm>

#include "cost/procedure_limit.h"
#include "predictor/daemon/steps/step_run.h"
#include "predictor/daemon/steps/step_run_state.h"

namespace lbf::daemon {
namespace {

// While the step runs. Each begins at the first batch: names that come one by one must not cost a replay each.
constexpr unsigned kMostPasses = 4;
constexpr double kDefaultLimit = 0.02;  // of overhead, where the step does not say

}  // namespace

void StepRun::take(Stream& stream, Rank rank, const protocol::ProcedureRecord& record) {
  const auto defined = procedures_.define(rank, record.id.value_or(~std::uint64_t{0}), record.name, record.call_ns);
  if (!defined) add_note(fmt::format("node {}: {}", stream.number, defined.error().message));
}

void StepRun::take(Stream&, Rank rank, const protocol::ProcedureRemarkRecord& record) {
  procedures_.remark(rank, record.kind, record.name, record.text, record.calls_per_s);
  if (record.kind == protocol::kSwitchedOff || record.kind == protocol::kRefused) procedure_search_.take_off(record.name);
}

void StepRun::take(Stream&, Rank rank, const protocol::ProcedureSamplesRecord& record) {
  procedures_.take_samples(rank, record.name, record.inclusive, record.exclusive, record.of);
}

void StepRun::take(Stream&, Rank rank, const protocol::ProcedureCandidateRecord& record) {
  procedure_search_.take_candidate(rank, record.number, record.of, record.own_samples, {record.names, record.samples});
  procedures_.say_call_ns(record.call_ns);
}

void StepRun::take(Stream&, Rank, const protocol::ProcedureListRecord& record) {
  const protocol::ProcedureList& list = record.list;
  if (list.generation > listed_generation_) {
    listed_generation_ = list.generation;
    procedures_.take_list(list.names);
    for (const std::string& name : list.names) procedures_.expect_within(name, procedure_cost_limit());
    add_note(fmt::format("procedures: auto: list {} of all ranks, by the critical path as sampled: {}", list.generation,
                         list.names.empty() ? "none" : list.text));
  }
  procedure_search_.take_list(list, std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
}

// Share of a rank's time that measured calls may cost there.
double StepRun::procedure_cost_limit() const {
  const double said = trace_->description().overhead_limit_percent.value_or(0) / 100;
  return cost::procedure_limit(said > 0 ? said : kDefaultLimit);
}

// What all ranks are to measure, as far as their samples and the critical path tell now.
void StepRun::search_procedures() {
  const Seconds now_s = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  if (!procedure_search_.is_active() || !procedure_search_.is_due(now_s, static_cast<std::size_t>(ranks_))) return;
  ProcedureSearch::Evidence evidence;
  evidence.now_s = now_s;
  evidence.ranks = static_cast<std::size_t>(ranks_);
  engine::PathProfile profile;
  if (procedure_pass_ != nullptr && procedure_pass_->failure().empty()) {
    profile = procedure_pass_->path();
    evidence.path_s = profile.length_s;
    evidence.path_of_rank = profile.rank_s;
    for (std::size_t i = 0; i < procedure_pass_->predicted().size() && i < profile.procedure_s.size(); ++i) {
      evidence.path_of_procedure[procedures_.names()[procedure_pass_->predicted()[i]]] = profile.procedure_s[i];
    }
  }
  evidence.cost_limit = procedure_cost_limit();
  evidence.known_cost = [this](const std::string& name) { return procedures_.known_cost(name); };
  if (!procedure_search_.decide(evidence)) return;
  auto list = std::make_shared<const protocol::ProcedureList>(procedure_search_.list());
  const std::scoped_lock lock(view_mutex_);
  procedure_list_ = std::move(list);
}

std::shared_ptr<const protocol::ProcedureList> StepRun::procedure_list() const {
  const std::scoped_lock lock(view_mutex_);
  return procedure_list_;
}

std::vector<std::string> StepRun::predictable_names(bool complete) const {
  std::vector<std::string> names = procedures_.names();
  // Shares of the whole run are known at its end.
  if (!complete) return names;
  for (std::string& name : procedures_.sampled_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::uint32_t> StepRun::foremost_procedures(const std::vector<std::string>& names, bool complete) const {
  std::set<std::uint32_t> chosen;
  if (complete) {
    for (const std::string& name : procedures_.sampled_names()) {
      if (chosen.size() == ProcedurePass::kMostPredicted) break;
      chosen.insert(static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    }
  }
  for (const std::uint32_t number : procedures_.foremost(ProcedurePass::kMostPredicted - chosen.size())) chosen.insert(number);
  return {chosen.begin(), chosen.end()};
}

bool StepRun::wants_procedure_pass(bool complete) const {
  if (options_.picture != nullptr || procedure_choice_is_final_) return false;
  const std::vector<std::string> names = predictable_names(complete);
  // What ranks the critical path runs through is wanted before there are names.
  if (names.empty()) return !complete && procedure_pass_ == nullptr && procedure_search_.is_active();
  const std::vector<std::uint32_t> wanted = foremost_procedures(names, complete);
  if (complete)
    return procedure_pass_ == nullptr || procedure_pass_->predicted() != wanted || !procedures_.sampled_names().empty();
  if (procedure_pass_ == nullptr) {
    // Ranks name theirs when they leave MPI_Init.
    return std::all_of(rank_states_.begin(), rank_states_.end(),
                       [](const RankState& state) { return state.process_seen; });
  }
  const bool all_in_it = procedure_pass_->predicted().size() == std::min(names.size(), ProcedurePass::kMostPredicted);
  return !all_in_it && procedure_passes_ < kMostPasses;
}

void StepRun::begin_procedure_pass(bool complete) {
  procedure_choice_is_final_ = complete;
  procedure_pass_.reset();  // its memory first
  std::vector<std::string> names = predictable_names(complete);
  std::vector<std::uint32_t> wanted = foremost_procedures(names, complete);
  if (!wanted.empty()) ++procedure_passes_;
  std::map<Rank, std::vector<SampledShare>> sampled;
  if (complete) sampled = procedures_.sampled_shares(names);
  auto pass = ProcedurePass::make(trace_, ran_, std::move(names), std::move(wanted), options_.memory.get(), std::move(sampled));
  if (pass) {
    procedure_pass_ = std::move(pass).value();
    return;
  }
  procedure_choice_is_final_ = true;
  add_note("no prediction of procedures: " + pass.error().message);
}

bool StepRun::work_procedures(const std::vector<StreamState>& states, bool complete) {
  const bool begins = wants_procedure_pass(complete);
  if (complete && !begins) procedure_choice_is_final_ = true;
  if (!begins && (procedure_pass_ == nullptr || !procedure_pass_->has_work(states, complete))) return false;
  const auto set_why = [&](std::string why) {
    changed_ |= why != why_procedures_deferred_;
    why_procedures_deferred_ = std::move(why);
    return false;
  };
  if (!options_.budget.has_room(rank_time_s(), cpu_spent_s_)) {
    if (begins && complete) procedure_choice_is_final_ = false;
    return set_why(fmt::format("the replays of this step took {:.3g} s of lbfd's processor time, more than "
                               "step_cpu_percent allows so far",
                               cpu_spent_s_));
  }
  if (begins) {
    const std::size_t targets = 3 * std::min(predictable_names(complete).size(), ProcedurePass::kMostPredicted) + 2;
    if (options_.memory && !options_.memory->has_room_for(replay_bytes(ranks_, targets, 0)))
      return set_why("the replays of all steps fill replay_memory_mb");
    begin_procedure_pass(complete);
    return true;
  }
  set_why({});
  procedure_pass_->work(states, complete);
  changed_ = true;
  return true;
}

void StepRun::describe_procedures(db::StepRecord& record, std::vector<std::string>& notes) const {
  if (procedures_.empty() || options_.picture != nullptr) return;
  db::ProcedureReport report;
  report.procedures = procedures_.records();
  if (procedure_pass_ != nullptr && !procedure_pass_->predicted().empty())
    procedure_pass_->describe(report, finished_ && reasons_.empty());
  if (!procedures_.names().empty() && (procedure_pass_ == nullptr || !procedure_pass_->is_done()))
    report.why_deferred = why_procedures_deferred_;
  if (finished_ && !report.why_deferred.empty()) notes.push_back("procedures are deferred: " + report.why_deferred);
  for (std::string& note : procedures_.notes()) notes.push_back(std::move(note));
  if (procedures_.names().size() > ProcedurePass::kMostPredicted) {
    notes.push_back(fmt::format("of {} procedures the {} with most time are predicted", procedures_.names().size(),
                                ProcedurePass::kMostPredicted));
  }
  record.procedures = std::move(report);
}

}  // namespace lbf::daemon
