// SampledTimes: times of procedures that samples stand in for, put into a rank's events as if they had been measured.
//
// Place in the event's way: control records `procedure_samples` -> StepProcedures (shares) -> *SampledTimes* -> match
// -> replay. Every interval between two events has the procedure's average share of its process time
// (docs/procedures.md, "Sampled instead"). lbfd and lbf-whatif run the same.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/units.h"
#include "event/event.h"
#include "predictor/daemon/steps/step_procedures.h"

namespace lbf::daemon {

class SampledTimes {
 public:
  SampledTimes() = default;
  // By rank. What the trace says of these procedures on that rank is left out, but for their calls.
  explicit SampledTimes(std::map<Rank, std::vector<SampledShare>> shares);

  // The same EVENTS of RANK, with times; valid until the next call. REQUIRES: their procedures are numbered as those of
  // the shares, and each rank's events come in order.
  std::span<const Event> put_into(Rank rank, std::span<const Event> events);

 private:
  struct Of {
    std::vector<SampledShare> shares;
    Seconds gap_s = 0;       // process time of the procedure events since the last other one
    Seconds measured_s = 0;  // ... that they give to procedures, exclusive
  };
  std::map<Rank, Of> ranks_;
  std::vector<Event> out_;                                            // scratch
  std::vector<std::array<std::uint64_t, kProcedureValues>> numbers_;  // scratch: what out_ points to
};

}  // namespace lbf::daemon
