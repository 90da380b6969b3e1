// Which messages the receives with a wildcard of a TI trace take: the trace does not say. No file but the import needs
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "event/event.h"

namespace lbf::tools::ti {

struct Match {
  Rank source = 0;
  std::int32_t tag = 0;
};

// The whole trace, run once with the time of its actions and messages that take none: a receive takes the first message
// that fits, as MPI matches them, and a collective waits for all ranks. What a trace has wrong ends its rank here; the
// import names it. Memory: what is in flight, and a word for each receive with a wildcard.
class TiMatching {
 public:
  // `files`: one for each rank, or one with the actions of all.
  TiMatching(const std::vector<std::string>& files, Rank ranks, double flops_per_second);

  // Of the next receive with a wildcard of `rank`, in the order of its actions; nothing: no message is left for it.
  std::optional<Match> next(Rank rank);

 private:
  std::vector<std::deque<std::optional<Match>>> matches_;  // by rank
};

}  // namespace lbf::tools::ti
