// See call_times.h. Compiled for general registers only: no call into a library in here, system calls are
// made directly.
#include "spank_plugin/procedures/call_times.h"

#include <asm/unistd.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include <initializer_list>

#include "spank_plugin/procedures/code_write.h"

// The list that the unwind information walks: threads that ever called a selected procedure. Blocks of
// threads that ended are used again, never freed.
lbf::procedures::ThreadTimes* lbf_procedures_threads = nullptr;

namespace lbf::procedures {

constinit CostRule cost_rule;
constinit SwitchOffRate switch_off_rates[kMaxProcedures];
constinit std::atomic<std::uint64_t> ticks_per_2_20_ns{0};

namespace {

constinit thread_local ThreadTimes* own __attribute__((tls_model("initial-exec"))) = nullptr;
// No memory, or measuring is off in this thread: what a hook finds in `own` then.
constinit ThreadTimes* const kNoThread = nullptr;
constinit thread_local bool unavailable __attribute__((tls_model("initial-exec"))) = false;
constinit thread_local std::uint32_t not_measured __attribute__((tls_model("initial-exec"))) = 0;
constinit std::atomic<std::uint64_t> missed_elsewhere{0};
constinit std::atomic<std::uint64_t> told_beside{0};
enum class Place : std::uint8_t { kUnknown, kProgram, kMpi };
constinit thread_local Place place __attribute__((tls_model("initial-exec"))) = Place::kUnknown;

inline std::uint64_t ticks() noexcept {
  return __builtin_ia32_rdtsc();
}

long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) noexcept {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// What a signal handler on this thread may see in between: the compiler keeps the order.
inline void in_order() noexcept {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

bool on_own_stack(const ThreadTimes& thread, std::uintptr_t slot) noexcept {
  return slot >= thread.stack_low && slot < thread.stack_high;
}

// The mapping of /proc/self/maps that HERE lies in, down to the one before it: a main thread's grows.
void find_stack(ThreadTimes& thread, std::uintptr_t here) noexcept {
  thread.stack_low = thread.stack_high = here;  // unknown: nothing lies on it
  const long fd =
      system_call(__NR_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  std::uintptr_t bounds[2] = {0, 0};
  std::uintptr_t end_before = 0;
  int part = 0;
  for (;;) {
    const long length =
        system_call(__NR_read, fd, reinterpret_cast<long>(thread.maps_text), sizeof(thread.maps_text));
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

[[gnu::noinline]] ThreadTimes* begin_thread(std::uintptr_t here) noexcept {
  if (unavailable) return kNoThread;
  unavailable = true;  // also: a signal handler that comes in between
  const auto pid = static_cast<std::int32_t>(system_call(__NR_getpid));
  const auto tid = static_cast<std::int32_t>(system_call(__NR_gettid));
  ThreadTimes* thread = take_over(pid, tid);
  if (thread == nullptr) {
    constexpr long kBlock = (sizeof(ThreadTimes) + 4095) / 4096 * 4096;
    constexpr long kCalls = kMaxDepth * sizeof(ActiveCall);
    const long memory = system_call(__NR_mmap, 0, kBlock + kCalls, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0 && memory > -4096) return kNoThread;
    thread = reinterpret_cast<ThreadTimes*>(memory);
    thread->base = thread->top = thread->highest = reinterpret_cast<ActiveCall*>(memory + kBlock);
    thread->tid = tid;
    thread->grant = kCallsPerReview;
    thread->reviewed_at = ticks();
    thread->next = __atomic_load_n(&lbf_procedures_threads, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&lbf_procedures_threads, &thread->next, thread, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
  } else {  // the sums stay: they are the process's; so does what is left until the next review, for threads that live shortly
    thread->top = thread->highest = thread->base;
    thread->busy = nullptr;
    thread->paused = false;
    for (std::uint32_t i = 0; i < kMaxProcedures; ++i) thread->depth[i] = 0;
    for (std::uint64_t& word : thread->active) word = 0;
  }
  find_stack(*thread, here);
  thread->long_ticks = ~std::uint64_t{0};
  thread->cpu_known = thread->cpu_wanted = thread->uncovered = false;
  thread->long_lately = 0;
  thread->last = ticks();
  in_order();
  own = thread;
  unavailable = false;
  return thread;
}

inline void set_bit(std::uint64_t* words, std::uint32_t i) noexcept {
  words[i / 64] |= std::uint64_t{1} << (i % 64);
}
inline void clear_bit(std::uint64_t* words, std::uint32_t i) noexcept {
  words[i / 64] &= ~(std::uint64_t{1} << (i % 64));
}

void read_processor_clock(ThreadTimes& thread, std::uint64_t now) noexcept {
  timespec time{};
  thread.cpu_known = system_call(__NR_clock_gettime, CLOCK_THREAD_CPUTIME_ID, reinterpret_cast<long>(&time)) == 0;
  thread.cpu_ns = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  thread.cpu_at = now;
  thread.cpu_wanted = false;
}

bool any_active(const ThreadTimes& thread) noexcept {
  for (const std::uint64_t word : thread.active) {
    if (word != 0) return true;
  }
  return false;
}

// A stretch of PASSED ticks, in which no hook came, ends now: how much of it the thread did not run. What it did not run
// since the reading before was in this stretch: the others are too short to hold it.
[[gnu::noinline]] std::uint64_t off_of_stretch(ThreadTimes& thread, std::uint64_t now, std::uint64_t passed) noexcept {
  const bool known = thread.cpu_known;
  const std::uint64_t ns_before = thread.cpu_ns;
  const std::uint64_t at_before = thread.cpu_at;
  read_processor_clock(thread, now);
  if (passed < thread.long_ticks) return 0;
  thread.long_lately = kLongLately;
  thread.uncovered |= (!known || !thread.cpu_known) && any_active(thread);
  // Then all of the interval is taken as it was, so that what the thread did not run is taken off all of it alike.
  if (!known || thread.uncovered) return 0;
  const std::uint64_t rate = ticks_per_2_20_ns.load(std::memory_order_relaxed);
  const std::uint64_t ran_ns = thread.cpu_ns - ns_before;
  const std::uint64_t ran = (ran_ns >> 20) * rate + ((ran_ns & 0xfffff) * rate >> 20);
  const std::uint64_t wall = now - at_before;
  const std::uint64_t off = wall > ran ? wall - ran : 0;
  if (off < kLeastOffNs * rate >> 20) return 0;
  return off < passed ? off : passed;
}

// Time until now goes to the procedure that runs.
inline void charge(ThreadTimes& thread, std::uint64_t now) noexcept {
  if (!thread.paused) {
    if (now - thread.last >= thread.long_ticks || thread.cpu_wanted) [[unlikely]] {
      const std::uint64_t off = off_of_stretch(thread, now, now - thread.last);
      thread.last += off;
      for (std::uint32_t word = 0; off != 0 && word < kMaxProcedures / 64; ++word) {
        for (std::uint64_t left = thread.active[word]; left != 0; left &= left - 1)
          thread.since[word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(left))] += off;
      }
    }
    for (const ActiveCall* call = thread.top; call != thread.base;) {
      --call;
      if (call->left != 0) [[unlikely]]
        continue;
      thread.interval[call->procedure].self_ticks += now - thread.last;
      break;
    }
  }
  thread.last = now;
}

inline void begin_call(ThreadTimes& thread, std::uint32_t procedure, std::uint64_t now) noexcept {
  ++thread.interval[procedure].calls;
  set_bit(thread.touched, procedure);
  if (thread.depth[procedure]++ == 0) {
    thread.since[procedure] = now;
    set_bit(thread.active, procedure);
  }
}

inline void end_call(ThreadTimes& thread, std::uint32_t procedure, std::uint64_t now) noexcept {
  if (thread.depth[procedure] == 0 || --thread.depth[procedure] != 0) return;
  clear_bit(thread.active, procedure);
  if (!thread.paused) thread.interval[procedure].inclusive_ticks += now - thread.since[procedure];
  set_bit(thread.touched, procedure);
}

// ActiveCall::left of a call that began in this thread and returned in another one.
constexpr std::uint32_t kReturnedElsewhere = 2;

void end_by_jump(ThreadTimes& thread, ActiveCall& call, std::uint64_t now) noexcept {
  if (call.left != 0) return;
  end_call(thread, call.procedure, now);
  ++thread.interval[call.procedure].left_by_jump;
  call.left = 1;
}

// Calls whose frames are gone, because what runs now stands where they stood, or above: longjmp or an
// exception left them. Only on the thread's own stack: a coroutine's frames elsewhere may still return.
void drop_left_calls(ThreadTimes& thread, std::uintptr_t slot, bool keep_same_slot,
                     std::uint64_t now) noexcept {
  while (thread.top != thread.base &&
         __atomic_load_n(&thread.top[-1].left, __ATOMIC_ACQUIRE) == kReturnedElsewhere) {
    charge(thread, now);
    end_call(thread, thread.top[-1].procedure, now);
    --thread.top;
  }
  if (!on_own_stack(thread, slot)) return;
  while (thread.top != thread.base) {
    ActiveCall& newest = thread.top[-1];
    if (!on_own_stack(thread, newest.slot) || newest.slot > slot || (newest.slot == slot && keep_same_slot))
      return;
    charge(thread, now);
    end_by_jump(thread, newest, now);
    --thread.top;
  }
}

// The newest call at SLOT; nullptr: none.
ActiveCall* find_call(const ThreadTimes& thread, std::uintptr_t slot) noexcept {
  for (ActiveCall* call = thread.top; call != thread.base;) {
    --call;
    if (call->slot == slot) return call;
  }
  return nullptr;
}

void remove(ThreadTimes& thread, ActiveCall* call) noexcept {
  for (ActiveCall* next = call + 1; next != thread.top; ++call, ++next) *call = *next;
  in_order();
  --thread.top;
}

void add_to(CallSums& total, const CallSums& sums) noexcept {
  total.calls += sums.calls;
  total.inclusive_ticks += sums.inclusive_ticks;
  total.self_ticks += sums.self_ticks;
  total.left_by_jump += sums.left_by_jump;
}

// Of a thread that calls no MPI nobody takes the interval: what its calls cost is the process's all the same. They leave the interval,
// so that none is told twice if the thread does call MPI one day.
void tell_beside(ThreadTimes& thread) noexcept {
  std::uint64_t calls = 0;
  for (std::uint32_t word = 0; word < kMaxProcedures / 64; ++word) {
    for (std::uint64_t left = thread.touched[word]; left != 0; left &= left - 1) {
      const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(left));
      calls += thread.interval[i].calls;
      add_to(thread.before[i], thread.interval[i]);
      thread.interval[i] = CallSums{};
    }
    thread.touched[word] = 0;
  }
  told_beside.fetch_add(calls, std::memory_order_relaxed);
}

// What the calls since the last look cost, against the limit. The procedures with the most calls are switched
// off until the rest is below it.
[[gnu::noinline]] void review_cost(ThreadTimes& thread, std::uint64_t now) noexcept {
  thread.grant = kCallsPerReview;
  if (place == Place::kUnknown) tell_beside(thread);
  const std::uint64_t limit = cost_rule.limit_65536.load(std::memory_order_relaxed);
  const std::uint64_t call_ticks = cost_rule.call_ticks.load(std::memory_order_relaxed);
  const std::uint64_t passed = now - thread.reviewed_at;
  thread.reviewed_at = now;
  std::uint64_t calls = kCallsPerReview;
  const auto too_much = [&] {
    return calls * call_ticks > passed / 65536 * limit + passed % 65536 * limit / 65536;
  };
  while (limit != 0 && calls != 0 && too_much()) {
    std::uint32_t most = 0;
    for (std::uint32_t i = 1; i < kMaxProcedures; ++i) {
      if (thread.review_calls[i] > thread.review_calls[most]) most = i;
    }
    if (thread.review_calls[most] == 0) break;
    switch_off_rates[most].calls = thread.review_calls[most];
    switch_off_rates[most].ticks = passed;
    switch_off(most);
    calls -= thread.review_calls[most] < calls ? thread.review_calls[most] : calls;
    thread.review_calls[most] = 0;
  }
  for (std::uint64_t& count : thread.review_calls) count = 0;
}

// The return address that a call left behind of which no active record exists any more: its record may still
// stand above the newest one.
std::uintptr_t recover(ThreadTimes& thread, std::uintptr_t slot) noexcept {
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
      "lbf: a procedure of --lbf-procedures returns to a place that is not known any more (a stack of the "
      "program's own "
      "making on a thread's stack?); run without --lbf-procedures\n";
  system_call(__NR_write, 2, reinterpret_cast<long>(kMessage), sizeof(kMessage) - 1);
  __builtin_trap();
}

}  // namespace

std::uint32_t take_interval(std::uint64_t now, IntervalSums* out, std::uint32_t room) noexcept {
  place = Place::kMpi;
  ThreadTimes* const thread = own;
  if (thread == nullptr) return 0;
  const void* const before = thread->busy;
  thread->busy = __builtin_frame_address(0);
  in_order();
  charge(*thread, now);
  const bool all_processor_time = thread->long_ticks != ~std::uint64_t{0} && !thread->uncovered;
  std::uint32_t count = 0;
  for (std::uint32_t word = 0; word < kMaxProcedures / 64; ++word) {
    for (std::uint64_t left = thread->active[word]; left != 0 && !thread->paused; left &= left - 1) {
      const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(left));
      thread->interval[i].inclusive_ticks += now - thread->since[i];
    }
    for (std::uint64_t left = thread->active[word] | thread->touched[word]; left != 0 && count < room;
         left &= left - 1) {
      const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(left));
      CallSums& sums = thread->interval[i];
      out[count].procedure = i;
      out[count].processor_time = all_processor_time ? 1 : 0;
      out[count].sums = sums;
      ++count;
      add_to(thread->before[i], sums);
      sums = CallSums{};
      clear_bit(thread->touched, i);
    }
  }
  thread->paused = true;
  in_order();
  thread->busy = before;
  return count;
}

bool is_between_mpi_calls() noexcept {
  return place == Place::kProgram;
}

void resume(std::uint64_t now) noexcept {
  place = Place::kProgram;
  ThreadTimes* const thread = own;
  if (thread == nullptr || !thread->paused) return;
  thread->last = now;
  if (const std::uint64_t rate = ticks_per_2_20_ns.load(std::memory_order_relaxed); rate != 0) {
    thread->long_ticks = kLongStretchNs * rate >> 20;
    thread->cpu_known = false;
    thread->cpu_wanted = thread->long_lately != 0;
    if (thread->cpu_wanted) --thread->long_lately;
    thread->uncovered = false;
    if (thread->cpu_wanted && any_active(*thread)) read_processor_clock(*thread, now);
  }
  for (std::uint32_t word = 0; word < kMaxProcedures / 64; ++word) {
    for (std::uint64_t left = thread->active[word]; left != 0; left &= left - 1) {
      thread->since[word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(left))] = now;
    }
  }
  in_order();
  thread->paused = false;
}

CallSums sums_of(std::uint32_t procedure) noexcept {
  CallSums all;
  for (ThreadTimes* thread = __atomic_load_n(&lbf_procedures_threads, __ATOMIC_ACQUIRE); thread != nullptr;
       thread = thread->next) {
    for (const CallSums* sums : {&thread->before[procedure], &thread->interval[procedure]}) add_to(all, *sums);
  }
  return all;
}

std::uint64_t calls_beside() noexcept {
  return told_beside.load(std::memory_order_relaxed);
}

std::uint64_t missed_calls() noexcept {
  std::uint64_t missed = missed_elsewhere.load(std::memory_order_relaxed);
  for (ThreadTimes* thread = __atomic_load_n(&lbf_procedures_threads, __ATOMIC_ACQUIRE); thread != nullptr;
       thread = thread->next) {
    missed += thread->missed;
  }
  return missed;
}

NotMeasured::NotMeasured() noexcept {
  ++not_measured;
}
NotMeasured::~NotMeasured() {
  --not_measured;
}

void forked() noexcept {
  if (own != nullptr) own->tid = static_cast<std::int32_t>(system_call(__NR_gettid));
}

}  // namespace lbf::procedures

