// Which algorithm Open MPI 4.1 chooses for a collective: by operation, communicator size and message size.
//
// Place in the event's way: match (half of collective.h; the algorithms are in collective_algorithms.h).
// Documented in docs/collectives.md.
#pragma once

#include <cstdint>

#include "predictor/match/collective.h"

namespace lbf::collective {

// Every algorithm that a default installation can choose, under Open MPI's own names (algorithm_name).
enum class Algorithm : std::uint8_t {
  kLinear,
  kBasicLinear,
  kLinearNb,
  kLinearSync,
  kTwoProc,
  kChain,
  kPipeline,
  kBinary,
  kBinaryTree,
  kSplitBinaryTree,
  kInOrderBinary,
  kBinomial,
  kKnomial,
  kTree,
  kBruck,
  kModifiedBruck,
  kDissemination,
  kRecursiveDoubling,
  kRecursiveHalving,
  kButterfly,
  kRing,
  kSegmentedRing,
  kNeighbor,
  kPairwise,
  kRabenseifner,
  kScatterAllgather,
  kReduceThenBcast,    // allreduce "nonoverlapping"
  kReduceThenScatter,  // reduce_scatter "non-overlapping"
  kDefault,            // allgatherv "default": gatherv, then bcast
  kInPlace,            // alltoall with MPI_IN_PLACE
  kInterLeaders,       // coll/inter: inside the groups, and between their first ranks
  kInterLinear,        // coll/basic, coll/libnbc: straight between the groups' ranks
};
const char* algorithm_name(Algorithm algorithm);

struct Choice {
  Algorithm algorithm = Algorithm::kLinear;
  bool unsure =
      false;  // the library may have chosen, or may do, something else (CollectiveSteps::approximated)
};

// The choice for a whole call, the same on all ranks. REQUIRES: call.size >= 1, values as collective.h says.
Choice choose(const CollectiveCall& call);

// The choice of coll/tuned and coll/basic for a blocking collective inside one group of `ranks` >= 2, where a
// call consists of others (allreduce = reduce + bcast). `bytes`: what the decision looks at (allgatherv: the
// mean per rank; reduce_scatter: the total; else Event::bytes). `element_bytes`: size of one element of the
// datatype.
Choice choose_intra(CollectiveOp op, std::uint32_t ranks, Bytes bytes, Bytes element_bytes, bool commutative);

// The trace knows bytes where Open MPI counts elements: the largest of 8, 4, 2 and 1 that divides `bytes`
// (double, float and int make up nearly all vectors).
Bytes likely_element_bytes(Bytes bytes);

}  // namespace lbf::collective
