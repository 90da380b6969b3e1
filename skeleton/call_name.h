// The MPI function that a skeleton calls for an operation.
#pragma once

#include <string>

#include "event/event.h"
#include "skeleton/operation.h"

namespace lbf::skeleton {

// How the function's name goes on behind MPI_, and whether its buffers hold a part for each rank.
struct CollectiveName {
  const char* blocking;
  const char* nonblocking;
  bool part_for_each_rank;
};
CollectiveName collective_name(CollectiveOp op);

// "MPI_Send", "MPI_Allreduce"; all completions are "MPI_Wait*", whichever of the calls the program made,
// because operations do not tell them apart; the making of a communicator is "MPI_Comm_*". Empty for the
// program's end.
std::string call_name(const Operation& operation);

}  // namespace lbf::skeleton
