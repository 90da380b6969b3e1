#include "tools/trace/otf2_records.h"

#include <algorithm>
#include <numeric>

#include "event/collective_op.h"

namespace lbf::tools {
namespace {

std::optional<OTF2_CollectiveOp> operation(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kBarrier:
      return OTF2_COLLECTIVE_OP_BARRIER;
    case CollectiveOp::kBcast:
      return OTF2_COLLECTIVE_OP_BCAST;
    case CollectiveOp::kReduce:
      return OTF2_COLLECTIVE_OP_REDUCE;
    case CollectiveOp::kAllreduce:
      return OTF2_COLLECTIVE_OP_ALLREDUCE;
    case CollectiveOp::kGather:
      return OTF2_COLLECTIVE_OP_GATHER;
    case CollectiveOp::kScatter:
      return OTF2_COLLECTIVE_OP_SCATTER;
    case CollectiveOp::kAllgather:
      return OTF2_COLLECTIVE_OP_ALLGATHER;
    case CollectiveOp::kAlltoall:
      return OTF2_COLLECTIVE_OP_ALLTOALL;
    case CollectiveOp::kReduceScatterBlock:
      return OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK;
    case CollectiveOp::kScan:
      return OTF2_COLLECTIVE_OP_SCAN;
    case CollectiveOp::kExscan:
      return OTF2_COLLECTIVE_OP_EXSCAN;
    case CollectiveOp::kGatherv:
      return OTF2_COLLECTIVE_OP_GATHERV;
    case CollectiveOp::kScatterv:
      return OTF2_COLLECTIVE_OP_SCATTERV;
    case CollectiveOp::kAllgatherv:
      return OTF2_COLLECTIVE_OP_ALLGATHERV;
    case CollectiveOp::kAlltoallv:
      return OTF2_COLLECTIVE_OP_ALLTOALLV;
    case CollectiveOp::kAlltoallw:
      return OTF2_COLLECTIVE_OP_ALLTOALLW;
    case CollectiveOp::kReduceScatter:
      return OTF2_COLLECTIVE_OP_REDUCE_SCATTER;
    case CollectiveOp::kCommCreate:
      return OTF2_COLLECTIVE_OP_CREATE_HANDLE;
    default:
      return std::nullopt;
  }
}

std::uint64_t sum(std::span<const std::uint64_t> values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

}  // namespace

std::optional<Otf2Collective> otf2_collective(const Event& event, std::uint32_t rank, std::uint32_t peers) {
  const std::optional<OTF2_CollectiveOp> op = operation(collective_op(event));
  if (!op) return std::nullopt;
  Otf2Collective made;
  made.op = *op;
  bool is_root = false;
  if (is_rooted(collective_op(event))) {
    is_root = event.root == kRootIsMe || event.root == static_cast<Rank>(rank);
    made.root = event.root == kRootIsMe ? OTF2_COLLECTIVE_ROOT_SELF
                : event.root < 0        ? OTF2_COLLECTIVE_ROOT_THIS_GROUP
                                        : static_cast<std::uint32_t>(event.root);
  }
  const std::uint64_t bytes = event.bytes;
  const std::uint64_t to_all = bytes * peers;
  const std::size_t half = event.values.size() / 2;
  const auto set = [&made](std::uint64_t sent, std::uint64_t received) {
    made.sent_bytes = sent;
    made.received_bytes = received;
  };
  switch (collective_op(event)) {
    case CollectiveOp::kBarrier:
    case CollectiveOp::kCommCreate:
      break;
    case CollectiveOp::kBcast:
    case CollectiveOp::kScatter:
      set(is_root ? to_all : 0, bytes);
      break;
    case CollectiveOp::kReduce:
    case CollectiveOp::kGather:
      set(bytes, is_root ? to_all : 0);
      break;
    case CollectiveOp::kGatherv:
      set(bytes, is_root ? sum(event.values) : 0);
      break;
    case CollectiveOp::kScatterv:
      set(is_root ? sum(event.values) : 0, bytes);
      break;
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
      set(bytes, bytes);
      break;
    case CollectiveOp::kAllgatherv:
      set(to_all, sum(event.values));
      break;
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      set(sum(event.values.first(half)), sum(event.values.subspan(half)));
      break;
    case CollectiveOp::kReduceScatter:
      set(sum(event.values), rank < event.values.size() ? event.values[rank] * peers : 0);
      break;
    default:
      set(to_all, to_all);
  }
  return made;
}

OTF2_RegionRole otf2_role(const Event& event) {
  if (is_point_to_point(event.kind)) return OTF2_REGION_ROLE_POINT2POINT;
  if (!is_collective(event.kind)) return OTF2_REGION_ROLE_FUNCTION;
  switch (collective_op(event)) {
    case CollectiveOp::kBarrier:
      return OTF2_REGION_ROLE_BARRIER;
    case CollectiveOp::kBcast:
    case CollectiveOp::kScatter:
    case CollectiveOp::kScatterv:
      return OTF2_REGION_ROLE_COLL_ONE2ALL;
    case CollectiveOp::kReduce:
    case CollectiveOp::kGather:
    case CollectiveOp::kGatherv:
      return OTF2_REGION_ROLE_COLL_ALL2ONE;
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
    case CollectiveOp::kCommCreate:
      return OTF2_REGION_ROLE_COLL_OTHER;
    default:
      return OTF2_REGION_ROLE_COLL_ALL2ALL;
  }
}

void Otf2Communicators::define(const Event& event) {
  if (event.values.size() < 3 || event.comm == 0) return;
  if (event.comm >= communicators_.size()) communicators_.resize(event.comm + std::size_t{1});
  WrittenCommunicator& made = communicators_[event.comm];
  if (made.members != nullptr) return;
  const std::span<const std::uint64_t> all = event.values.subspan(2);
  const std::size_t local = event.values[1] > 0 && event.values[1] < all.size() ? event.values[1] : all.size();
  const bool is_inter = local < all.size();
  made.ref = archive_.communicator(all.first(local), all.subspan(local));
  std::shared_ptr<const Members>& members = known_[{event.values.begin() + 1, event.values.end()}];
  if (members == nullptr) {
    Members list;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_local = i < local;
      const std::size_t peers = is_inter == is_local ? all.size() - local : local;
      list.push_back(
          {all[i], {static_cast<std::uint32_t>(is_local ? i : i - local), static_cast<std::uint32_t>(peers)}});
    }
    std::sort(list.begin(), list.end(), [](const Member& a, const Member& b) { return a.world_rank < b.world_rank; });
    members = std::make_shared<const Members>(std::move(list));
  }
  made.members = members;
}

OTF2_CommRef Otf2Communicators::ref(std::uint32_t comm) const {
  if (comm == 0) return Otf2Archive::kWorld;
  return comm < communicators_.size() ? communicators_[comm].ref : OTF2_UNDEFINED_COMM;
}

Otf2Communicators::Place Otf2Communicators::place(std::uint32_t comm, Rank world_rank) const {
  if (comm == 0) return {static_cast<std::uint32_t>(world_rank), static_cast<std::uint32_t>(world_ranks_)};
  if (comm >= communicators_.size() || communicators_[comm].members == nullptr) return {};
  const Members& members = *communicators_[comm].members;
  const auto found =
      std::lower_bound(members.begin(), members.end(), static_cast<std::uint64_t>(world_rank),
                       [](const Member& member, std::uint64_t rank) { return member.world_rank < rank; });
  if (found == members.end() || found->world_rank != static_cast<std::uint64_t>(world_rank)) return {};
  return found->place;
}

}  // namespace lbf::tools
