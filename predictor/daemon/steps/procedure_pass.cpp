#include "predictor/daemon/steps/procedure_pass.h"

#include <algorithm>
#include <utility>

#include "event/mpi_function_table.h"
#include "predictor/daemon/steps/step_cost.h"

namespace lbf::daemon {

Result<std::unique_ptr<ProcedurePass>> ProcedurePass::make(std::shared_ptr<const StepTrace> trace,
                                                           const engine::Target& ran, std::vector<std::string> names,
                                                           std::vector<std::uint32_t> predicted, ReplayMemory* memory,
                                                           ReplayLimits limits,
                                                           std::map<Rank, std::vector<SampledShare>> sampled) {
  std::unique_ptr<ProcedurePass> pass(new ProcedurePass(std::move(names), std::move(predicted)));
  for (const auto& [rank, shares] : sampled) {
    for (const SampledShare& share : shares) pass->sampled_.insert(pass->names_[share.procedure]);
  }
  TraceProcedures scenarios;
  scenarios.names = pass->names_;
  scenarios.sampled = sampled;
  std::vector<engine::Target> targets{ran};
  for (const std::uint32_t procedure : pass->predicted_) {
    for (const engine::MoveTo to : {engine::MoveTo::kReceiver, engine::MoveTo::kSender, engine::MoveTo::kNowhere}) {
      scenarios.plan.scenarios.push_back({{{procedure, to, 1}}, kAnyRank});
      targets.push_back(ran);
      targets.back().scenario = static_cast<std::uint32_t>(scenarios.plan.scenarios.size());
    }
  }
  auto moved = TracePass::make(trace, ran.node_of_rank, std::move(targets), memory, limits, std::move(scenarios));
  if (!moved) return moved.error();
  pass->moved_ = std::move(moved).value();
  TraceProcedures profiled;
  profiled.names = pass->names_;
  profiled.sampled = std::move(sampled);
  profiled.plan.profiled = pass->predicted_;
  profiled.observer = &pass->critical_path_;
  auto path =
      TracePass::make(std::move(trace), ran.node_of_rank, {ran}, memory, std::move(limits), std::move(profiled));
  if (!path) return path.error();
  pass->path_ = std::move(path).value();
  return pass;
}

bool ProcedurePass::has_work(const std::vector<StreamState>& streams, bool trace_is_complete) const {
  return moved_->has_work(streams, trace_is_complete) || path_->has_work(streams, trace_is_complete);
}

void ProcedurePass::work(const std::vector<StreamState>& streams, bool trace_is_complete) {
  for (TracePass* const pass : {moved_.get(), path_.get()}) {
    if (pass->has_work(streams, trace_is_complete)) pass->work(streams);
  }
}

engine::PathProfile ProcedurePass::path() {
  (void)path_->predictions();
  return critical_path_.profile();
}

void ProcedurePass::describe(db::ProcedureReport& report, bool whole) {
  const std::vector<engine::Prediction> predictions = moved_->predictions();
  const engine::Prediction& as_it_ran = predictions.front();
  if (seen_run_of(as_it_ran).is_too_little()) return;
  const engine::PathProfile profile = path();
  const std::vector<engine::ScenarioStats> stats = moved_->predictor().scenario_stats();
  const auto time_of = [&](std::size_t scenario) {
    const engine::Prediction& prediction = predictions[scenario + 1];
    return whole && !prediction.why_stuck.empty() ? std::optional<Seconds>() : std::optional(prediction.lbf_s);
  };
  for (std::size_t p = 0; p < predicted_.size(); ++p) {
    const auto found =
        std::find_if(report.procedures.begin(), report.procedures.end(),
                     [&](const db::ProcedureRecord& record) { return record.name == names_[predicted_[p]]; });
    if (found == report.procedures.end() || (found->state != "measured" && !sampled_.contains(found->name))) continue;
    found->receiver_s = time_of(3 * p);
    found->sender_s = time_of(3 * p + 1);
    found->zeroed_s = time_of(3 * p + 2);
    found->stayed_receiver_s = stats[3 * p].stayed_s;
    found->stayed_sender_s = stats[3 * p + 1].stayed_s;
    found->critical_path_s = p < profile.procedure_s.size() ? profile.procedure_s[p] : 0;
  }
  db::CriticalPathRecord path;
  path.as_it_ran_s = as_it_ran.lbf_s;
  path.length_s = profile.length_s;
  path.ends_at = profile.ends_at;
  path.other_work_s = profile.other_work_s;
  path.mpi_s = profile.mpi_s;
  path.blocked_s = profile.blocked_s;
  path.unseen_s = profile.unseen_s;
  path.ranks = profile.rank_s;
  for (const auto& [function, function_s] : profile.function_s) {
    path.functions.emplace_back(function == engine::PathProfile::kOthers
                                    ? "others"
                                    : std::string(mpi_function_name(static_cast<std::uint16_t>(function))),
                                function_s);
  }
  path.partial = !whole || !as_it_ran.complete || !is_done() || !failure().empty();
  report.path = std::move(path);
}

}  // namespace lbf::daemon
