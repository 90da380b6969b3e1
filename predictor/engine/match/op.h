// Op: what the replay executes. The matcher turns events of all ranks into ops, once for all targets:
// messages are paired (send and receive name the same Message), collectives are spelled out as the messages
// of their algorithm, request life cycles are resolved.
//
// Place in the event's way: match -> *Op* (op_store.h keeps them) -> replay.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace lbf::engine {

using ProcessIndex =
    std::uint32_t;  // 0 .. ranks-1: the ranks; above: background actors (non-blocking collectives)
inline constexpr ProcessIndex kNobody = ~ProcessIndex{0};
using MessageIndex = std::uint32_t;
inline constexpr MessageIndex kNoMessage = ~MessageIndex{0};

// What happens once the op's processor work is done.
enum class OpKind : std::uint8_t {
  kCompute,   // nothing more (the papers' nonendRecv)
  kBlocked,   // `call_s` off the processor
  kSend,      // the message leaves when the work and the sender's protocol processing are done; a rendezvous
              // message (docs/engine.md) waits for its receive to be posted, and so does the process unless
              // kOpNonblocking
  kWaitSend,  // waits until the buffer of a kOpNonblocking send is free; only where that can take time
  kPost,      // a receive is posted (the papers' startRecv): takes no time, a rendezvous message can start
  kRecv,      // posts the receive unless a kPost did, waits until the message has arrived (the papers'
              // endRecv), then the receiver's protocol processing
  kPeek,      // waits until the message is announced, leaves it (probe)
  kExit,      // the process ends
  kWindowOpen,  // `call_s` passed, of which nothing else is known; then the clock of capture window `message`
                // starts
  kWindowClose,  // ... and stops
  kBlockEnd,     // block `message` of a window ends (predictor/engine/match/blocks.h); takes no time
  // Work inside a collective: so much of it as the target's network file says for `message` bytes.
  kCopy,    // the process copies them in its memory
  kReduce,  // ... combines two operands of so many bytes each
};

enum OpFlags : std::uint8_t {
  kOpInternal = 1,     // message between a rank and its actor: no flight, no protocol processing
  kOpEndsEvent = 2,    // an event of the program is complete with this op
  kOpNonblocking = 4,  // kSend: the process goes on at once
  kOpHeld = 8,         // kPost: which message it takes is not known yet (a wildcard); nobody passes it
  kOpFirst = 16,       // kSend: in its own order, the rank has neither sent anything to this peer before nor
                       // received anything from it
  kOpVaries =
      32,  // kCompute: its work differs by scenario: `message` is a row of the store, `work_s` what it was
};

struct Op {
  OpKind kind = OpKind::kCompute;
  std::uint8_t flags = 0;
  std::uint16_t function =
      0;  // MPI function (event/mpi_functions.yml) where procedures are looked at, else 0
  MessageIndex message = kNoMessage;  // kSend, kWaitSend, kRecv, kPeek; kPost: kNoMessage where it never gets
                                      // known; kCopy, kReduce: bytes, at most kMostLocalBytes
  Seconds work_s = 0;  // processor work at speed 1, before the action
  Seconds call_s = 0;  // kBlocked: see there; else measured time inside the call, which only the
                       // measured progress counts (work_s + call_s of every op)
};
static_assert(sizeof(Op) == 24);

// More bytes are several ops.
inline constexpr Bytes kMostLocalBytes = Bytes{1} << 30;
constexpr bool is_local_work(OpKind kind) {
  return kind == OpKind::kCopy || kind == OpKind::kReduce;
}

}  // namespace lbf::engine
