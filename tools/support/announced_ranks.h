// Ranks that some bytes of a file announce.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

// What reads a trace has tables of its ranks: a number in it must not cost minutes and gigabytes. A rank that has an
// event has more than a byte. Errors: kLimit, where TRACE says more RANKS than it has BYTES.
inline Result<void> check_announced_ranks(const std::string& trace, Rank ranks, std::uintmax_t bytes) {
  constexpr Rank kAlwaysTaken = 1 << 16;
  if (ranks <= kAlwaysTaken || static_cast<std::uintmax_t>(ranks) <= bytes) return {};
  return Error{ErrorCode::kLimit, trace + ": announces " + std::to_string(ranks) + " ranks and has " +
                                      std::to_string(bytes) +
                                      " bytes: no more ranks than bytes are taken; is the number right, and the trace "
                                      "whole?"};
}

}  // namespace lbf::tools
