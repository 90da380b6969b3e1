// Op: what the replay executes. The matcher turns events of all ranks into ops, once for all targets:
// messages are paired (send and receive name the same Message), collectives are spelled out as the messages
// of their algorithm, request life cycles are resolved.
//
// Place in the event's way: match -> *Op* (op_store.h keeps them) -> replay.
#pragma once

#include <cassert>
#include <cstdint>

#include "base/units.h"

namespace lbf::engine {

using ProcessIndex = std::uint32_t;  // 0 .. ranks-1: the ranks; above: background actors (non-blocking collectives)
inline constexpr ProcessIndex kNobody = ~ProcessIndex{0};
using MessageIndex = std::uint32_t;
inline constexpr MessageIndex kNoMessage = ~MessageIndex{0};
using RowIndex = std::uint32_t;  // of the store: an op's work by scenario

// What happens once the op's processor work is done.
enum class OpKind : std::uint8_t {
  kCompute,      // nothing more (the papers' nonendRecv)
  kBlocked,      // `call_s` off the processor
  kSend,         // the message leaves when the work and the sender's protocol processing are done; a rendezvous
                 // message (docs/engine.md) waits for its receive to be posted, and so does the process unless
                 // kOpNonblocking
  kWaitSend,     // waits until the buffer of a kOpNonblocking send is free; only where that can take time
  kPost,         // a receive is posted (the papers' startRecv): takes no time, a rendezvous message can start
  kRecv,         // posts the receive unless a kPost did, waits until the message has arrived (the papers'
                 // endRecv), then the receiver's protocol processing
  kLook,         // waits as kPeek, but asleep: it looks once in each `call_s`, and goes on at the first look that finds
                 // the message
  kPeek,         // waits until the message is announced, leaves it (probe)
  kExit,         // the process ends
  kWindowOpen,   // `call_s` passed, of which nothing else is known; then the clock of the capture window starts
  kWindowClose,  // ... and stops
  kBlockEnd,     // a block of a window ends (predictor/engine/match/blocks.h); takes no time
  // Work inside a collective: so much of it as the target's network file says for these bytes.
  kCopy,       // the process copies them in its memory
  kReduce,     // ... combines two operands of so many bytes each
  kPreempted,  // other programs worked for `call_s` on the processor that the process wanted
  kDelayed,    // they had it for `call_s` of the call before (call_begins.h)
  kVainLooks,  // the process looked for messages that were not there, and did not wait for them: `call_s` of work where
               // each look gives the processor away
  kDevice,     // the process waits for its device (GPU) for `call_s`, and keeps its share of the processor
};

enum OpFlags : std::uint8_t {
  kOpInternal = 1,     // message between a rank and its actor: no flight, no protocol processing
  kOpEndsEvent = 2,    // an event of the program is complete with this op
  kOpNonblocking = 4,  // kSend: the process goes on at once
  kOpHeld = 8,         // kPost: which message it takes is not known yet (a wildcard); nobody passes it
  kOpFirst = 16,       // kSend: in its own order, the rank has neither sent anything to this peer before nor
                       // received anything from it
  kOpInWork = 64,      // kWindowClose: most of the window is process time just before it
  kOpVaries = 32,      // kCompute: its work differs by scenario: a row of the store; `work_s` is what it was
  kOpRegions = 128,    // kCompute: in parallel regions: a row of the store's regions(); `work_s` is their time as they
                       // ran
  kOpScoped = kOpFirst,  // kWindowClose: of a rank that leaves the scope of MPI_Pcontrol and comes back: its time is
                         // not to be compared with that of others
};
// The op's work is not just `work_s`.
inline constexpr std::uint8_t kOpHasRow = kOpVaries | kOpRegions;

// More bytes are several ops: of so many each, a few of them; of a multiple of that, where they would be many.
inline constexpr Bytes kMostLocalBytes = Bytes{1} << 30;
inline constexpr Bytes kManyLocalBytes = 16 * kMostLocalBytes;
constexpr bool is_local_work(OpKind kind) {
  return kind == OpKind::kCopy || kind == OpKind::kReduce;
}
constexpr bool takes_message(OpKind kind) {
  return kind >= OpKind::kSend && kind <= OpKind::kPeek;
}
constexpr bool is_window_edge(OpKind kind) {
  return kind == OpKind::kWindowOpen || kind == OpKind::kWindowClose;
}

// `call_s` is what the op takes.
constexpr bool passes_measured_time(OpKind kind) {
  return kind == OpKind::kBlocked || kind == OpKind::kPreempted || kind == OpKind::kDelayed || kind == OpKind::kDevice;
}

// What an op is about besides its times depends on its kind: a message, a window, a block, bytes, or a row of the
// store. One factory and one accessor for each; debug builds check that they agree with the kind.
struct Op {
  // kSend, kWaitSend, kPost, kRecv, kLook, kPeek. kPost: kNoMessage where its message never gets known.
  static constexpr Op on_message(OpKind kind, MessageIndex message, Seconds work_s = 0, Seconds call_s = 0,
                                 std::uint8_t flags = 0) {
    assert(takes_message(kind));
    return {kind, flags, message, work_s, call_s};
  }
  // kCompute, kBlocked, kPreempted, kDelayed, kDevice, kExit.
  static constexpr Op plain(OpKind kind, Seconds work_s, Seconds call_s, std::uint8_t flags = 0) {
    assert(kind == OpKind::kCompute || kind == OpKind::kExit || passes_measured_time(kind));
    return {kind, flags, kNoMessage, work_s, call_s};
  }
  // kWindowOpen, kWindowClose.
  static constexpr Op on_window(OpKind kind, std::uint32_t window, Seconds call_s, std::uint8_t flags = 0) {
    assert(is_window_edge(kind));
    return {kind, flags, window, 0, call_s};
  }
  static constexpr Op block_end(std::uint32_t block) { return {OpKind::kBlockEnd, 0, block, 0, 0}; }
  // kCopy, kReduce. REQUIRES: at most kMostLocalBytes, or a multiple of them up to 2^60.
  static constexpr Op local_work(OpKind kind, Bytes bytes) {
    assert(is_local_work(kind) && (bytes <= kMostLocalBytes || bytes % kMostLocalBytes == 0));
    const Bytes about = bytes <= kMostLocalBytes ? bytes : kMostLocalBytes + bytes / kMostLocalBytes;
    return {kind, 0, static_cast<std::uint32_t>(about), 0, 0};
  }
  // So many LOOKS that took CALL_S of processor time in the run.
  static constexpr Op vain_looks(std::uint64_t looks, Seconds call_s, std::uint8_t flags) {
    constexpr std::uint32_t kMost = ~std::uint32_t{0};
    return {OpKind::kVainLooks, flags, looks < kMost ? static_cast<std::uint32_t>(looks) : kMost, 0, call_s};
  }
  // A kCompute whose work the row has, by scenario.
  static constexpr Op varying(RowIndex row, std::uint8_t flags = 0) {
    return {OpKind::kCompute, static_cast<std::uint8_t>(flags | kOpVaries), row, 0, 0};
  }
  static constexpr Op in_regions(std::uint32_t region, Seconds ran_s, std::uint8_t flags) {
    return {OpKind::kCompute, static_cast<std::uint8_t>(flags | kOpRegions), region, ran_s, 0};
  }
  constexpr Op() = default;

