// Collectives as the messages of the algorithm that the MPI library would have chosen (mpi_library.h
// has those that are known). Documented in docs/collectives.md.
//
// Place in the event's way: match (the matcher asks for one rank's part, and pairs the messages by
// (communicator, collective number, source, destination, order)).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "event/mpi_function_table.h"
#include "predictor/engine/match/mpi_library.h"
#include "predictor/engine/match/node_layout.h"
#include "predictor/engine/match/work_budget.h"

namespace lbf::engine {

// One step of one rank's part. The algorithms' "send and receive at once" (sendrecv) is kSend, then kRecv: an
// eager send does not wait. kStepPost/kWaitAll are not needed: a receive waits for its own message only.
struct CollectiveStep {
  enum class Kind : std::uint8_t {
    kSend,
    kRecv,
    kCopy,    // the rank copies `bytes` in its memory ...
    kReduce,  // ... or combines two operands of `bytes` each; never of 0 bytes, only with `local_work`
  } kind;
  std::uint32_t peer;  // rank in the communicator (intercommunicator: rank in the remote group); kCopy, kReduce: 0
  Bytes bytes;
  bool local_group = false;  // intercommunicator only: `peer` is a rank in my *own* group (the library
                             // reduces and broadcasts inside each group before and after the leaders talk)
};

struct CollectiveCall {
  CollectiveOp op = CollectiveOp::kBarrier;
  bool nonblocking = false;
  std::uint32_t rank = 0;                   // my rank in the communicator (intercommunicator: in my group)
  std::uint32_t size = 1;                   // of the communicator (intercommunicator: of my group)
  std::uint32_t remote_size = 0;            // > 0: intercommunicator
  bool low_group = false;                   // intercommunicator: my group's first world rank is the lower one
  Rank root = 0;                            // rank in comm; intercommunicator: MPI_ROOT = -4, MPI_PROC_NULL = -2
  Bytes bytes = 0;                          // as Event::bytes
  std::span<const std::uint64_t> values{};  // as Event::values; peers of neighbour collectives already as
                                            // ranks in the communicator
  bool commutative = true;
  // MPI_IN_PLACE (kFlagInPlace): alltoall* and iallreduce choose another algorithm then, most others copy
  // less.
  bool in_place = false;
  // What the library does between the messages is wanted, too: kCopy and kReduce.
  bool local_work = false;
  // kCommCreate: which call it is.
  CommCreation creation = CommCreation::kUnknown;
  MpiLibrary library = MpiLibrary::kOpenMpi4;
  const MpiSettings* settings = nullptr;  // nothing: none were made
  // Where the communicator's ranks are, for libraries that go by it. Nothing: not known, every rank counts as
  // alone on its node. REQUIRES: as many ranks as `size`; not read on intercommunicators.
  const NodeLayout* layout = nullptr;
  // Large vectors are cut into many pieces; a budget that is over ends the steps early. nullptr: no bound.
  WorkBudget* budget = nullptr;
};

// Appends the steps of `call` for this rank to `out` (which is not cleared). All ranks of a communicator that
// call with consistent arguments get steps that pair up: the k-th send from a to b is the k-th receive at b
// from a. A size-1 communicator has no messages. Returns kInvalidInput for arguments that cannot be (root out
// of range, too few values). Where the real algorithm is not modelled the closest is used and `approximated`
// set (it is counted and shown as such). v-collectives: each rank knows its own counts only; decision rules
// that need the total use what the rank has (for the rooted ones the library's choice does not depend on
// them).
struct CollectiveSteps {
  bool approximated = false;
};
Result<CollectiveSteps> expand_collective(const CollectiveCall& call, std::vector<CollectiveStep>& out);

// The algorithm's name as the library names it ("recursive_doubling"), for docs, tests and lbf-trace.
const char* collective_algorithm_name(const CollectiveCall& call);

}  // namespace lbf::engine
