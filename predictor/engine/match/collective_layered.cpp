// Collectives that go by the nodes: coll/han of Open MPI 5.0 and 6.0 and MPICH's SMP-aware compositions. Each consists
// of ordinary collectives among the ranks of a node and among those ranks of different nodes that have the
// same place there. docs/collectives.md, "By nodes".
#include <algorithm>

#include "predictor/engine/match/collective_arithmetic.h"
#include "predictor/engine/match/collective_expand.h"
#include "predictor/engine/match/collective_rules_common.h"

namespace lbf::engine::collective {
namespace {

constexpr Bytes kHanSegmentBytes = 64 * kKiB;
constexpr Bytes kSmpBcastShort = 12 * kKiB;
constexpr Bytes kSmpBcastLong = 512 * kKiB;
constexpr Bytes kSmpReduceShort = 2 * kKiB;

bool han_handles(const CollectiveCall& call) {
  if (call.nonblocking) return false;
  switch (call.op) {
    case CollectiveOp::kBarrier:
    case CollectiveOp::kBcast:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
    case CollectiveOp::kAllgather:
      return true;
    case CollectiveOp::kReduce:
    case CollectiveOp::kAllreduce:
      return call.commutative;
    default:
      return false;
  }
}

bool han_handles(const CollectiveCall& call, const NodeLayout& layout) {
  if (layout.nodes() == 1 || layout.most_per_node() == 1) return false;
  const bool any_layout = call.op == CollectiveOp::kBarrier || call.op == CollectiveOp::kAllreduce;
  return any_layout || layout.is_balanced();
}

// What 6.0's han takes besides. It is not modelled: a node's first rank learns how much the others have, alltoall and
// alltoallv need ranks that can map each other's memory (XPMEM).
bool han_may_handle(const CollectiveCall& call) {
  if (call.library != MpiLibrary::kOpenMpi6 || call.nonblocking) return false;
  return call.op == CollectiveOp::kGatherv || call.op == CollectiveOp::kScatterv ||
         (!call.in_place && (call.op == CollectiveOp::kAlltoall || call.op == CollectiveOp::kAlltoallv));
}

bool smp_handles(const CollectiveCall& call) {
  switch (call.op) {
    case CollectiveOp::kBarrier:
      return !call.nonblocking;
    case CollectiveOp::kBcast: {
      if (call.nonblocking || call.size < kMpichBcastManyRanks || call.bytes < kSmpBcastShort) return true;
      const bool power_of_two = (call.size & (call.size - 1)) == 0;
      return power_of_two && call.bytes < kSmpBcastLong;
    }
    case CollectiveOp::kReduce:
      return call.commutative;
    case CollectiveOp::kAllreduce:
      return call.commutative && !call.nonblocking;
    default:
      return false;
  }
}

class Layers {
 public:
  Layers(const CollectiveCall& call, std::vector<CollectiveStep>& out)
      : call_(call), layout_(*call.layout), out_(out) {}