  constexpr bool names_message() const { return takes_message(kind) && about_ != kNoMessage; }
  constexpr MessageIndex message() const {
    assert(takes_message(kind));
    return about_;
  }
  // Of a kPost: the message that it takes is known now.
  constexpr void set_message(MessageIndex message) {
    assert(kind == OpKind::kPost);
    about_ = message;
  }
  constexpr std::uint32_t window() const {
    assert(is_window_edge(kind));
    return about_;
  }
  constexpr std::uint32_t block() const {
    assert(kind == OpKind::kBlockEnd);
    return about_;
  }
  constexpr Bytes local_bytes() const {
    assert(is_local_work(kind));
    return about_ <= kMostLocalBytes ? about_ : (about_ - kMostLocalBytes) * kMostLocalBytes;
  }
  constexpr std::uint32_t looks() const {
    assert(kind == OpKind::kVainLooks);
    return about_;
  }
  constexpr RowIndex row() const {
    assert((flags & kOpVaries) != 0);
    return about_;
  }
  constexpr std::uint32_t region() const {
    assert((flags & kOpRegions) != 0);
    return about_;
  }

  OpKind kind = OpKind::kCompute;
  std::uint8_t flags = 0;
  std::uint16_t function = 0;  // MPI function (event/mpi_functions.yml) where procedures are looked at, else 0

 private:
  constexpr Op(OpKind kind_of_op, std::uint8_t flags_of_op, std::uint32_t about, Seconds work, Seconds call)
      : kind(kind_of_op), flags(flags_of_op), about_(about), work_s(work), call_s(call) {}
  std::uint32_t about_ = kNoMessage;

 public:
  Seconds work_s = 0;  // processor work at speed 1, before the action
  Seconds call_s = 0;  // kBlocked, kLook, kPreempted, kDelayed, kVainLooks, kDevice: see there; else measured time
                       // inside the call, which only the measured progress counts (work_s + call_s of every op)
};
static_assert(sizeof(Op) == 24);

}  // namespace lbf::engine
