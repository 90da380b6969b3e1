// Start and stop of the capture in a process and in its threads; see process.h. Nothing in here ever makes a
// program fail: where the ring cannot be had the capture is off, and rank 0 says so in one line.
#include "spank_plugin/capture/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/library_name.h"
#include "spank_plugin/capture/all_threads_barrier.h"
#include "spank_plugin/capture/ancestor_environment.h"
#include "spank_plugin/capture/procedure_times.h"
#include "spank_plugin/capture/recorder.h"
#include "spank_plugin/capture/recorder_regions.h"
#include "spank_plugin/capture/self_test.h"
#include "spank_plugin/capture/thread_ring.h"

namespace lbf::capture {

constinit Process process;
thread_local constinit Thread* available_thread = nullptr;
thread_local constinit ThreadState thread_state = ThreadState::kUnasked;
thread_local constinit Thread* own_thread = nullptr;

namespace {

constexpr std::uint64_t kLargestRingBytes = std::uint64_t{1} << 30;  // the relay reads no larger one

char directory_copy[kMaxDirectory + 1];
pthread_key_t thread_end_key;
// By function. Several tables, so that threads which ask for the time do not all write into one line.
constexpr unsigned kLog2CallTables = 4;
constinit std::atomic<std::uint32_t> calls_without_ring[1u << kLog2CallTables][ring::kMaxFunctions] = {};

// In the child of a fork the ring is the parent's: it must not write a byte.
void after_fork_in_child() {
  pthread_setspecific(thread_end_key, nullptr);  // the end of this thread is not that of the parent's
  process.state.store(CaptureState::kOff, std::memory_order_relaxed);
  process.refusal.why = nullptr;
  process.shared.store(false, std::memory_order_relaxed);
  process.start_lock.reset();
  process.table_lock.reset();
  process.session_lock.reset();
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
  unwatch_regions();
}

// Without the thread's own lock: who looks for a request of another thread has the tables' lock.
void leave_completed(CompletedOfThread& completed) noexcept REQUIRES(process.table_lock) NO_THREAD_SAFETY_ANALYSIS {
  for (int queue = 0; queue < family::kSharedQueues; ++queue) {
    while (!completed.queues[queue].empty()) process.ended_completed[queue].push(completed.queues[queue].pop());
  }
}

void release_thread(void* data) {
  auto* thread = static_cast<Thread*>(data);
  unwatch_regions();
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
  StartLock start_lock;
  {
    const TableLock lock(TableLock::kAlways);
    Thread* previous = nullptr;
    for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; previous = t, t = t->next) {
      if (t != thread) continue;
      if (previous == nullptr) {
        process.threads.store(t->next, std::memory_order_relaxed);
      } else {
        previous->next = t->next;
      }
      break;
    }
    if (thread->reference_part < References::kCommonPart) process.reference_part_taken[thread->reference_part] = false;
    process.ended.recorded_calls += recorded_use(*thread);
    process.ended.counted_calls += thread->header->counted.executions.load(std::memory_order_relaxed);
    leave_completed(thread->completed);
  }
  thread->counts.take_changes([](const ChannelEnd& end, std::uint64_t count) REQUIRES(process.start_lock) {
    if (!process.ended.counts.count(end, count)) process.mode.uncounted.fetch_add(count, std::memory_order_relaxed);
    return true;
  });
  // Behind the end of the capture nothing comes.
  if (!process.mode.off.load(std::memory_order_relaxed)) thread->ring.end();
  thread->clock.close();
  thread->scratch.statuses.release();
  thread->scratch.snapshot.release();
  thread->scratch.handles.release();
  thread->scratch.ranks.release();
  if (thread->procedures.intervals != nullptr) munmap(thread->procedures.intervals, sizeof(ProcedureIntervals));
  thread->header->ended.store(1, std::memory_order_release);
  release_ring(thread);
}

bool fail(const char* why, int error) noexcept {
  if (process.refusal.why == nullptr) {
    process.refusal.why = why;
    process.refusal.error = error;
  }
  return false;
}

bool read_ring_bytes() noexcept {
  const char* text = getenv("LBF_CAPTURE_RING_BYTES");
  if (text == nullptr || *text == '\0') return true;
  char* end = nullptr;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end != '\0' || (value & (value - 1)) != 0 || value < RingWriter::kMinCapacityBytes ||
      value > kLargestRingBytes) {
    return fail("LBF_CAPTURE_RING_BYTES must be a power of two from 4096 to 1073741824", 0);
  }
  process.settings.ring_bytes = value;
  return true;
}

