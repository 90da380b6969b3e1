// Operation: one MPI operation of one rank with the computation before it, as the execution trace of Sodhi,
// Subhlok & Xu, Sec. 4.1, has it ("time for computation operations is recorded as the time spent between the
// end of one MPI operation and the start of the next").
//
// Place in the skeleton's way: events -> *operations* -> exchanges -> execution signature -> skeleton.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "event/event.h"

namespace lbf::skeleton {

enum class OperationKind : std::uint8_t {
  kSend,         // MPI_Send, MPI_Ssend, MPI_Bsend (flags)
  kIsend,        // starts the request in `slot`
  kRecv,         // peer, tag, bytes: the match that happened
  kIrecv,        // starts the request in `slot`; peer, tag, bytes: the match that will happen
  kWait,         // values: the slots whose requests end here
  kProbe,        // waits for the message that the next receive on (peer, tag, comm) takes
  kCollective,   // values: those of Event::values
  kIcollective,  // starts the request in `slot`
  kCancel,       // the receive in `slot` is cancelled: it never matched
  kRequestFree,  // nobody waits for the send in `slot`
  kEnd,          // the process ends; carries the computation before it
  kCompute,      // nothing but the computation before it: what a detached exchange leaves out
};

// Requests are named by slot: a request gets the lowest slot that is free on its rank. Iterations of a loop
// so name their requests alike, whatever the MPI library's handles were.
struct Operation {
  OperationKind kind = OperationKind::kEnd;
  std::uint8_t flags = 0;  // EventFlags: wildcards, sync, buffered
  CollectiveOp op = CollectiveOp::kBarrier;
  Rank peer = 0;  // world rank
  std::int32_t tag = 0;
  std::uint32_t comm = 0;  // ProgramTrace::comms
  Rank root = 0;           // rank in comm
  std::uint32_t slot = 0;
  std::uint32_t values_begin = 0;  // ProgramTrace::values
  std::uint32_t values_count = 0;
  Bytes bytes = 0;      // as Event::bytes
  float process_s = 0;  // computation before it
  float idle_s = 0;     // time off the processor and in calls that have no model, before it
  float call_s = 0;     // in the call itself
};

// The operations of all ranks.
struct ProgramTrace {
  std::vector<std::vector<Operation>> ranks;
  std::vector<std::uint64_t> values;
  std::vector<std::vector<Rank>> comms;  // members, world ranks in rank order; 0: the world
  std::uint64_t events = 0;
  double unmodelled_s = 0;  // all ranks: in calls that have no model, kept as idle time
  double blocked_s = 0;     // all ranks: off the processor

  std::span<const std::uint64_t> values_of(const Operation& operation) const {
    return std::span(values).subspan(operation.values_begin, operation.values_count);
  }
  std::uint64_t operations() const {
    std::uint64_t all = 0;
    for (const auto& rank : ranks) all += rank.size();
    return all;
  }
};

// One that starts the request in its slot.
bool begins_request(OperationKind kind);
// end(slot) for each request that ends in the operation, whose values these are.
template <typename Function>
void for_each_ended(const Operation& operation, std::span<const std::uint64_t> values, const Function& end) {
  if (operation.kind == OperationKind::kWait) {
    for (const std::uint64_t slot : values) end(static_cast<std::uint32_t>(slot));
  } else if (operation.kind == OperationKind::kCancel || operation.kind == OperationKind::kRequestFree) {
    end(operation.slot);
  }
}
// A receive, or a probe.
bool is_receive(OperationKind kind);
// One whose `peer` is a rank that it exchanges a message with.
bool has_peer(OperationKind kind);
// How many values a collective operation of this kind has on this rank, in a communicator of so many; 0:
// none.
enum class RootRole : std::uint8_t { kRoot, kOther };
std::size_t values_needed(CollectiveOp op, std::size_t size, RootRole role);

}  // namespace lbf::skeleton
