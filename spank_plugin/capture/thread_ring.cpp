// See thread_ring.h.
#include "spank_plugin/capture/thread_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {
namespace {

constexpr std::size_t kHeaderBytes = (sizeof(ring::Header) + 4095) & ~std::size_t{4095};
constexpr std::uint64_t kSmallestFallbackBytes = 64u << 10;
constexpr std::size_t kMaxPath = kMaxDirectory + 64;

std::uint64_t rings_named GUARDED_BY(process.start_lock) = 0;  // so far

// Tasks of one step in containers may have the same number, each in a namespace of its own.
void file_path(char (&path)[kMaxPath], const char* begin, std::int32_t tid, const char* end) noexcept {
  char inode[24] = "";
  const std::uint64_t pid_namespace = process.origin.pid_namespace;
  if (pid_namespace != 0) snprintf(inode, sizeof(inode), ".%llu", static_cast<unsigned long long>(pid_namespace));
  snprintf(path, sizeof(path), "%s/%s%d.%d%s.%s", process.settings.directory, begin, getpid(), tid, inode, end);
}

void ring_path(char (&path)[kMaxPath], std::int32_t tid) noexcept {
  file_path(path, "", tid, "ring");
}

void hidden_ring_path(char (&path)[kMaxPath], std::int32_t tid) noexcept {
  file_path(path, ".", tid, "new");
}

// Whether a file may have that size. Beyond the limit (ulimit -f) fallocate and ftruncate raise SIGXFSZ: the end of a
// program that did not ask for it.
bool is_size_allowed(std::size_t bytes) noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

// fallocate; a kernel that gives it up for a signal (tmpfs) is asked again. The program's signals wait meanwhile: an
// interval timer's may come faster than a large ring's pages.
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

// Whether the ring's later pages can be made as they are needed, with an error where there are none (RingWriter).
bool makes_pages_later() noexcept {
  char here = 0;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return madvise(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&here) & ~(page - 1)), page,
                 RingWriter::kPopulateWrite) == 0;
}

// A file of BYTES with the pages of its first THERE: a write into a mapped page that a full tmpfs cannot supply would
// be a SIGBUS.
bool reserve(int fd, std::size_t bytes, std::size_t there) noexcept {
  if (!is_size_allowed(bytes)) {
    errno = EFBIG;
    return false;
  }
  if (!fallocate_whole(fd, there) && errno != EOPNOTSUPP) return false;
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0;
}

// Each of them would be a page fault at the first record in it.
void touch(void* pages, std::size_t bytes) noexcept {
  auto* const bytes_of = static_cast<volatile unsigned char*>(pages);
  for (std::size_t at = 0; at < bytes; at += 4096) bytes_of[at] = 0;
}

// What one record costs, measured on the ring before anybody reads it.
std::uint64_t calibrate_call(std::byte* data, ring::Header* header, std::uint64_t capacity) noexcept {
  RingWriter writer;
  writer.attach(header, data, capacity, capacity);
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

// What a rank may do before the relay has looked is for all of its threads: those after the first begin with a quarter
// of it, an eighth, a twelfth ..., and take more where the others do not need theirs (recorder_modes.cpp). 0: no bound.
std::uint64_t first_grant_of_next_ring() noexcept REQUIRES(process.start_lock) {
  if (process.settings.first_grant == 0 || rings_named == 0) return process.settings.first_grant;
  const std::uint64_t part = process.settings.first_grant / (4 * rings_named);
  return part > 0 ? part : 1;
}

void fill_header(ring::Header* header, pid_t tid, std::uint64_t capacity) noexcept REQUIRES(process.start_lock) {
  const std::uint64_t first_grant = first_grant_of_next_ring();
  header->version = ring::kVersion;
  header->header_bytes = static_cast<std::uint32_t>(kHeaderBytes);
  header->capacity_bytes = capacity;
  header->pid = getpid();
  header->tid = tid;
  header->clock_source = tick_clock.tsc ? 0 : 1;
  header->thread_level = static_cast<std::uint32_t>(process.run.thread_level);
  header->window.store(1, std::memory_order_relaxed);
  header->recording_window.store(process.mode.window_of_relay(), std::memory_order_relaxed);
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
  memcpy(header->launch, process.origin.launch, sizeof(header->launch));
  header->wanted_bytes = process.settings.ring_bytes;
  if (process.run.initialised.load(std::memory_order_acquire)) {
    memcpy(header->library, process.run.library_version, sizeof(header->library));
    header->rank.store(process.run.rank, std::memory_order_relaxed);
    header->world_size.store(process.run.world_size, std::memory_order_relaxed);
    header->init_leave_ticks.store(process.run.init_leave_ticks, std::memory_order_relaxed);
    header->cpu_threshold_ticks.store(tick_clock.cpu_threshold, std::memory_order_relaxed);
    header->state.store(static_cast<std::uint32_t>(ring::ProcessState::kRunning), std::memory_order_relaxed);
  } else {
    header->rank.store(-1, std::memory_order_relaxed);
  }
  std::atomic_ref<std::uint64_t>(header->magic).store(ring::kMagic, std::memory_order_release);
}

// A ring's data: all of it is taken from the process's room and mapped; the first BYTES_THERE have their pages.
struct RingData {
  std::uint64_t capacity = 0;
  std::uint64_t bytes_there = 0;
};

// As the settings want it, or fewer bytes. None: no room, FAILURE says why.
RingData reserve_ring(int fd, RingFailure& failure) noexcept {
  const std::uint64_t first = makes_pages_later() ? RingWriter::kPieceBytes : ~std::uint64_t{0};
  const std::uint64_t wanted = process.settings.ring_bytes;
  const std::uint64_t smallest = wanted < kSmallestFallbackBytes ? wanted : kSmallestFallbackBytes;
  std::uint64_t capacity = process.ring_room.take(kHeaderBytes, wanted, smallest);
  errno = ENOSPC;
  while (capacity != 0 && !reserve(fd, kHeaderBytes + capacity, kHeaderBytes + std::min(capacity, first))) {
    const int error = errno;
    process.ring_room.give_back(kHeaderBytes + capacity);
    // A try that failed half-way may have left pages behind.
    const bool again = capacity / 2 >= kSmallestFallbackBytes && ftruncate(fd, 0) == 0;
    capacity = again ? process.ring_room.take(kHeaderBytes, capacity / 2, kSmallestFallbackBytes) : 0;
    errno = error;
  }
  if (capacity == 0)
    failure = {errno == EFBIG ? "no event ring fits the limit on the size of files (ulimit -f)"
                              : "no room for the event ring in LBF_CAPTURE_DIR",
               errno};
  return {capacity, std::min(capacity, first)};
}

}  // namespace