// How many calls each ring may record before the relay has looked at it; 0: no bound.
bool read_grant() noexcept {
  const char* text = getenv("LBF_CAPTURE_GRANT");
  if (text == nullptr || *text == '\0') return true;
  char* end = nullptr;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end != '\0' || *text < '0' || *text > '9') return fail("LBF_CAPTURE_GRANT must be a number of calls", 0);
  process.settings.first_grant = value;
  return true;
}

bool is_directory(const char* path) noexcept {
  const int fd = *path != '\0' ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  if (fd >= 0) close(fd);
  return fd >= 0;
}

bool has_one_thread() noexcept {
  const auto* const single = static_cast<const char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"));  // glibc 2.32
  return single != nullptr && *single != 0;
}

// Without the locks: no other thread looks at the tables before the capture is on.
bool start_process() noexcept NO_THREAD_SAFETY_ANALYSIS {
  const char* directory = getenv("LBF_CAPTURE_DIR");
  if (directory == nullptr || *directory == '\0') return false;
  const std::size_t length = strlen(directory);
  if (length > kMaxDirectory) return fail("the path in LBF_CAPTURE_DIR is too long", 0);
  // It may be that of another node, where the launcher runs; else what is wrong with it is said later.
  if (is_directory(directory) ||
      !ancestor_environment("LBF_CAPTURE_DIR", is_directory, directory_copy, sizeof(directory_copy)))
    memcpy(directory_copy, directory, length + 1);
  process.settings.directory = directory_copy;
  if (const char* why = find_library()) return fail(unlisted_library() != nullptr ? refusal(why) : why, 0);
  if (!read_ring_bytes() || !read_grant()) return false;
  read_origin(process.origin);
  process.ring_room.measure(process.settings.directory, ranks_on_node());
  if (!process.requests.open(18) || !process.communicators.handles.open(16) || !process.partitions.open(14) ||
      !process.communicators.group_uses.open(14) || !open_all(process.ended_completed) || !process.watched.open() ||
      !process.ended.counts.open(kLog2Channels)) {
    return fail("no memory for the capture's tables", errno);
  }
  if (pthread_key_create(&thread_end_key, release_thread) != 0) return fail("no pthread key is left", 0);
  if (pthread_atfork(nullptr, nullptr, after_fork_in_child) != 0) return fail("pthread_atfork failed", errno);
  process.unknown.foreign = true;
  process.unknown.defined = true;
  process.world.defined = true;
  // Now it takes no time, when the MPI library has threads it does.
  if (has_one_thread()) process.all_threads_barrier = register_all_threads_barrier();
  clock_start();
  return true;
}

// What a thread without a ring sends and receives nobody records: from here on the same is true of the whole rank, as
// one cut. The next call of a thread that has a ring writes it.
void end_capture_without(const RingFailure& failure) noexcept REQUIRES(process.start_lock) {
  static bool said = false;
  if (!process.run.initialised.load(std::memory_order_acquire)) {
    // The wrapper of MPI_Init says it. Where nobody has a ring no other thread begins later, either: nothing was set
    // up.
    if (process.threads.load(std::memory_order_relaxed) == nullptr)
      process.state.store(CaptureState::kOff, std::memory_order_release);
    return;
  }
  process.mode.ordered_off = true;
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    t->attention.expected_control.store(kNever, std::memory_order_relaxed);
  if (said) return;
  said = true;
  errno = failure.error;
  dprintf(STDERR_FILENO, "lbf: the capture of rank %d ends, a thread has no event ring: %s (%s): %m\n",
          process.run.rank, failure.why, process.settings.directory);
}

Thread* start_thread() noexcept {
  const int saved_errno = errno;
  const std::uint64_t begin_cpu_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  thread_state = ThreadState::kOff;
  Thread* thread = nullptr;
  RingFailure failure;
  bool wanted = false;
  std::uint64_t begin_ticks = 0;
  {
    const StartLock lock;
    if (process.state.load(std::memory_order_relaxed) == CaptureState::kUnasked) {
      process.state.store(start_process() ? CaptureState::kOn : CaptureState::kOff, std::memory_order_release);
    }
    wanted = process.state.load(std::memory_order_relaxed) == CaptureState::kOn &&
             !process.mode.off.load(std::memory_order_relaxed);
    begin_ticks = ticks_now();
  }
  if (wanted) thread = make_ring(failure);
  if (wanted) {
    const StartLock lock;
    if (thread != nullptr) thread = name_ring(thread, begin_ticks, failure);
    if (failure.why != nullptr) {
      fail(failure.why, failure.error);
      end_capture_without(failure);
    }
    if (thread != nullptr) {
      const TableLock table_lock(TableLock::kAlways);
      thread->next = process.threads.load(std::memory_order_relaxed);
      process.threads.store(thread, std::memory_order_release);
    }
  }
  if (thread != nullptr) {
    pthread_setspecific(thread_end_key, thread);
    thread_state = ThreadState::kOn;
    own_thread = thread;
    tell_calls_without_ring(*thread);
    note_stack(*thread, static_cast<pid_t>(thread->header->tid));
    const bool is_first = thread->next == nullptr;
    thread->header->once_cpu_ns.store(
        read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns + (is_first ? load_cpu_ns() : 0),
        std::memory_order_relaxed);
  }
  errno = saved_errno;
  return thread;
}

}  // namespace

