// StepRun: procedure LBF of the step's procedures. See step_run.h; docs/lbfd.md, "Procedures".
#include <fmt/format.h>

#include <algorithm>

#include "predictor/serve/step_run.h"
#include "predictor/serve/step_run_state.h"

namespace lbf {
namespace {

// While the step runs. Each begins at the first batch: names that come one by one must not cost a replay each.
constexpr unsigned kMostPasses = 4;

}  // namespace

bool StepRun::wants_procedure_pass(bool complete) const {
  if (procedures_.names().empty() || options_.picture != nullptr || procedure_choice_is_final_) return false;
  const auto wanted = procedures_.foremost(ProcedurePass::kMostPredicted);
  if (complete) return procedure_pass_ == nullptr || procedure_pass_->predicted() != wanted;
  if (procedure_pass_ == nullptr) {
    // Ranks name theirs when they leave MPI_Init.
    return std::all_of(rank_states_.begin(), rank_states_.end(),
                       [](const RankState& state) { return state.process_seen; });
  }
  const auto& names = procedures_.names();
  const bool all_in_it = procedure_pass_->predicted().size() == std::min(names.size(), ProcedurePass::kMostPredicted);
  return !all_in_it && procedure_passes_ < kMostPasses;
}

void StepRun::begin_procedure_pass(bool complete) {
  procedure_choice_is_final_ = complete;
  ++procedure_passes_;
  procedure_pass_.reset();  // its memory first
  auto pass = ProcedurePass::make(trace_, ran_, procedures_.names(),
                                  procedures_.foremost(ProcedurePass::kMostPredicted), options_.memory.get());
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
    const std::size_t targets = 3 * std::min(procedures_.names().size(), ProcedurePass::kMostPredicted) + 2;
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
  if (procedure_pass_ != nullptr) procedure_pass_->describe(report, finished_ && reasons_.empty());
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

}  // namespace lbf