Thread* make_ring(RingFailure& failure) noexcept {
  const auto fail = [&failure](const char* why, int error) { failure = {why, error}; };
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  char hidden[kMaxPath];
  hidden_ring_path(hidden, tid);
  const int fd = open(hidden, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (fd < 0) {
    fail("no event ring can be made in LBF_CAPTURE_DIR", errno);
    return nullptr;
  }
  const auto [capacity, bytes_there] = reserve_ring(fd, failure);
  if (capacity == 0) {
    unlink(hidden);
    close(fd);
    return nullptr;
  }
  const std::size_t bytes = kHeaderBytes + capacity;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* memory = map_pages(sizeof(Thread));
  close(fd);
  if (pages == MAP_FAILED || memory == nullptr) {
    fail("the event ring cannot be mapped", errno);
    unlink(hidden);
    process.ring_room.give_back(bytes);
    if (pages != MAP_FAILED) munmap(pages, bytes);
    if (memory != nullptr) munmap(memory, sizeof(Thread));
    return nullptr;
  }
  auto* header = static_cast<ring::Header*>(pages);
  std::byte* data = static_cast<std::byte*>(pages) + kHeaderBytes;
  auto* thread = new (memory) Thread;
  thread->header = header;
  thread->mapped_bytes = bytes;
  thread->bytes_there = bytes_there;
  touch(pages, kHeaderBytes + std::min(bytes_there, RingWriter::kPieceBytes));
  if (!thread->completed.open() || !thread->counts.open(kLog2Channels)) {
    fail("no memory for the capture's tables", errno);
    unlink(hidden);
    release_ring(thread);
    return nullptr;
  }
  thread->cost.call_ticks = calibrate_call(data, header, capacity);
  header->header_bytes = static_cast<std::uint32_t>(kHeaderBytes);
  header->capacity_bytes = capacity;
  measure_ideal(*thread);
  thread->cost.recorded.seed(static_cast<std::uint64_t>(tid) * 0x9e3779b97f4a7c15u + tick_clock.start_ticks);
  thread->cost.counted.seed(static_cast<std::uint64_t>(tid) * 0xc2b2ae3d27d4eb4fu + tick_clock.start_ticks);
  header->tid = tid;
  return thread;
}

Thread* name_ring(Thread* thread, std::uint64_t begin_ticks, RingFailure& failure) noexcept {
  const pid_t tid = thread->header->tid;
  char hidden[kMaxPath];
  char path[kMaxPath];
  hidden_ring_path(hidden, tid);
  ring_path(path, tid);
  if (process.mode.off.load(std::memory_order_relaxed) ||
      process.state.load(std::memory_order_relaxed) != CaptureState::kOn) {
    unlink(hidden);
    release_ring(thread);
    return nullptr;
  }
  fill_header(thread->header, tid, thread->header->capacity_bytes);
  thread->own_grants.recorded = thread->header->grant.load(std::memory_order_relaxed);
  thread->own_grants.counted = thread->header->counted_grant.load(std::memory_order_relaxed);
  if (rename(hidden, path) != 0) {
    failure = {"the event ring cannot be named", errno};
    unlink(hidden);
    release_ring(thread);
    return nullptr;
  }
  ++rings_named;
  while (thread->reference_part < References::kCommonPart && process.reference_part_taken[thread->reference_part])
    ++thread->reference_part;
  if (thread->reference_part < References::kCommonPart) process.reference_part_taken[thread->reference_part] = true;
  thread->clock.open();
  const bool in_run = process.run.initialised.load(std::memory_order_acquire);
  thread->clock.renew();
  if (in_run) {
    thread->cpu_threshold = tick_clock.cpu_threshold;
    thread->mode.shared = thread->mode.attentive = process.shared.load(std::memory_order_relaxed);
    if (thread->mode.shared) use_shared_ideal(*thread);
    thread->mode.counting = process.mode.counting;
    thread->mode.epoch = process.mode.epoch.load(std::memory_order_relaxed);
  }
  thread->last_leave = ticks_now();
  // Some milliseconds: more than all that a storm of calls records under a low limit.
  if (in_run && !thread->mode.counting) thread->ring.adjust(0, 0, thread->last_leave - begin_ticks);
  return thread;
}

void release_ring(Thread* thread) noexcept {
  thread->counts.release();
  thread->completed.release();
  process.ring_room.give_back(thread->mapped_bytes);
  munmap(thread->header, thread->mapped_bytes);
  munmap(thread, sizeof(Thread));
}

void remove_ring(const Thread& thread) noexcept {
  char path[kMaxPath];
  ring_path(path, thread.header->tid);
  unlink(path);
}

}  // namespace lbf::capture
