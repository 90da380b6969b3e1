// See collective_rules.h. The rules themselves: collective_rules_openmpi.cpp, collective_rules_mpich.cpp.
#include "predictor/engine/match/collective_rules.h"

#include <algorithm>
#include <bit>

#include "predictor/engine/match/collective_rules_common.h"

namespace lbf::engine::collective {

Bytes likely_element_bytes(Bytes bytes) {
  if (bytes == 0) return 1;
  return std::min<Bytes>(Bytes{1} << std::countr_zero(bytes), 8);
}

Choice choose_intra(MpiLibrary library, CollectiveOp op, std::uint32_t ranks, Bytes bytes, Bytes element_bytes,
                    bool commutative) {
  if (is_mpich(library)) return choose_intra_mpich(op, ranks, bytes, commutative);
  return choose_intra_openmpi(library, op, ranks, bytes, element_bytes, commutative);
}

std::optional<Algorithm> forced_algorithm(const CollectiveCall& call) {
  if (call.settings == nullptr || call.nonblocking || call.remote_size > 0 || call.size < 2) return std::nullopt;
  const std::uint8_t forced = call.settings->forced[static_cast<std::size_t>(call.op)];
  if (forced == 0) return std::nullopt;
  return static_cast<Algorithm>(forced - 1);
}

Choice choose(const CollectiveCall& call) {
  Choice choice = by_nodes(call);
  if (!goes_by_nodes(choice.algorithm)) {
    const bool depends_on_layout = choice.unsure;
    choice = is_mpich(call.library) ? choose_mpich(call) : choose_openmpi(call);
    choice.unsure |= depends_on_layout;
  }
  return choice;
}

const char* algorithm_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kLinear:
      return "linear";
    case Algorithm::kBasicLinear:
      return "basic_linear";
    case Algorithm::kLinearNb:
      return "linear_nb";
    case Algorithm::kLinearSync:
      return "linear_sync";
    case Algorithm::kTwoProc:
      return "two_proc";
    case Algorithm::kChain:
    case Algorithm::kTwoChains:
      return "chain";
    case Algorithm::kPipeline:
      return "pipeline";
    case Algorithm::kBinary:
      return "binary";
    case Algorithm::kBinaryTree:
      return "binary_tree";
    case Algorithm::kSplitBinaryTree:
      return "split_binary_tree";
    case Algorithm::kInOrderBinary:
      return "in-order_binary";
    case Algorithm::kBinomial:
      return "binomial";
    case Algorithm::kKnomial:
      return "knomial";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kBruck:
      return "bruck";
    case Algorithm::kModifiedBruck:
      return "modified_bruck";
    case Algorithm::kDissemination:
      return "dissemination";
    case Algorithm::kRecursiveDoubling:
      return "recursive_doubling";
    case Algorithm::kRecursiveHalving:
      return "recursive_halving";
    case Algorithm::kButterfly:
      return "butterfly";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kSegmentedRing:
      return "segmented_ring";
    case Algorithm::kNeighbor:
      return "neighbor";
    case Algorithm::kPairwise:
      return "pairwise";
    case Algorithm::kRabenseifner:
      return "rabenseifner";
    case Algorithm::kScatterAllgather:
      return "scatter_allgather";
    case Algorithm::kReduceThenBcast:
      return "nonoverlapping";
    case Algorithm::kReduceThenScatter:
      return "non-overlapping";
    case Algorithm::kDefault:
      return "default";
    case Algorithm::kInPlace:
      return "in_place";
    case Algorithm::kInterLeaders:
      return "inter_leaders";
    case Algorithm::kInterLinear:
      return "inter_linear";
    case Algorithm::kSubtreeBinomial:
      return "binomial";
    case Algorithm::kScatterDoublingAllgather:
      return "scatter_recursive_doubling_allgather";
    case Algorithm::kScatterRingAllgather:
      return "scatter_ring_allgather";
    case Algorithm::kReduceScatterAllgather:
      return "reduce_scatter_allgather";
    case Algorithm::kReduceScatterGather:
      return "reduce_scatter_gather";
    case Algorithm::kNoncommutative:
      return "noncommutative";
    case Algorithm::kScattered:
      return "scattered";
    case Algorithm::kPairwiseExchange:
      return "pairwise";
    case Algorithm::kSendrecvReplace:
      return "pairwise_sendrecv_replace";
    case Algorithm::kHan:
      return "han";
    case Algorithm::kSmp:
      return "smp";
    case Algorithm::kInterPairwise:
      return "pairwise_exchange";
  }
  return "unknown";
}

}  // namespace lbf::engine::collective
