// Sensitivity: how a program's time answers to latency, bandwidth and processor speed, so that its user sees
// what it is bound by. All points of the curves are targets of one pass over the trace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "advisor/ranking/ranking.h"
#include "base/result.h"
#include "predictor/engine/replay/target.h"

namespace lbf::advisor {

struct SensitivityPoint {
  double factor = 1;  // of the latency, the bandwidth or the speed; infinity: as good as it can be
  Seconds time_s = 0;
};

struct Sensitivity {
  Seconds time_s = 0;                       // as it is
  std::vector<SensitivityPoint> latency;    // factor 0: messages of no bytes take no time
  std::vector<SensitivityPoint> bandwidth;  // infinity: long messages take as long as empty ones
  std::vector<SensitivityPoint> speed;      // infinity: no work
  // Share of the time that would be saved by the perfect one alone. They need not add up to 1: what hides
  // behind something else saves nothing by itself.
  double latency_share = 0;
  double bandwidth_share = 0;
  double processor_share = 0;
  // "processor speed", "bandwidth", "latency", or "nothing of these" (blocked time, waiting for others)
  std::string bound_by() const;
};

// Replays `target` and its variants. Errors: those of `replay`.
Result<Sensitivity> sensitivity(const engine::Target& target, const ReplayBatch& replay);

}  // namespace lbf::advisor