  void han() {
    const auto root = static_cast<std::uint32_t>(std::max(call_.root, 0));
    const std::uint32_t leader = is_rooted() ? layout_.local_rank_of(root) : 0;
    const std::uint32_t root_node = is_rooted() ? place_of_node(root) : 0;
    const Bytes bytes = call_.bytes;
    const std::uint32_t per_node = layout_.most_per_node();
    switch (call_.op) {
      case CollectiveOp::kBarrier:
        low(CollectiveOp::kBarrier, 0, 0);
        up(0, CollectiveOp::kBarrier, 0, 0);
        return low(CollectiveOp::kBarrier, 0, 0);
      case CollectiveOp::kBcast:
        // The next segment goes between the nodes while this one spreads on them.
        up(leader, CollectiveOp::kBcast, root_node, segment(0));
        for (Bytes i = 0; i < segments() && goes_on(); ++i) {
          if (i + 1 < segments()) up(leader, CollectiveOp::kBcast, root_node, segment(i + 1), true);
          low(CollectiveOp::kBcast, leader, segment(i));
        }
        return;
      case CollectiveOp::kReduce:
        low(CollectiveOp::kReduce, leader, segment(0));
        for (Bytes i = 0; i < segments() && goes_on(); ++i) {
          up(leader, CollectiveOp::kReduce, root_node, segment(i), true);
          if (i + 1 < segments()) low(CollectiveOp::kReduce, leader, segment(i + 1));
        }
        return;
      case CollectiveOp::kAllreduce:
        // Four stages, each a segment behind the one before it.
        for (Bytes i = 0; i < segments() + 3 && goes_on(); ++i) {
          if (has_segment(i, 2)) up(0, CollectiveOp::kBcast, 0, segment(i - 2), true);
          if (has_segment(i, 1)) up(0, CollectiveOp::kReduce, 0, segment(i - 1), true);
          if (has_segment(i, 0)) low(CollectiveOp::kReduce, 0, segment(i));
          if (has_segment(i, 3)) low(CollectiveOp::kBcast, 0, segment(i - 3));
        }
        return;
      case CollectiveOp::kGather:
        low(CollectiveOp::kGather, leader, bytes);
        return up(leader, CollectiveOp::kGather, root_node, bytes * per_node);
      case CollectiveOp::kScatter:
        up(leader, CollectiveOp::kScatter, root_node, bytes * per_node);
        return low(CollectiveOp::kScatter, leader, bytes);
      default:  // allgather
        low(CollectiveOp::kGather, 0, bytes);
        up(0, CollectiveOp::kAllgather, 0, bytes * per_node);
        return low(CollectiveOp::kBcast, 0, bytes * call_.size);
    }
  }

  void smp() {
    const auto root = static_cast<std::uint32_t>(std::max(call_.root, 0));
    const bool on_root_node = layout_.node_of(call_.rank) == layout_.node_of(root);
    const std::uint32_t root_local = layout_.local_rank_of(root);
    const Bytes bytes = call_.bytes;
    switch (call_.op) {
      case CollectiveOp::kBarrier:
        low(CollectiveOp::kBarrier, 0, 0);
        up(0, CollectiveOp::kBarrier, 0, 0);
        return low(CollectiveOp::kBcast, 0, kSignalBytes);
      case CollectiveOp::kAllreduce:
        if (layout_.nodes() == 1) return low(CollectiveOp::kAllreduce, 0, bytes, call_.in_place);
        low(CollectiveOp::kReduce, 0, bytes, call_.in_place);  // copies where the rank is alone
        up(0, CollectiveOp::kAllreduce, 0, bytes, false, true);
        return low(CollectiveOp::kBcast, 0, bytes);
      case CollectiveOp::kBcast: {
        const bool straight_to_leader =
            call_.nonblocking || call_.size < kMpichBcastManyRanks || bytes < kSmpBcastShort;
        const bool first_on_root_node = !straight_to_leader && root_local > 0;
        if (straight_to_leader && root_local > 0) pass(root, leader_of(root));
        if (first_on_root_node && on_root_node) low(CollectiveOp::kBcast, root_local, bytes);
        up(0, CollectiveOp::kBcast, layout_.node_of(root), bytes);
        if (!(first_on_root_node && on_root_node)) low(CollectiveOp::kBcast, 0, bytes);
        return;
      }
      default: {  // reduce
        const bool root_node_last = call_.nonblocking || bytes <= kSmpReduceShort;
        const bool shares_node = layout_.ranks_of_node(layout_.node_of(call_.rank)).size() > 1;
        // The second of two reductions has a rank's vector where the first one left it.
        if (!root_node_last) {
          if (shares_node) low(CollectiveOp::kReduce, 0, bytes, call_.in_place);
          up(0, CollectiveOp::kReduce, 0, bytes, false, shares_node || call_.in_place);
          if (root != 0) pass(0, root);
          return;
        }
        if (shares_node && !on_root_node) low(CollectiveOp::kReduce, 0, bytes);
        up(0, CollectiveOp::kReduce, layout_.node_of(root), bytes, false, call_.in_place);
        if (shares_node && on_root_node) {
          low(CollectiveOp::kReduce, root_local, bytes, root_local == 0 || call_.in_place);
        }
      }
    }
  }

