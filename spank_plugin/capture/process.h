// The capture's state: one Process, and one Thread for each thread that calls MPI.
//
// Place in the event's way: inside *capture*, between the generated wrappers and the recorder. Start: the first MPI call of a
// thread that can leave a record makes its ring (thread_ring.h). Stop: MPI_Finalize, MPI_Abort, fork (the child is
// off).
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/channel_counts.h"
#include "spank_plugin/capture/clock.h"
#include "spank_plugin/capture/handle_table.h"
#include "spank_plugin/capture/library.h"
#include "spank_plugin/capture/memory.h"
#include "spank_plugin/capture/mpi_family.h"
#include "spank_plugin/capture/request_numbers.h"
#include "spank_plugin/capture/request_table.h"
#include "spank_plugin/capture/ring_writer.h"
#include "spank_plugin/capture/sampling.h"
#include "spank_plugin/capture/watched_requests.h"

namespace lbf::capture {

struct Neighbours {
  std::uint32_t destinations = 0;
  std::uint32_t sources = 0;
  std::int32_t* ranks = nullptr;  // destinations, then sources: ranks in the communicator or MPI_PROC_NULL
};

// How many there are. Each thread counts in a part of its own, as long as there are as many, so that none waits for another; the
// parts together say how many.
class References {
 public:
  static constexpr std::uint32_t kParts = 6;
  static constexpr std::uint32_t kCommonPart = kParts - 1;  // of all threads that have none of their own
  void add(std::uint32_t part, std::int32_t amount) noexcept {
    std::atomic<std::int32_t>& count = parts_[part].count;
    if (part == kCommonPart) [[unlikely]] {
      count.fetch_add(amount, std::memory_order_release);
    } else {
      count.store(count.load(std::memory_order_relaxed) + amount, std::memory_order_release);
    }
  }
  // REQUIRES: nothing new refers to it.
  bool none() const noexcept {
    std::int32_t sum = 0;
    for (const Part& part : parts_) sum += part.count.load(std::memory_order_acquire);
    return sum == 0;
  }

 private:
  struct Part {
    std::atomic<std::int32_t> count{0};
    char rest_of_line[60];
  };
  Part parts_[kParts]{};
};

// What the capture knows of a communicator. Lives until it is freed and no request refers to it any more.
struct Communicator {
  std::uint64_t uid = 0;                // the same number on all members, made without talking to each other
  std::uint32_t index = 0;              // this rank's own number for it, as in the records
  std::uint32_t size = 0;               // local group
  std::uint32_t remote_size = 0;        // 0: an intracommunicator
  std::uint32_t children = 0;           // communicators made from it so far, MPI_COMM_NULL results included
  std::int32_t rank = 0;                // this process in the local group
  std::int32_t* world_ranks = nullptr;  // local group, then remote group; nullptr: world rank = rank
  Neighbours* neighbours = nullptr;     // looked up at the first neighbourhood collective
  // Windows: the world ranks of MPI_Win_start's group, from [size] on those of MPI_Win_post's; made at first use.
  std::int32_t* epoch_ranks = nullptr;
  std::uint32_t started = 0;  // how many of each
  std::uint32_t posted = 0;
  bool defined = false;  // its kCommCreate record is in the ring
  bool foreign = false;  // has members outside MPI_COMM_WORLD, or was not seen being made: not modelled
  Communicator* next_freed = nullptr;
  References references;  // of requests; not counted of MPI_COMM_WORLD, which stays

