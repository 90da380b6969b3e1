// ProcedurePredictions: procedure LBF of one step: what its ranks say of procedures, which of them all ranks are to
// measure, and the replays that predict from them.
//
// Place in the event's way: events, control records -> *ProcedurePredictions* (StepProcedures, ProcedureSearch,
// ProcedurePass) -> db; backwards: the list of procedures for the relays. docs/lbfd.md, "Procedures".
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "db/records.h"
#include "predictor/daemon/intake/step_trace.h"
#include "predictor/daemon/steps/measured_run.h"
#include "predictor/daemon/steps/procedure_pass.h"
#include "predictor/daemon/steps/procedure_search.h"
#include "predictor/daemon/steps/step_procedures.h"
#include "predictor/daemon/steps/step_remarks.h"
#include "predictor/daemon/steps/step_run_options.h"
#include "protocol/control_records.h"

namespace lbf::daemon {

class ProcedurePredictions {
 public:
  // REQUIRES: `options` and `remarks` outlive the predictions.
  ProcedurePredictions(std::shared_ptr<const StepTrace> trace, const StepRunOptions& options, StepRemarks& remarks);

  // RANK is one of the step's.
  void take_events(Rank rank, std::span<const Event> events) { said_.take_events(rank, events); }
  void take_rounds(Rank rank, const Rounds& rounds) { said_.take_rounds(rank, rounds); }
  void take(std::uint32_t stream, Rank rank, const protocol::ProcedureRecord& record);
  void take(std::uint32_t stream, Rank rank, const protocol::ProcedureCandidateRecord& record);
  void take(std::uint32_t stream, Rank rank, const protocol::ProcedureListRecord& record);
  void take(std::uint32_t stream, Rank rank, const protocol::ProcedureSamplesRecord& record);
  void take(std::uint32_t stream, Rank rank, const protocol::ProcedureRemarkRecord& record);

  // The replay of the step's procedures, of the configuration that ran. WHY_NO_CPU: as StepPredictions::work. False:
  // there is nothing to do for it now.
  bool work(const engine::Target& ran, const std::vector<StreamState>& streams, bool trace_is_complete,
            bool all_processes_seen, const std::string& why_no_cpu);
  // Whether work() has something to do, if there is room for it.
  bool has_work(const std::vector<StreamState>& streams, bool trace_is_complete, bool all_processes_seen) const;
  void give_up();
  bool has_pass() const { return pass_ != nullptr; }
  Bytes memory_bytes() const;
  void clear();  // as if nothing had been said
  void set_capture_cost(const engine::CaptureCost& cost);

  // What all ranks are to measure, as far as their samples and the critical path tell now. Null: as before.
  std::shared_ptr<const protocol::ProcedureList> search();

  void describe(const MeasuredRun& run, db::StepRecord& record, std::vector<std::string>& notes) const;

 private:
  // Names of the step's procedures and, where that can be told (`complete`), behind them what is only sampled.
  std::vector<std::string> predictable_names(bool complete) const;
  std::vector<std::uint32_t> foremost(const std::vector<std::string>& names, bool complete) const;
  bool wants_pass(bool complete, bool all_processes_seen) const;
  void begin_pass(const engine::Target& ran, bool complete);
  void set_why_deferred(std::string why);
  double cost_limit() const;

  const std::shared_ptr<const StepTrace> trace_;
  const StepRunOptions& options_;
  StepRemarks& remarks_;
  StepProcedures said_;
  ProcedureSearch search_;
  std::uint64_t listed_generation_ = 0;  // of the newest list that a relay gave to its ranks
  std::unique_ptr<ProcedurePass> pass_;
  unsigned passes_ = 0;           // begun so far
  bool choice_is_final_ = false;  // made when all streams had ended
  std::string why_deferred_;
};

}  // namespace lbf::daemon