 private:
  bool is_rooted() const {
    return call_.op == CollectiveOp::kBcast || call_.op == CollectiveOp::kReduce || call_.op == CollectiveOp::kGather ||
           call_.op == CollectiveOp::kScatter;
  }
  std::uint32_t place_of_node(std::uint32_t rank) const { return layout_.place_among_peers(rank); }
  std::uint32_t leader_of(std::uint32_t rank) const { return layout_.ranks_of_node(layout_.node_of(rank)).front(); }

  Bytes segment_bytes() const { return length_of_pieces(call_.bytes, kHanSegmentBytes); }
  Bytes segments() const { return std::max<Bytes>((call_.bytes + segment_bytes() - 1) / segment_bytes(), 1); }
  Bytes segment(Bytes index) const { return std::min(segment_bytes(), call_.bytes - index * segment_bytes()); }
  // Each segment is whole collectives, whose steps are what the budget counts.
  bool goes_on() {
    const std::size_t more = out_.size() - counted_;
    counted_ = out_.size();
    return call_.budget == nullptr || call_.budget->spend(more);
  }
  // Whether a stage that is `behind` segments behind has one in round `i`.
  bool has_segment(Bytes i, Bytes behind) const { return i >= behind && i - behind < segments(); }

  CollectiveCall part(CollectiveOp op, std::uint32_t root, Bytes bytes, bool in_place) const {
    CollectiveCall call;
    call.op = op;
    call.bytes = bytes;
    call.root = static_cast<Rank>(root);
    call.settings = call_.settings;
    call.library = call_.library;  // without a layout: coll/tuned and coll/libnbc decide
    call.nonblocking = call_.nonblocking;
    call.local_work = call_.local_work;
    call.in_place = in_place;
    return call;
  }
  // Among the ranks of my node.
  void low(CollectiveOp op, std::uint32_t root, Bytes bytes, bool in_place = false) {
    const auto members = layout_.ranks_of_node(layout_.node_of(call_.rank));
    CollectiveCall call = part(op, root, bytes, in_place);
    call.rank = layout_.local_rank_of(call_.rank);
    call.size = static_cast<std::uint32_t>(members.size());
    expand_inside(call, members, out_);
  }
  // Among the ranks with place `local_rank` on their nodes.
  void up(std::uint32_t local_rank, CollectiveOp op, std::uint32_t root, Bytes bytes, bool nonblocking = false,
          bool in_place = false) {
    if (layout_.local_rank_of(call_.rank) != local_rank) return;
    const auto members = layout_.ranks_at(local_rank);
    CollectiveCall call = part(op, root, bytes, in_place);
    call.rank = layout_.place_among_peers(call_.rank);
    call.size = static_cast<std::uint32_t>(members.size());
    call.nonblocking |= nonblocking;
    expand_inside(call, members, out_);
  }
  void pass(std::uint32_t from, std::uint32_t to) {
    if (call_.rank == from) out_.push_back({CollectiveStep::Kind::kSend, to, call_.bytes});
    if (call_.rank == to) out_.push_back({CollectiveStep::Kind::kRecv, from, call_.bytes});
  }

  const CollectiveCall& call_;
  const NodeLayout& layout_;
  std::vector<CollectiveStep>& out_;
  std::size_t counted_ = 0;
};

}  // namespace

Choice by_nodes(const CollectiveCall& call) {
  Choice flat;
  if (call.remote_size > 0) return flat;
  const bool han = has_han(call.library);
  if (han && call.settings != nullptr && call.settings->without_han) return flat;
  const bool layered = han ? han_handles(call) : is_mpich(call.library) && smp_handles(call);
  if (!layered && !han_may_handle(call)) return flat;
  if (call.layout == nullptr) {
    flat.unsure = call.size > 1;
    return flat;
  }
  flat.unsure = han ? han_handles(call, *call.layout) : call.layout->most_per_node() > 1;
  if (flat.unsure && layered) flat.algorithm = han ? Algorithm::kHan : Algorithm::kSmp;
  return flat;
}

void expand_by_nodes(const CollectiveCall& call, std::vector<CollectiveStep>& out) {
  Layers layers(call, out);
  return has_han(call.library) ? layers.han() : layers.smp();
}

}  // namespace lbf::engine::collective