  std::int32_t peer_world_rank(std::int32_t rank_in_comm) const noexcept {
    if (world_ranks == nullptr || rank_in_comm < 0) {
      return rank_in_comm < 0 ? recorded_negative_rank(rank_in_comm) : rank_in_comm;
    }
    return world_ranks[remote_size != 0 ? size + static_cast<std::uint32_t>(rank_in_comm)
                                        : static_cast<std::uint32_t>(rank_in_comm)];
  }
  std::uint32_t peers() const noexcept { return remote_size != 0 ? remote_size : size; }
};

static_assert(sizeof(Communicator) <= 512);  // a block of the pool

inline std::size_t epoch_ranks_bytes(const Communicator& window) noexcept {
  return 2 * sizeof(std::int32_t) * window.size;
}

// What MPI_Start of a persistent collective records; `value_count` values follow it. In a block of the process's pool.
struct PersistentCollective {
  std::uint64_t bytes;
  std::int32_t root;
  std::uint32_t value_count;
  CollectiveOp op;
  bool in_place;
  std::uint64_t* values() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  static std::size_t block_bytes(std::uint32_t values) noexcept {
    return sizeof(PersistentCollective) + values * sizeof(std::uint64_t);
  }
};

// Of a partitioned send: how many partitions are not ready yet.
struct Partitions {
  std::uint32_t all = 0;
  std::uint32_t left = 0;
};

// Requests that were complete when they were made share a handle (mpi_family.h, shared_queue): they are told
// apart by their order only, per thread (the one that made a request mostly waits for it too).
class CompletedRequests {
 public:
  bool open() noexcept {
    ids_ = static_cast<std::uint32_t*>(map_pages(kCapacity * sizeof(std::uint32_t)));
    return ids_ != nullptr;
  }
  // 0: a request that no event belongs to (MPI_PROC_NULL). false: full.
  bool push(std::uint32_t id) noexcept {
    if (last_ - first_ == kCapacity) return false;
    ids_[last_++ & (kCapacity - 1)] = id;
    return true;
  }
  bool empty() const noexcept { return first_ == last_; }
  std::uint32_t pop() noexcept { return empty() ? 0 : ids_[first_++ & (kCapacity - 1)]; }
  void clear() noexcept { first_ = last_; }
  void release() noexcept {
    if (ids_ != nullptr) munmap(ids_, kCapacity * sizeof(std::uint32_t));
    ids_ = nullptr;
  }

 private:
  static constexpr std::uint64_t kCapacity = 1u << 18;
  std::uint32_t* ids_ = nullptr;
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

inline bool open_all(CompletedRequests (&queues)[family::kSharedQueues]) noexcept {
  for (CompletedRequests& queue : queues) {
    if (!queue.open()) return false;
  }
  return true;
}

inline void release_all(CompletedRequests (&queues)[family::kSharedQueues]) noexcept {
  for (CompletedRequests& queue : queues) queue.release();
}

enum class CaptureState : std::uint8_t { kUnasked, kOn, kOff };

// Which calls are recorded (adr/0010-capture-windows.md). One for all threads of the process, because it is
// one sequence of events; a thread that another one's change has not reached yet finds out when its call ends.
struct RecordingMode {
  std::atomic<std::uint32_t> epoch{0};  // changes so far, and takings of what all threads counted
  std::atomic<bool> changing{false};    // no other thread may be inside the recorder (Thread::busy)
  bool counting = false;
  bool ever_counted = false;
  bool ordered_off = false;          // by the capture itself: what it counted is lost, or a thread has no ring
  std::atomic<bool> off{false};
  std::uint32_t window = 1;          // the one that is open, or was last
  std::uint64_t close_ticks = 0;     // when the last window closed
  std::atomic<bool> any_cancelled{false};  // MPI_Cancel was called in the window that is open
  std::atomic<std::uint64_t> uncounted{0};  // what the counts do not say: kGap with so many in the next window
};

// MPI without MPI_Init (MPI 4.0, ch. 11.3): the run begins with the first session and ends with the last one, unless MPI_Init
// is called, too; then MPI_Finalize ends it. Guarded by the StartLock.
struct Sessions {
  static constexpr std::uint32_t kKept = 16;
  std::uint32_t open = 0;
  MPI_Session kept[kKept]{};  // as many of them as fit
  std::uint32_t kept_count = 0;
  bool began_run = false;
  bool over = false;           // the run ended with one
  bool said_over = false;
  bool world_model = false;    // MPI_Init was called
  bool has_world_group = false;  // Process::world_group is made from `group_of`: no session ends before its groups
  MPI_Session group_of{};
  std::atomic<bool> used{false};  // a communicator was made in one

