// Event: an observable operation performed by a process (TSE Sec. 2), as the whole project sees it.
//
// Place in the event's way: capture -> ring -> relay -> wire -> *Event* -> match -> replay.
// The text trace (docs/formats/text-trace-v1.md) and the wire format (docs/formats/wire-v1.md) both
// decode to this type. Ranks are world ranks everywhere in here; communicators are dense indices of
// one trace (0 = MPI_COMM_WORLD), the same index for the same communicator on every rank (the relay's
// streams number them per rank; the wire decoder translates through CommunicatorTable).
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "event/duration.h"

namespace lbf {

// Append only: the numbers are part of the wire format.
enum class EventKind : std::uint8_t {
  kCompute = 0,      // the papers' nonendRecv without a message: process time passes. With vain_looks: then so many
                     // looks for a message (MPI_Test, MPI_Iprobe ...) found none, and the rank went on without one;
                     // `call_s` = processor time of these calls
  kSend = 1,         // blocking send (all modes; sync=1: Ssend)
  kIsend = 2,        // non-blocking send, `request` names it until its kWait
  kStartRecv = 3,    // a receive is posted; with `request` non-blocking, without the blocking one
  kEndRecv = 4,      // the receive completes, with the match that happened (peer, tag, bytes)
  kRecv = 5,         // kStartRecv + kEndRecv of one blocking MPI_Recv: peer/tag are the match that
                     // happened; flags say which of them was a wildcard
  kWait = 6,         // completes sends and non-blocking collectives: `request`, or `values` for several
  kProbe = 7,        // a blocking probe (or the Iprobe that succeeded): waits for the message that the
                     // next receive on (peer, tag, comm) will take, and leaves it there
  kCollective = 8,   // blocking collective
  kIcollective = 9,  // non-blocking collective: starts here, ends at the kWait of `request`
  kBlocked = 10,  // `off_s` off the processor that no placement shortens (I/O, sleep, paging, GPU). With look_period:
                  // slept between looks for the message that the next event takes or finds; where it comes earlier,
                  // the next look finds it
  kUnmodelled = 11,  // an MPI call that the replay has no model for: `call_s` is kept as it was measured
  kEnter = 12,       // procedure entry (procedure LBF); `values[0]` = procedure id (as ProcedureTable gives it)
  kLeave = 13,
  kKeepAlive = 14,   // advances the process by its process time, never enters the graph (TSE Sec. 2.1); `call_s` as of
                     // kWindowClose, so far: the close has the rest of it
  kCommCreate = 15,  // defines communicator `comm`: values = [uid, L, members...]: uid is the number that all
                     // members computed alike without talking to each other; members = world ranks in rank
                     // order; an intercommunicator has L > 0: the first L members are this rank's local
                     // group, the rest the remote one (so the two sides list them in opposite order); else L
                     // = 0. Takes no time itself; the synchronisation that creating it costs is a kCollective
                     // kCommCreate event on the parent before it.
  kCommFree = 16,
  kCancel = 17,       // request `request` was cancelled before it matched: its posted receive or send is void
  kRequestFree = 18,  // MPI_Request_free on an active request: nobody will wait for it
  kPhase = 19,        // MPI_Pcontrol(level): `tag` = level. From kScopeEnds to kScopeBegins the rank is outside of what
                      // the program wants to be predicted: nothing of that is known but what its windows have
  kGap = 20,          // `bytes` events of this rank were lost here (ring full); predictions become partial
  kExit = 21,         // the process reached MPI_Finalize (or the end of what was captured); `call_s` as of kWindowClose
  kOneSided = 22,     // one operation on the memory of `peer` (one_sided_op says which), `bytes` of the origin's
                      // (get: into it); does not wait, except kLock. `comm` is the window: each is a communicator
                      // of its own, which nothing else uses. With `request` (Rput...) its kWait completes it too
  kOneSidedSync = 23,  // waits until this rank's operations on the window `comm` are complete at their targets:
                       // those to `peer`, or all of them (kAnyRank): flush, unlock, complete, fence
  kIo = 24,            // MPI-IO: `call_s` is kept as it was measured; io_direction says what `bytes` are
  // Capture windows (docs/adr/0010-capture-windows.md). The events of a rank from kWindowClose to its next
  // kWindowOpen are kSkipped, kCommCreate and kCommFree.
  kWindowOpen = 25,  // the capture records again; `bytes` = the window's number, alike on all ranks; `call_s` =
                     // measured time since kWindowClose, of which nothing else is known
  kWindowClose =
      26,           // it only counts from here on; requests that are active end unseen; `call_s` = measured time since
                    // the window opened that is in no event: preempted, or in calls without a record (failed polls)
  kSkipped = 27,    // `bytes` messages to or from `peer` with `tag`, or collectives on `comm`, passed without
                    // being recorded (skipped_side); receives count when they are posted. kEverything: the
                    // capture ended for good where the window before it closed
  kProcedure = 28,  // some of the process time around it was in one procedure: values = [procedure id, inclusive
                    // ns, exclusive ns, calls] (docs/formats/text-trace-v1.md, "Procedures"). Instead of
                    // kEnter and kLeave where calls are many
  kRegions = 29,    // `process_s` passed in parallel regions: values = [regions, threads of the largest team, work ns,
                    // critical ns, fork and join ns] (docs/adr/0012-threads.md)
  kPreempted = 30,  // `off_s` ready to run since the rank's last event, while other programs had its processors;
                    // delay_in_call_ns: the same within the call before it
  kDevice = 31,     // `process_s` passed in waits for a device (GPU): values = [calls, ns on the processor]
                    // (docs/adr/0013-devices.md)
};
inline constexpr std::int32_t kScopeEnds = 0;  // levels of kPhase, as MPI requests them
inline constexpr std::int32_t kScopeBegins = 1;
inline constexpr std::uint8_t kEventKindCount = 32;
inline constexpr std::size_t kProcedureValues = 4;  // of a kProcedure event
inline constexpr std::size_t kRegionValues = 5;     // of a kRegions event
inline constexpr std::size_t kDeviceValues = 2;     // of a kDevice event
inline constexpr std::uint64_t kMostRegionThreads = std::uint64_t{1} << 20;

enum EventFlags : std::uint8_t {
  kFlagWildcardSource = 1,  // the receive was posted with MPI_ANY_SOURCE
  kFlagWildcardTag = 2,     // ... with MPI_ANY_TAG
  kFlagSync = 4,            // synchronous send: ends only when its receive was posted
  kFlagHasRequest = 8,      // `request` is valid
  kFlagCallBegin = 16,      // first event of one MPI call (a Waitall makes several events)
  kFlagBuffered = 32,       // buffered send: never waits for its receive
  kFlagInPlace = 64,        // collective with MPI_IN_PLACE
  kFlagBlockingCall = 128,  // kIcollective: of a blocking call beside which other threads of the process ran; the
                            // kWait of its request is where the call returned
};

// Append only: wire format and text trace.
enum class CollectiveOp : std::uint8_t {
  kBarrier = 0,
  kBcast = 1,
  kReduce = 2,
  kAllreduce = 3,
  kGather = 4,
  kScatter = 5,
  kAllgather = 6,
  kAlltoall = 7,
  kReduceScatterBlock = 8,
  kScan = 9,
  kExscan = 10,
  kGatherv = 11,
  kScatterv = 12,
  kAllgatherv = 13,
  kAlltoallv = 14,
  kAlltoallw = 15,
  kReduceScatter = 16,
  kNeighborAllgather = 17,
  kNeighborAllgatherv = 18,
  kNeighborAlltoall = 19,
  kNeighborAlltoallv = 20,
  kNeighborAlltoallw = 21,
  kCommCreate = 22,  // the messages inside MPI_Comm_dup/split/create...; Event::function says which call
};
inline constexpr std::uint8_t kCollectiveOpCount = 23;

// The operation of a kOneSided event. Append only: wire format and text trace.
enum class OneSidedOp : std::uint8_t {
  kPut = 0,
  kGet = 1,
  kAccumulate = 2,
  kGetAccumulate = 3,
  kFetchAndOp = 4,
  kCompareAndSwap = 5,
  kLock = 6,  // MPI_Win_lock: a round trip to the target, which the origin waits for
};
inline constexpr std::uint8_t kOneSidedOpCount = 7;

// Which calls a kSkipped event counts. Append only: wire format.
enum class SkippedSide : std::uint8_t {
  kSends = 0,
  kReceives = 1,
  kCollectives = 2,
  kEverything = 3,  // all that the rank did from there to its end, on every channel: nobody counted it. `bytes` = 1,
                    // peer, tag and comm mean nothing; only kWindowOpen and kExit follow
};
inline constexpr std::uint8_t kSkippedSideCount = 4;

// Which way the bytes of a kIo event go. Append only: wire format.
enum class IoDirection : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2 };
inline constexpr std::uint8_t kIoDirectionCount = 3;

