// Recorder, process part: how a call's time is accounted, MPI_Init, MPI_Finalize, MPI_Abort, MPI_Pcontrol,
// and calls that the replay has no model for. See recorder.h; docs/capture.md, "Process time".
#include <algorithm>

#include "spank_plugin/capture/procedure_times.h"
#include "spank_plugin/capture/recorder.h"
#include "spank_plugin/capture/recorder_devices.h"
#include "spank_plugin/capture/recorder_regions.h"
#include "spank_plugin/capture/self_test.h"

namespace lbf::capture {

inline void Call::note_recorded(std::uint64_t leave) noexcept {
  Thread* const thread = thread_;
  ring::Header* const header = thread->header;
  ring::CallCounter& calls = header->calls[function_];
  add(calls.count, 1);
  add(calls.ticks, leave - enter_);
  add(header->recorded.executions, 1);
  thread->last_leave = leave;
  header->in_call.store(ring::kInProgram, std::memory_order_relaxed);
}

// Most calls: one record, a short gap before it, nothing that wants attention.
void Call::finish() noexcept {
  if (flags_ != 0 || !tick_clock.tsc) [[unlikely]]
    return finish_otherwise();
  Thread* const thread = thread_;
  const std::uint64_t leave = ticks_now();
  if (thread->clock.wants_renewal(enter_, leave) || gap_ >= thread->cpu_threshold || !thread->ring.has_one_record())
      [[unlikely]]
    return finish_recorded(leave);
  thread->ring.commit_one(leave);
  note_recorded(leave);
  add(thread->header->unread_gap_ticks, gap_);
  thread->mode.last_was_failed_poll = false;
  available_thread = thread;
}

void Call::finish_otherwise() noexcept {
  if (counts()) return finish_counted();
  if (flags_ == kFailedPoll && tick_clock.tsc) [[likely]]
    return finish_look();
  finish_recorded(ticks_now());
}

// Most of those that found nothing: a short gap before it, nothing that wants attention.
void Call::finish_look() noexcept {
  Thread* const thread = thread_;
  const std::uint64_t leave = ticks_now();
  if (thread->clock.wants_renewal(enter_, leave) || gap_ >= thread->cpu_threshold || thread->ring.recorded())
      [[unlikely]]
    return finish_recorded(leave);
  take_look_away(leave);
  note_recorded(leave);
  add(thread->header->unread_gap_ticks, gap_);
  thread->mode.last_was_failed_poll = true;
  available_thread = thread;
}

void Call::finish_recorded(std::uint64_t leave) noexcept {
  Thread* const thread = thread_;
  if (thread->clock.wants_renewal(enter_, leave)) [[unlikely]]
    leave = renew_clock(leave);
  if (!thread->ring.recorded()) without_record(leave);
  thread->ring.commit(leave);
  note_recorded(leave);
  if (gap_ < thread->cpu_threshold) add(thread->header->unread_gap_ticks, gap_);
  thread->mode.last_was_failed_poll = (flags_ & kFailedPoll) != 0;
  if ((flags_ & kAttention) != 0) finish_with_attention(thread->header->recorded);
  available_thread = thread;
}

void Call::finish_counted() noexcept {
  Thread* const thread = thread_;
  ring::Header* const header = thread->header;
  add(header->calls[function_].count, 1);
  add(header->counted.executions, 1);
  if ((flags_ & kAttention) != 0) finish_with_attention(header->counted);
  available_thread = thread;
}

// The call left no record to carry its time: it is not process time, so the next record takes it away.
void Call::without_record(std::uint64_t leave) noexcept {
  if ((flags_ & kOutside) != 0) return;
  if ((flags_ & kFailedPoll) == 0) return thread_->ring.adjust(0, 0, leave - enter_);
  if ((flags_ & kTimed) != 0 && thread_->mode.last_was_failed_poll) note_look_cpu();
  take_look_away(leave);
}

// A program that does nothing but poll waits; one that works between its polls computes.
inline void Call::take_look_away(std::uint64_t leave) noexcept {
  add(thread_->header->failed_polls, 1);
  const std::uint64_t between = thread_->mode.last_was_failed_poll && gap_ < tick_clock.pure_loop ? gap_ : 0;
  thread_->ring.note_look(between);
  thread_->ring.adjust(0, 0, leave - enter_ + between);
}

void Call::note_look_cpu() noexcept {
  const std::uint64_t ticks = ticks_from_ns(look_cpu_ns_);
  thread_->ring.note_look_cpu(ticks - std::min(ticks, tick_clock.cpu_read));  // without what the reading itself took
  thread_->cost.beside_calls_ticks += 2 * tick_clock.cpu_read;
}

namespace record {

namespace {

constexpr int kSupposeNothing = MPI_THREAD_MULTIPLE;  // of a thread level

void begin_run(Call& call, int thread_level, std::uint64_t begin_cpu_ns) noexcept {
  process_initialised(thread_level);
  Thread& thread = call.thread();
  ring::Header* const header = thread.header;
  thread.cpu_threshold = tick_clock.cpu_threshold;
  start_procedures(thread);
  thread.clock.renew();
  header->unread_gap_ticks.store(0, std::memory_order_relaxed);
  add(header->once_cpu_ns, read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns);
  header->init_cpu_ns.store(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID), std::memory_order_relaxed);
  process.run.init_leave_ticks = ticks_now();
  begin_procedure_interval(process.run.init_leave_ticks);
  start_regions(thread);
  note_device_libraries(thread);
  process_running();
  call.outside_accounting();
}

// The process has no ring from here on (process_leave).
void refuse_run(Call& call, const char* why) noexcept {
  process.refusal.why = why;
  process_init_failed_to_capture();
  process.run.worldless.store(true, std::memory_order_release);
  call.outside_accounting();
}

}  // namespace

void initialised(Call& call) noexcept {
  const std::uint64_t begin_cpu_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (unlisted_library() != nullptr || family::kIsAlwaysTested) {
    family::learn_statuses();
    if (const char* const what = failed_check()) return refuse_run(call, refusal(what));
    accept_library();
  }
  if (began_with_session()) {
    adopt_world();
    return unmodelled(call);
  }
  // Also after MPI_Init: the environment may ask for more than the program does (OMPI_MPI_THREAD_LEVEL,
  // MPIR_CVAR_DEFAULT_THREAD_LEVEL).
  int thread_level = kSupposeNothing;
  library.Query_thread(&thread_level);
  process.run.spawned = process_is_spawned();
  if (process.run.spawned) return call.outside_accounting();
  if (!family::learn_shared_requests())
    return refuse_run(call, refusal("requests that are complete when they are made"));
  enter_world_model();
  begin_run(call, thread_level, begin_cpu_ns);
}

// Ranks are numbered by the processes that every session knows. One that another thread opened meanwhile waits until
// the run has begun.
void session_begun(Call& call, MPI_Session session) noexcept {
  const std::uint64_t begin_cpu_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (process_opens_session(session)) {
    if (family::kIsAlwaysTested) return refuse_run(call, refusal("a session before MPI_Init"));
    if (learn_world_of_session(session)) return begin_run(call, kSupposeNothing, begin_cpu_ns);
    return refuse_run(call, "the program's MPI session has no process set mpi://WORLD");
  }
  while (!process.run.running.load(std::memory_order_acquire)) {
    if (process.run.worldless.load(std::memory_order_acquire)) return call.outside_accounting();
    sched_yield();
  }
  if (!call.counts() && call.enter() < process.run.init_leave_ticks) return call.outside_accounting();
  unmodelled(call);
}

void session_ending(Call& call, MPI_Session session) noexcept {
  call.ends_run = process_closes_session(session);
  if (call.ends_run) finalizing(call);
}

void session_ended(Call& call) noexcept {
  if (call.ends_run) return finalized(call);
  unmodelled(call);
}

void finalizing(Call& call) noexcept {
  Thread& thread = call.thread();
  const std::uint64_t at = open_last_window(call);
  const std::uint64_t enter = call.counts() ? at : call.enter();
  say_last_of_procedures(thread, ProceduresEnd::kRun);
  thread.ring.use_kept_back();
  thread.ring.begin_call(enter, call.function());
  thread.ring.append(EventKind::kExit);
  thread.ring.commit(enter);
  tell_calls_without_ring(thread);
  note_device_libraries(thread);
  thread.header->finalize_enter_ticks.store(enter, std::memory_order_relaxed);
  thread.header->end_cpu_ns.store(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID), std::memory_order_relaxed);
  process_set_state(ring::ProcessState::kFinalized);
  call.outside_accounting();
}

