// The collective actions of a TI trace as events (docs/man/lbf-trace.1, "ti"). No file but the import needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "tools/trace/ti_lines.h"
#include "tools/trace/ti_parameters.h"

namespace lbf::tools::ti {

// A collective, and the work after it.
struct TiCollective {
  Event event;
  double flops = 0;
};

class TiCollectives {
 public:
  explicit TiCollectives(Rank ranks) : ranks_(ranks) {}

  // The action `words` of `rank`; its values last until the next one. Errors: kInvalidInput for what is no collective
  // action, or has too few parameters. What its parameters cannot be is for `p` to say.
  Result<TiCollective> read(Rank rank, const TiWords& words, TiParameters& p);

 private:
  Result<void> set(Rank rank, const TiWords& words, TiParameters& p, TiCollective& made);
  Result<void> set_gatherv(Rank rank, const TiWords& words, TiParameters& p, TiCollective& made);
  Result<void> set_allgatherv(const TiWords& words, TiParameters& p, TiCollective& made);
  Result<void> set_scatterv(Rank rank, const TiWords& words, TiParameters& p, TiCollective& made);
  Result<void> set_reduce_scatter(const TiWords& words, TiParameters& p, TiCollective& made);
  Result<void> set_alltoallv(const TiWords& words, TiParameters& p, TiCollective& made);
  // One count for each rank.
  void add_counts(TiParameters& p, std::size_t first, double datatype);
  // As the capture says it: what this rank sends to all. More than 2^64 bytes are 2^64 - 1, which no replay takes.
  Bytes sum_of(std::size_t first) const;

  Rank ranks_;
  std::vector<std::uint64_t> values_;
};

}  // namespace lbf::tools::ti
