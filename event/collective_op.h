// What collective operations have in common.
#pragma once

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

}  // namespace lbf