void finalized(Call&) noexcept {
  unwatch_regions();
  stop_procedures();
  process_stop();
  release_library();
}

void aborting(Call& call) noexcept {
  tell_calls_without_ring(call.thread());
  call.thread().header->end_cpu_ns.store(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID), std::memory_order_relaxed);
  process_set_state(ring::ProcessState::kAborted);
  call.outside_accounting();
}

void phase(Call& call, int level) noexcept {
  if (ring::Record* record = call.append(EventKind::kPhase)) ring::set_phase_level(*record, level);
}

void unmodelled(Call& call) noexcept {
  call.append(EventKind::kUnmodelled);
}

void unseen(Call& call) noexcept {
  call.append(EventKind::kCompute);
}

void io(Call& call, IoDirection direction, std::int64_t count, MPI_Datatype type, Made made) noexcept {
  ring::Record* const record = call.append(EventKind::kIo);
  if (record != nullptr) {
    ring::set_op(*record, direction);
    if (direction != IoDirection::kNone) record->bytes = message_bytes(call.thread(), count, type);
  }
  if (!made.nonblocking || call.counts()) return;
  RequestInfo info;
  info.kind = RequestKind::kIo;
  info.active = true;
  info.id = new_request_id(call.thread());
  keep_request(call, made.request, info);
}

// Rank 0 of those who started processes says how many.
void spawned(Call& call, MPI_Comm comm, NewComm intercomm) noexcept {
  int rank = -1, children = 0;
  library.Comm_rank(comm, &rank);
  if (rank == 0) library.Comm_remote_size(intercomm.get(), &children);
  ring::Record* const record = call.append(EventKind::kUnmodelled);
  if (record != nullptr) ring::set_spawned(*record, static_cast<std::uint64_t>(children));
}

void type_freed() noexcept {
  process.type_epoch.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace record

std::uint64_t type_bytes_slow(Thread& thread, MPI_Datatype type) noexcept {
  if (type == MPI_Datatype{}) return 0;
  const std::uint32_t epoch = process.type_epoch.load(std::memory_order_relaxed);
  MPI_Count size = 0;  // an int is MPI_UNDEFINED from 2 GiB on
  if (library.Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return 0;
  TypeSize& slot = type_size_slot(thread, type);
  slot = {type, epoch, static_cast<std::uint64_t>(size)};
  return slot.bytes;
}

}  // namespace lbf::capture
