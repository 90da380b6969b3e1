// Thread times: the blocks of all threads that ever called a selected procedure. A thread's first call makes its block
// or takes over that of a thread that ended.
//
// Place in the event's way: inside *procedures*, under call times. Hooks come here: compiled for general registers
// only, with direct system calls. Only sources that are compiled this way include this header.
#pragma once

#include <cstdint>

#include "spank_plugin/procedures/call_times.h"

namespace lbf::procedures {

inline std::uint64_t ticks() noexcept {
  return __builtin_ia32_rdtsc();
}

inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept {
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

inline bool on_own_stack(const ThreadTimes& thread, std::uintptr_t slot) noexcept {
  return slot >= thread.stack_low && slot < thread.stack_high;
}

// ActiveCall::left of a call that began in this thread and returned in another one.
inline constexpr std::uint32_t kReturnedElsewhere = 2;

// The newest call at SLOT; nullptr: none.
inline ActiveCall* find_call(const ThreadTimes& thread, std::uintptr_t slot) noexcept {
  for (ActiveCall* call = thread.top; call != thread.base;) {
    --call;
    if (call->slot == slot) return call;
  }
  return nullptr;
}

inline void add_to(CallSums& total, const CallSums& sums) noexcept {
  total.calls += sums.calls;
  total.inclusive_ticks += sums.inclusive_ticks;
  total.self_ticks += sums.self_ticks;
  total.left_by_jump += sums.left_by_jump;
}

// The block of the calling thread, whose stack HERE lies on, without active calls. nullptr: no memory.
[[gnu::visibility("hidden")]] ThreadTimes* thread_times_at(std::uintptr_t here) noexcept;

// The return address that a call at SLOT left behind of which THREAD has no active record any more. Ends the program
// where no thread knows it.
[[gnu::visibility("hidden")]] std::uintptr_t abandoned_return_address(ThreadTimes& thread,
                                                                      std::uintptr_t slot) noexcept;

}  // namespace lbf::procedures
