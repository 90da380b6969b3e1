#include "skeleton/call_name.h"

namespace lbf::skeleton {

CollectiveName collective_name(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kBarrier:
      return {"Barrier", "Ibarrier", false};
    case CollectiveOp::kBcast:
      return {"Bcast", "Ibcast", false};
    case CollectiveOp::kReduce:
      return {"Reduce", "Ireduce", false};
    case CollectiveOp::kAllreduce:
    case CollectiveOp::kCommCreate:
      return {"Allreduce", "Iallreduce", false};
    case CollectiveOp::kGather:
      return {"Gather", "Igather", true};
    case CollectiveOp::kScatter:
      return {"Scatter", "Iscatter", true};
    case CollectiveOp::kAllgather:
      return {"Allgather", "Iallgather", true};
    case CollectiveOp::kAlltoall:
      return {"Alltoall", "Ialltoall", true};
    case CollectiveOp::kReduceScatterBlock:
      return {"Reduce_scatter_block", "Ireduce_scatter_block", true};
    case CollectiveOp::kScan:
      return {"Scan", "Iscan", false};
    case CollectiveOp::kExscan:
      return {"Exscan", "Iexscan", false};
    case CollectiveOp::kGatherv:
      return {"Gatherv", "Igatherv", true};
    case CollectiveOp::kScatterv:
      return {"Scatterv", "Iscatterv", true};
    case CollectiveOp::kAllgatherv:
      return {"Allgatherv", "Iallgatherv", true};
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return {"Alltoallv", "Ialltoallv", true};
    case CollectiveOp::kReduceScatter:
      return {"Reduce_scatter", "Ireduce_scatter", true};
    default:
      return {"Barrier", "Ibarrier", false};  // neighbour collectives: OperationReader refuses them
  }
}

std::string call_name(const Operation& operation) {
  const bool sync = (operation.flags & kFlagSync) != 0;
  switch (operation.kind) {
    case OperationKind::kSend:
      return (operation.flags & kFlagBuffered) != 0 ? "MPI_Bsend" : sync ? "MPI_Ssend" : "MPI_Send";
    case OperationKind::kIsend:
      return sync ? "MPI_Issend" : "MPI_Isend";
    case OperationKind::kRecv:
      return "MPI_Recv";
    case OperationKind::kIrecv:
      return "MPI_Irecv";
    case OperationKind::kWait:
      return "MPI_Wait*";
    case OperationKind::kProbe:
      return "MPI_Probe";
    case OperationKind::kCollective:
    case OperationKind::kIcollective: {
      if (operation.op == CollectiveOp::kCommCreate) return "MPI_Comm_*";
      const CollectiveName name = collective_name(operation.op);
      return std::string("MPI_") + (operation.kind == OperationKind::kIcollective ? name.nonblocking : name.blocking);
    }
    case OperationKind::kCancel:
      return "MPI_Cancel";
    case OperationKind::kRequestFree:
      return "MPI_Request_free";
    case OperationKind::kEnd:
    case OperationKind::kCompute:
      return "";
  }
  return "";
}

}  // namespace lbf::skeleton