std::int32_t int_from_environment(const char* name, std::int32_t otherwise) noexcept {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long value = strtol(text, &end, 10);
  return *end == '\0' && value >= 0 && value <= 0x7fffffff ? static_cast<std::int32_t>(value) : otherwise;
}

Thread* enter_thread(const std::byte* frame, Entry entry) noexcept {
  if (thread_state == ThreadState::kUnasked) return start_thread();
  return own_thread != nullptr && resume_left_call(*own_thread, frame, entry) ? own_thread : nullptr;
}

void count_without_ring(std::uint16_t function) noexcept {
  if (thread_state != ThreadState::kUnasked || process.state.load(std::memory_order_relaxed) == CaptureState::kOff)
    return;
  const auto own = reinterpret_cast<std::uintptr_t>(&thread_state) * 0x9e3779b97f4a7c15u;
  calls_without_ring[own >> (64 - kLog2CallTables)][function].fetch_add(1, std::memory_order_relaxed);
}

void tell_calls_without_ring(Thread& thread) noexcept {
  for (auto& table : calls_without_ring) {
    for (std::size_t function = 0; function < ring::kMaxFunctions; ++function) {
      if (table[function].load(std::memory_order_relaxed) == 0) continue;
      std::atomic<std::uint64_t>& count = thread.header->calls[function].count;
      count.store(count.load(std::memory_order_relaxed) + table[function].exchange(0, std::memory_order_relaxed),
                  std::memory_order_relaxed);
    }
  }
}

namespace {

void world_is_known() noexcept {
  process.world.size = static_cast<std::uint32_t>(process.run.world_size);
  process.world.rank = process.run.rank;
  process.world.uid = 1;
}

void set_shared(bool shared) noexcept {
  process.shared.store(shared, std::memory_order_relaxed);
  process.requests.share(shared);
}

// REQUIRES: MPI is initialised.
void learn_world() noexcept {
  const StartLock lock;
  if (process.run.world_size != 0) return;
  int level = MPI_THREAD_SINGLE;
  library.Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) set_shared(true);
  library.Comm_rank(library.comm_world, &process.run.rank);
  library.Comm_size(library.comm_world, &process.run.world_size);
  library.Comm_group(library.comm_world, &process.run.world_group);
  world_is_known();
}

bool make_world_group(MPI_Session session) noexcept REQUIRES(process.session_lock) {
  Sessions& sessions = process.sessions;
  if (library.Group_from_session_pset == nullptr ||
      library.Group_from_session_pset(session, "mpi://WORLD", &process.run.world_group) != MPI_SUCCESS) {
    return false;
  }
  sessions.has_world_group = true;
  sessions.group_of = session;
  return true;
}

void free_world_group() noexcept REQUIRES(process.session_lock) {
  Sessions& sessions = process.sessions;
  if (!sessions.has_world_group) return;
  library.Group_free(&process.run.world_group);
  sessions.has_world_group = false;
}

}  // namespace

void learn_world_if_initialised() noexcept {
  int is_initialised = 0;
  if (library.Initialized(&is_initialised) == MPI_SUCCESS && is_initialised != 0) learn_world();
}

bool learn_world_of_session(MPI_Session session) noexcept {
  const SessionLock lock;
  int rank = MPI_UNDEFINED, size = 0;
  if (!make_world_group(session)) return false;
  library.Group_rank(process.run.world_group, &rank);
  library.Group_size(process.run.world_group, &size);
  if (rank == MPI_UNDEFINED) {
    free_world_group();
    return false;
  }
  process.run.rank = rank;
  process.run.world_size = size;
  world_is_known();
  return true;
}

