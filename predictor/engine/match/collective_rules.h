// Which algorithm an MPI library chooses for a collective: by operation, communicator size and message size.
//
// Place in the event's way: match (half of collective.h; the algorithms are in collective_algorithms.h).
// Documented in docs/collectives.md.
#pragma once

#include <cstdint>
#include <optional>

#include "predictor/engine/match/collective.h"

namespace lbf::engine::collective {

// Every algorithm that a default installation can choose, under the library's own names (algorithm_name);
// what Open MPI and MPICH both have is named as in Open MPI.
enum class Algorithm : std::uint8_t {
  kLinear,
  kBasicLinear,
  kLinearNb,
  kLinearSync,
  kTwoProc,
  kChain,
  kTwoChains,  // "chain", with two of them
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
  // MPICH's
  kSubtreeBinomial,  // "binomial": a subtree is consecutive ranks, the largest is served first
  kScatterDoublingAllgather,
  kScatterRingAllgather,
  kReduceScatterAllgather,
  kReduceScatterGather,
  kNoncommutative,  // reduce_scatter by halves, blocks beforehand in mirrored order
  kScattered,
  kPairwiseExchange,  // "pairwise": by XOR where the ranks are a power of two
  kSendrecvReplace,   // alltoall with MPI_IN_PLACE, in rank order
  kHan,               // on the nodes, and between them (collective_layered.cpp): Open MPI's coll/han
  kSmp,               // the same, MPICH's
  kInterPairwise,     // "pairwise_exchange" between the groups of an intercommunicator
};
const char* algorithm_name(Algorithm algorithm);
constexpr bool goes_by_nodes(Algorithm algorithm) {
  return algorithm == Algorithm::kHan || algorithm == Algorithm::kSmp;
}

struct Choice {
  Algorithm algorithm = Algorithm::kLinear;
  bool unsure = false;  // the library may have chosen, or may do, something else (CollectiveSteps::approximated)
};

// The choice for a whole call, the same on all ranks. REQUIRES: call.size >= 1, values as collective.h says.
Choice choose(const CollectiveCall& call);

// What the run's settings force a blocking call to; nothing: the library chooses.
std::optional<Algorithm> forced_algorithm(const CollectiveCall& call);

// The choice for a blocking collective inside one group of `ranks` >= 2 (MPICH: 1), where a call consists of
// others (allreduce = reduce + bcast). `bytes`: what the decision looks at (allgatherv: the mean per rank,
// MPICH: the total; reduce_scatter: the total; else Event::bytes). `element_bytes`: size of one element of
// the datatype.
Choice choose_intra(MpiLibrary library, CollectiveOp op, std::uint32_t ranks, Bytes bytes, Bytes element_bytes,
                    bool commutative);

// The trace knows bytes where the libraries count elements: the largest of 8, 4, 2 and 1 that divides `bytes`
// (double, float and int make up nearly all vectors).
Bytes likely_element_bytes(Bytes bytes);

}  // namespace lbf::engine::collective
