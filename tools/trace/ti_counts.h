// Whether the ranks of a TI trace name the same sizes for the same data. No file but the import needs it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace lbf::tools::ti {

// Memory: some words for each collective that not all ranks have reached. Sizes are compared by sums of hashes, so that
// what one rank sends and another one receives need not be kept.
class TiCounts {
 public:
  explicit TiCounts(Rank ranks) : calls_(static_cast<std::size_t>(ranks), 0) {}

  // A rank's next collective of MPI_COMM_WORLD. Errors: kInvalidInput, it names another root than a rank before it:
  // roots count in a communicator that the format does not name.
  Result<void> add(Rank rank, const Event& event);

  // Collectives of all ranks whose sizes differ; those that only some ranks reach do not count.
  std::uint64_t misfits() const { return misfits_; }
  // "alltoallv, number 3 of each rank"; empty: none.
  const std::string& first_misfit() const { return first_misfit_; }

 private:
  struct Call {
    std::uint64_t alike = 0;       // what all ranks must say
    std::uint64_t difference = 0;  // of what is sent and what is received; 0: none
    Rank ranks = 0;                // that have reached it
    Rank first = 0;                // of these
    Rank root = 0;                 // that the first one names
    CollectiveOp op = CollectiveOp::kBarrier;
    bool fits = true;
  };
  static Result<void> compare(Rank rank, const Event& event, Call& call);
  void finish(const Call& call);

  std::vector<std::uint64_t> calls_;  // by rank
  std::deque<Call> open_;             // from number finished_ on
  std::uint64_t finished_ = 0;
  std::uint64_t misfits_ = 0;
  std::string first_misfit_;
};

}  // namespace lbf::tools::ti
