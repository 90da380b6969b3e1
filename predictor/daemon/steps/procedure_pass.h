// ProcedurePass: procedure LBF of a step's procedures on the configuration that ran, online: moved to the receiver and
// to the sender of their messages (TR Fig. 2, both directions), not needed any more (Critical Path Zeroing), and the
// critical path with the procedures it runs through.
//
// Place in the event's way: trace store -> *ProcedurePass* (two TracePasses) -> match -> replay. It begins when names
// are known, from the first stored batch on, and rests as long as it must.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "db/procedure_record.h"
#include "predictor/daemon/steps/step_procedures.h"
#include "predictor/daemon/steps/trace_pass.h"
#include "predictor/engine/metric/critical_path.h"

namespace lbf::daemon {

class ProcedurePass {
 public:
  static constexpr std::size_t kMostPredicted = 32;  // procedures; each has three scenarios

  // `names`: of the step's procedures so far; `predicted`: the numbers of those that the replay is about, at most
  // kMostPredicted (none: only the path and its ranks are wanted); `sampled`: as TraceProcedures::sampled. Errors:
  // those of Predictor::make.
  static Result<std::unique_ptr<ProcedurePass>> make(std::shared_ptr<const StepTrace> trace, const engine::Target& ran,
                                                     std::vector<std::string> names,
                                                     std::vector<std::uint32_t> predicted, ReplayMemory* memory,
                                                     ReplayLimits limits,
                                                     std::map<Rank, std::vector<SampledShare>> sampled = {});

  const std::vector<std::uint32_t>& predicted() const { return predicted_; }
  std::size_t targets() const { return 3 * predicted_.size() + 2; }
  bool has_work(const std::vector<StreamState>& streams, bool trace_is_complete) const;
  // One batch of each replay, or the end. REQUIRES: has_work().
  void work(const std::vector<StreamState>& streams, bool trace_is_complete);
  // As Predictor::set_capture_cost: what was recorded in windows is extrapolated without it.
  void set_capture_cost(const engine::CaptureCost& cost) { moved_->set_capture_cost(cost); }
  bool is_done() const { return moved_->is_done() && path_->is_done(); }
  const std::string& failure() const { return moved_->failure().empty() ? path_->failure() : moved_->failure(); }

  Bytes memory_bytes() const { return moved_->memory_bytes() + path_->memory_bytes(); }

  // The critical path of what was replayed so far; procedures by their place in predicted().
  engine::PathProfile path();

  // Adds what is predicted to the procedures in `report`, by name, and the path; of what was switched off it predicts
  // nothing, unless it was sampled: its times end somewhere. `whole`: the step is over and
  // nothing of it is missing; only then can a scenario be stuck, and has no time.
  void describe(db::ProcedureReport& report, bool whole);

 private:
  ProcedurePass(std::vector<std::string> names, std::vector<std::uint32_t> predicted)
      : names_(std::move(names)), predicted_(std::move(predicted)), critical_path_(predicted_.size()) {}

  const std::vector<std::string> names_;
  const std::vector<std::uint32_t> predicted_;
  engine::CriticalPath critical_path_;
  std::set<std::string> sampled_;
  std::unique_ptr<TracePass> moved_;  // as it ran, then three scenarios for each
  std::unique_ptr<TracePass> path_;
};

}  // namespace lbf::daemon
