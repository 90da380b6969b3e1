// The event ring: how capture (in the program) hands records to the relay (another process).
//
// Place in the event's way: MPI call -> capture -> *ring* -> relay. One file per thread that communicates,
// "<pid>.<tid>.ring" in the directory that the plugin made (LBF_CAPTURE_DIR, mode 0700, on a tmpfs), mapped
// by both; "<pid>.<tid>.<namespace>.ring" where these numbers are of a PID namespace below the machine's first one:
// what was written survives SIGKILL of the program. Single producer (the thread), single consumer (the relay); indices
// on cache lines of their own. The producer never waits: without room it counts the record as lost and, once there is
// room again, first writes a kGap record.
//
// The consumer must not believe a word in here: the file belongs to the user's program (all offsets and
// lengths are checked against the mapping's size, indices are read once).
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "event/event.h"

namespace lbf::ring {

inline constexpr std::uint64_t kMagic = 0x31474e4952464c42;  // "BLFRING1"
inline constexpr std::uint32_t kVersion = 8;
inline constexpr std::size_t kMaxFunctions = 640;
inline constexpr std::uint64_t kDefaultCapacityBytes = 8u << 20;
inline constexpr std::size_t kMaxProcedureListBytes = 4096;
inline constexpr std::size_t kMaxLaunchBytes = 512;
// The inode of the machine's first PID namespace (PROC_PID_INIT_INO of Linux).
inline constexpr std::uint64_t kFirstPidNamespace = 0xEFFFFFFC;
// What tells which launch started a process (relay/launch.h).
inline constexpr const char* kLaunchVariables[] = {"PMIX_NAMESPACE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                                   "SLURM_STEP_ID"};

enum class ProcessState : std::uint32_t {
  kStarting = 0,  // mapped, MPI_Init not done: `rank` is not valid yet
  kRunning = 1,
  kFinalized = 2,        // the kExit record is in the ring
  kAborted = 3,          // MPI_Abort was called
  kBetweenSessions = 4,  // no MPI session is open, and none has had a communicator: the process may just end
};

// What the cost system wants of the capture (docs/cost-system.md, adr/0010). Written by the relay, read by the
// producer at the beginning of a call; 0 is what a ring starts with.
enum class CaptureOrder : std::uint32_t {
  kOpen = 0,      // record calls, as long as the grant lasts; then count as with kCounting
  kCounting = 1,  // count calls by channel, record none
  kOff = 2,       // nothing any more, for the rest of the run; never taken back
};

// Until the relay has looked: so many calls may be counted for each that may be recorded (LBF_CAPTURE_GRANT). With a
// tenth of the budget for the latter (cost/first_grant.h) it is half of it for counting, at 20 ns a call.
inline constexpr std::uint64_t kFirstCountedPerRecorded = 75;

// One primitive of the capture (recording a call, counting a call), for C_obs (cost/observed_cost.h). Written
// by the producer alone, relaxed. Ticks are of the clock_source.
struct PrimitiveCounter {
  std::atomic<std::uint64_t> executions;
  std::atomic<std::uint64_t> sampled;          // of these, timed
  std::atomic<std::uint64_t> sampled_ticks;    // what the timed ones took together, without the timing itself
  std::atomic<std::uint64_t> ideal_ticks_256;  // one execution with everything in the cache, in 1/256 ticks
  // What dear calls took beside that, each of them timed (of thousands of requests, of communicators): they are seldom
  // among the sampled, and left out there.
  std::atomic<std::uint64_t> dear_ticks;
};

// What measuring procedures costs this thread, and those that have no ring as far as it charged them
// (docs/procedures.md). Written by the producer alone, relaxed; 0 where none are measured.
struct ProcedureUse {
  std::atomic<std::uint64_t> calls;           // of measured procedures, as far as MPI calls have told
  std::atomic<std::uint64_t> call_ticks_256;  // one of them, in 1/256 ticks
  std::atomic<std::uint64_t> record_ticks;    // what writing their records took
};

struct CallCounter {  // written by the producer alone, relaxed
  std::atomic<std::uint64_t> count;
  std::atomic<std::uint64_t> ticks;  // inside the call
};

// First page(s) of the file. Sizes in bytes, times in TSC ticks unless named otherwise (`clock_source` 1:
// CLOCK_MONOTONIC nanoseconds instead, on machines without an invariant TSC).
struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;    // offset of the data area
  std::uint64_t capacity_bytes;  // of the data area; a power of two
  std::int32_t pid;
  std::int32_t tid;
  std::uint32_t clock_source;      // 0 TSC, 1 CLOCK_MONOTONIC
  std::uint32_t thread_level;      // as provided by MPI_Init_thread
  std::int32_t slurm_procid;       // SLURM_PROCID, -1 when unset
  std::atomic<std::int32_t> rank;  // in MPI_COMM_WORLD
  std::atomic<std::int32_t> world_size;
  std::atomic<std::uint32_t> state;  // ProcessState
  std::uint64_t start_ticks;         // one reading of all three clocks, taken together
  std::uint64_t start_monotonic_ns;
  std::uint64_t start_realtime_ns;
  std::atomic<std::uint64_t> init_leave_ticks;      // when MPI_Init returned (0: not yet)
  std::atomic<std::uint64_t> finalize_enter_ticks;  // when MPI_Finalize was called (0: not yet)
  std::atomic<std::uint64_t> cpu_threshold_ticks;   // gaps shorter than this count as processor time unread
  std::atomic<std::uint64_t> unread_gap_ticks;      // total process time that was taken on trust that way
  std::atomic<std::uint64_t> failed_polls;          // Test/Iprobe calls that found nothing (no records)
  std::atomic<std::uint64_t> lost_records;
  std::atomic<std::uint64_t> capture_ticks_estimate;  // records * calibrated cost of one
  // Where the thread is now, relaxed: kWhereUnknown, kInProgram, or kInCall with the function id above
  // kWhereBits. Only with kInProgram may the relay take processor time for process time before the next
  // record says so (kKeepAlive): an MPI library spins while it waits.
  std::atomic<std::uint32_t> in_call;
  std::atomic<std::uint32_t> abandoned_calls;   // MPI calls that were left by a jump or an exception
  std::atomic<std::uint64_t> call_enter_ticks;  // of the call under way or, outside of calls, the last one
  char executable[256];                         // /proc/self/exe, cut, zero-terminated
  char library[128];                            // MPI_Get_library_version, first line
  char host[64];
  alignas(64) std::atomic<std::uint64_t> head;  // bytes ever written (release by the producer)
  alignas(64) std::atomic<std::uint64_t> tail;  // bytes ever consumed (release by the relay)
  // Control. One line of its own: the producer only reads it. `window` is the number of the open window (1 is
  // the first, open from the start); a relay that opens again writes grant and window first, then the order
  // (release). `grant`: how many calls this ring may record in all since it began; 0: without bound. A grant
  // that is used up closes the capture at once, until a new window.
  alignas(64) std::atomic<std::uint32_t> order;  // CaptureOrder
  std::atomic<std::uint32_t> window;
  std::atomic<std::uint64_t> grant;
  // How many calls it may count in all while no window is open; 0: without bound. A thread that uses it up ends the
  // capture of its process for good, as with kOff (looked at when a counted call is sampled). A relay that does
  // not know of it leaves 0.
  std::atomic<std::uint64_t> counted_grant;
  // The producer's answer: in which window it records, or would but for MPI_Pcontrol(0); 0: it counts, or is off.
  alignas(64) std::atomic<std::uint32_t> recording_window;
  std::atomic<std::uint32_t> off;  // 1: nothing any more (ordered, or the counts were lost)
  PrimitiveCounter recorded;       // calls that were recorded
  PrimitiveCounter counted;        // calls that were counted while closed
  ProcedureUse procedures;
  // Processor time that was spent once in this thread, whatever the relay orders, in ns: loading the recorder and
  // making its tables (the first thread), making this ring, what MPI_Init was followed by, choosing procedures
  // (docs/procedures.md, "Spent once").
  std::atomic<std::uint64_t> once_cpu_ns;
  std::atomic<std::uint64_t> off_ticks;  // with `off`: when that was (0: not yet)
  // 1: the thread has ended and writes nothing any more (release). The relay removes the file when it has read the
  // rest.
  std::atomic<std::uint32_t> ended;
  // Processor time of the whole process when MPI_Init was over, and when MPI_Finalize or MPI_Abort was called (0: not
  // yet): nobody can ask for it once the process is gone.
  std::atomic<std::uint64_t> init_cpu_ns;
  std::atomic<std::uint64_t> end_cpu_ns;
  std::atomic<std::uint32_t> device_libraries;   // DeviceLibrary, or'd: those that the thread saw loaded, or waited in
  alignas(64) CallCounter calls[kMaxFunctions];  // by function id, all calls, modelled or not
  // The procedures that all ranks of the step measure (docs/procedures.md, "One list for all ranks"): `list_bytes`
  // bytes, names, each ended by a newline. Written by the relay, in this order: `list_begun`, the rest,
  // `list_generation` (release); both are the same number where a list is whole, and a new list has a higher one. The
  // producer only reads it.
  alignas(64) std::atomic<std::uint64_t> list_generation;
  std::atomic<std::uint64_t> list_begun;
  std::uint32_t list_bytes;
  char list[kMaxProcedureListBytes];
  // Those kLaunchVariables that the process has, "NAME=VALUE" with a NUL behind each: what the program
  // makes of its environment later (setproctitle) is not seen by it.
  char launch[kMaxLaunchBytes];
  std::uint64_t wanted_bytes;  // capacity_bytes as they were asked for: the directory may have had less room
};

// Header::device_libraries.
enum DeviceLibrary : std::uint32_t { kCudaLibrary = 1, kHipLibrary = 2 };

// Header::in_call.
inline constexpr std::uint32_t kWhereUnknown = 0;
inline constexpr std::uint32_t kInProgram = 1;
inline constexpr std::uint32_t kInCall = 2;
inline constexpr unsigned kWhereBits = 8;

// Kinds beyond lbf::EventKind (a record's kind is an EventKind, or one of these).
inline constexpr std::uint8_t kRecordPad = 255;        // skip `words`: the data area's end was too near
inline constexpr std::uint8_t kRecordAdjust = 254;     // an Adjustment
inline constexpr std::uint8_t kRecordProcedure = 253;  // a ProcedureText

// A record: 48 bytes, then words - 6 values of 8 bytes each (lbf::Event::values). Records are 8-byte aligned
// and never wrap around the end of the data area.
//
// The process time before a record is  enter - (leave of the record before) - what the kRecordAdjust records
// between them take away. A call that makes several records (Waitall, Sendrecv) gives its enter and leave in
// the first (kFlagCallBegin); the others have enter = leave = the call's leave.
// Some kinds use a member for something else: the functions below say which.
struct Record {
  std::uint32_t words_and_op;  // low 24 bits: length in 8-byte words; high 8: CollectiveOp
  std::uint8_t kind;
  std::uint8_t flags;  // lbf::EventFlags
  std::uint16_t function;
  std::uint64_t enter;
  std::uint64_t leave;
  std::int32_t peer;
  std::int32_t tag;
  std::uint32_t comm;  // this rank's own index, 0 = MPI_COMM_WORLD
  std::uint32_t request;
  std::uint64_t bytes;
};
static_assert(sizeof(Record) == 48);
inline constexpr std::uint32_t kRecordWords = sizeof(Record) / 8;
// Record::request is below it. The relay numbers from it on what it makes requests of.
inline constexpr std::uint32_t kFirstRelayRequest = 0x80000000U;

inline std::uint8_t kind_of(EventKind kind) noexcept {
  return static_cast<std::uint8_t>(kind);
}

// In 8-byte words, with the values.
inline std::uint32_t length_words(const Record& record) noexcept {
  return record.words_and_op & 0xffffff;
}

// CollectiveOp, OneSidedOp, IoDirection or SkippedSide, by the record's kind. 0 where the kind has none.
inline std::uint32_t op_code(const Record& record) noexcept {
  return record.words_and_op >> 24;
}
// REQUIRES: none is set yet.
inline void set_op_code(Record& record, std::uint32_t code) noexcept {
  record.words_and_op |= code << 24;
}

inline void set_op(Record& record, CollectiveOp op) noexcept {
  assert(is_collective(static_cast<EventKind>(record.kind)));
  set_op_code(record, static_cast<std::uint32_t>(op));
}
inline void set_op(Record& record, OneSidedOp op) noexcept {
  assert(record.kind == kind_of(EventKind::kOneSided));
  set_op_code(record, static_cast<std::uint32_t>(op));
}
inline void set_op(Record& record, IoDirection direction) noexcept {
  assert(record.kind == kind_of(EventKind::kIo));
  set_op_code(record, static_cast<std::uint32_t>(direction));
}

// The root of a collective: a rank in comm, kRootIsMe or kRootIsElsewhere.
inline std::int32_t root_of(const Record& record) noexcept {
  assert(is_collective(static_cast<EventKind>(record.kind)));
  return record.peer;
}

// kGap: how many records are lost.
inline void set_lost_records(Record& record, std::uint64_t records) noexcept {
  assert(record.kind == kind_of(EventKind::kGap));
  record.bytes = records;
}

// kSkipped: COUNT messages or collectives at one end of a channel.
inline void set_skipped(Record& record, SkippedSide side, std::uint64_t count) noexcept {
  assert(record.kind == kind_of(EventKind::kSkipped));
  set_op_code(record, static_cast<std::uint32_t>(side));
  record.bytes = count;
}
inline bool skips_everything(const Record& record) noexcept {
  return record.kind == kind_of(EventKind::kSkipped) &&
         op_code(record) == static_cast<std::uint32_t>(SkippedSide::kEverything);
}

// kWindowOpen: the number of the window.
inline void set_window(Record& record, std::uint32_t window) noexcept {
  assert(record.kind == kind_of(EventKind::kWindowOpen));
  record.bytes = window;
}

inline void set_phase_level(Record& record, std::int32_t level) noexcept {
  assert(record.kind == kind_of(EventKind::kPhase));
  record.tag = level;
}

// kUnmodelled: how many processes the call started.
inline void set_spawned(Record& record, std::uint64_t processes) noexcept {
  assert(record.kind == kind_of(EventKind::kUnmodelled));
  record.bytes = processes;
}

// Calls that found nothing (MPI_Test, MPI_Iprobe ...). Where the next record is not of a call that ends a wait, the
// rank did not wait for what it looked for.
struct Looks {
  std::uint64_t count = 0;
  std::uint64_t between = 0;  // ticks between two of them that make a loop
  std::uint64_t timed = 0;    // of them, whose processor time was read ...
  std::uint64_t cpu = 0;      // ... and its ticks
};
inline constexpr std::uint32_t kLooksValues = sizeof(Looks) / sizeof(std::uint64_t);

// kRecordAdjust: ticks of the gap before the *next* record that are no process time.
struct Adjustment {
  std::uint64_t preempted = 0;  // dropped: another process ran
  std::uint64_t blocked = 0;    // kept: becomes kBlocked events
  // Inside calls that have no record of their own and between failed polls. Dropped: the replay decides how long a wait
  // is.
  std::uint64_t waiting = 0;
  // Of `blocked`: sleep between one call that found nothing (MPI_Test, MPI_Iprobe ...) and the next call. It is waiting
  // with a period, if the record is of a call that looks, too.
  std::uint64_t look_sleep = 0;
  std::uint32_t look_sleeps = 0;
  // Run delay in the calls before, as far as it delayed their ends (lbf::delayed_end_ns): not of the gap. Its last bits
  // are lost.
  std::uint64_t delayed_end = 0;
  static constexpr unsigned kLostBits = 10;
  Looks looks{};  // their time is in `waiting`. The values behind the record, none where there are no looks

