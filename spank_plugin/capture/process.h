// The capture's state: one Process, and one Thread (thread.h) for each thread that calls MPI.
//
// Place in the event's way: inside *capture*, between the generated wrappers and the recorder. Start: the first MPI
// call of a thread that can leave a record makes its ring (thread_ring.h). Stop: MPI_Finalize, MPI_Abort, fork (the
// child is off).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/channel_counts.h"
#include "spank_plugin/capture/communicator.h"
#include "spank_plugin/capture/handle_table.h"
#include "spank_plugin/capture/library.h"
#include "spank_plugin/capture/memory.h"
#include "spank_plugin/capture/mpi_family.h"
#include "spank_plugin/capture/origin.h"
#include "spank_plugin/capture/request_numbers.h"
#include "spank_plugin/capture/request_table.h"
#include "spank_plugin/capture/ring_room.h"
#include "spank_plugin/capture/ring_writer.h"
#include "spank_plugin/capture/spin_mutex.h"
#include "spank_plugin/capture/thread.h"
#include "spank_plugin/capture/watched_requests.h"

namespace lbf::capture {

enum class CaptureState : std::uint8_t { kUnasked, kOn, kOff };

// Which calls are recorded (adr/0010-capture-windows.md). One for all threads of the process, because it is
// one sequence of events; a thread that another one's change has not reached yet finds out when its call ends.
struct RecordingMode {
  std::atomic<std::uint32_t> epoch{0};  // changes so far, and takings of what all threads counted
  std::atomic<bool> changing{false};    // no other thread may be inside the recorder (ThreadMode::busy)
  bool counting = false;
  bool ever_counted = false;
  bool ordered_off = false;  // by the capture itself: what it counted is lost, or a thread has no ring
  std::atomic<bool> off{false};
  bool wants_outside = false;               // MPI_Pcontrol(0): the program wants nothing to be recorded ...
  bool outside = false;                     // ... and the ring says so
  bool window_over = false;                 // `window` is, whatever the program wants
  std::uint32_t window = 1;                 // the one that is open, or was last
  std::uint64_t close_ticks = 0;            // when the last window closed
  std::atomic<bool> any_cancelled{false};   // MPI_Cancel was called in the window that is open
  std::atomic<std::uint64_t> uncounted{0};  // what the counts do not say: kGap with so many in the next window

  // Header::recording_window. Outside of the program's scope the relay's window stays open: no grant is used up.
  std::uint32_t window_of_relay() const noexcept { return window_over ? 0 : window; }
};

// MPI without MPI_Init (MPI 4.0, ch. 11.3): the run begins with the first session and ends with the last one, unless
// MPI_Init is called, too; then MPI_Finalize ends it.
struct Sessions {
  static constexpr std::uint32_t kKept = 16;
  std::uint32_t open = 0;
  MPI_Session kept[kKept]{};  // as many of them as fit
  std::uint32_t kept_count = 0;
  bool began_run = false;
  bool over = false;  // the run ended with one
  bool said_over = false;
  bool world_model = false;      // MPI_Init was called
  bool has_world_group = false;  // Run::world_group is made from `group_of`: no session ends before its groups
  MPI_Session group_of{};
};

// Why there is no capture although the user asked for it.
struct Refusal {
  const char* why = nullptr;  // in words
  int error = 0;              // errno
};

struct Settings {
  const char* directory = nullptr;
  std::uint64_t first_grant = 0;
  std::uint64_t ring_bytes = ring::kDefaultCapacityBytes;
};

// What MPI says of the process and its run.
struct Run {
  std::atomic<bool> initialised{false};
  std::atomic<bool> running{false};          // every ring says whose it is
  std::atomic<bool> worldless{false};        // began with a session that has no world
  std::atomic<bool> made_in_session{false};  // a communicator was
  bool spawned = false;
  std::int32_t rank = -1;
  std::int32_t world_size = 0;
  int thread_level = 0;
  char library_version[128] = {};
  std::uint64_t init_leave_ticks = 0;
  MPI_Group world_group{};
};

// Communicators by their handles, and those that are freed.
struct CommunicatorTable {
  std::uint32_t next_index = 1;
  HandleTable<Communicator*> handles;
  HandleTable<std::uint32_t> group_uses;  // creations that are collective over a group only: uses of each key
  Communicator* first_freed = nullptr;    // requests of them may still be under way; in order
  Communicator* last_freed = nullptr;
};

// What threads that ended leave behind.
struct EndedThreads {
  ChannelCounts counts;
  std::uint64_t recorded_calls = 0;
  std::uint64_t counted_calls = 0;
};

struct Process {
  std::atomic<CaptureState> state{CaptureState::kUnasked};
  Refusal refusal;
  Settings settings;
  std::atomic<bool> shared{false};  // MPI_THREAD_MULTIPLE: several threads may be in MPI at once; set_shared()
  Run run;
  std::atomic<std::uint32_t> type_epoch{0};  // counts MPI_Type_free: cached sizes of older epochs are void
  std::atomic<std::uint32_t> comm_epoch{0};  // the same for communicators
  RecordingMode mode;
  // What threads write while they record or count is in lines of its own: what every call reads is above.
  alignas(64) RequestNumbers request_numbers;
  alignas(64) SpinMutex start_lock;  // starts and ends of threads, changes of the mode; taken before the others
  alignas(64) SpinMutex table_lock;
  // What records a call must not wait for start_lock: who changes the mode has it, and waits until no call is recorded.
  SpinMutex session_lock;  // taken before table_lock
  alignas(64) Communicator world{};
  Communicator self{};
  Communicator unknown{};             // stands for communicators that the capture did not see being made
  alignas(64) RequestTable requests;  // by request or message handle

