// See call_times.h. Compiled for general registers only: no call into a library in here.
#include "spank_plugin/procedures/call_times.h"

#include <asm/unistd.h>
#include <time.h>

#include "spank_plugin/procedures/code_write.h"
#include "spank_plugin/procedures/thread_times.h"

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

[[gnu::noinline]] ThreadTimes* begin_thread(std::uintptr_t here) noexcept {
  if (unavailable) return kNoThread;
  unavailable = true;  // also: a signal handler that comes in between
  ThreadTimes* const thread = thread_times_at(here);
  if (thread == nullptr) return kNoThread;
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

// A stretch of PASSED ticks, in which no hook came, ends now: how much of it the thread did not run. What it did not
// run since the reading before was in this stretch: the others are too short to hold it.
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

void end_by_jump(ThreadTimes& thread, ActiveCall& call, std::uint64_t now) noexcept {
  if (call.left != 0) return;
  end_call(thread, call.procedure, now);
  ++thread.interval[call.procedure].left_by_jump;
  call.left = 1;
}

// Calls whose frames are gone, because what runs now stands where they stood, or above: longjmp or an
// exception left them. Only on the thread's own stack: a coroutine's frames elsewhere may still return.
void drop_left_calls(ThreadTimes& thread, std::uintptr_t slot, bool keep_same_slot, std::uint64_t now) noexcept {
  while (thread.top != thread.base && __atomic_load_n(&thread.top[-1].left, __ATOMIC_ACQUIRE) == kReturnedElsewhere) {
    charge(thread, now);
    end_call(thread, thread.top[-1].procedure, now);
    --thread.top;
  }
  if (!on_own_stack(thread, slot)) return;
  while (thread.top != thread.base) {
    ActiveCall& newest = thread.top[-1];
    if (!on_own_stack(thread, newest.slot) || newest.slot > slot || (newest.slot == slot && keep_same_slot)) return;
    charge(thread, now);
    end_by_jump(thread, newest, now);
    --thread.top;
  }
}

void remove(ThreadTimes& thread, ActiveCall* call) noexcept {
  for (ActiveCall* next = call + 1; next != thread.top; ++call, ++next) *call = *next;
  in_order();
  --thread.top;
}

// Of a thread that calls no MPI nobody takes the interval: what its calls cost is the process's all the same. They
// leave the interval, so that none is told twice if the thread does call MPI one day.
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
  const auto too_much = [&] { return calls * call_ticks > passed / 65536 * limit + passed % 65536 * limit / 65536; };
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
    if (return_address == 0) return_address = abandoned_return_address(*thread, slot);
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
