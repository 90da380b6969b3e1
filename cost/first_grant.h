// First grant: how many calls a rank may record before its node's relay has said anything (docs/cost-system.md).
//
// Place in the cost system: plugin, lbf-run -> LBF_CAPTURE_GRANT -> capture, and the regulator's first order. Header
// only: slurmstepd loads it, too.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace lbf::cost {

// The bucket of the budget (budget.h) holds what this much processor time of one rank earns.
inline constexpr Seconds kDepthPerRankS = 2;
// Nothing is known of a program at first: this much of the bucket is granted, and looked at again soon.
inline constexpr double kFirstGrantShare = 0.1;
// Until it was measured on the node: one recorded call, the relay's share with it; one counted call.
inline constexpr Seconds kDefaultRecordedCallS = 300e-9;
inline constexpr Seconds kDefaultCountedCallS = 8e-9;
// Where no run of the program is known: calls per second of its processor time.
inline constexpr double kDefaultCallsPerCpuS = 10'000;

// Calls that one rank may record at first under LIMIT (a share, 0.02 is 2 %). At least 1: a grant of 0 would be
// without bound.
inline std::uint64_t first_grant(double limit) {
  const double calls = kFirstGrantShare * kDepthPerRankS * limit / kDefaultRecordedCallS;
  return static_cast<std::uint64_t>(std::clamp(calls, 1.0, 1e12));
}

}  // namespace lbf::cost