  bool any() const noexcept { return (preempted | blocked | waiting | delayed_end >> kLostBits) != 0; }
};
inline Record record_of(const Adjustment& adjustment) noexcept {
  Record record{};
  record.words_and_op = kRecordWords;
  record.kind = kRecordAdjust;
  record.enter = adjustment.preempted;
  record.leave = adjustment.blocked;
  record.bytes = adjustment.waiting;
  record.tag = static_cast<std::int32_t>(adjustment.look_sleep);
  record.peer = static_cast<std::int32_t>(adjustment.look_sleep >> 32);
  record.request = adjustment.look_sleeps;
  const std::uint64_t delayed = adjustment.delayed_end >> Adjustment::kLostBits;
  record.comm = delayed < ~std::uint32_t{0} ? static_cast<std::uint32_t>(delayed) : ~std::uint32_t{0};
  return record;
}
inline Adjustment adjustment_of(const Record& record) noexcept {
  assert(record.kind == kRecordAdjust);
  const std::uint64_t look_sleep =
      std::uint64_t{static_cast<std::uint32_t>(record.peer)} << 32 | static_cast<std::uint32_t>(record.tag);
  return {record.enter,
          record.leave,
          record.bytes,
          look_sleep,
          record.request,
          std::uint64_t{record.comm} << Adjustment::kLostBits,
          {}};
}

// kRegions: parallel regions of the gap that the next call's record ends (docs/adr/0012-threads.md). The values, in
// ticks where they are times. Of the gap's process time `wall` is theirs, and the rest that of the next record.
struct Regions {
  std::uint64_t regions = 0;
  std::uint64_t threads = 0;  // of the largest team
  std::uint64_t work = 0;
  std::uint64_t critical = 0;
  std::uint64_t fork_join = 0;
  std::uint64_t wall = 0;
};
inline constexpr std::uint32_t kRegionWords = 6;
inline void write_regions(std::uint64_t* values, const Regions& regions) noexcept {
  const std::uint64_t all[kRegionWords] = {regions.regions,  regions.threads,   regions.work,
                                           regions.critical, regions.fork_join, regions.wall};
  for (std::uint32_t i = 0; i < kRegionWords; ++i) values[i] = all[i];
}
// REQUIRES: there are kRegionWords.
inline Regions regions_of(const std::uint64_t* values) noexcept {
  return {values[0], values[1], values[2], values[3], values[4], values[5]};
}

// kDevice: waits for a device in the gap that the next call's record ends (docs/adr/0013-devices.md). The values, in
// ticks where they are times. Of the gap's process time `wall` is theirs, and the rest that of the next record.
struct DeviceWaits {
  std::uint64_t calls = 0;
  std::uint64_t busy = 0;  // of `wall`, on the processor
  std::uint64_t wall = 0;
};
inline constexpr std::uint32_t kDeviceWords = 3;
inline void write_device_waits(std::uint64_t* values, const DeviceWaits& waits) noexcept {
  values[0] = waits.calls;
  values[1] = waits.busy;
  values[2] = waits.wall;
}
// REQUIRES: there are kDeviceWords.
inline DeviceWaits device_waits_of(const std::uint64_t* values) noexcept {
  return {values[0], values[1], values[2]};
}

// Of the values behind it. Hostile: there may be others.
inline Looks looks_of(std::span<const std::uint64_t> values) noexcept {
  if (values.size() < kLooksValues) return {};
  return {values[0], values[1], values[2], values[3]};
}

enum class ProcedureWord : std::int32_t {
  kName = 0,     // the whole text is the name
  kRefused = 1,  // name, then why it is not measured
  kNote = 2,     // name (may be empty), then a line for people
  kOff = 3,      // name, then a line: it was switched off, because it is called too often for the limit: `calls` in the
                 // last `ticks`
  kCandidate = 4,  // what "auto" would measure; name, then "NUMBER OF SAMPLES OWN" (the NUMBERth from 0 of OF
                   // candidates; in OWN samples of the program's own procedures it was SAMPLES times itself), then what
                   // calls it most and what calls that, each behind a newline. OF 0: there is none, and no name
  kSamples = 5,    // of a procedure that is not measured: name, then "INCLUSIVE EXCLUSIVE OF": in so many of so many
                   // samples between MPI calls since it is sampled; the last one counts
};
inline constexpr std::uint32_t kProcedureWords = 6;
inline constexpr std::size_t kMaxProcedureTextBytes = 2048;

// kRecordProcedure: no time passes with it, and it ends no gap. The next record's process time is as if it were not
// there. The text's bytes are the values, the last word filled up with zeros. A name comes before the first kProcedure
// record that has its number.
struct ProcedureText {
  ProcedureWord word = ProcedureWord::kName;  // hostile: may be none of these
  std::uint32_t id = 0;                       // the process's number of the procedure (kName, kOff)
  std::uint32_t name_bytes = 0;               // of the text, its beginning
  std::uint64_t text_bytes = 0;
  std::uint64_t calls = 0;  // kOff: so many in the last `ticks`
  std::uint64_t ticks = 0;
};
inline Record record_of(const ProcedureText& text) noexcept {
  Record record{};
  record.words_and_op = kRecordWords + static_cast<std::uint32_t>((text.text_bytes + 7) / 8);
  record.kind = kRecordProcedure;
  record.tag = static_cast<std::int32_t>(text.word);
  record.comm = text.id;
  record.request = text.name_bytes;
  record.enter = text.calls;
  record.leave = text.ticks;
  record.bytes = text.text_bytes;
  return record;
}
inline ProcedureText procedure_text_of(const Record& record) noexcept {
  assert(record.kind == kRecordProcedure);
  return {
      static_cast<ProcedureWord>(record.tag), record.comm, record.request, record.bytes, record.enter, record.leave};
}

}  // namespace lbf::ring
