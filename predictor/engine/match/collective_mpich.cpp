// MPICH's collectives, see collective_expand.h. Which algorithm: collective_rules_mpich.cpp.
#include <algorithm>
#include <vector>

#include "predictor/engine/match/collective_arithmetic.h"
#include "predictor/engine/match/collective_inter.h"

namespace lbf::engine::collective {
namespace {

constexpr Bytes kPieceBytes = 32 * 1024;  // MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE

// How allgatherv's ring cuts its blocks.
Bytes piece_bytes(Values blocks, bool nonblocking) {
  const auto [smallest, largest] = std::minmax_element(blocks.begin(), blocks.end());
  const Bytes piece_bytes = length_of_pieces(sum(blocks), kPieceBytes);
  if (nonblocking) return std::max<Bytes>(*smallest, piece_bytes);
  return std::min<Bytes>(*largest, piece_bytes);
}

void allgatherv(const CollectiveCall& call, Algorithm algorithm, GroupSteps& steps) {
  const Values blocks = call.values.first(call.size);
  if (sum(blocks) == 0) return;
  if (algorithm == Algorithm::kRing) {
    return steps.allgatherv_pieces(Blocks(blocks), piece_bytes(blocks, call.nonblocking));
  }
  steps.allgather(algorithm, Blocks(blocks));
}

void reduce_scatter(const CollectiveCall& call, Algorithm algorithm, GroupSteps& steps) {
  const bool alike = call.op == CollectiveOp::kReduceScatterBlock;
  const Blocks blocks = alike ? Blocks(call.bytes) : Blocks(call.values.first(call.size));
  if (blocks.range(0, call.size) == 0) return;
  switch (algorithm) {
    case Algorithm::kRecursiveHalving:
      return steps.reduce_scatter_recursive_halving(blocks);
    case Algorithm::kPairwise:
      return steps.reduce_scatter_pairwise(blocks);
    case Algorithm::kNoncommutative:
      return steps.reduce_scatter_noncommutative(blocks.of(0));
    default:
      return steps.reduce_scatter_recursive_doubling(blocks);
  }
}

void expand_intra(const CollectiveCall& call, Algorithm algorithm, GroupSteps& steps) {
  const auto root = static_cast<std::uint32_t>(call.root);
  switch (call.op) {
    case CollectiveOp::kBarrier:
      return steps.barrier_dissemination();
    case CollectiveOp::kBcast:
      return steps.bcast(algorithm, root, call.bytes, 1);
    case CollectiveOp::kReduce:
      if (algorithm == Algorithm::kSubtreeBinomial) {
        return steps.reduce_subtree_binomial(root, call.bytes, call.commutative);
      }
      return expand_alike(call, algorithm, steps);
    case CollectiveOp::kAllgatherv:
      return allgatherv(call, algorithm, steps);
    case CollectiveOp::kAlltoall:
      if (algorithm == Algorithm::kScattered || algorithm == Algorithm::kSendrecvReplace) {
        const std::vector<std::uint64_t> all_alike(call.size, call.bytes);
        if (algorithm == Algorithm::kSendrecvReplace) {
          return steps.alltoallv_sendrecv_replace(all_alike, false);
        }
        return steps.alltoallv_scattered(all_alike, all_alike, true);
      }
      return steps.alltoall(algorithm, call.bytes);
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw: {
      const Values received = call.values.subspan(call.size);
      if (algorithm == Algorithm::kSendrecvReplace) {
        return steps.alltoallv_sendrecv_replace(received, call.nonblocking);
      }
      return steps.alltoallv_scattered(call.values.first(call.size), received, false);
    }
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kReduceScatterBlock:
      return reduce_scatter(call, algorithm, steps);
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
      return steps.scan_recursive_doubling(call.bytes, call.op == CollectiveOp::kExscan, call.commutative);
    default:
      return expand_alike(call, algorithm, steps);
  }
}

// Where both groups do the same for each other, the one with the lower ranks is served first.
class MpichInter : private InterSteps {
 public:
  MpichInter(const CollectiveCall& call, std::vector<CollectiveStep>& out) : InterSteps(call, out, call.nonblocking) {}

  void by_leaders() {
    const Bytes bytes = call_.bytes;
    switch (call_.op) {
      case CollectiveOp::kBarrier:
        if (call_.size > 1) local_.barrier_dissemination();
        return bcast_both_ways(kSignalBytes, kSignalBytes);
      case CollectiveOp::kBcast:
        return from_root(bytes, [&] { bcast_to_group(bytes); });
      case CollectiveOp::kReduce:
        return to_root(bytes, bytes, [&] { local_.reduce(0, bytes, call_.commutative); });
      case CollectiveOp::kAllreduce:
        if (call_.nonblocking) {
          reduce_both_ways(bytes);
        } else {
          local_.reduce(0, bytes, call_.commutative);
          if (is_leader()) remote_.exchange(0, bytes, 0, bytes);
        }
        return bcast_inside(bytes);
      case CollectiveOp::kGather:
        return gather_by_leaders();
      case CollectiveOp::kScatter:
        return scatter_by_leaders();
      case CollectiveOp::kAllgather:
        local_.gather(0, bytes);
        return bcast_both_ways(bytes * call_.size, bytes * call_.remote_size);
      case CollectiveOp::kAllgatherv:
        gatherv_both_ways();
        return bcast_inside(sum(call_.values.first(call_.remote_size)));
      default:
        return reduce_scatter();
    }
  }