// Event::root of a rooted collective on an intercommunicator, as Open MPI writes MPI_ROOT and MPI_PROC_NULL.
inline constexpr Rank kRootIsMe = -4;         // this rank is the root of the other group's collective
inline constexpr Rank kRootIsElsewhere = -2;  // another rank of this group is

struct Event {
  EventKind kind = EventKind::kCompute;
  std::uint8_t flags = 0;        // EventFlags
  std::uint16_t function = 0;    // MPI function id (event/mpi_functions.yml); 0 = none (text traces)
  std::uint8_t op_code = 0;      // which operation of its kind: collective_op, one_sided_op, io_direction, skipped_side
  std::int32_t peer = kAnyRank;  // world rank: destination, or source that was asked for / that matched
  std::int32_t tag = kAnyTag;
  std::uint32_t comm = 0;
  std::uint32_t request = 0;  // valid with kFlagHasRequest; unique per rank and trace while active
  Rank root = 0;              // collective: rank *in comm*; on an intercommunicator also kRootIsMe or
                              // kRootIsElsewhere
  Bytes bytes = 0;            // message bytes; collective: what one rank sends to one peer
                              // (reduce/allreduce/bcast/scan: the vector); of other kinds see the accessors below
  Duration process_s;         // process time since this rank's previous event (TSE Sec. 2)
  Duration call_s;            // wall time inside the MPI call (0 in text traces)
  Duration off_s;             // kBlocked and kPreempted only
  // kWait: several requests. kCommCreate: see there. v-collectives: bytes to each peer of the communicator
  // then bytes from each peer (2 * size values; alltoall v/w), or bytes per peer (size values: gatherv at
  // the root, scatterv at the root, allgatherv, reduce_scatter). Neighbour collectives: n, n destination
  // world ranks, n byte counts, m, m source world ranks, m byte counts.
  // Points into the decoder; valid until it decodes the next event.
  std::span<const std::uint64_t> values{};
};

