// See thread_times.h.
#include "spank_plugin/procedures/thread_times.h"

#include <asm/unistd.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <initializer_list>

// The list that the unwind information walks: threads that ever called a selected procedure. Blocks of
// threads that ended are used again, never freed.
lbf::procedures::ThreadTimes* lbf_procedures_threads = nullptr;

namespace lbf::procedures {
namespace {

// The mapping of /proc/self/maps that HERE lies in, down to the one before it: a main thread's grows.
void find_stack(ThreadTimes& thread, std::uintptr_t here) noexcept {
  thread.stack_low = thread.stack_high = here;  // unknown: nothing lies on it
  const long fd = system_call(__NR_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  std::uintptr_t bounds[2] = {0, 0};
  std::uintptr_t end_before = 0;
  int part = 0;
  for (;;) {
    const long length = system_call(__NR_read, fd, reinterpret_cast<long>(thread.maps_text), sizeof(thread.maps_text));
    if (length <= 0) break;
    for (long i = 0; i < length; ++i) {
      const char c = thread.maps_text[i];
      if (c == '\n') {
        if (here >= bounds[0] && here < bounds[1]) {
          const bool is_main = thread.tid == system_call(__NR_getpid);
          std::uintptr_t control_block;  // lies at the upper end of another thread's stack
          __asm__("mov %%fs:0, %0" : "=r"(control_block));
          const char* const text = thread.maps_text;
          const bool own_stack = is_main ? i >= 2 && text[i - 1] == ']' && text[i - 2] == 'k'  // "[stack]"
                                         : control_block > here && control_block < bounds[1];
          if (own_stack) {
            thread.stack_low = is_main ? end_before : bounds[0];
            thread.stack_high = is_main ? bounds[1] : control_block;
          }
          system_call(__NR_close, fd);
          return;
        }
        end_before = bounds[1];
        bounds[0] = bounds[1] = 0;
        part = 0;
        continue;
      }
      if (part > 1) continue;
      const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                    : 16;
      if (digit < 16) {
        bounds[part] = bounds[part] * 16 + digit;
      } else {
        ++part;
      }
    }
  }
  system_call(__NR_close, fd);
}

// A block of a thread that is gone.
ThreadTimes* take_over(std::int32_t pid, std::int32_t tid) noexcept {
  for (ThreadTimes* thread = __atomic_load_n(&lbf_procedures_threads, __ATOMIC_ACQUIRE); thread != nullptr;
       thread = thread->next) {
    std::int32_t owner = __atomic_load_n(&thread->tid, __ATOMIC_RELAXED);
    bool may_return = false;  // a coroutine of the thread that is gone, in another one
    for (const ActiveCall* call = thread->base; call != thread->top; ++call) {
      may_return |= call->left == 0 && !on_own_stack(*thread, call->slot);
    }
    if (may_return) continue;
    constexpr long kNoSuchThread = -3;
    if (owner != tid && system_call(__NR_tgkill, pid, owner, 0) != kNoSuchThread) continue;
    if (__atomic_compare_exchange_n(&thread->tid, &owner, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return thread;
  }
  return nullptr;
}

}  // namespace

ThreadTimes* thread_times_at(std::uintptr_t here) noexcept {
  const auto pid = static_cast<std::int32_t>(system_call(__NR_getpid));
  const auto tid = static_cast<std::int32_t>(system_call(__NR_gettid));
  ThreadTimes* thread = take_over(pid, tid);
  if (thread == nullptr) {
    constexpr long kBlock = (sizeof(ThreadTimes) + 4095) / 4096 * 4096;
    constexpr long kCalls = kMaxDepth * sizeof(ActiveCall);
    const long memory = system_call(__NR_mmap, 0, kBlock + kCalls, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0 && memory > -4096) return nullptr;
    thread = reinterpret_cast<ThreadTimes*>(memory);
    thread->base = thread->top = thread->highest = reinterpret_cast<ActiveCall*>(memory + kBlock);
    thread->tid = tid;
    thread->grant = kCallsPerReview;
    thread->reviewed_at = ticks();
    thread->next = __atomic_load_n(&lbf_procedures_threads, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&lbf_procedures_threads, &thread->next, thread, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
    }
  } else {  // the sums stay: they are the process's; so does what is left until the next review, for threads that live
            // shortly
    thread->top = thread->highest = thread->base;
    thread->busy = nullptr;
    thread->paused = false;
    for (std::uint32_t i = 0; i < kMaxProcedures; ++i) thread->depth[i] = 0;
    for (std::uint64_t& word : thread->active) word = 0;
  }
  find_stack(*thread, here);
  return thread;
}

std::uintptr_t abandoned_return_address(ThreadTimes& thread, std::uintptr_t slot) noexcept {
  // Its record may still stand above the newest one.
  for (ActiveCall* call = thread.top; call < thread.highest; ++call) {
    if (call->slot == slot) return call->return_address;
  }
  // A coroutine that another thread goes on with. That thread's list may be changing: look again.
  for (int tries = 0; tries < 3; ++tries) {
    for (ThreadTimes* other = __atomic_load_n(&lbf_procedures_threads, __ATOMIC_ACQUIRE); other != nullptr;
         other = other->next) {
      ActiveCall* const call = other == &thread ? nullptr : find_call(*other, slot);
      if (call == nullptr) continue;
      const std::uintptr_t return_address = call->return_address;
      if (__atomic_load_n(&call->slot, __ATOMIC_ACQUIRE) != slot) continue;
      __atomic_store_n(&call->left, kReturnedElsewhere, __ATOMIC_RELEASE);
      __atomic_store_n(&call->slot, 1, __ATOMIC_RELEASE);  // nobody's: below every stack
      return return_address;
    }
  }
  constexpr char kMessage[] =
      "lbf: a procedure of --lbf-procedures returns to a place that is not known any more (a stack of the program's "
      "own "
      "making on a thread's stack?); run without --lbf-procedures\n";
  system_call(__NR_write, 2, reinterpret_cast<long>(kMessage), sizeof(kMessage) - 1);
  __builtin_trap();
}

CallSums sums_of(std::uint32_t procedure) noexcept {
  CallSums all;
  for (ThreadTimes* thread = __atomic_load_n(&lbf_procedures_threads, __ATOMIC_ACQUIRE); thread != nullptr;
       thread = thread->next) {
    for (const CallSums* sums : {&thread->before[procedure], &thread->interval[procedure]}) add_to(all, *sums);
  }
  return all;
}

}  // namespace lbf::procedures
