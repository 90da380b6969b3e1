// The recorder: what the generated wrappers call, and what each kind of MPI call means as events.
//
// Place in the event's way: MPI call -> generated wrapper -> *recorder* -> ring writer -> ring -> relay. A
// wrapper begins a Call, forwards the program's own arguments, tells the recorder what came out (arguments as
// C kinds) and finishes the Call. docs/capture.md says what is recorded for which call. noexcept, no heap, no
// lock but spin locks under MPI_THREAD_MULTIPLE (of the tables, but not that of requests), no I/O.
//
// By concern: recorder_p2p.cpp, recorder_requests.cpp, recorder_collectives.cpp, recorder_communicators.cpp,
// recorder_windows.cpp, recorder_process.cpp; recorder_modes.cpp: what is recorded at all, and what is counted;
// recorder_attention.cpp: the rarer ways of a call;
// recorder_cost.cpp: what that takes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "event/event.h"
#include "event/mpi_function_table.h"
#include "spank_plugin/capture/counted_call.h"
#include "spank_plugin/capture/mpi_family.h"
#include "spank_plugin/capture/process.h"

namespace lbf::capture {

// One MPI call on its way through a wrapper: begin, forward, the program's call, returned, what came out of it
// (record::), finish. Whether it is recorded or counted is decided when it begins; where another thread changed
// the mode meanwhile, it is counted. Most counted calls do not come here: counted_call.h.
//
// What most calls do not need is behind one look at `flags_`, or at attention_at, and out of line.
class Call {
 public:
  explicit Call(std::uint16_t function) noexcept : function_(function) {}
  // What is left of a SharedCountedCall that returned into another mode than it began in: it is counted, and finished.
  // REQUIRES: the thread is inside the recorder, and knows the mode.
  Call(std::uint16_t function, Thread& thread) noexcept
      : thread_(&thread),
        function_(function),
        flags_(static_cast<std::uint8_t>(kAttention | kCounts | (thread.mode.counting ? 0 : kLate))) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // false: forward the call and do nothing else (capture is off, or this is a call inside another one).
  [[gnu::always_inline]] bool begin() noexcept {
    Thread* thread = available_thread;
    if (thread == nullptr) [[unlikely]] {
      if (capture_is_over()) return false;
      thread = enter_thread(wrapper_frame(), Entry::kCall);
      if (thread == nullptr) return false;
    }
    available_thread = nullptr;
    thread->outermost.frame = wrapper_frame();
    thread->outermost.return_address = wrapper_return();
    thread_ = thread;
    if (thread->mode.attentive) [[unlikely]]
      flags_ = kAttention;
    const ring::Header* const header = thread->header;
    if (control_word(*header) != thread->attention.expected_control.load(std::memory_order_relaxed) ||
        header->recorded.executions.load(std::memory_order_relaxed) >= thread->attention.recorded_at) [[unlikely]] {
      return begin_otherwise();
    }
    begin_recording();
    return true;
  }

  // The program's own call comes now.
  [[gnu::always_inline]] void forward() noexcept {
    if ((flags_ & kAttention) != 0) [[unlikely]]
      forward_with_attention();
  }
  // It returned.
  [[gnu::always_inline]] void returned() noexcept {
    if ((flags_ & kAttention) != 0) [[unlikely]]
      returned_with_attention();
  }

  // The call is over. What the recording took lies inside the call: it is not process time.
  void finish() noexcept;

