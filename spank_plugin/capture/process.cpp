// Start and stop of the capture in a process and in its threads; see process.h. Nothing in here ever makes a
// program fail: where the ring cannot be had the capture is off, and rank 0 says so in one line.
#include "spank_plugin/capture/process.h"

#include "spank_plugin/capture/all_threads_barrier.h"
#include "spank_plugin/capture/procedure_times.h"
#include "spank_plugin/capture/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

namespace lbf::capture {

constinit Process process;
thread_local constinit Thread* available_thread = nullptr;
thread_local constinit ThreadState thread_state = ThreadState::kUnasked;
thread_local constinit Thread* own_thread = nullptr;

namespace {

constexpr std::size_t kMaxDirectory = 3800;
constexpr std::size_t kHeaderBytes = (sizeof(ring::Header) + 4095) & ~std::size_t{4095};
constexpr std::uint64_t kSmallestFallbackBytes = 64u << 10;
constexpr unsigned kLog2Channels = 14;  // of a thread, 512 KiB: pages that are never counted on cost nothing
constexpr std::uint64_t kLargestRingBytes = std::uint64_t{1} << 30;  // the relay reads no larger one

char directory_copy[kMaxDirectory + 1];
// Threads' rings so far. Guarded by the StartLock.
std::uint64_t rings_named = 0;
pthread_key_t thread_end_key;
// By function. Several tables, so that threads which ask for the time do not all write into one line.
constexpr unsigned kLog2CallTables = 4;
constinit std::atomic<std::uint32_t> calls_without_ring[1u << kLog2CallTables][ring::kMaxFunctions] = {};

std::int32_t int_from_environment(const char* name, std::int32_t otherwise) noexcept {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long value = strtol(text, &end, 10);
  return *end == '\0' && value >= 0 && value <= 0x7fffffff ? static_cast<std::int32_t>(value) : otherwise;
}

// In the child of a fork the ring is the parent's: it must not write a byte.
void after_fork_in_child() {
  process.state.store(CaptureState::kOff, std::memory_order_relaxed);
  process.why_off = nullptr;
  process.shared.store(false, std::memory_order_relaxed);
  process.start_lock.clear(std::memory_order_relaxed);
  process.lock.clear(std::memory_order_relaxed);
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
}

bool open_all(CompletedRequests (&queues)[family::kSharedQueues]) noexcept {
  for (CompletedRequests& queue : queues) {
    if (!queue.open()) return false;
  }
  return true;
}

void release_all(CompletedRequests (&queues)[family::kSharedQueues]) noexcept {
  for (CompletedRequests& queue : queues) queue.release();
}

void release_thread(void* data) {
  auto* thread = static_cast<Thread*>(data);
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
  StartLock start_lock;
  {
    const TableLock lock(TableLock::kAlways);
    Thread* previous = nullptr;
    for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr;
         previous = t, t = t->next) {
      if (t != thread) continue;
      if (previous == nullptr) {
        process.threads.store(t->next, std::memory_order_relaxed);
      } else {
        previous->next = t->next;
      }
      break;
    }
    process.left_recorded_calls += thread->header->recorded.executions.load(std::memory_order_relaxed);
    process.left_counted_calls += thread->header->counted.executions.load(std::memory_order_relaxed);
    for (int queue = 0; queue < family::kSharedQueues; ++queue) {
      CompletedRequests& completed = thread->completed[queue];
      while (!completed.empty()) process.left_over[queue].push(completed.pop());
    }
  }
  thread->counts.take_changes([](const ChannelEnd& end, std::uint64_t count) {
    if (!process.left_counts.count(end, count))
      process.mode.uncounted.fetch_add(count, std::memory_order_relaxed);
    return true;
  });
  thread->counts.release();
  release_all(thread->completed);
  thread->clock.close();
  thread->statuses.release();
  thread->snapshot.release();
  thread->ranks.release();
  if (thread->intervals != nullptr) munmap(thread->intervals, sizeof(ProcedureIntervals));
  thread->header->ended.store(1, std::memory_order_release);
  munmap(thread->header, thread->mapped_bytes);
  munmap(thread, sizeof(Thread));
}

bool fail(const char* why, int error) noexcept {
  if (process.why_off == nullptr) {
    process.why_off = why;
    process.why_errno = error;
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
  process.ring_bytes = value;
  return true;
}

// How many calls each ring may record before the relay has looked at it; 0: no bound.
bool read_grant() noexcept {
  const char* text = getenv("LBF_CAPTURE_GRANT");
  if (text == nullptr || *text == '\0') return true;
  char* end = nullptr;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end != '\0' || *text < '0' || *text > '9') return fail("LBF_CAPTURE_GRANT must be a number of calls", 0);
  process.first_grant = value;
  return true;
}

bool start_process() noexcept {
  const char* directory = getenv("LBF_CAPTURE_DIR");
  if (directory == nullptr || *directory == '\0') return false;
  const std::size_t length = strlen(directory);
  if (length > kMaxDirectory) return fail("the path in LBF_CAPTURE_DIR is too long", 0);
  memcpy(directory_copy, directory, length + 1);
  process.directory = directory_copy;
  if (const char* why = find_library()) return fail(why, 0);
  if (!read_ring_bytes() || !read_grant()) return false;
  if (!process.requests.open(18) || !process.communicators.open(16) ||
      !process.partitions.open(14) || !process.group_uses.open(14) ||
      !open_all(process.left_over) || !process.watched.open() || !process.left_counts.open(kLog2Channels)) {
    return fail("no memory for the capture's tables", errno);
  }
  if (pthread_key_create(&thread_end_key, release_thread) != 0) return fail("no pthread key is left", 0);
  if (pthread_atfork(nullptr, nullptr, after_fork_in_child) != 0) return fail("pthread_atfork failed", errno);
  process.unknown.foreign = true;
  process.unknown.defined = true;
  process.world.defined = true;
  // Now it takes no time, when the MPI library has threads it does.
  if (__libc_single_threaded) process.all_threads_barrier = register_all_threads_barrier();
  clock_start();
  return true;
}

// Whether a file may have that size. Beyond the limit (ulimit -f) fallocate and ftruncate raise SIGXFSZ: the end of a program
// that did not ask for it.
bool is_size_allowed(std::size_t bytes) noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

// fallocate; a kernel that gives it up for a signal (tmpfs) is asked again. The program's signals wait meanwhile: an interval
// timer's may come faster than a large ring's pages.
bool fallocate_whole(int fd, std::size_t bytes) noexcept {
  constexpr int kTries = 16;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  const bool blocked = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
  bool done = false;
  for (int tries = 0; !done && tries < kTries; ++tries) {
    done = fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0;
    if (!done && errno != EINTR) break;
  }
  const int error = errno;
  if (blocked) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return done;
}

// Reserves the file's pages now: a write into a mapped page that a full tmpfs cannot supply would be a
// SIGBUS.
bool reserve(int fd, std::size_t bytes) noexcept {
  if (!is_size_allowed(bytes)) {
    errno = EFBIG;
    return false;
  }
  if (fallocate_whole(fd, bytes)) return true;
  if (errno != EOPNOTSUPP) return false;
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0;
}

// What one record costs, measured on the ring before anybody reads it.
std::uint64_t calibrate_call(std::byte* data, ring::Header* header, std::uint64_t capacity) noexcept {
  RingWriter writer;
  writer.attach(header, data, capacity);
  constexpr int kRounds = 64;  // 64 records of 48 bytes fit the smallest ring
  const std::uint64_t begin = ticks_now();
  for (int i = 0; i < kRounds; ++i) {
    writer.begin_call(ticks_now(), 0);
    writer.append(EventKind::kSend);
    writer.commit(ticks_now());
  }
  const std::uint64_t cost = (ticks_now() - begin) / kRounds;
  header->head.store(0, std::memory_order_relaxed);
  header->lost_records.store(0, std::memory_order_relaxed);
  return cost;
}

// What a rank may do before the relay has looked is for all of its threads: those after the first begin with a quarter of it,
// an eighth, a twelfth ..., and take more where the others do not need theirs (recorder_modes.cpp). 0: no bound.
std::uint64_t first_grant_of_next_ring() noexcept {
  if (process.first_grant == 0 || rings_named == 0) return process.first_grant;
  const std::uint64_t part = process.first_grant / (4 * rings_named);
  return part > 0 ? part : 1;
}

void fill_header(ring::Header* header, pid_t tid, std::uint64_t capacity) noexcept {
  const std::uint64_t first_grant = first_grant_of_next_ring();
  header->version = ring::kVersion;
  header->header_bytes = static_cast<std::uint32_t>(kHeaderBytes);
  header->capacity_bytes = capacity;
  header->pid = getpid();
  header->tid = tid;
  header->clock_source = tick_clock.tsc ? 0 : 1;
  header->thread_level = static_cast<std::uint32_t>(process.thread_level);
  header->window.store(1, std::memory_order_relaxed);
  header->recording_window.store(process.mode.counting ? 0 : process.mode.window, std::memory_order_relaxed);
  header->grant.store(first_grant, std::memory_order_relaxed);
  header->counted_grant.store(first_grant < ~std::uint64_t{0} / ring::kFirstCountedPerRecorded
                                  ? first_grant * ring::kFirstCountedPerRecorded
                                  : 0,
                              std::memory_order_relaxed);
  header->slurm_procid = int_from_environment("SLURM_PROCID", -1);
  header->start_ticks = tick_clock.start_ticks;
  header->start_monotonic_ns = tick_clock.start_monotonic_ns;
  header->start_realtime_ns = tick_clock.start_realtime_ns;
  const ssize_t length = readlink("/proc/self/exe", header->executable, sizeof(header->executable) - 1);
  header->executable[length > 0 ? length : 0] = '\0';
  gethostname(header->host, sizeof(header->host) - 1);
  if (process.initialised.load(std::memory_order_acquire)) {
    memcpy(header->library, process.library_version, sizeof(header->library));
    header->rank.store(process.rank, std::memory_order_relaxed);
    header->world_size.store(process.world_size, std::memory_order_relaxed);
    header->init_leave_ticks.store(process.init_leave_ticks, std::memory_order_relaxed);
    header->cpu_threshold_ticks.store(tick_clock.cpu_threshold, std::memory_order_relaxed);
    header->state.store(static_cast<std::uint32_t>(ring::ProcessState::kRunning), std::memory_order_relaxed);
  } else {
    header->rank.store(-1, std::memory_order_relaxed);
  }
  std::atomic_ref<std::uint64_t>(header->magic).store(ring::kMagic, std::memory_order_release);
}

void ring_path(char (&path)[kMaxDirectory + 64], std::int32_t tid) noexcept {
  snprintf(path, sizeof(path), "%s/%d.%d.ring", process.directory, getpid(), tid);
}

// Why a thread has no ring.
struct Failure {
  const char* why = nullptr;
  int error = 0;
};

void hidden_ring_path(char (&path)[kMaxDirectory + 64], std::int32_t tid) noexcept {
  snprintf(path, sizeof(path), "%s/.%d.%d.new", process.directory, getpid(), tid);
}

// All that takes long, some milliseconds: not under the StartLock, which a thread needs that wants to close the window,
// because it has used up its grant or its ring is full. The ring appears under its name complete: name_ring().
Thread* make_ring(Failure& failure) noexcept {
  const auto fail = [&failure](const char* why, int error) { failure = {why, error}; };
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  char hidden[kMaxDirectory + 64];
  hidden_ring_path(hidden, tid);
  const int fd = open(hidden, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (fd < 0) {
    fail("no event ring can be made in LBF_CAPTURE_DIR", errno);
    return nullptr;
  }
  std::uint64_t capacity = process.ring_bytes;
  while (!reserve(fd, kHeaderBytes + capacity)) {
    capacity /= 2;
    if (capacity < kSmallestFallbackBytes) {
      fail(errno == EFBIG ? "no event ring fits the limit on the size of files (ulimit -f)"
                          : "no room for the event ring in LBF_CAPTURE_DIR",
           errno);
      unlink(hidden);
      close(fd);
      return nullptr;
    }
    // A try that failed half-way may have left pages behind.
    if (ftruncate(fd, 0) != 0) break;
  }
  const std::size_t bytes = kHeaderBytes + capacity;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  void* memory = map_pages(sizeof(Thread));
  close(fd);
  if (pages == MAP_FAILED || memory == nullptr) {
    fail("the event ring cannot be mapped", errno);
    unlink(hidden);
    if (pages != MAP_FAILED) munmap(pages, bytes);
    if (memory != nullptr) munmap(memory, sizeof(Thread));
    return nullptr;
  }
  auto* header = static_cast<ring::Header*>(pages);
  std::byte* data = static_cast<std::byte*>(pages) + kHeaderBytes;
  auto* thread = new (memory) Thread;
  if (!open_all(thread->completed) || !thread->counts.open(kLog2Channels)) {
    fail("no memory for the capture's tables", errno);
    release_all(thread->completed);
    unlink(hidden);
    munmap(pages, bytes);
    munmap(memory, sizeof(Thread));
    return nullptr;
  }
  thread->header = header;
  thread->mapped_bytes = bytes;
  thread->call_cost = calibrate_call(data, header, capacity);
  header->header_bytes = static_cast<std::uint32_t>(kHeaderBytes);
  header->capacity_bytes = capacity;
  measure_ideal(*thread);
  thread->recorded_sampler.seed(static_cast<std::uint64_t>(tid) * 0x9e3779b97f4a7c15u + tick_clock.start_ticks);
  thread->counted_sampler.seed(static_cast<std::uint64_t>(tid) * 0xc2b2ae3d27d4eb4fu + tick_clock.start_ticks);
  header->tid = tid;
  return thread;
}

void discard_ring(Thread* thread, const char* hidden) noexcept {
  unlink(hidden);
  release_all(thread->completed);
  thread->counts.release();
  munmap(thread->header, thread->mapped_bytes);
  munmap(thread, sizeof(Thread));
}

// From here on the relay finds the ring, and the thread goes on in the process's mode. What it did since BEGIN_TICKS is no
// work of the program's. nullptr: neither. REQUIRES: the StartLock is held.
Thread* name_ring(Thread* thread, std::uint64_t begin_ticks, Failure& failure) noexcept {
  const pid_t tid = thread->header->tid;
  char hidden[kMaxDirectory + 64];
  char path[kMaxDirectory + 64];
  hidden_ring_path(hidden, tid);
  ring_path(path, tid);
  if (process.mode.off.load(std::memory_order_relaxed) ||
      process.state.load(std::memory_order_relaxed) != CaptureState::kOn) {
    discard_ring(thread, hidden);
    return nullptr;
  }
  fill_header(thread->header, tid, thread->header->capacity_bytes);
  thread->own_grant = thread->header->grant.load(std::memory_order_relaxed);
  thread->own_counted_grant = thread->header->counted_grant.load(std::memory_order_relaxed);
  if (rename(hidden, path) != 0) {
    failure = {"the event ring cannot be named", errno};
    discard_ring(thread, hidden);
    return nullptr;
  }
  ++rings_named;
  thread->clock.open();
  const bool in_run = process.initialised.load(std::memory_order_acquire);
  thread->clock.renew();
  if (in_run) {
    thread->cpu_threshold = tick_clock.cpu_threshold;
    thread->shared = thread->attentive = process.shared.load(std::memory_order_relaxed);
    thread->counting = process.mode.counting;
    thread->epoch = process.mode.epoch.load(std::memory_order_relaxed);
  }
  thread->last_leave = ticks_now();
  // Some milliseconds: more than all that a storm of calls records under a low limit.
  if (in_run && !thread->counting) thread->ring.adjust(thread->last_leave - begin_ticks, 0, 0);
  return thread;
}

// What a thread without a ring sends and receives nobody records: from here on the same is true of the whole rank, as one
// cut. The next call of a thread that has a ring writes it. REQUIRES: the StartLock is held.
void end_capture_without(const Failure& failure) noexcept {
  static bool said = false;
  if (!process.initialised.load(std::memory_order_acquire)) return;  // the wrapper of MPI_Init says it
  process.mode.ordered_off = true;
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    t->expected_control.store(kNever, std::memory_order_relaxed);
  if (said) return;
  said = true;
  dprintf(STDERR_FILENO, "lbf: the capture of rank %d ends, a thread has no event ring: %s (%s): %s\n", process.rank, failure.why,
          process.directory, strerrordesc_np(failure.error));
}

Thread* start_thread() noexcept {
  const int saved_errno = errno;
  const std::uint64_t begin_cpu_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  thread_state = ThreadState::kOff;
  Thread* thread = nullptr;
  Failure failure;
  bool wanted = false;
  std::uint64_t begin_ticks = 0;
  {
    const StartLock lock;
    if (process.state.load(std::memory_order_relaxed) == CaptureState::kUnasked) {
      process.state.store(start_process() ? CaptureState::kOn : CaptureState::kOff,
                          std::memory_order_release);
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
        read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns + (is_first ? load_cpu_ns() : 0), std::memory_order_relaxed);
  }
  errno = saved_errno;
  return thread;
}

}  // namespace

Thread* enter_thread(const std::byte* frame, Entry entry) noexcept {
  if (thread_state == ThreadState::kUnasked) return start_thread();
  return own_thread != nullptr && resume_left_call(*own_thread, frame, entry) ? own_thread : nullptr;
}

void count_without_ring(std::uint16_t function) noexcept {
  if (thread_state != ThreadState::kUnasked || process.state.load(std::memory_order_relaxed) == CaptureState::kOff) return;
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

void process_initialised(int thread_level) noexcept {
  process.thread_level = thread_level;
  if (thread_level == MPI_THREAD_MULTIPLE && !process.all_threads_barrier)
    process.all_threads_barrier = register_all_threads_barrier();
  process.shared.store(thread_level == MPI_THREAD_MULTIPLE, std::memory_order_relaxed);
  {
    const StartLock lock;
    for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next)
      t->shared = t->attentive = thread_level == MPI_THREAD_MULTIPLE;
  }
  library.Comm_rank(library.comm_world, &process.rank);
  library.Comm_size(library.comm_world, &process.world_size);
  library.Comm_group(library.comm_world, &process.world_group);
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  library.Get_library_version(version, &length);
  version[strcspn(version, "\n")] = '\0';
  snprintf(process.library_version, sizeof(process.library_version), "%.127s", version);
  process.world.size = static_cast<std::uint32_t>(process.world_size);
  process.world.rank = process.rank;
  process.world.uid = 1;
  process.world.defined = true;
  find_fortran_sentinels();
  resolve_all_next();
  clock_calibrate();
  process.init_leave_ticks = ticks_now();
  process.initialised.store(true, std::memory_order_release);
}

void process_running() noexcept {
  const StartLock lock;  // threads that are named later fill their headers themselves
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next) {
    ring::Header* const header = t->header;
    memcpy(header->library, process.library_version, sizeof(header->library));
    header->thread_level = static_cast<std::uint32_t>(process.thread_level);
    header->rank.store(process.rank, std::memory_order_relaxed);
    header->world_size.store(process.world_size, std::memory_order_relaxed);
    header->cpu_threshold_ticks.store(tick_clock.cpu_threshold, std::memory_order_relaxed);
    header->init_leave_ticks.store(process.init_leave_ticks, std::memory_order_relaxed);
    header->state.store(static_cast<std::uint32_t>(ring::ProcessState::kRunning), std::memory_order_release);
  }
}

