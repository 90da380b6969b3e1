#include "spank_plugin/procedures/stopped_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace lbf::procedures {
namespace {

// What the handler knows; one stop at a time.
struct Round {
  std::atomic<std::uint32_t> go_on{1};  // futex; 0 while threads wait
  std::atomic<std::uint32_t> number{0};
  std::atomic<int> waiting{0};
  const Move* moves = nullptr;
  std::size_t move_count = 0;
};
constinit Round round_now;
int stop_signal = 0;

void wait_for_go(int, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  // A signal of an earlier round, delivered late: nobody waits for it.
  if (info->si_code == SI_QUEUE &&
      static_cast<std::uint32_t>(info->si_value.sival_int) == round_now.number.load(std::memory_order_acquire) &&
      round_now.go_on.load(std::memory_order_acquire) == 0) {
    auto& rip = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
    for (std::size_t i = 0; i < round_now.move_count; ++i) {
      if (static_cast<std::uintptr_t>(rip) == round_now.moves[i].from) {
        rip = static_cast<greg_t>(round_now.moves[i].to);
        break;
      }
    }
    round_now.waiting.fetch_add(1, std::memory_order_acq_rel);
    while (round_now.go_on.load(std::memory_order_acquire) == 0) {
      syscall(SYS_futex, &round_now.go_on, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
    round_now.waiting.fetch_sub(1, std::memory_order_acq_rel);
  }
  errno = saved_errno;
}

void let_go() {
  round_now.go_on.store(1, std::memory_order_release);
  syscall(SYS_futex, &round_now.go_on, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
  while (round_now.waiting.load(std::memory_order_acquire) > 0) {
    const timespec kShort{0, 20'000};
    nanosleep(&kShort, nullptr);
  }
}

}  // namespace

int unused_signal() {
  for (int number = SIGRTMAX - 1; number > SIGRTMIN; --number) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) {
      return number;
    }
  }
  return 0;
}

namespace {

constexpr std::size_t kMostThreads = 8192;

// Of this process. Not on the heap, from the second look on: a thread may have been stopped where it holds the heap's
// lock. One stop at a time, so these are nobody else's.
struct ThreadList {
  std::array<int, kMostThreads> ids{};
  std::size_t count = 0;  // above kMostThreads: so many there are

  bool has(int id) const {
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, kMostThreads));
    return std::find(ids.begin(), end, id) != end;
  }
};
constinit ThreadList asked;
constinit ThreadList now_there;
alignas(8) constinit std::array<char, 32768> entries{};

void list_threads(ThreadList& list) {
  list.count = 0;
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  // What getdents64(2) fills: inode, offset (8 bytes each), length (2), type (1), name.
  constexpr std::size_t kLengthAt = 16;
  constexpr std::size_t kNameAt = 19;
  for (;;) {
    const long bytes = syscall(SYS_getdents64, folder, entries.data(), entries.size());
    if (bytes <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(bytes);) {
      std::uint16_t length = 0;
      std::memcpy(&length, &entries[at + kLengthAt], sizeof length);
      const int id = std::atoi(&entries[at + kNameAt]);
      if (id > 0) {
        if (list.count < kMostThreads) list.ids[list.count] = id;
        ++list.count;
      }
      at += length;
    }
  }
  close(folder);
}

}  // namespace

std::vector<int> thread_ids() {
  std::vector<int> ids;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return ids;
  while (const dirent* entry = readdir(folder)) {
    const int id = std::atoi(entry->d_name);
    if (id > 0) ids.push_back(id);
  }
  closedir(folder);
  return ids;
}

Result<StoppedThreads> StoppedThreads::stop(const std::vector<Move>& moves) {
  const int self = static_cast<int>(syscall(SYS_gettid));
  const int process = getpid();
  list_threads(now_there);
  if (now_there.count == 0)
    return Error{ErrorCode::kUnavailable, "the threads of the process cannot be listed (/proc/self/task)"};
  if (now_there.count == 1) return StoppedThreads(false);
  if (now_there.count > kMostThreads)
    return Error{ErrorCode::kUnavailable, "it has " + std::to_string(now_there.count) + " threads: too many to stop"};
  if (stop_signal == 0) {
    const int number = unused_signal();
    if (number == 0) return Error{ErrorCode::kUnavailable, "no real-time signal is left to stop the other threads"};
    struct sigaction action {};
    action.sa_sigaction = wait_for_go;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, nullptr);
    stop_signal = number;
  }
  round_now.moves = moves.data();
  round_now.move_count = moves.size();
  const std::uint32_t number = round_now.number.fetch_add(1, std::memory_order_acq_rel) + 1;
  round_now.go_on.store(0, std::memory_order_release);
  asked.ids[0] = self;
  asked.count = 1;
  // Until a look at the list finds nobody new: a thread that was being made may have missed the first look.
  for (bool more = true; more;) {
    more = false;
    list_threads(now_there);
    if (now_there.count == 0 || now_there.count > kMostThreads) {
      let_go();
      return Error{ErrorCode::kUnavailable, "the threads of the process cannot be listed, or are too many to stop"};
    }
    for (std::size_t i = 0; i < now_there.count; ++i) {
      const int id = now_there.ids[i];
      if (asked.has(id)) continue;
      siginfo_t info{};
      info.si_code = SI_QUEUE;
      info.si_pid = process;
      info.si_uid = getuid();
      info.si_value.sival_int = static_cast<int>(number);
      const bool has_room = asked.count < kMostThreads;
      if (has_room && syscall(SYS_rt_tgsigqueueinfo, process, id, stop_signal, &info) == 0) {
        asked.ids[asked.count++] = id;
        more = true;
      } else if (!has_room || errno != ESRCH) {
        let_go();
        return Error{ErrorCode::kUnavailable, "thread " + std::to_string(id) + " cannot be stopped"};
      }
    }
    timespec from{};
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int tries = 0; round_now.waiting.load(std::memory_order_acquire) < static_cast<int>(asked.count) - 1;
         ++tries) {
      const timespec kShort{0, 50'000};
      nanosleep(&kShort, nullptr);
      if (tries % 100 == 99) {  // who has ended meanwhile is not waited for
        list_threads(now_there);
        if (now_there.count == 0) continue;
        const auto end = asked.ids.begin() + static_cast<std::ptrdiff_t>(asked.count);
        const auto left = std::remove_if(asked.ids.begin(), end, [](int id) { return !now_there.has(id); });
        asked.count = static_cast<std::size_t>(left - asked.ids.begin());
      }
      constexpr time_t kPatience_s = 5;  // of a crowded machine
      timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      if (now.tv_sec - from.tv_sec > kPatience_s) {
        let_go();
        return Error{ErrorCode::kUnavailable, "a thread could not be stopped in time (it blocks real-time signals)"};
      }
    }
  }
  return StoppedThreads(true);
}

StoppedThreads::~StoppedThreads() {
  if (active_) let_go();
}

}  // namespace lbf::procedures