namespace {

// The run has begun, and nothing came that ends it.
bool is_between_sessions() noexcept REQUIRES(process.session_lock) {
  if (process.sessions.over || process.sessions.world_model) return false;
  return process.sessions.began_run && !process.run.made_in_session.load(std::memory_order_relaxed);
}

// The caller has one of the locks under which the list of threads is written.
void set_state_of_rings(ring::ProcessState state) noexcept {
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    t->header->state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

void set_state_of_sessions(ring::ProcessState state) noexcept REQUIRES(process.session_lock) {
  const TableLock lock(TableLock::kAlways);
  set_state_of_rings(state);
}

}  // namespace

void adopt_world() noexcept {
  const SessionLock lock;
  if (process.sessions.open == 0 && is_between_sessions()) set_state_of_sessions(ring::ProcessState::kRunning);
  process.sessions.world_model = true;
  int rank = -1, size = 0;
  library.Comm_rank(library.comm_world, &rank);
  library.Comm_size(library.comm_world, &size);
  if (rank != process.run.rank || size != process.run.world_size) {
    process.world.foreign = true;
    return;
  }
  free_world_group();
  library.Comm_group(library.comm_world, &process.run.world_group);
}

bool process_opens_session(MPI_Session session) noexcept {
  const SessionLock lock;
  Sessions& sessions = process.sessions;
  if (sessions.open++ == 0 && is_between_sessions()) set_state_of_sessions(ring::ProcessState::kRunning);
  if (sessions.kept_count < Sessions::kKept) sessions.kept[sessions.kept_count++] = session;
  if (sessions.began_run || process.run.initialised.load(std::memory_order_acquire)) return false;
  sessions.began_run = true;
  return true;
}

bool process_closes_session(MPI_Session session) noexcept {
  const SessionLock lock;
  Sessions& sessions = process.sessions;
  if (sessions.open > 0) --sessions.open;
  for (std::uint32_t i = 0; i < sessions.kept_count; ++i) {
    if (sessions.kept[i] != session) continue;
    sessions.kept[i] = sessions.kept[--sessions.kept_count];
    break;
  }
  if (sessions.group_of == session) free_world_group();
  if (sessions.open == 0 && is_between_sessions()) set_state_of_sessions(ring::ProcessState::kBetweenSessions);
  if (sessions.over || sessions.open != 0 || !sessions.began_run || sessions.world_model ||
      !process.run.made_in_session.load(std::memory_order_relaxed)) {
    return false;
  }
  sessions.over = true;
  return true;
}

void session_opens_uncaptured() noexcept {
  process_init_failed_to_capture();
  const SessionLock lock;
  Sessions& sessions = process.sessions;
  if (process.mode.off.load(std::memory_order_acquire)) ++sessions.open;
  if (!sessions.over || sessions.said_over) return;
  sessions.said_over = true;
  if (process.run.rank == 0)
    dprintf(STDERR_FILENO,
            "lbf: the capture ended with the program's last MPI session; what it does in sessions that it opens "
            "later is not captured\n");
}

void session_closes_uncaptured(MPI_Session session) noexcept {
  if (process.mode.off.load(std::memory_order_acquire) && process_closes_session(session))
    process_ends_uncaptured(ring::ProcessState::kFinalized);
}

bool began_with_session() noexcept {
  const SessionLock lock;
  return process.sessions.began_run;
}

void enter_world_model() noexcept {
  const SessionLock lock;
  process.sessions.world_model = true;
}

namespace {

// Without the lock: both were written before the program could have a communicator to ask about.
bool has_world_model() noexcept NO_THREAD_SAFETY_ANALYSIS {
  return !process.sessions.began_run || process.sessions.world_model;
}

}  // namespace

bool translate_to_world(MPI_Group group, int count, const int* ranks, int* out) noexcept {
  const auto translate = [&] {
    return library.Group_translate_ranks(group, count, ranks, process.run.world_group, out) == MPI_SUCCESS;
  };
  if (has_world_model()) return translate();
  const SessionLock lock;
  if (!process.sessions.has_world_group &&
      (process.sessions.kept_count == 0 || !make_world_group(process.sessions.kept[0])))
    return false;
  return translate();
}

void process_initialised(int thread_level) noexcept {
  process.run.thread_level = recorded_thread_level(thread_level);
  if (thread_level == MPI_THREAD_MULTIPLE && !process.all_threads_barrier)
    process.all_threads_barrier = register_all_threads_barrier();
  set_shared(thread_level == MPI_THREAD_MULTIPLE);
  {
    const StartLock lock;
    for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next) {
      t->mode.shared = t->mode.attentive = thread_level == MPI_THREAD_MULTIPLE;
      if (t->mode.shared) use_shared_ideal(*t);
    }
  }
  learn_world();
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  library.Get_library_version(version, &length);
  version[strcspn(version, "\n")] = '\0';
  if (unlisted_library() == nullptr) {
    snprintf(process.run.library_version, sizeof(process.run.library_version), "%.127s", version);
  } else {
    snprintf(process.run.library_version, sizeof(process.run.library_version), "%s%s%.80s", family::kName,
             kFamilyBySelfTest, version);
  }
  resolve_all_next();
  find_fortran_sentinels();  // of the libraries that are known by now
  clock_calibrate();
  process.run.init_leave_ticks = ticks_now();
  process.run.initialised.store(true, std::memory_order_release);
}

