// Collectives of an OTF2 archive: bytes from the sums that its records have, counts of each rank from the other ranks'
// records, and whether all ranks mean the same operation. No file but the import needs it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "tools/import/otf2_held.h"
#include "tools/import/otf2_shared.h"
#include "tools/import/otf2_stream.h"

namespace lbf::tools::otf2 {

// Sets operation, root, bytes and part of `held` by the record of its end. `function`: of the call, or nullptr. Errors:
// sizes that no count has, operations that the archive has no sizes of; without the place.
Result<void> set_collective(const Record& record, Rank rank, const MpiFunction* function, Shared& shared, Held& held);

// Memory: a word or, where counts differ, one for each rank, for each collective that not all ranks have reached.
class Collectives {
 public:
  explicit Collectives(Shared& shared) : shared_(shared) {}

  // RANK is at its next collective on held.comm. True: it is complete as far as the rank has to know it. Called again
  // until then. Errors: the ranks' operations or roots differ.
  Result<bool> arrive(Rank rank, Held& held);
  // Ranks to call arrive() for again. Empties the list.
  std::vector<Rank> take_complete();
  // Who waits for ever, once all was read; empty: nobody.
  std::string stuck() const;

 private:
  struct Call {
    CollectiveOp op = CollectiveOp::kBarrier;
    Rank root = 0;
    Rank first = 0;  // that was there
    Bytes bytes = 0;
    std::size_t ranks = 0;    // that were there
    std::size_t waiting = 0;  // that need all parts
    bool fits = true;
    std::vector<std::uint64_t> parts;  // by place in the communicator
  };
  struct Calls {
    const Communicator* comm = nullptr;
    std::unordered_map<Rank, std::uint64_t> next;  // number of each rank's next one
    std::uint64_t first = 0;                       // number of open.front()
    std::deque<Call> open;
  };
  Result<void> compare(Rank rank, const Held& held, Call& call) const;
  void drop_complete(Calls& calls);

  Shared& shared_;
  std::unordered_map<std::uint32_t, Calls> calls_;  // by communicator
  std::vector<Rank> complete_;
};

}  // namespace lbf::tools::otf2
