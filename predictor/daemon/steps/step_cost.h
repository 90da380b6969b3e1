// StreamCost: what one node's relay says of the capture's cost, and the step's record of it.
//
// Place in the event's way: control record `cost` (docs/formats/http-v1.md) -> *StreamCost* -> db, reports. Implements
// docs/cost-system.md, "The record".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/cost_record.h"
#include "predictor/engine/metric/predictor.h"
#include "protocol/control_records.h"
#include "protocol/seen_run.h"

namespace lbf::daemon {

struct StreamCost {
  std::optional<double> limit_percent;
  std::optional<double> predicted_percent;
  std::optional<double> corrected_percent;
  Seconds recording_s = 0;   // of node.direct_s: recorded calls
  Seconds procedures_s = 0;  // of node.direct_s: procedures' hooks and records
  std::optional<Seconds>
      watched_s;  // wall time in which the node's ranks' calls were recorded or counted, all together
  std::uint64_t recorded_calls = 0;
  std::uint64_t counted_calls = 0;
  std::uint64_t disbelieved = 0;
  db::NodeCostRecord node;
  bool recording_said = false;  // recording_s is the relay's word
  std::vector<db::RankCostRecord> ranks;
};

// Ranks outside RANKS are left out.
StreamCost stream_cost_of(const protocol::CostRecord& record, std::uint32_t node, Rank ranks);

// What extrapolation leaves out (Predictor::set_capture_cost): of all nodes together. lbfd, lbf-whatif and lbf-advise
// predict alike because they ask this.
engine::CaptureCost capture_cost_of(const std::vector<StreamCost>& streams);

// What the prediction rests on, and under which limit it was captured.
protocol::SeenRun seen_run_of(const engine::Prediction& prediction, const std::vector<StreamCost>& streams = {});

// Of all nodes together. SEEN_SHARE: of the ranks' measured time, as replayed. TO_THE_END: the
// replay knows of all of that time; else, where the capture ended for good, it knows nothing of what came after it.
db::CostRecord cost_of_step(const std::vector<StreamCost>& streams, double seen_share, bool to_the_end);

// What people should know of it, for the step's notes. RUN_S: measured time of the run so far; 0: not known.
std::vector<std::string> cost_notes(const db::CostRecord& cost, Seconds run_s);

}  // namespace lbf::daemon