  // Straight between the root and the ranks of the other group.
  void linear() { straight_rooted(call_.op == CollectiveOp::kGather || call_.op == CollectiveOp::kGatherv, false); }

  // alltoall, alltoallv, alltoallw
  void pairwise() {
    const bool alike = call_.op == CollectiveOp::kAlltoall;
    const std::uint32_t rounds = std::max(call_.size, call_.remote_size);
    const bool empty_too = call_.op != CollectiveOp::kAlltoallv || !call_.nonblocking;
    for (std::uint32_t step = 0; step < rounds; ++step) {
      const std::uint32_t to = (call_.rank + step) % rounds;
      const std::uint32_t from = (call_.rank + rounds - step) % rounds;
      if (to < call_.remote_size) {
        const Bytes sent = alike ? call_.bytes : call_.values[to];
        if (sent > 0 || empty_too) remote_.send(to, sent);
      }
      if (from < call_.remote_size) {
        const Bytes received = alike ? call_.bytes : call_.values[call_.remote_size + from];
        if (received > 0 || empty_too) remote_.recv(from, received);
      }
    }
  }

 private:
  void bcast_inside(Bytes bytes) {
    if (call_.size < 2 || bytes == 0) return;
    CollectiveCall inside;
    inside.op = CollectiveOp::kBcast;
    inside.library = call_.library;
    inside.nonblocking = call_.nonblocking;
    inside.size = call_.size;
    inside.bytes = bytes;
    local_.bcast(choose(inside).algorithm, 0, bytes, 1);
  }
  void bcast_from(std::uint32_t remote_root, Bytes bytes) {
    if (is_leader()) remote_.recv(remote_root, bytes);
    bcast_to_group(bytes);
  }
  // What the leader got.
  void bcast_to_group(Bytes bytes) {
    if (!call_.nonblocking) return bcast_inside(bytes);
    if (call_.size > 1) local_.bcast(Algorithm::kSubtreeBinomial, 0, bytes, 1);
  }
  void reduce_to(std::uint32_t remote_root, Bytes bytes) {
    local_.reduce(0, bytes, call_.commutative);
    if (is_leader()) remote_.send(remote_root, bytes);
  }

  // What the leader of my group has goes to all of the other group, and the other way round.
  void bcast_both_ways(Bytes mine, Bytes theirs) {
    if (call_.low_group && is_leader()) remote_.send(0, mine);
    bcast_from(0, theirs);
    if (!call_.low_group && is_leader()) remote_.send(0, mine);
  }
  void reduce_both_ways(Bytes bytes) {
    if (call_.low_group && is_leader() && !call_.nonblocking) remote_.recv(0, bytes);
    reduce_to(0, bytes);
    if (is_leader() && (!call_.low_group || call_.nonblocking)) remote_.recv(0, bytes);
  }
  void gatherv_both_ways() {
    const auto collect = [&] {
      for (std::uint32_t peer = 0; is_leader() && peer < call_.remote_size; ++peer) {
        if (call_.values[peer] > 0) remote_.recv(peer, call_.values[peer]);
      }
    };
    if (call_.low_group) collect();
    if (call_.bytes > 0) remote_.send(0, call_.bytes);
    if (!call_.low_group) collect();
  }

  void reduce_scatter() {
    const bool alike = call_.op == CollectiveOp::kReduceScatterBlock;
    const Values parts = call_.values;
    const Bytes total = alike ? call_.bytes * call_.size : sum(parts.first(call_.size));
    if (total == 0) return;
    reduce_both_ways(total);
    if (alike) return local_.scatter(0, call_.bytes);
    local_.scatter_linear(0, parts[call_.rank], parts, false);
  }
};

}  // namespace

void expand_mpich(const CollectiveCall& call, Algorithm algorithm, std::span<const std::uint32_t> members,
                  std::vector<CollectiveStep>& out) {
  if (call.remote_size == 0) {
    GroupSteps steps(out, call.rank, call.size, false, call.library, call.nonblocking, members, local_work_of(call));
    return expand_intra(call, algorithm, steps);
  }
  MpichInter steps(call, out);
  if (algorithm == Algorithm::kInterPairwise) return steps.pairwise();
  if (algorithm == Algorithm::kInterLinear) return steps.linear();
  steps.by_leaders();
}

}  // namespace lbf::engine::collective