using namespace lbf::procedures;

extern "C" void lbf_procedures_enter(std::uint32_t procedure_and_flags, std::uintptr_t* slot_at) noexcept {
  const std::uint32_t procedure = procedure_and_flags & kIdMask;
  if (__atomic_load_n(&switched_off[procedure], __ATOMIC_RELAXED)) [[unlikely]]
    return;
  const auto slot = reinterpret_cast<std::uintptr_t>(slot_at);
  ThreadTimes* thread = own;
  if (thread == nullptr) [[unlikely]] {
    thread = begin_thread(slot);
    if (thread == kNoThread) {
      missed_elsewhere.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  const void* const frame = __builtin_frame_address(0);
  if (thread->busy != nullptr) [[unlikely]] {
    // A signal handler inside a hook. One that left the hook by longjmp stands above its frame now.
    // One on a stack of its own may stand above it, too.
    if (frame <= thread->busy || !on_own_stack(*thread, reinterpret_cast<std::uintptr_t>(thread->busy)) ||
        !on_own_stack(*thread, reinterpret_cast<std::uintptr_t>(frame))) {
      ++thread->missed;
      return;
    }
  }
  if (not_measured != 0) [[unlikely]]
    return;
  thread->busy = frame;
  in_order();
  const std::uint64_t now = ticks();
  const auto ours = reinterpret_cast<std::uintptr_t>(&lbf_procedures_return);
  std::uintptr_t return_address = *slot_at;
  const bool tail_call = return_address == ours;
  if (thread->top != thread->base && thread->top[-1].slot <= slot) [[unlikely]] {
    drop_left_calls(*thread, slot, tail_call, now);
    if (!tail_call && !on_own_stack(*thread, slot)) {
      while (ActiveCall* gone = find_call(*thread, slot)) {  // this place on another stack is in use anew
        charge(*thread, now);
        end_by_jump(*thread, *gone, now);
        remove(*thread, gone);
      }
    }
  }
  bool push = thread->top != thread->base + kMaxDepth;
  if (tail_call) [[unlikely]] {
    // Jumped to from a measured procedure: both end when this one returns. In a circle of such jumps each
    // procedure is active once.
    ActiveCall* const jumped_from = find_call(*thread, slot);
    if (jumped_from == nullptr) {
      push = false;
      ++thread->missed;
    } else {
      return_address = jumped_from->return_address;
      for (ActiveCall* call = jumped_from; push; --call) {
        if (call->slot == slot && call->procedure == procedure) {
          push = false;
          const bool loop = (procedure_and_flags & kLoopsToEntry) != 0 && call == jumped_from;
          if (!loop) {
            ++thread->interval[procedure].calls;
            set_bit(thread->touched, procedure);
          }
        }
        if (call->slot != slot || call == thread->base) break;
      }
    }
  } else if (!push) {
    ++thread->missed;
  }
  if (push) [[likely]] {
    charge(*thread, now);
    begin_call(*thread, procedure, now);
    ActiveCall* const call = thread->top;
    call->slot = slot;
    call->return_address = return_address;
    call->procedure = procedure;
    call->left = 0;
    in_order();
    thread->top = call + 1;
    if (thread->top > thread->highest) thread->highest = thread->top;
    in_order();
    *slot_at = ours;
  }
  ++thread->review_calls[procedure];
  if (--thread->grant == 0) [[unlikely]]
    review_cost(*thread, now);
  in_order();
  thread->busy = nullptr;
}

extern "C" std::uintptr_t lbf_procedures_leave(std::uintptr_t* slot_at) noexcept {
  const auto slot = reinterpret_cast<std::uintptr_t>(slot_at);
  ThreadTimes* thread = own;
  if (thread == nullptr) [[unlikely]] {  // a coroutine that began in another thread
    thread = begin_thread(slot);
    if (thread == kNoThread) __builtin_trap();
  }
  const void* const before = thread->busy;
  thread->busy = __builtin_frame_address(0);
  in_order();
  const std::uint64_t now = ticks();
  if (thread->top == thread->base || thread->top[-1].slot != slot) [[unlikely]] {
    drop_left_calls(*thread, slot, true, now);
  }
  std::uintptr_t return_address = 0;
  charge(*thread, now);
  if (thread->top != thread->base && thread->top[-1].slot == slot) [[likely]] {
    do {
      ActiveCall& call = thread->top[-1];
      return_address = call.return_address;
      if (call.left == 0) end_call(*thread, call.procedure, now);
      in_order();
      --thread->top;
    } while (thread->top != thread->base && thread->top[-1].slot == slot);
  } else {  // another stack's calls are newer
    while (ActiveCall* call = find_call(*thread, slot)) {
      return_address = call->return_address;
      if (call->left == 0) end_call(*thread, call->procedure, now);
      remove(*thread, call);
    }
    if (return_address == 0) return_address = recover(*thread, slot);
  }
  in_order();
  thread->busy = before;
  return return_address;
}

// An exception (or pthread_exit) is about to leave the call whose slot is SLOT.
extern "C" void lbf_procedures_left(std::uintptr_t slot) noexcept {
  ThreadTimes* const thread = own;
  if (thread == nullptr) return;
  const void* const before = thread->busy;
  thread->busy = __builtin_frame_address(0);
  in_order();
  const std::uint64_t now = ticks();
  charge(*thread, now);
  for (ActiveCall* call = thread->top; call != thread->base;) {
    --call;
    if (call->slot == slot) end_by_jump(*thread, *call, now);
  }
  in_order();
  thread->busy = before;
}
