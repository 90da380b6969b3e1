// See operation.h.
#include "skeleton/operation.h"

namespace lbf::skeleton {

bool begins_request(OperationKind kind) {
  return kind == OperationKind::kIsend || kind == OperationKind::kIrecv || kind == OperationKind::kIcollective;
}

bool is_receive(OperationKind kind) {
  return kind == OperationKind::kRecv || kind == OperationKind::kIrecv || kind == OperationKind::kProbe;
}

bool has_peer(OperationKind kind) {
  switch (kind) {
    case OperationKind::kSend:
    case OperationKind::kIsend:
    case OperationKind::kRecv:
    case OperationKind::kIrecv:
    case OperationKind::kProbe:
      return true;
    default:
      return false;
  }
}

std::size_t values_needed(CollectiveOp op, std::size_t size, RootRole role) {
  switch (op) {
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return 2 * size;
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kReduceScatter:
      return size;
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
      return role == RootRole::kRoot ? size : 0;
    default:
      return 0;
  }
}

}  // namespace lbf::skeleton