  // A record of the call. nullptr: none is written (no room: it is counted as lost; or the call is counted).
  ring::Record* append(EventKind kind, std::uint32_t values = 0) noexcept {
    if (counts()) [[unlikely]]
      return nullptr;
    return thread_->ring.append(kind, values);
  }
  // The same for what a message has; whether it is written.
  [[gnu::always_inline]] void append(EventKind kind, const RingWriter::Fields& fields) noexcept {
    if (counts()) [[unlikely]]
      return;
    thread_->ring.append(kind, fields);
  }
  // Whether the call is counted, not recorded: record:: then calls count for each message that it would have
  // recorded, and keeps no request.
  bool counts() const noexcept { return (flags_ & kCounts) != 0; }
  // A message, or a collective. REQUIRES: counts().
  void count(const ChannelEnd& end) noexcept {
    if (late() || !thread_->counts.count(end)) [[unlikely]]
      count_otherwise(end);
  }
  // Whether the call was under way when a window opened: what it did belongs before the window.
  bool late() const noexcept { return (flags_ & kLate) != 0; }
  // For records beside the call's own (definitions, and what a late call has to say): begins one of them.
  // REQUIRES: counts(). To be ended with end_side.
  void begin_side() noexcept;
  void end_side() noexcept;
  // A request, or what it began, is one of those that nobody followed while the capture was closed.
  void unseen() noexcept { flags_ |= kUnseen; }
  bool has_unseen() const noexcept { return (flags_ & kUnseen) != 0; }
  // A count is wrong by up to N from here on, and nothing can be said against it.
  void lose_count(std::uint64_t n) noexcept;

  Thread& thread() noexcept { return *thread_; }
  std::uint16_t function() const noexcept { return function_; }
  std::uint64_t enter() const noexcept { return enter_; }
  // Test*, Iprobe ... found nothing.
  void failed_poll() noexcept { flags_ |= kFailedPoll; }
  // Recording it took TICKS beside what calls take, for so many PARTS (requests, members).
  void add_dear(std::uint64_t ticks, std::uint32_t parts) noexcept;
  // The mode changed since the call began, and the thread knows it: the call is counted.
  void count_from_here() noexcept {
    flags_ = static_cast<std::uint8_t>((flags_ & ~(kTimed | kLate)) | kCounts | (thread_->mode.counting ? 0 : kLate));
  }
  // This call's own time is outside what the records account for (MPI_Init, MPI_Finalize).
  void outside_accounting() noexcept { flags_ |= kOutside; }

  // These are set before the call is forwarded by the wrappers of functions that have them.
  bool ends_run;                 // MPI_Session_finalize of the last session
  Communicator* freeing;         // what MPI_Comm_free or MPI_Win_free was called for
  std::uint32_t snapshot_count;  // requests of a Wait/Test call, as they were before it
  bool snapshot_needs_status;
  RequestTable::Entry* snapshot;
  // Instead of `snapshot`: to be looked up when they are over; nullptr: `snapshot` has them.
  const MPI_Request* handles;
  std::uint64_t mark;  // with them, where other threads are in MPI, too: RequestTable::mark(); else 0

 private:
  enum Flag : std::uint8_t {
    kAttention = 1,  // the thread shares the recorder with others, or the call is timed
    kTimed = 2,
    kCounts = 4,
    kLate = 8,
    kUnseen = 16,
    kFailedPoll = 32,
    kOutside = 64,
  };

  [[gnu::always_inline]] void begin_recording() noexcept {
    Thread* const thread = thread_;
    thread->header->in_call.store(ring::kInCall | static_cast<std::uint32_t>(function_) << ring::kWhereBits,
                                  std::memory_order_relaxed);
    const std::uint64_t enter = ticks_now();
    thread->header->call_enter_ticks.store(enter, std::memory_order_relaxed);
    thread->ring.begin_call(enter, function_);
    enter_ = enter;
    gap_ = enter - thread->last_leave;
    if (gap_ >= thread->cpu_threshold) [[unlikely]]
      judge_long_gap();
  }
  void judge_long_gap() noexcept;
  std::uint64_t renew_clock(std::uint64_t now) noexcept;
  void without_record(std::uint64_t leave) noexcept;
  void take_look_away(std::uint64_t leave) noexcept;
  void note_look_cpu() noexcept;
  bool begin_otherwise() noexcept;
  void begin_timing() noexcept;
  void forward_with_attention() noexcept;
  void returned_with_attention() noexcept;
  void finish_with_attention(ring::PrimitiveCounter& primitive) noexcept;
  void finish_otherwise() noexcept;
  void finish_look() noexcept;
  void finish_recorded(std::uint64_t leave) noexcept;
  void finish_counted() noexcept;
  void note_recorded(std::uint64_t leave) noexcept;
  void count_otherwise(const ChannelEnd& end) noexcept;

