// What collective operations have in common.
#pragma once

#include <array>
#include <string_view>

#include "event/event.h"

namespace lbf {

// One rank has a part of its own: Event::root says which.
constexpr bool is_rooted(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kBcast:
    case CollectiveOp::kReduce:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
      return true;
    default:
      return false;
  }
}

constexpr bool is_neighbour(CollectiveOp op) {
  return op >= CollectiveOp::kNeighborAllgather && op <= CollectiveOp::kNeighborAlltoallw;
}

// The byte counts come as values.
constexpr bool has_byte_counts(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
    case CollectiveOp::kReduceScatter:
      return true;
    default:
      return is_neighbour(op);
  }
}

// "allreduce", as a trace's reader knows it.
constexpr std::string_view name_of(CollectiveOp op) {
  constexpr std::array<std::string_view, kCollectiveOpCount> kNames{"barrier",
                                                                    "bcast",
                                                                    "reduce",
                                                                    "allreduce",
                                                                    "gather",
                                                                    "scatter",
                                                                    "allgather",
                                                                    "alltoall",
                                                                    "reduce_scatter_block",
                                                                    "scan",
                                                                    "exscan",
                                                                    "gatherv",
                                                                    "scatterv",
                                                                    "allgatherv",
                                                                    "alltoallv",
                                                                    "alltoallw",
                                                                    "reduce_scatter",
                                                                    "neighbor_allgather",
                                                                    "neighbor_allgatherv",
                                                                    "neighbor_alltoall",
                                                                    "neighbor_alltoallv",
                                                                    "neighbor_alltoallw",
                                                                    "comm_create"};
  const auto number = static_cast<std::size_t>(op);
  return number < kNames.size() ? kNames[number] : "unknown";
}

}  // namespace lbf