void process_running() noexcept {
  const StartLock lock;  // threads that are named later fill their headers themselves
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next) {
    ring::Header* const header = t->header;
    memcpy(header->library, process.run.library_version, sizeof(header->library));
    header->thread_level = static_cast<std::uint32_t>(process.run.thread_level);
    header->rank.store(process.run.rank, std::memory_order_relaxed);
    header->world_size.store(process.run.world_size, std::memory_order_relaxed);
    header->cpu_threshold_ticks.store(tick_clock.cpu_threshold, std::memory_order_relaxed);
    header->init_leave_ticks.store(process.run.init_leave_ticks, std::memory_order_relaxed);
    header->state.store(static_cast<std::uint32_t>(ring::ProcessState::kRunning), std::memory_order_release);
  }
  process.run.running.store(true, std::memory_order_release);
}

bool process_is_spawned() noexcept {
  MPI_Comm parent = library.comm_null;
  library.Comm_get_parent(&parent);
  return parent != library.comm_null;
}

void process_leave() noexcept {
  if (!process.run.spawned && !process.run.worldless.load(std::memory_order_relaxed)) return;
  process.state.store(CaptureState::kOff, std::memory_order_relaxed);
  if (own_thread != nullptr) remove_ring(*own_thread);
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
}

void process_init_failed_to_capture() noexcept {
  const bool is_listed = unlisted_library() == nullptr;
  if (!is_listed) refuse_library();
  const char* const why = process.refusal.why;
  if (why == nullptr) return;
  process.refusal.why = nullptr;  // said once
  int rank = 0, has_world = 0;
  if (is_listed && library.comm_world != MPI_Comm{} && library.Initialized(&has_world) == MPI_SUCCESS &&
      has_world != 0) {
    library.Comm_rank(library.comm_world, &rank);
  } else {
    rank = int_from_environment("PMIX_RANK", int_from_environment("PMI_RANK", 0));
  }
  if (rank != 0) return;
  if (process.refusal.error != 0) {
    errno = process.refusal.error;
    dprintf(STDERR_FILENO, "lbf: capture is off: %s (%s): %m\n", why, process.settings.directory);
  } else {
    dprintf(STDERR_FILENO, "lbf: capture is off: %s\n", why);
  }
}

void process_set_state(ring::ProcessState state) noexcept {
  const StartLock lock;
  set_state_of_rings(state);
}

void process_ends_uncaptured(ring::ProcessState state) noexcept {
  if (!process.mode.off.load(std::memory_order_acquire)) return;
  if (state == ring::ProcessState::kFinalized) {
    const StartLock lock;
    const std::uint64_t cpu_ns = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next) {
      t->header->finalize_enter_ticks.store(ticks_now(), std::memory_order_relaxed);
      t->header->end_cpu_ns.store(cpu_ns, std::memory_order_relaxed);
    }
  }
  process_set_state(state);
}

std::uint32_t pop_completed(Thread& thread, int queue) noexcept {
  {
    const SharedLock lock(thread.completed.lock);
    if (!thread.completed.queues[queue].empty()) [[likely]]
      return thread.completed.queues[queue].pop();
  }
  const TableLock lock(TableLock::kAlways);
  if (!process.ended_completed[queue].empty()) return process.ended_completed[queue].pop();
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next) {
    const SharedLock its_lock(t->completed.lock);
    if (!t->completed.queues[queue].empty()) return t->completed.queues[queue].pop();
  }
  return 0;
}

void process_stop() noexcept {
  const StartLock lock;
  process.state.store(CaptureState::kOff, std::memory_order_release);
  stop_regions();
  // What comes after a program's last session finds out at its next call.
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    t->attention.expected_control.store(kNever, std::memory_order_relaxed);
}

}  // namespace lbf::capture