constexpr bool is_collective(EventKind kind) {
  return kind == EventKind::kCollective || kind == EventKind::kIcollective;
}

constexpr bool has_off_time(EventKind kind) {
  return kind == EventKind::kBlocked || kind == EventKind::kPreempted;
}

constexpr bool is_point_to_point(EventKind kind) {
  switch (kind) {
    case EventKind::kSend:
    case EventKind::kIsend:
    case EventKind::kStartRecv:
    case EventKind::kEndRecv:
    case EventKind::kRecv:
    case EventKind::kProbe:
      return true;
    default:
      return false;
  }
}

// What `op_code`, `bytes` and `tag` say depends on the kind: an accessor and a factory for each meaning. Debug builds
// check the kind.
constexpr CollectiveOp collective_op(const Event& event) {
  assert(is_collective(event.kind));
  return static_cast<CollectiveOp>(event.op_code);
}
constexpr OneSidedOp one_sided_op(const Event& event) {
  assert(event.kind == EventKind::kOneSided);
  return static_cast<OneSidedOp>(event.op_code);
}
constexpr IoDirection io_direction(const Event& event) {
  assert(event.kind == EventKind::kIo);
  return static_cast<IoDirection>(event.op_code);
}
constexpr SkippedSide skipped_side(const Event& event) {
  assert(event.kind == EventKind::kSkipped);
  return static_cast<SkippedSide>(event.op_code);
}
constexpr std::uint64_t skipped_calls(const Event& event) {
  assert(event.kind == EventKind::kSkipped);
  return event.bytes;
}
constexpr std::uint64_t window_number(const Event& event) {
  assert(event.kind == EventKind::kWindowOpen);
  return event.bytes;
}
constexpr std::uint64_t lost_events(const Event& event) {
  assert(event.kind == EventKind::kGap);
  return event.bytes;
}
// Of the sleeps that a kBlocked event sums up; 0: it is none between looks.
constexpr Nanoseconds look_period_ns(const Event& event) {
  assert(event.kind == EventKind::kBlocked);
  return event.bytes < std::uint64_t{1} << 56 ? static_cast<Nanoseconds>(event.bytes) : 0;
}
constexpr void set_look_period(Event& event, Nanoseconds period_ns) {
  assert(event.kind == EventKind::kBlocked);
  event.bytes = static_cast<Bytes>(period_ns);
}
// Of a kCompute event.
constexpr std::uint64_t vain_looks(const Event& event) {
  assert(event.kind == EventKind::kCompute);
  return event.bytes;
}
constexpr std::int32_t phase_level(const Event& event) {
  assert(event.kind == EventKind::kPhase);
  return event.tag;
}
// Whether the rank is outside of the program's scope behind this kPhase event; BEFORE: it was so until then.
constexpr bool is_outside_after(const Event& event, bool before) {
  return phase_level(event) == kScopeEnds || (before && phase_level(event) != kScopeBegins);
}