  // The run has begun, and nothing came that ends it.
  bool is_between() const noexcept { return began_run && !over && !world_model && !used.load(std::memory_order_relaxed); }
};

struct Thread;
struct ProcedureIntervals;  // procedure_times.h

struct Process {
  std::atomic<CaptureState> state{CaptureState::kUnasked};
  const char* why_off = nullptr;  // in words, where the user asked for capture and gets none
  int why_errno = 0;
  const char* directory = nullptr;
  std::uint64_t first_grant = 0;
  std::uint64_t ring_bytes = ring::kDefaultCapacityBytes;
  std::atomic<bool> initialised{false};
  std::atomic<bool> shared{false};  // MPI_THREAD_MULTIPLE: several threads may be in MPI at once; set_shared()
  std::int32_t rank = -1;
  std::int32_t world_size = 0;
  int thread_level = 0;
  bool spawned = false;
  std::atomic<bool> worldless{false};  // began with a session that has no world
  std::atomic<bool> running{false};    // every ring says whose it is
  Sessions sessions;
  char library_version[128] = {};
  std::uint64_t init_leave_ticks = 0;
  MPI_Group world_group{};
  std::atomic<std::uint32_t> type_epoch{0};  // counts MPI_Type_free: cached sizes of older epochs are void
  std::atomic<std::uint32_t> comm_epoch{0};  // the same for communicators
  RecordingMode mode;
  // What threads write while they record or count is in lines of its own: what every call reads is above.
  alignas(64) RequestNumbers request_numbers;
  alignas(64) std::atomic_flag start_lock = ATOMIC_FLAG_INIT;
  alignas(64) std::atomic_flag lock = ATOMIC_FLAG_INIT;
  std::uint32_t next_comm_index = 1;
  alignas(64) Communicator world{};
  Communicator self{};
  Communicator unknown{};             // stands for communicators that the capture did not see being made
  alignas(64) RequestTable requests;  // by request or message handle
  HandleTable<Partitions> partitions;  // by request handle
  HandleTable<Communicator*> communicators;
  Communicator* first_freed = nullptr;  // communicators that are freed, of which requests may still be under way; in order
  Communicator* last_freed = nullptr;
  HandleTable<std::uint32_t> group_uses;  // creations that are collective over a group only: uses of each key
  CompletedRequests left_over[family::kSharedQueues];  // complete requests of threads that ended
  WatchedRequests watched;
  ChannelCounts left_counts;  // of threads that ended
  std::uint64_t left_recorded_calls = 0;  // what those recorded and counted; guarded by the StartLock
  std::uint64_t left_counted_calls = 0;
  BlockPool pool;
  std::atomic<Thread*> threads{nullptr};  // all that have a ring
  bool reference_part_taken[References::kCommonPart]{};  // guarded by the StartLock
  bool all_threads_barrier = false;  // there is one (all_threads_barrier.h); final before `initialised`
  std::uint64_t next_try_ticks = 0;  // a window that found no room in the ring is not tried again before; guarded by the StartLock
};
extern constinit Process process;

// Taken only where several threads may be inside MPI at once.
class SharedLock {
 public:
  explicit SharedLock(std::atomic_flag& lock) noexcept : SharedLock(lock, process.shared.load(std::memory_order_relaxed)) {}
  ~SharedLock() {
    if (held_) [[unlikely]]
      lock_.clear(std::memory_order_release);
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 protected:
  SharedLock(std::atomic_flag& lock, bool held) noexcept : lock_(lock), held_(held) {
    if (held_) [[unlikely]]
      take();
  }

 private:
  void take() noexcept {
    for (int spins = 0; lock_.test_and_set(std::memory_order_acquire); ++spins) {
      if (spins > 64) sched_yield();  // the holder lost its processor
    }
  }
  std::atomic_flag& lock_;
  bool held_;
};

// The lock of the process's tables, but for that of requests.
class TableLock : public SharedLock {
 public:
  TableLock() noexcept : SharedLock(process.lock) {}
  // Whatever the thread level: for what thread starts and ends change too.
  enum Always { kAlways };
  explicit TableLock(Always) noexcept : SharedLock(process.lock, true) {}
};

struct TypeSize {
  MPI_Datatype type{};
  std::uint32_t epoch = 0;
  std::uint64_t bytes = 0;
};

struct alignas(64) Thread {
  // What the beginning and the end of each call look at: the first cache line.
  // A control word that is not the expected one, or as many recorded calls as attention_at (0: always):
  // Call::begin_otherwise.
  std::atomic<std::uint64_t> expected_control{kNever};
  std::uint64_t attention_at = 0;
  // So many counted calls, and the next one is not left to CountedCall; 0: none is.
  std::uint64_t counted_attention_at = 0;
  ring::Header* header = nullptr;
  std::uint64_t last_leave = 0;
  std::uint64_t cpu_threshold = kNever;
  // Of the outermost wrapper that was entered last: its frame (the stack pointer of its caller) and where it
  // returns to. They tell whether it was left by a jump (left_call.cpp).
  const std::byte* outer_frame = nullptr;
  const void* outer_return = nullptr;
  RingWriter ring;
  ProcessClock clock;
  RequestNumbers::Taken request_numbers;
  std::uint32_t reference_part = 0;  // of References
  bool counting = false;
  bool shared = false;             // process.shared
  bool attentive = false;          // each Call takes the ways with attention: shared
  // Inside the recorder: between Call::returned and Call::finish, and where a SharedCountedCall looks at what it counts
  // and counts it; only where shared.
  std::atomic<bool> busy{false};
  bool last_was_failed_poll = false;
  std::uint32_t epoch = 0;         // of process.mode, as far as this thread knows it
  // The communicator that was looked up last, defined and not foreign.
  MPI_Comm last_comm{};
  Communicator* last_communicator = nullptr;
  std::uint32_t last_comm_epoch = 0;
  std::uint64_t call_cost = 0;  // ticks, calibrated
  std::uint64_t estimate_beside_calls = 0;  // of capture_ticks_estimate: reads of the CPU clock
  Sampler recorded_sampler;
  Sampler counted_sampler;
  CountedIdeal shared_counted_ideal;  // recorder_cost.cpp
  ChannelCounts counts;
  TypeSize type_sizes[16];
  MPI_Status status{};  // for a program that ignores it
  Scratch<MPI_Status> statuses;
  Scratch<RequestTable::Entry> snapshot;
  Scratch<std::int32_t> ranks;
  std::atomic_flag completed_lock = ATOMIC_FLAG_INIT;
  CompletedRequests completed[family::kSharedQueues];
  RequestTable::Entry first_snapshot[16];
  const std::byte* stack_low = nullptr;  // of the thread's own stack, as it was mapped when the capture began
  const std::byte* stack_high = nullptr;
  std::uint64_t nested_in = 0;       // which outermost call the two below belong to
  std::uint64_t nested_entries = 0;  // calls inside it
  std::uint64_t nested_calls = 0;    // of them those that would have been recorded
  std::uint64_t mapped_bytes = 0;    // of the ring file
  // Header::grant and counted_grant as this process set them. Others stand there: the relay has spoken.
  std::uint64_t own_grant = 0;
  std::uint64_t own_counted_grant = 0;
  // Procedure times (procedure_times.h), where they are asked for.
  std::uint64_t gap_off_ticks = 0;  // of the gap that was judged last: preempted and blocked
  bool intervals_stale = true;      // what procedures did since the last recorded call is not this interval's
  ProcedureIntervals* intervals = nullptr;
  Thread* next = nullptr;
};

enum class ThreadState : std::uint8_t { kUnasked, kOn, kOff };

// `available` is null while the thread is inside an MPI call (so that calls which MPI or a tool makes in
// there pass), when it has no ring, and when capture is off: one load decides.
extern thread_local constinit Thread* available_thread __attribute__((tls_model("initial-exec")));
extern thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec")));

extern thread_local constinit Thread* own_thread
    __attribute__((tls_model("initial-exec")));  // whenever it has one

// Nothing more is captured in this thread.
inline bool capture_is_over() noexcept {
  return own_thread == nullptr && thread_state != ThreadState::kUnasked;
}

enum class Entry : std::uint8_t { kCall, kLocalCall };

// For a wrapper that found no `available_thread`. Starts the capture for this thread, if it is wanted; or
// finds out that the call which seems to be under way was left by longjmp or by an exception: that one is
// over then, as kUnmodelled. nullptr: capture is off, or this is a call inside another one. `frame`: the
// stack pointer of the wrapper's caller.
Thread* enter_thread(const std::byte* frame, Entry entry) noexcept;

// A call without communication of a thread that has no ring: counted for the process, and told in the next ring that is made or,
// at the end, in that of the thread that calls MPI_Finalize or MPI_Abort.
void count_without_ring(std::uint16_t function) noexcept;
// REQUIRES: called on THREAD.
void tell_calls_without_ring(Thread& thread) noexcept;

// left_call.cpp: whether the call that THREAD is inside of was left by a jump; then it is over, the thread
// goes on.
bool resume_left_call(Thread& thread, const std::byte* frame, Entry entry) noexcept;
// Notes where the thread's own stack is. REQUIRES: called on that thread, `tid`.
void note_stack(Thread& thread, pid_t tid) noexcept;

// Asks MPI for MPI_COMM_WORLD, once, if it can be asked: a thread may be in MPI before the one that called MPI_Init is back from
// there, and what it records needs the rank.
void process_learns_world() noexcept;
// The same of the session's processes; false: it does not say who they are.
bool process_learns_world_of(MPI_Session session) noexcept;
// MPI_Init in a run that began with a session: MPI_COMM_WORLD is there, too.
void process_meets_world() noexcept;
// A session was opened. true: the run begins with it.
bool process_opens_session(MPI_Session session) noexcept;
// It is about to be closed. true: the run ends with it.
bool process_closes_session(MPI_Session session) noexcept;
// The same where the calls are not captured (any more): what has to be said or told.
void session_opens_uncaptured() noexcept;
void session_closes_uncaptured(MPI_Session session) noexcept;
// The group of all the run's processes, to number ranks by; false: there is none now.
bool process_has_world_group() noexcept;
// What MPI_Init found: called after it returned, capture on or off.
void process_initialised(int thread_level) noexcept;
// The run begins at process.init_leave_ticks: from here on every ring says whose it is, also those of threads that called
// something before MPI_Init returned.
void process_running() noexcept;
void process_init_failed_to_capture() noexcept;
// Whether MPI_Comm_spawn started this process: it is no rank of the step, and is not captured.
bool process_is_spawned() noexcept;
// After MPI_Init of a spawned process: off from here on, in this thread too, and the ring's file is gone.
void process_leave() noexcept;
void process_set_state(ring::ProcessState state) noexcept;
// MPI_Finalize or MPI_Abort of a process whose capture went off while it ran: only its state is still told.
void process_ends_uncaptured(ring::ProcessState state) noexcept;
void process_stop() noexcept;

// A whole number not below 0 from the environment, as launchers leave there.
std::int32_t int_from_environment(const char* name, std::int32_t otherwise) noexcept;

// Serialises starts and ends of threads, and changes of the recording mode.
class StartLock {
 public:
  StartLock() noexcept {
    while (process.start_lock.test_and_set(std::memory_order_acquire)) sched_yield();
    held_ = true;
  }
  enum Try { kTry };
  explicit StartLock(Try) noexcept : held_(!process.start_lock.test_and_set(std::memory_order_acquire)) {}
  ~StartLock() {
    if (held_) process.start_lock.clear(std::memory_order_release);
  }
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  bool held_;
};
// The oldest request that was complete when it was made and was not waited for yet: of this thread, else of
// another.
std::uint32_t pop_completed(Thread& thread, int queue) noexcept;

}  // namespace lbf::capture
