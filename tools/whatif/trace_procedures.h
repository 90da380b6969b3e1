// StoredProcedures: what a stored trace says of procedures in its control records, and its events with the trace's
// numbers of them.
//
// Place in the event's way: stored batches -> *StoredProcedures* -> replay of lbf-whatif. Implements the reading side
// of docs/formats/wire-v1.md, "Procedures", and docs/procedures.md, "Switched off" and "Sampled instead".
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "event/procedure_table.h"
#include "predictor/daemon/steps/procedure_translation.h"
#include "predictor/daemon/steps/sampled_times.h"
#include "predictor/daemon/steps/step_procedures.h"
#include "protocol/control_records.h"

namespace lbf::tools {

class StoredProcedures {
 public:
  // A control record of any type, and events: of each rank in the order in which the trace has them. Errors: a
  // procedure's record without rank, id or name; those of ProcedureTable::define.
  Result<void> take(const protocol::ControlRecord& record);
  void take_events(Rank rank, std::span<const Event> events) { said_.take_events(rank, events); }
  // All was taken. `with_samples`: samples stand in for what can be predicted from them.
  void finish(bool with_samples);

  const std::vector<std::string>& names() const { return table_.names(); }  // by number
  // Of these, whose times are a part of what they were.
  const std::set<std::string>& switched_off() const { return switched_off_; }
  // ... and whose times are samples'.
  const std::set<std::string>& sampled() const { return sampled_; }

  // EVENTS of RANK with the trace's numbers of procedures, and with the times that samples give; valid until the next
  // call. What has no name is time like any other. REQUIRES: finish().
  std::span<const Event> translated(Rank rank, std::span<const Event> events);

 private:
  void take_list(const protocol::ProcedureList& list);

  ProcedureTable table_;
  daemon::StepProcedures said_;
  std::uint64_t list_generation_ = 0;  // of the newest list of all ranks
  std::set<std::string> listed_;
  std::set<std::string> switched_off_;
  std::set<std::string> sampled_;
  daemon::SampledTimes times_;
  daemon::ProcedureTranslation translation_;
};

}  // namespace lbf::tools
