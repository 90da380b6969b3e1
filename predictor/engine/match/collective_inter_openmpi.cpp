// Open MPI's collectives on intercommunicators: coll/inter, coll/basic and coll/libnbc. See
// collective_expand.h; which one: collective_rules_openmpi.cpp.
#include <vector>

#include "predictor/engine/match/collective_arithmetic.h"
#include "predictor/engine/match/collective_inter.h"

namespace lbf::engine::collective {
namespace {

class OpenMpiInter : private InterSteps {
 public:
  OpenMpiInter(const CollectiveCall& call, std::vector<CollectiveStep>& out) : InterSteps(call, out, false) {}

  // Messages inside each group and between the first ranks of the groups.
  void by_leaders() {
    const Bytes bytes = call_.bytes;
    switch (call_.op) {
      case CollectiveOp::kBarrier:
        return allreduce(kIntBytes);
      case CollectiveOp::kAllreduce:
        return allreduce(bytes);
      case CollectiveOp::kBcast:
        return from_root(bytes, [&] { local_.bcast(0, bytes, likely_element_bytes(bytes)); });
      case CollectiveOp::kReduce:
        return to_root(bytes, bytes, [&] { local_.reduce(0, bytes, call_.commutative); });
      case CollectiveOp::kGather:
        return gather_by_leaders();
      case CollectiveOp::kScatter:
        return scatter_by_leaders();
      case CollectiveOp::kGatherv:
        return to_root(total_of_group(), total_at_root(), [this] { gather_counts_and_blocks(); });
      case CollectiveOp::kScatterv:
        return scatterv();
      case CollectiveOp::kAllgather:
        local_.gather(0, bytes);
        if (is_leader()) remote_.exchange(0, bytes * call_.size, 0, bytes * call_.remote_size);
        return local_.bcast(0, bytes * call_.remote_size, likely_element_bytes(bytes));
      case CollectiveOp::kAllgatherv:
        return allgatherv();
      default:  // reduce_scatter, reduce_scatter_block
        return reduce_scatter();
    }
  }

  // Messages straight to the ranks of the other group.
  void linear() {
    const Bytes bytes = call_.bytes;
    switch (call_.op) {
      case CollectiveOp::kBarrier:
        return barrier();
      case CollectiveOp::kAllreduce:
        return allreduce_linear(bytes);
      case CollectiveOp::kReduceScatter:
      case CollectiveOp::kReduceScatterBlock:
        return reduce_scatter();
      case CollectiveOp::kBcast:
      case CollectiveOp::kScatter:
      case CollectiveOp::kScatterv:
        return straight_rooted(false, true);
      case CollectiveOp::kReduce:
      case CollectiveOp::kGather:
      case CollectiveOp::kGatherv:
        return straight_rooted(true, true);
      case CollectiveOp::kAllgather:
      case CollectiveOp::kAlltoall:
        for_all_remote([&](std::uint32_t peer) { remote_.send(peer, bytes); });
        return for_all_remote([&](std::uint32_t peer) { remote_.recv(peer, bytes); });
      case CollectiveOp::kAllgatherv:
        for_all_remote([&](std::uint32_t peer) {
          if (bytes > 0) remote_.send(peer, bytes);
        });
        return for_all_remote([&](std::uint32_t peer) { recv_unless_empty(peer, call_.values[peer]); });
      default: {  // alltoallv, alltoallw
        for_all_remote([&](std::uint32_t peer) {
          if (call_.values[peer] > 0) remote_.send(peer, call_.values[peer]);
        });
        return for_all_remote(
            [&](std::uint32_t peer) { recv_unless_empty(peer, call_.values[call_.remote_size + peer]); });
      }
    }
  }

 private:
  void recv_unless_empty(std::uint32_t peer, Bytes bytes) {
    if (bytes > 0) remote_.recv(peer, bytes);
  }

  // What all ranks of my group have together, as far as this rank knows: as much as it has itself.
  Bytes total_of_group() const { return call_.bytes * call_.size; }