bool process_is_spawned() noexcept {
  MPI_Comm parent = library.comm_null;
  library.Comm_get_parent(&parent);
  return parent != library.comm_null;
}

void process_leave() noexcept {
  if (!process.spawned && !process.sessions_only) return;
  process.state.store(CaptureState::kOff, std::memory_order_relaxed);
  if (own_thread != nullptr) {
    char path[kMaxDirectory + 64];
    ring_path(path, own_thread->header->tid);
    unlink(path);
  }
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
}

void process_init_failed_to_capture() noexcept {
  if (process.why_off == nullptr) return;
  int rank = 0;
  if (library.comm_world != MPI_Comm{} && !process.sessions_only) {
    library.Comm_rank(library.comm_world, &rank);
  } else {
    rank = int_from_environment("PMIX_RANK", int_from_environment("PMI_RANK", 0));
  }
  if (rank != 0) return;
  if (process.why_errno != 0) {
    dprintf(STDERR_FILENO, "lbf: capture is off: %s (%s): %s\n", process.why_off, process.directory,
            strerrordesc_np(process.why_errno));
  } else {
    dprintf(STDERR_FILENO, "lbf: capture is off: %s\n", process.why_off);
  }
}

void process_set_state(ring::ProcessState state) noexcept {
  StartLock lock;
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next) {
    t->header->state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  }
}

void process_ends_uncaptured(ring::ProcessState state) noexcept {
  if (!process.mode.off.load(std::memory_order_acquire)) return;
  if (state == ring::ProcessState::kFinalized) {
    const StartLock lock;
    for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next)
      t->header->finalize_enter_ticks.store(ticks_now(), std::memory_order_relaxed);
  }
  process_set_state(state);
}

std::uint32_t pop_completed(Thread& thread, int queue) noexcept {
  {
    const TableLock lock;
    if (!thread.completed[queue].empty()) [[likely]]
      return thread.completed[queue].pop();
  }
  const TableLock lock(TableLock::kAlways);
  if (!process.left_over[queue].empty()) return process.left_over[queue].pop();
  for (Thread* t = process.threads.load(std::memory_order_relaxed); t != nullptr; t = t->next) {
    if (!t->completed[queue].empty()) return t->completed[queue].pop();
  }
  return 0;
}

void process_stop() noexcept {
  process.state.store(CaptureState::kOff, std::memory_order_release);
}

}  // namespace lbf::capture
