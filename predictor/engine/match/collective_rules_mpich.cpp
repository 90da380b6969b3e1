// MPICH's choice of a collective's algorithm, see collective_rules.h.
//
// The thresholds are those of 4.0's built-in selection, the same in 5.0, for a communicator that has at most one rank
// on each node; docs/collectives.md explains them, and what happens on others.
#include <algorithm>
#include <bit>
#include <optional>
#include <span>

#include "predictor/engine/match/collective_arithmetic.h"
#include "predictor/engine/match/collective_rules.h"
#include "predictor/engine/match/collective_rules_common.h"

namespace lbf::engine::collective {
namespace {

constexpr std::uint32_t kAlltoallManyRanks = 9;  // alltoall's "< 8" takes 8 in
constexpr Bytes kBcastShort = 12 * kKiB;
constexpr Bytes kBcastLong = 512 * kKiB;
constexpr Bytes kReduceShort = 2 * kKiB;
constexpr Bytes kAllreduceShort = 8;
constexpr Bytes kIallreduceShort = 2 * kKiB;
constexpr Bytes kAllgatherShort = 80 * kKiB;    // in all, P not a power of two
constexpr Bytes kAllgatherMedium = 512 * kKiB;  // in all, P a power of two
constexpr Bytes kAlltoallShort = 256;
constexpr Bytes kIalltoallShort = 2 * kKiB;
constexpr Bytes kAlltoallMedium = 32 * kKiB;
constexpr Bytes kReduceScatterLong = 512 * kKiB;        // in all; ireduce_scatter_block takes elements for bytes
constexpr std::uint64_t kInterManyElements = 2 * kKiB;  // in all; elements, not bytes

// Blocking ones take bounds in, non-blocking ones do not.
Algorithm bcast(std::uint32_t ranks, Bytes bytes, bool nonblocking) {
  const Bytes excluded = nonblocking ? 0 : 1;
  if (ranks < kMpichBcastManyRanks || bytes < kBcastShort + excluded) return Algorithm::kSubtreeBinomial;
  if (std::has_single_bit(ranks) && bytes < kBcastLong + excluded) {
    return Algorithm::kScatterDoublingAllgather;
  }
  return Algorithm::kScatterRingAllgather;
}

// Operations that are not commutative are the user's: MPICH's own all are.
Choice by_scattering(Bytes bytes, std::uint32_t ranks, bool built_in, Bytes short_bytes, Algorithm if_short,
                     Algorithm if_long) {
  Choice choice{if_short};
  if (bytes <= short_bytes || !built_in) return choice;
  const std::uint32_t power = std::bit_floor(ranks);
  if (long_enough(
          bytes, [&](Bytes n) { return n >= power; }, choice.unsure)) {
    choice.algorithm = if_long;
  }
  return choice;
}

Algorithm allgather(std::uint32_t ranks, Bytes total) {
  const bool power_of_two = std::has_single_bit(ranks);
  if (total >= (power_of_two ? kAllgatherMedium : kAllgatherShort)) return Algorithm::kRing;
  return power_of_two ? Algorithm::kRecursiveDoubling : Algorithm::kBruck;
}

Algorithm alltoall(std::uint32_t ranks, Bytes bytes, Bytes short_bytes) {
  if (ranks >= kAlltoallManyRanks && bytes <= short_bytes) return Algorithm::kModifiedBruck;
  return bytes <= kAlltoallMedium ? Algorithm::kScattered : Algorithm::kPairwiseExchange;
}

Algorithm reduce_scatter(std::uint32_t ranks, Bytes total, bool commutative, bool blocks_alike) {
  if (commutative) return total < kReduceScatterLong ? Algorithm::kRecursiveHalving : Algorithm::kPairwise;
  return blocks_alike && std::has_single_bit(ranks) ? Algorithm::kNoncommutative : Algorithm::kRecursiveDoubling;
}

bool are_alike(std::span<const std::uint64_t> values) {
  for (const std::uint64_t value : values) {
    if (value != values.front()) return false;
  }
  return true;
}

Choice choose_inter(const CollectiveCall& call) {
  switch (call.op) {
    case CollectiveOp::kAlltoall:
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return {Algorithm::kInterPairwise};
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
      return {Algorithm::kInterLinear};
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter: {
      // Ranks of the rooted group other than the root take no part, whatever they decide.
      const std::uint32_t contributors = call.root < 0 ? call.remote_size : call.size;
      Choice choice{Algorithm::kInterLeaders};
      if (long_enough(
              call.bytes, [&](std::uint64_t n) { return n * contributors >= kInterManyElements; }, choice.unsure)) {
        choice.algorithm = Algorithm::kInterLinear;
      }
      return choice;
    }
    case CollectiveOp::kAllgather:
      // Assumes that both groups contribute equally much per rank.
      return {Algorithm::kInterLeaders, true};
    default:
      return {Algorithm::kInterLeaders};
  }
}

}  // namespace

Choice choose_intra_mpich(CollectiveOp op, std::uint32_t ranks, Bytes bytes, bool commutative) {
  switch (op) {
    case CollectiveOp::kBarrier:
      return {Algorithm::kDissemination};
    case CollectiveOp::kBcast:
      return {bcast(ranks, bytes, false)};
    case CollectiveOp::kReduce:
      return by_scattering(bytes, ranks, commutative, kReduceShort, Algorithm::kSubtreeBinomial,
                           Algorithm::kReduceScatterGather);
    case CollectiveOp::kAllreduce:
      return by_scattering(bytes, ranks, commutative, kAllreduceShort, Algorithm::kRecursiveDoubling,
                           Algorithm::kReduceScatterAllgather);
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return {Algorithm::kBinomial};
    case CollectiveOp::kAllgather:
      return {allgather(ranks, bytes * ranks)};
    case CollectiveOp::kAllgatherv:
      return {allgather(ranks, bytes)};
    case CollectiveOp::kAlltoall:
      return {alltoall(ranks, bytes, kAlltoallShort)};
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return {Algorithm::kScattered};
    case CollectiveOp::kReduceScatter:
      return {reduce_scatter(ranks, bytes, commutative, false)};
    case CollectiveOp::kReduceScatterBlock:
      return {reduce_scatter(ranks, bytes * ranks, commutative, true)};
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
      return {Algorithm::kRecursiveDoubling};
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
    case CollectiveOp::kNeighborAllgather:
    case CollectiveOp::kNeighborAllgatherv:
    case CollectiveOp::kNeighborAlltoall:
    case CollectiveOp::kNeighborAlltoallv:
    case CollectiveOp::kNeighborAlltoallw:
    case CollectiveOp::kCommCreate:  // has no algorithm of its own
      break;
  }
  return {Algorithm::kLinear};
}

namespace {

Choice choose_own(const CollectiveCall& call) {
  if (call.remote_size > 0) return choose_inter(call);
  const std::uint32_t ranks = call.size;
  const std::span<const std::uint64_t> values = call.values.first(std::min<std::size_t>(ranks, call.values.size()));
  switch (call.op) {
    case CollectiveOp::kBcast:
      return {bcast(ranks, call.bytes, call.nonblocking)};
    case CollectiveOp::kAllreduce:
      return by_scattering(call.bytes, ranks, call.commutative, call.nonblocking ? kIallreduceShort : kAllreduceShort,
                           Algorithm::kRecursiveDoubling, Algorithm::kReduceScatterAllgather);
    case CollectiveOp::kAlltoall:
      if (call.in_place) return {Algorithm::kSendrecvReplace};
      return {alltoall(ranks, call.bytes, call.nonblocking ? kIalltoallShort : kAlltoallShort)};
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return {call.in_place ? Algorithm::kSendrecvReplace : Algorithm::kScattered};
    case CollectiveOp::kReduceScatter:
      return {reduce_scatter(ranks, sum(values), call.commutative, are_alike(values))};
    case CollectiveOp::kReduceScatterBlock: {
      if (!call.nonblocking || !call.commutative) break;
      Choice choice{Algorithm::kRecursiveHalving};
      if (long_enough(
              call.bytes, [&](std::uint64_t n) { return n * ranks >= kReduceScatterLong; }, choice.unsure)) {
        choice.algorithm = Algorithm::kPairwise;
      }
      return choice;
    }
    case CollectiveOp::kAllgatherv:
      return {allgather(ranks, sum(values))};
    default:
      break;
  }
  return choose_intra_mpich(call.op, ranks, call.bytes, call.commutative);
}

// Where a forced algorithm does not, MPICH goes by its own rules.
bool can_take(Algorithm algorithm, const CollectiveCall& call, bool& unsure) {
  const std::uint32_t power = std::bit_floor(call.size);
  switch (algorithm) {
    case Algorithm::kRecursiveDoubling:
      return (call.op != CollectiveOp::kAllgather && call.op != CollectiveOp::kAllgatherv) || power == call.size;
    case Algorithm::kScatterDoublingAllgather:
      return power == call.size;
    case Algorithm::kReduceScatterGather:
    case Algorithm::kReduceScatterAllgather:
      return call.commutative && long_enough(
                                     call.bytes, [&](Bytes n) { return n >= power; }, unsure);
    case Algorithm::kRecursiveHalving:
    case Algorithm::kPairwise:
      return call.commutative;
    default:
      return true;
  }
}

}  // namespace

Choice choose_mpich(const CollectiveCall& call) {
  const std::optional<Algorithm> forced = forced_algorithm(call);
  if (!forced || (call.in_place && call.op == CollectiveOp::kAlltoall)) return choose_own(call);
  Choice choice{*forced};
  if (can_take(*forced, call, choice.unsure)) return choice;
  choice.algorithm = choose_own(call).algorithm;
  choice.unsure = true;
  return choice;
}

}  // namespace lbf::engine::collective