  HandleTable<Partitions> partitions GUARDED_BY(table_lock);  // by request handle
  CommunicatorTable communicators GUARDED_BY(table_lock);
  WatchedRequests watched GUARDED_BY(table_lock);
  BlockPool pool GUARDED_BY(table_lock);
  CompletedRequests ended_completed[family::kSharedQueues] GUARDED_BY(table_lock);  // of threads that ended

  Sessions sessions GUARDED_BY(session_lock);
  EndedThreads ended GUARDED_BY(start_lock);
  bool reference_part_taken[References::kCommonPart] GUARDED_BY(start_lock){};
  // A window that found no room in the ring is not tried again before.
  std::uint64_t next_try_ticks GUARDED_BY(start_lock) = 0;
  std::atomic<Thread*> threads{nullptr};  // all that have a ring; written with both locks
  bool all_threads_barrier = false;       // there is one (all_threads_barrier.h); final before `initialised`
  Origin origin;
  RingRoom ring_room;
};
extern constinit Process process;

// The right to use what MUTEX guards. The lock itself is taken only where several threads may be inside MPI at once.
class SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SpinMutex& mutex) noexcept ACQUIRE(mutex)
      : SharedLock(mutex, process.shared.load(std::memory_order_relaxed)) {}
  ~SharedLock() RELEASE() NO_THREAD_SAFETY_ANALYSIS {
    if (held_) [[unlikely]]
      mutex_.unlock();
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 protected:
  SharedLock(SpinMutex& mutex, bool held) noexcept ACQUIRE(mutex) NO_THREAD_SAFETY_ANALYSIS : mutex_(mutex),
                                                                                              held_(held) {
    if (held_) [[unlikely]]
      take();
  }

 private:
  void take() noexcept NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  SpinMutex& mutex_;
  bool held_;
};

// The lock of the process's tables, but for that of requests.
class SCOPED_CAPABILITY TableLock : public SharedLock {
 public:
  TableLock() noexcept ACQUIRE(process.table_lock) : SharedLock(process.table_lock) {}
  // Whatever the thread level: for what thread starts and ends change too.
  enum Always { kAlways };
  explicit TableLock(Always) noexcept ACQUIRE(process.table_lock) : SharedLock(process.table_lock, true) {}
  ~TableLock() RELEASE() = default;
};