// Of the call before, and at most half of it: in its call_s, so not in off_s.
constexpr Nanoseconds delay_in_call_ns(const Event& event) {
  assert(event.kind == EventKind::kPreempted);
  return event.bytes < std::uint64_t{1} << 56 ? static_cast<Nanoseconds>(event.bytes) : 0;
}
constexpr void set_delay_in_call(Event& event, Nanoseconds delay_ns) {
  assert(event.kind == EventKind::kPreempted);
  event.bytes = static_cast<Bytes>(delay_ns);
}

constexpr void set_op(Event& event, CollectiveOp op) {
  assert(is_collective(event.kind));
  event.op_code = static_cast<std::uint8_t>(op);
}
constexpr void set_op(Event& event, OneSidedOp op) {
  assert(event.kind == EventKind::kOneSided);
  event.op_code = static_cast<std::uint8_t>(op);
}
constexpr void set_op(Event& event, IoDirection direction) {
  assert(event.kind == EventKind::kIo);
  event.op_code = static_cast<std::uint8_t>(direction);
}

constexpr Event event_of_kind(EventKind kind) {
  Event event;
  event.kind = kind;
  return event;
}
// `calls` of one side; see kSkipped.
constexpr Event skipped_event(SkippedSide side, std::uint64_t calls) {
  Event event = event_of_kind(EventKind::kSkipped);
  event.op_code = static_cast<std::uint8_t>(side);
  event.bytes = calls;
  return event;
}
constexpr Event window_open_event(std::uint64_t number) {
  Event event = event_of_kind(EventKind::kWindowOpen);
  event.bytes = number;
  return event;
}
constexpr Event gap_event(std::uint64_t lost) {
  Event event = event_of_kind(EventKind::kGap);
  event.bytes = lost;
  return event;
}
// LOOKS calls that took CALL_S of processor time.
constexpr Event vain_looks_event(std::uint64_t looks, Duration call_s) {
  Event event = event_of_kind(EventKind::kCompute);
  event.bytes = looks;
  event.call_s = call_s;
  return event;
}
constexpr Event phase_event(std::int32_t level) {
  Event event = event_of_kind(EventKind::kPhase);
  event.tag = level;
  return event;
}

// How many operations the kind has.
constexpr std::uint8_t op_count(EventKind kind) {
  switch (kind) {
    case EventKind::kOneSided:
      return kOneSidedOpCount;
    case EventKind::kIo:
      return kIoDirectionCount;
    case EventKind::kSkipped:
      return kSkippedSideCount;
    default:
      return kCollectiveOpCount;
  }
}

}  // namespace lbf