  Thread* thread_;
  std::uint64_t enter_;  // these where it is recorded
  std::uint64_t gap_;
  std::uint64_t begin_ticks_;  // these where the execution is timed
  std::uint64_t forward_ticks_;
  std::uint64_t returned_ticks_;
  std::uint64_t look_cpu_ns_;  // with them, behind a call that found nothing: processor time of the program's own call
  std::uint16_t function_;
  std::uint8_t flags_ = 0;
};

// A call without communication: counted; its time stays process time.
class LocalCall {
 public:
  [[gnu::always_inline]] explicit LocalCall(std::uint16_t function) noexcept {
    thread_ = available_thread;
    if (thread_ == nullptr) [[unlikely]] {
      // For this alone no thread gets a ring, which is megabytes.
      if (own_thread == nullptr) {
        count_without_ring(function);
        return;
      }
      thread_ = enter_thread(wrapper_frame(), Entry::kLocalCall);
      if (thread_ == nullptr) return;
    }
    available_thread = nullptr;
    thread_->outermost.frame = wrapper_frame();
    thread_->outermost.return_address = wrapper_return();
    add(thread_->header->calls[function].count, 1);
  }
  ~LocalCall() {
    if (thread_ != nullptr) available_thread = thread_;
  }
  LocalCall(const LocalCall&) = delete;
  LocalCall& operator=(const LocalCall&) = delete;