// What THREAD used of the first grant. The relay grants calls by what they cost; until it has spoken a dear call uses
// up as much as those that take as long together.
inline std::uint64_t recorded_use(const Thread& thread) noexcept {
  const std::uint64_t calls = thread.header->recorded.executions.load(std::memory_order_relaxed);
  const std::uint64_t granted_call = tick_clock.off_cpu_tolerance / kPartsInTolerance;  // some 300 ns
  return granted_call == 0 ? calls : calls + thread.own_grants.dear_ticks / granted_call;
}

enum class ThreadState : std::uint8_t { kUnasked, kOn, kOff };

// `available` is null while the thread is inside an MPI call (so that calls which MPI or a tool makes in
// there pass), when it has no ring, and when capture is off: one load decides.
extern thread_local constinit Thread* available_thread __attribute__((tls_model("initial-exec")));
extern thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec")));

extern thread_local constinit Thread* own_thread __attribute__((tls_model("initial-exec")));  // whenever it has one

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

// A call without communication of a thread that has no ring: counted for the process, and told in the next ring that is
// made or, at the end, in that of the thread that calls MPI_Finalize or MPI_Abort.
void count_without_ring(std::uint16_t function) noexcept;
// REQUIRES: called on THREAD.
void tell_calls_without_ring(Thread& thread) noexcept;

// left_call.cpp: whether the call that THREAD is inside of was left by a jump; then it is over, the thread
// goes on.
bool resume_left_call(Thread& thread, const std::byte* frame, Entry entry) noexcept;
// Notes where the thread's own stack is. REQUIRES: called on that thread, `tid`.
void note_stack(Thread& thread, pid_t tid) noexcept;

// Asks MPI for MPI_COMM_WORLD, once, if it can be asked: a thread may be in MPI before the one that called MPI_Init is
// back from there, and what it records needs the rank.
void learn_world_if_initialised() noexcept;
// The same of the session's processes; false: it does not say who they are.
bool learn_world_of_session(MPI_Session session) noexcept;
// MPI_Init: whether the run began with a session; else MPI_COMM_WORLD is all there is.
bool began_with_session() noexcept;
void enter_world_model() noexcept;
// MPI_Init in a run that began with a session: MPI_COMM_WORLD is there, too.
void adopt_world() noexcept;
// A session was opened. true: the run begins with it.
bool process_opens_session(MPI_Session session) noexcept;
// It is about to be closed. true: the run ends with it.
bool process_closes_session(MPI_Session session) noexcept;
// The same where the calls are not captured (any more): what has to be said or told.
void session_opens_uncaptured() noexcept;
void session_closes_uncaptured(MPI_Session session) noexcept;
// The ranks in MPI_COMM_WORLD, or in mpi://WORLD, of GROUP's first COUNT members, whose own ranks are RANKS. false: not
// known.
bool translate_to_world(MPI_Group group, int count, const int* ranks, int* out) noexcept;
// What MPI_Init found: called after it returned, capture on or off.
void process_initialised(int thread_level) noexcept;
// The run begins at process.init_leave_ticks: from here on every ring says whose it is, also those of threads that
// called something before MPI_Init returned.
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
class SCOPED_CAPABILITY StartLock {
 public:
  StartLock() noexcept ACQUIRE(process.start_lock) { process.start_lock.lock(); }
  // The caller holds it already: try_lock().
  enum Adopt { kAdopt };
  explicit StartLock(Adopt) noexcept REQUIRES(process.start_lock) {}
  ~StartLock() RELEASE() { process.start_lock.unlock(); }
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;
};
// Guards Process::sessions and what they make Run::world_group of.
class SCOPED_CAPABILITY SessionLock {
 public:
  SessionLock() noexcept ACQUIRE(process.session_lock) { process.session_lock.lock(); }
  ~SessionLock() RELEASE() { process.session_lock.unlock(); }
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;
};
// The oldest request that was complete when it was made and was not waited for yet: of this thread, else of
// another.
std::uint32_t pop_completed(Thread& thread, int queue) noexcept;

}  // namespace lbf::capture
