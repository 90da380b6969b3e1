// What the settings of a run's environment make of its library's choices: mpi_settings() of mpi_library.h.
//
// coll/tuned's numbers and names: coll_tuned_*_decision.c of Open MPI v4.1.6, v5.0.9 and v6.0.x. MPICH's names:
// src/mpi/coll/cvars.txt of v4.0.2 and v5.0.1. Only what the steps model exactly is in the tables.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/number.h"
#include "event/collective_op.h"
#include "predictor/engine/match/collective_rules.h"
#include "predictor/engine/match/mpi_library.h"

namespace lbf::engine {
namespace {

using collective::Algorithm;

struct Forcible {
  CollectiveOp op;
  int number;  // Open MPI's
  std::string_view name;
  Algorithm algorithm;
};

// clang-format off
constexpr Forcible kTuned[] = {
    {CollectiveOp::kBarrier, 1, "linear", Algorithm::kLinear},
    {CollectiveOp::kBarrier, 3, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kBarrier, 4, "bruck", Algorithm::kBruck},
    {CollectiveOp::kBarrier, 6, "tree", Algorithm::kTree},
    {CollectiveOp::kBcast, 1, "basic_linear", Algorithm::kBasicLinear},
    {CollectiveOp::kBcast, 3, "pipeline", Algorithm::kPipeline},
    {CollectiveOp::kBcast, 4, "split_binary_tree", Algorithm::kSplitBinaryTree},
    {CollectiveOp::kBcast, 5, "binary_tree", Algorithm::kBinaryTree},
    {CollectiveOp::kBcast, 6, "binomial", Algorithm::kBinomial},
    {CollectiveOp::kBcast, 7, "knomial", Algorithm::kKnomial},
    {CollectiveOp::kBcast, 8, "scatter_allgather", Algorithm::kScatterAllgather},
    {CollectiveOp::kReduce, 1, "linear", Algorithm::kLinear},
    {CollectiveOp::kReduce, 3, "pipeline", Algorithm::kPipeline},
    {CollectiveOp::kReduce, 4, "binary", Algorithm::kBinary},
    {CollectiveOp::kReduce, 5, "binomial", Algorithm::kBinomial},
    {CollectiveOp::kReduce, 6, "in-order_binary", Algorithm::kInOrderBinary},
    {CollectiveOp::kReduce, 7, "rabenseifner", Algorithm::kRabenseifner},
    {CollectiveOp::kAllreduce, 1, "basic_linear", Algorithm::kBasicLinear},
    {CollectiveOp::kAllreduce, 2, "nonoverlapping", Algorithm::kReduceThenBcast},
    {CollectiveOp::kAllreduce, 3, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kAllreduce, 4, "ring", Algorithm::kRing},
    {CollectiveOp::kAllreduce, 5, "segmented_ring", Algorithm::kSegmentedRing},
    {CollectiveOp::kAllreduce, 6, "rabenseifner", Algorithm::kRabenseifner},
    {CollectiveOp::kGather, 1, "basic_linear", Algorithm::kBasicLinear},
    {CollectiveOp::kGather, 2, "binomial", Algorithm::kBinomial},
    {CollectiveOp::kScatter, 1, "basic_linear", Algorithm::kBasicLinear},
    {CollectiveOp::kScatter, 2, "binomial", Algorithm::kBinomial},
    {CollectiveOp::kScatter, 3, "linear_nb", Algorithm::kLinearNb},
    {CollectiveOp::kAllgather, 2, "bruck", Algorithm::kBruck},
    {CollectiveOp::kAllgather, 3, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kAllgather, 4, "ring", Algorithm::kRing},
    {CollectiveOp::kAllgather, 5, "neighbor", Algorithm::kNeighbor},
    {CollectiveOp::kAllgatherv, 1, "default", Algorithm::kDefault},
    {CollectiveOp::kAllgatherv, 2, "bruck", Algorithm::kBruck},
    {CollectiveOp::kAllgatherv, 3, "ring", Algorithm::kRing},
    {CollectiveOp::kAllgatherv, 4, "neighbor", Algorithm::kNeighbor},
    {CollectiveOp::kAlltoall, 1, "linear", Algorithm::kLinear},
    {CollectiveOp::kAlltoall, 2, "pairwise", Algorithm::kPairwise},
    {CollectiveOp::kAlltoall, 3, "modified_bruck", Algorithm::kModifiedBruck},
    {CollectiveOp::kAlltoall, 4, "linear_sync", Algorithm::kLinearSync},
    {CollectiveOp::kAlltoallv, 1, "basic_linear", Algorithm::kBasicLinear},
    {CollectiveOp::kAlltoallv, 2, "pairwise", Algorithm::kPairwise},
    {CollectiveOp::kReduceScatter, 1, "non-overlapping", Algorithm::kReduceThenScatter},
    {CollectiveOp::kReduceScatter, 2, "recursive_halving", Algorithm::kRecursiveHalving},
    {CollectiveOp::kReduceScatter, 3, "ring", Algorithm::kRing},
    {CollectiveOp::kReduceScatter, 4, "butterfly", Algorithm::kButterfly},
    {CollectiveOp::kReduceScatterBlock, 1, "basic_linear", Algorithm::kBasicLinear},
    {CollectiveOp::kReduceScatterBlock, 2, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kReduceScatterBlock, 3, "recursive_halving", Algorithm::kRecursiveHalving},
    {CollectiveOp::kReduceScatterBlock, 4, "butterfly", Algorithm::kButterfly},
};

constexpr Forcible kMpich[] = {
    {CollectiveOp::kBcast, 0, "binomial", Algorithm::kSubtreeBinomial},
    {CollectiveOp::kBcast, 0, "scatter_recursive_doubling_allgather", Algorithm::kScatterDoublingAllgather},
    {CollectiveOp::kBcast, 0, "scatter_ring_allgather", Algorithm::kScatterRingAllgather},
    {CollectiveOp::kReduce, 0, "binomial", Algorithm::kSubtreeBinomial},
    {CollectiveOp::kReduce, 0, "reduce_scatter_gather", Algorithm::kReduceScatterGather},
    {CollectiveOp::kAllreduce, 0, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kAllreduce, 0, "reduce_scatter_allgather", Algorithm::kReduceScatterAllgather},
    {CollectiveOp::kAllgather, 0, "brucks", Algorithm::kBruck},
    {CollectiveOp::kAllgather, 0, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kAllgather, 0, "ring", Algorithm::kRing},
    {CollectiveOp::kAllgatherv, 0, "brucks", Algorithm::kBruck},
    {CollectiveOp::kAllgatherv, 0, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kAllgatherv, 0, "ring", Algorithm::kRing},
    {CollectiveOp::kAlltoall, 0, "brucks", Algorithm::kModifiedBruck},
    {CollectiveOp::kAlltoall, 0, "pairwise", Algorithm::kPairwiseExchange},
    {CollectiveOp::kAlltoall, 0, "scattered", Algorithm::kScattered},
    {CollectiveOp::kReduceScatter, 0, "recursive_halving", Algorithm::kRecursiveHalving},
    {CollectiveOp::kReduceScatter, 0, "pairwise", Algorithm::kPairwise},
    {CollectiveOp::kReduceScatter, 0, "recursive_doubling", Algorithm::kRecursiveDoubling},
    {CollectiveOp::kReduceScatterBlock, 0, "recursive_halving", Algorithm::kRecursiveHalving},
    {CollectiveOp::kReduceScatterBlock, 0, "pairwise", Algorithm::kPairwise},
    {CollectiveOp::kReduceScatterBlock, 0, "recursive_doubling", Algorithm::kRecursiveDoubling},
};
// clang-format on

// The operation of "PREFIX operation SUFFIX".
std::optional<CollectiveOp> op_between(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size()) return {};
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (int op = 0; op < kCollectiveOpCount; ++op) {
    if (name_of(static_cast<CollectiveOp>(op)) == lower) return static_cast<CollectiveOp>(op);
  }
  return {};
}

std::optional<Algorithm> modelled(std::span<const Forcible> table, CollectiveOp op, std::string_view value) {
  const std::optional<int> number = parse_number<int>(value);
  for (const Forcible& row : table) {
    if (row.op == op && (row.name == value || (number && *number > 0 && row.number == *number))) return row.algorithm;
  }
  return {};
}

bool is_yes(std::string_view value) {
  return value == "1" || value == "true" || value == "yes" || value == "t" || value == "y" || value == "enabled";
}

// What one setting does.
enum class Effect : std::uint8_t { kNone, kFollowed, kIgnored };

Effect force(MpiSettings& settings, CollectiveOp op, std::optional<Algorithm> algorithm) {
  if (!algorithm) return Effect::kIgnored;
  settings.forced[static_cast<std::size_t>(op)] = static_cast<std::uint8_t>(1 + static_cast<int>(*algorithm));
  return Effect::kFollowed;
}

// Whether a list of excluded components ("^han,ucc") has han; nothing: it has those that the steps are of, or it is a
// list of those that are allowed.
std::optional<bool> excludes_han(std::string_view list) {
  if (!list.starts_with('^')) return {};
  bool han = false;
  for (list.remove_prefix(1); !list.empty();) {
    const std::string_view component = list.substr(0, list.find(','));
    list.remove_prefix(std::min(component.size() + 1, list.size()));
    for (const std::string_view needed : {"tuned", "basic", "libnbc", "inter", "self"}) {
      if (component == needed) return {};
    }
    han |= component == "han";
  }
  return han;
}

Effect take_openmpi(MpiSettings& settings, MpiLibrary library, bool dynamic, std::string_view name,
                    std::string_view value) {
  if (name.ends_with("_verbose")) return Effect::kNone;
  if (name.starts_with("coll_tuned_") && !dynamic) {  // such need coll_tuned_use_dynamic_rules
    return name == "coll_tuned_priority" ? Effect::kIgnored : Effect::kNone;
  }
  if (name == "coll_tuned_use_dynamic_rules") return Effect::kNone;
  if (const auto op = op_between(name, "coll_tuned_", "_algorithm")) {
    if (value == "0" || value == "ignore") return Effect::kNone;
    const std::optional<Algorithm> algorithm = modelled(kTuned, *op, value);
    // 6.0's has another radix.
    const bool has_radix = library == MpiLibrary::kOpenMpi6 && *op == CollectiveOp::kAllgather;
    return force(settings, *op, has_radix && algorithm == Algorithm::kBruck ? std::nullopt : algorithm);
  }
  if (name.ends_with("_enable") && value == "0") return Effect::kNone;  // coll/hcoll, coll/ucc: off by default
  constexpr int kTunedPriority = 30;
  const std::optional<int> number = parse_number<int>(value);
  const bool below_tuned = name == "coll_han_priority" && number && *number < kTunedPriority;
  const std::optional<bool> excludes = name == "coll" ? excludes_han(value) : std::nullopt;
  if (!below_tuned && !excludes) return Effect::kIgnored;
  if (!has_han(library) || (excludes && !*excludes)) return Effect::kNone;
  settings.without_han = true;
  return Effect::kFollowed;
}

Effect take_mpich(MpiSettings& settings, std::string_view name, std::string_view value) {
  const auto op = op_between(name, "MPIR_CVAR_", "_INTRA_ALGORITHM");
  if (!op) return Effect::kIgnored;
  return value == "auto" ? Effect::kNone : force(settings, *op, modelled(kMpich, *op, value));
}

}  // namespace

MpiSettings mpi_settings(MpiLibrary library, std::span<const std::string> environment) {
  constexpr std::string_view kMca = "OMPI_MCA_";
  MpiSettings settings;
  bool dynamic = false;
  for (const std::string& word : environment) {
    const std::size_t end = word.find('=');
    if (end != std::string::npos && word.compare(0, end, "OMPI_MCA_coll_tuned_use_dynamic_rules") == 0)
      dynamic = is_yes(std::string_view(word).substr(end + 1));
  }
  for (const std::string& word : environment) {
    const std::size_t end = word.find('=');
    if (end == std::string::npos || word.starts_with(kMca) == is_mpich(library)) continue;
    const std::string_view name = std::string_view(word).substr(0, end);
    const std::string_view value = std::string_view(word).substr(end + 1);
    const Effect effect = is_mpich(library) ? take_mpich(settings, name, value)
                                            : take_openmpi(settings, library, dynamic, name.substr(kMca.size()), value);
    if (effect == Effect::kFollowed) settings.followed.push_back(word);
    if (effect == Effect::kIgnored) settings.ignored.push_back(word);
  }
  return settings;
}

}  // namespace lbf::engine