 private:
  Thread* thread_;
};

// --- Fortran to C
// -------------------------------------------------------------------------------------------
inline const void* c_buffer(const void* buffer) noexcept {
  for (const void* sentinel : library.fortran_in_place) {
    if (sentinel != nullptr && buffer == sentinel) return MPI_IN_PLACE;
  }
  return buffer;
}

// The descriptor of a buffer (CFI_cdesc_t) begins with its address.
inline const void* c_described_buffer(const void* descriptor) noexcept {
  return c_buffer(*static_cast<const void* const*>(descriptor));
}

// Arrays and results that a wrapper has in either language.
struct Requests {
  int count;
  const MPI_Request* c;
  const MPI_Fint* fortran;
  MPI_Request operator[](int i) const noexcept { return c != nullptr ? c[i] : c_request(&fortran[i]); }
};
struct Types {
  const MPI_Datatype* c;
  const MPI_Fint* fortran;
  MPI_Datatype operator[](std::uint32_t i) const noexcept { return c != nullptr ? c[i] : c_type(&fortran[i]); }
};
struct Counts {
  const int* narrow;
  const MPI_Count* wide;  // MPI 4.0's large counts
  std::int64_t operator[](std::size_t i) const noexcept { return narrow != nullptr ? narrow[i] : wide[i]; }
};
struct Indices {
  const int* values;
  int base;  // 0 in C, 1 in Fortran
  int operator[](int i) const noexcept { return values[i] - base; }
};
struct Text {
  const char* characters;  // Fortran's has blanks behind it
  std::size_t length;
};
struct NewComm {
  const MPI_Comm* c;
  const MPI_Fint* fortran;
  MPI_Comm get() const noexcept { return c != nullptr ? *c : c_comm(fortran); }
};
inline Requests requests_of(int count, const MPI_Request* r) noexcept {
  return {count, r, nullptr};
}
inline Counts counts_of(const int* counts) noexcept {
  return {counts, nullptr};
}
inline Counts counts_of(const MPI_Count* counts) noexcept {
  return {nullptr, counts};
}
inline Types types_of(const MPI_Datatype* t) noexcept {
  return {t, nullptr};
}
inline NewComm new_comm_of(const MPI_Comm* c) noexcept {
  return {c, nullptr};
}
inline Text text_of(const char* text) noexcept {
  return {text, text != nullptr ? __builtin_strlen(text) : 0};
}
#if LBF_FAMILY_FORTRAN_HANDLES_DIFFER
inline Requests requests_of(int count, const MPI_Fint* r) noexcept {
  return {count, nullptr, r};
}
inline Types types_of(const MPI_Fint* t) noexcept {
  return {nullptr, t};
}
inline NewComm new_comm_of(const MPI_Fint* c) noexcept {
  return {nullptr, c};
}
#endif

using How = CommCreation;

// The request that a non-blocking call made; none: the call was blocking.
struct Made {
  MPI_Request request{};
  bool nonblocking = false;
  bool persistent = false;  // nothing began yet: MPI_Start does
};
inline Made made(MPI_Request request) noexcept {
  return {request, true, false};
}
inline Made made_persistent(MPI_Request request) noexcept {
  return {request, false, true};
}
inline constexpr Made kBlockingCall{};

// A watched receive is over: those that waited for it have their places.
void place_those_behind(Call& call) noexcept;

// MPI_Start of a persistent collective. REQUIRES: `info` is one.
void start_collective(Call& call, const RequestInfo& info) noexcept;

namespace record {

// --- before the call is forwarded
// ------------------------------------------------------------------------------- Remembers what the requests
// are: MPI overwrites the handles.
void look_at_requests(Call& call, Requests requests) noexcept;
void look_at_request(Call& call, MPI_Request request) noexcept;
// The handles alone: of those that are not over when the call returns nothing has to be known.
void keep_handles(Call& call, Requests requests) noexcept;
void look_at_none(Call& call) noexcept;
void look_at_message(Call& call, MPI_Message message) noexcept;  // of MPI_MESSAGE_NO_PROC: nothing
inline void before_completion(Call& call, Requests requests) noexcept {
  if (call.counts() && nothing_watched()) [[unlikely]]
    return look_at_none(call);
  keep_handles(call, requests);
}
inline void before_completion(Call& call, MPI_Request request) noexcept {
  if (call.counts() && nothing_watched()) [[unlikely]]
    return look_at_none(call);
  look_at_request(call, request);
}
// MPI_Request_free: of an active request that was cancelled also what became of it, in the thread's own status; with
// Call::snapshot_needs_status it is over.
void before_free(Call& call, Requests requests) noexcept;
// Where MPI shall put the status: the program's own place, or ours where it ignores a status that is needed.
MPI_Status* status_for(Call& call, MPI_Status* status) noexcept;
MPI_Fint* status_for(Call& call, MPI_Fint* status) noexcept;
// The same for a Wait or Test: ours only if a receive (or a cancelled request) is among the requests.
MPI_Status* completion_status_for(Call& call, MPI_Status* status) noexcept;
MPI_Fint* completion_status_for(Call& call, MPI_Fint* status) noexcept;
MPI_Status* completion_statuses_for(Call& call, MPI_Status* statuses) noexcept;
MPI_Fint* completion_statuses_for(Call& call, MPI_Fint* statuses) noexcept;
// Which communicator or window the handle is, as long as nobody else can have it.
void freeing(Call& call, std::uint64_t key) noexcept;
void finalizing(Call& call) noexcept;
void session_ending(Call& call, MPI_Session session) noexcept;
void aborting(Call& call) noexcept;
// MPI_Pcontrol: 0 ends the program's scope, 1 begins it anew.
void set_scope(Call& call, int level) noexcept;

// --- after it returned MPI_SUCCESS; what ends a receive: with a truncated message, too
// ----------------------------------------------------------------------------
void initialised(Call& call) noexcept;
void finalized(Call& call) noexcept;
void session_begun(Call& call, MPI_Session session) noexcept;
void session_ended(Call& call) noexcept;
void phase(Call& call, int level) noexcept;
void unmodelled(Call& call) noexcept;
// The call ended something that began when nobody looked: only its time is known.
void unseen(Call& call) noexcept;
// A receive's end, with the match that happened.
void end_receive(Call& call, const RequestInfo& info, const StatusView& got) noexcept;
void type_freed() noexcept;
// MPI-IO; `count` and `type` are what was read or written (kNone: neither).
void io(Call& call, IoDirection direction, std::int64_t count, MPI_Datatype type, Made made) noexcept;
void spawned(Call& call, MPI_Comm comm, NewComm intercomm) noexcept;

void send(Call& call, std::uint8_t mode_flags, std::int64_t count, MPI_Datatype type, int dest, int tag,
          MPI_Comm comm) noexcept;
void isend(Call& call, std::uint8_t mode_flags, std::int64_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request request) noexcept;
void send_init(Call& call, std::uint8_t mode_flags, std::int64_t count, MPI_Datatype type, int dest, int tag,
               MPI_Comm comm, MPI_Request request) noexcept;
void recv(Call& call, int source, int tag, MPI_Comm comm, const void* status) noexcept;
void irecv(Call& call, std::int64_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
           MPI_Request request) noexcept;
void recv_init(Call& call, std::int64_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request request) noexcept;
// Partitioned: a message of as many elements as all partitions have; `count` of them became ready.
void psend_init(Call& call, int partitions, std::int64_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                MPI_Request request) noexcept;
void precv_init(Call& call, int partitions, std::int64_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                MPI_Request request) noexcept;
void pready(Call& call, int count, MPI_Request request) noexcept;
void sendrecv(Call& call, std::int64_t send_count, MPI_Datatype send_type, int dest, int send_tag, int source,
              int recv_tag, MPI_Comm comm, const void* status) noexcept;
void isendrecv(Call& call, std::int64_t send_count, MPI_Datatype send_type, int dest, int send_tag,
               std::int64_t recv_count, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm,
               MPI_Request request) noexcept;
void probe(Call& call, bool found, int source, int tag, MPI_Comm comm, const void* status) noexcept;
void mprobe(Call& call, bool found, int source, int tag, MPI_Comm comm, MPI_Message message,
            const void* status) noexcept;
void mrecv(Call& call, const void* status) noexcept;
void imrecv(Call& call, MPI_Request request) noexcept;

void start(Call& call, Requests requests) noexcept;
void completed_one(Call& call, bool flag, const void* status) noexcept;             // Wait, Test
void completed_any(Call& call, bool flag, int index, const void* status) noexcept;  // Waitany, Testany
// `code`: what the call returned. MPI_ERR_IN_STATUS: the statuses say which requests ended, and how.
void completed_all(Call& call, int code, bool flag, const void* statuses) noexcept;  // Waitall, Testall
void completed_some(Call& call, int code, int outcount, Indices indices, const void* statuses) noexcept;
void request_status(Call& call, bool flag) noexcept;
void request_free(Call& call) noexcept;
void cancel(Call& call, MPI_Request request) noexcept;

void barrier(Call& call, MPI_Comm comm, Made made) noexcept;
void bcast(Call& call, std::int64_t count, MPI_Datatype type, int root, MPI_Comm comm, Made made) noexcept;
void reduce(Call& call, const void* send, const void* recv, std::int64_t count, MPI_Datatype type, int root,
            MPI_Comm comm, Made made) noexcept;
void reduce_all(Call& call, CollectiveOp op, const void* send, std::int64_t count, MPI_Datatype type, MPI_Comm comm,
                Made made) noexcept;  // allreduce, scan, exscan, reduce_scatter_block
void gather(Call& call, const void* send, std::int64_t send_count, MPI_Datatype send_type, std::int64_t recv_count,
            MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept;
void scatter(Call& call, std::int64_t send_count, MPI_Datatype send_type, const void* recv, std::int64_t recv_count,
             MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept;
void all_to_all(Call& call, CollectiveOp op, const void* send, std::int64_t send_count, MPI_Datatype send_type,
                std::int64_t recv_count, MPI_Datatype recv_type, MPI_Comm comm,
                Made made) noexcept;  // allgather, alltoall
void gatherv(Call& call, const void* send, std::int64_t send_count, MPI_Datatype send_type, Counts recv_counts,
             MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept;
void scatterv(Call& call, Counts send_counts, MPI_Datatype send_type, const void* recv, std::int64_t recv_count,
              MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept;
void allgatherv(Call& call, const void* send, std::int64_t send_count, MPI_Datatype send_type, Counts recv_counts,
                MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept;
void alltoallv(Call& call, const void* send, Counts send_counts, MPI_Datatype send_type, Counts recv_counts,
               MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept;
void alltoallw(Call& call, const void* send, Counts send_counts, Types send_types, Counts recv_counts, Types recv_types,
               MPI_Comm comm, Made made) noexcept;
void reduce_scatter(Call& call, const void* send, Counts recv_counts, MPI_Datatype type, MPI_Comm comm,
                    Made made) noexcept;
void neighbor(Call& call, CollectiveOp op, std::int64_t send_count, MPI_Datatype send_type, std::int64_t recv_count,
              MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept;  // allgather, alltoall
void neighbor_allgatherv(Call& call, std::int64_t send_count, MPI_Datatype send_type, Counts recv_counts,
                         MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept;
void neighbor_alltoallv(Call& call, Counts send_counts, MPI_Datatype send_type, Counts recv_counts,
                        MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept;
void neighbor_alltoallw(Call& call, Counts send_counts, Types send_types, Counts recv_counts, Types recv_types,
                        MPI_Comm comm, Made made) noexcept;

void comm_create(Call& call, How how, MPI_Comm parent, NewComm made_comm, int tag, Made made) noexcept;
// MPI 4.0: of the members of a group, without a parent.
void comm_create_from_group(Call& call, How how, Text tag, NewComm made_comm) noexcept;
void comm_free(Call& call, MPI_Comm comm) noexcept;

void win_create(Call& call, MPI_Comm comm, MPI_Win win) noexcept;
void win_free(Call& call, MPI_Win win) noexcept;
void win_fence(Call& call, MPI_Win win) noexcept;
void win_post(Call& call, MPI_Group group, int assertions, MPI_Win win) noexcept;
void win_start(Call& call, MPI_Group group, int assertions, MPI_Win win) noexcept;
void win_complete(Call& call, MPI_Win win) noexcept;
void win_wait(Call& call, bool flag, MPI_Win win) noexcept;  // Win_wait, Win_test
void win_lock(Call& call, int target, int assertions, MPI_Win win) noexcept;
void win_lock_all(Call& call, MPI_Win win) noexcept;
void win_flush(Call& call, int target, MPI_Win win) noexcept;  // unlock too; kAnyRank: to all targets
void one_sided(Call& call, OneSidedOp op, std::int64_t count, MPI_Datatype type, int target, MPI_Win win,
               Made made) noexcept;

}  // namespace record

// --- shared by the recorder's files
// ------------------------------------------------------------------------------ The communicator behind a
// handle, its definition in the ring; `process.unknown` (foreign) where there is none.
Communicator& find_other_communicator(Call& call, MPI_Comm comm) noexcept;
inline Communicator& find_communicator(Call& call, MPI_Comm comm) noexcept {
  if (comm == library.comm_world) [[likely]]
    return process.world;
  Thread& thread = call.thread();
  if (thread.last_comm.handle == comm && thread.last_comm.epoch == process.comm_epoch.load(std::memory_order_relaxed))
      [[likely]]
    return *thread.last_comm.communicator;
  return find_other_communicator(call, comm);
}
// The communicator of a call whose record can be written at once (RingWriter::append_plain). nullptr: the call is
// counted, the communicator has to be looked up or is foreign, or there is no room.
[[gnu::always_inline]] inline Communicator* plain_communicator(Call& call, MPI_Comm comm) noexcept {
  Thread& thread = call.thread();
  Communicator* found = &process.world;
  if (comm != library.comm_world) {
    if (thread.last_comm.handle != comm || thread.last_comm.epoch != process.comm_epoch.load(std::memory_order_relaxed))
      return nullptr;
    found = thread.last_comm.communicator;
  }
  return found->foreign || call.counts() || !thread.ring.has_plain_room() ? nullptr : found;
}
// For records whose communicator comes from a request or message: its definition in the ring, before them.
void define_undefined(Call& call, Communicator& comm) noexcept;
inline void define_communicator(Call& call, Communicator& comm) noexcept {
  if (!std::atomic_ref<bool>(comm.defined).load(std::memory_order_acquire)) [[unlikely]]
    define_undefined(call, comm);
}
// A handle that came into being late (MPI_Comm_idup).
void bind_communicator(std::uint64_t key, Communicator* communicator) noexcept;
// A request refers to the communicator, or no longer does.
inline void count_reference(Thread& thread, Communicator& comm, std::int32_t amount) noexcept {
  if (&comm == &process.world) return;
  comm.references.add(thread.reference_part, amount);
}
// A new communicator with the members of `parent`, numbered but not yet in the ring; collective over
// `parent`. nullptr: it cannot be modelled.
Communicator* duplicate_communicator(Call& call, Communicator& parent) noexcept;
// The communicator of a handle (a window's too) whatever it is; no definition. `process.unknown`: not known.
Communicator& look_up_handle(std::uint64_t key) noexcept;
// The handle goes, and the communicator once no request refers to it.
void free_communicator(std::uint64_t key, Communicator& comm) noexcept;
// The kCommFree record.
void append_free(Call& call, const Communicator& comm) noexcept;
// World ranks of a group's members into `out`; false: some are outside MPI_COMM_WORLD.
bool translate_group(Thread& thread, MPI_Group group, std::uint32_t count, std::int32_t* out) noexcept;
// A kCollective record on `comm`; nullptr: lost.
ring::Record* append_collective(Call& call, CollectiveOp op, const Communicator& comm, std::uint64_t bytes) noexcept;

// Where the thread remembers the type's size.
inline TypeSize& type_size_slot(Thread& thread, MPI_Datatype type) noexcept {
  return thread.type_sizes[(key_of(type) * 0x9e3779b97f4a7c15u) >> 60];
}
std::uint64_t type_bytes_slow(Thread& thread, MPI_Datatype type) noexcept;
// Whether type_bytes() need not ask MPI.
inline bool knows_type_bytes(Thread& thread, MPI_Datatype type) noexcept {
  const TypeSize& cached = type_size_slot(thread, type);
  return cached.type == type && cached.epoch == process.type_epoch.load(std::memory_order_relaxed);
}
// Bytes of an element. MPI_Datatype{}, which no library has for a type: 0.
inline std::uint64_t type_bytes(Thread& thread, MPI_Datatype type) noexcept {
  if (knows_type_bytes(thread, type)) [[likely]]
    return type_size_slot(thread, type).bytes;
  return type_bytes_slow(thread, type);
}
inline std::uint64_t message_bytes(Thread& thread, std::int64_t count, MPI_Datatype type) noexcept {
  return count <= 0 ? 0 : static_cast<std::uint64_t>(count) * type_bytes(thread, type);
}

inline std::uint32_t new_request_id(Thread& thread) noexcept {
  return process.request_numbers.take(thread.request_numbers, process.shared.load(std::memory_order_relaxed));
}
// --- requests across windows (recorder_watched.cpp)
// Whether the request began in the window that is open, so that records have it.
inline bool is_seen(std::uint32_t id) noexcept {
  return id != 0 && (!process.mode.ever_counted || process.request_numbers.is_of_window(id));
}
// The number of a request of which the open window has no record, though it was made, or started, in a call that
// returned in it.
inline std::uint32_t unseen_request_id() noexcept {
  const std::uint32_t before = process.request_numbers.before_window();
  return before != 0 ? before : RequestNumbers::kAll - 1;
}
// The request's completion is looked at whatever the mode.
void watch(Call& call, std::uint64_t handle, RequestInfo& info, bool recorded) noexcept;
// The kStartRecv of a watched receive whose call was under way when the window opened. REQUIRES: the call is late.
void post_in_window(Call& call, const RequestInfo& info) noexcept;
struct Watched {
  bool watched = false;           // and nothing says its place in a channel yet
  std::uint32_t recorded_as = 0;  // its number in the records; is_seen says whether they have it
};
// A message that was matched became a request.
void rewatch(const RequestInfo& info, std::uint64_t handle) noexcept;
// The request is over.
Watched take_watched(const RequestInfo& info) noexcept;
inline Watched unwatch(const RequestInfo& info) noexcept {
  if (info.watch == 0) [[likely]]
    return {false, info.id};
  return take_watched(info);
}
// Whether a receive without wildcards has to wait for its place: one posted before it could take its message.
bool is_behind_wildcard(const Communicator& comm, int peer, int tag) noexcept;

inline ChannelEnd sends(const Communicator& comm, int peer, int tag) noexcept {
  return {comm.index, comm.peer_world_rank(peer), tag, SkippedSide::kSends};
}
inline ChannelEnd receives(const Communicator& comm, int peer, int tag) noexcept {
  return {comm.index, comm.peer_world_rank(peer), tag, SkippedSide::kReceives};
}
inline ChannelEnd collectives(const Communicator& comm) noexcept {
  return {comm.index, kAnyRank, kAnyTag, SkippedSide::kCollectives};
}
// A message on `comm`, or a collective. REQUIRES: the call counts; find_communicator or define_communicator.
void count_on(Call& call, const Communicator& comm, const ChannelEnd& end) noexcept;
// The same for a call that says by itself what it counts: later ones like it go through CountedCall. `handle`, `peer`
// and `tag`: as the program gave them.
void count_named(Call& call, const Communicator& comm, const ChannelEnd& end, MPI_Comm handle, int peer,
                 int tag) noexcept;
// MPI_Finalize: where calls are counted, the last counts and an empty window. When that was.
std::uint64_t open_last_window(Call& call) noexcept;
// What is counted on COMM, which is about to be freed, into the ring as far as there is room. false: not all.
bool write_counts(Call& call, const Communicator& comm) noexcept;
// Costs of the two primitives with everything in the cache, in 1/256 ticks, and what their samples do not see of it.
// REQUIRES: nobody reads the ring yet.
void measure_ideal(Thread& thread) noexcept;
// THREAD is one of several that are in MPI at once: its counted calls are the longer ones (SharedCountedCall).
void use_shared_ideal(Thread& thread) noexcept;

// Keeps `info` under the request's handle until it completes.
void keep_request(Call& call, MPI_Request request, const RequestInfo& info) noexcept;
// The request is over: its handle stands for nothing any more.
void forget_request(Thread& thread, const RequestTable::Entry& entry) noexcept;

inline std::uint8_t wildcards(int source, int tag) noexcept {
  return static_cast<std::uint8_t>((source == MPI_ANY_SOURCE ? kFlagWildcardSource : 0) |
                                   (tag == MPI_ANY_TAG ? kFlagWildcardTag : 0));
}

}  // namespace lbf::capture