  // What gatherv and scatterv move, as the root knows; of no meaning elsewhere.
  Bytes total_at_root() const { return is_root() ? sum(call_.values.first(call_.remote_size)) : 0; }

  // The leader learns the counts, then gets the blocks. Blocks without bytes are sent here, not by the
  // library: this rank does not know which of the others are.
  void gather_counts_and_blocks() {
    local_.gather(0, kIntBytes);
    const std::vector<std::uint64_t> alike(is_leader() ? call_.size : 0, call_.bytes);
    local_.gather_linear(0, call_.bytes, alike, true);
  }

  // The leader is told the counts, gets everything and deals it out.
  void scatterv() {
    if (is_root()) {
      remote_.send(0, kIntBytes * call_.remote_size);
      return remote_.send(0, total_at_root());
    }
    if (takes_no_part()) return;
    if (is_leader()) {
      remote_.recv(root(), kIntBytes * call_.size);
      remote_.recv(root(), total_of_group());
    }
    const std::vector<std::uint64_t> alike(is_leader() ? call_.size : 0, call_.bytes);
    local_.scatter_linear(0, call_.bytes, alike, true);
  }

  void allgatherv() {
    gather_counts_and_blocks();
    const Bytes theirs = sum(call_.values.first(call_.remote_size));
    if (is_leader()) remote_.exchange(0, total_of_group(), 0, theirs);
    if (theirs > 0) local_.bcast(0, theirs, theirs);  // sent as one element of an indexed datatype
  }

  void allreduce(Bytes bytes) {
    local_.reduce(0, bytes, call_.commutative);
    if (is_leader()) remote_.exchange(0, bytes, 0, bytes);
    local_.bcast(0, bytes, likely_element_bytes(bytes));
  }

  void allreduce_linear(Bytes bytes) {
    remote_.exchange(0, bytes, 0, bytes);
    if (!is_leader()) return;
    for (std::uint32_t peer = 1; peer < call_.remote_size; ++peer) {
      remote_.recv(peer, bytes);
      remote_.combine(bytes);
    }
    remote_.exchange(0, bytes, 0, bytes);
    for (std::uint32_t peer = 1; peer < call_.remote_size; ++peer) remote_.send(peer, bytes);
  }

  void barrier() {
    remote_.send(0, 0);
    if (is_leader()) {
      for (std::uint32_t peer = 1; peer < call_.remote_size; ++peer) remote_.recv(peer, 0);
    }
    remote_.recv(0, 0);
    if (is_leader()) {
      for (std::uint32_t peer = 1; peer < call_.remote_size; ++peer) remote_.send(peer, 0);
    }
  }

  // Every rank sends its vector to the other group's leader, who combines them and hands out the parts.
  void reduce_scatter() {
    const bool alike = call_.op == CollectiveOp::kReduceScatterBlock;
    const Values parts = call_.values;
    const Bytes total = alike ? call_.bytes * call_.size : sum(parts.first(call_.size));
    if (total == 0) return;
    remote_.send(0, total);
    if (is_leader()) {
      for_all_remote([&](std::uint32_t peer) {
        remote_.recv(peer, total);
        if (peer > 0) remote_.combine(total);
      });
    }
    if (alike && !call_.nonblocking) return local_.scatter(0, call_.bytes);
    const std::vector<std::uint64_t> all_alike(alike && is_leader() ? call_.size : 0, call_.bytes);
    local_.scatter_linear(0, alike ? call_.bytes : parts[call_.rank], alike ? Values(all_alike) : parts,
                          call_.nonblocking);
  }
};

}  // namespace

void expand_inter_openmpi(const CollectiveCall& call, Algorithm algorithm, std::vector<CollectiveStep>& out) {
  OpenMpiInter steps(call, out);
  return algorithm == Algorithm::kInterLeaders ? steps.by_leaders() : steps.linear();
}

}  // namespace lbf::engine::collective
