// Call times: what the patched entry and exit of a procedure do, and what they add up.
//
// Place in the event's way: procedure call -> stub (call_hooks.S) -> *call times* -> ring record at the next
// MPI call. Ten million calls a second must not make ten million records: each thread adds up calls and time
// by procedure, and gives the sums since its last MPI call when the next one begins (`take_interval`).
// docs/procedures.md.
//
// The hot path (everything that `enter` and `leave` reach) is noexcept, uses no heap, no lock and no I/O, and
// only general registers: a caller may know which registers its callee leaves alone (gcc's -fipa-ra), so
// nothing but what the stubs save may change. A thread's first call maps its memory and reads where its stack
// is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lbf::procedures {

inline constexpr std::uint32_t kMaxProcedures = 256;
inline constexpr std::uint32_t kCalibration = kMaxProcedures - 1;  // the id of the procedure that does nothing
inline constexpr std::uint32_t kMaxDepth = 1u << 16;  // calls of selected procedures inside each other, per thread

// What the stub of an entry passes: the procedure's id, and whether the procedure's own code jumps back to
// its entry (a loop from its first instruction), so that coming by again is no new call.
inline constexpr std::uint32_t kLoopsToEntry = 1u << 16;
inline constexpr std::uint32_t kIdMask = kLoopsToEntry - 1;

// Of one procedure in one thread, or summed up. Ticks are of the TSC.
struct CallSums {
  std::uint64_t calls = 0;
  std::uint64_t inclusive_ticks = 0;  // entry to exit, recursion counted once
  std::uint64_t self_ticks = 0;       // without what other *selected* procedures took inside it
  std::uint64_t left_by_jump = 0;     // of the calls, those that longjmp or an exception ended
};

// One selected procedure that is running: its return address is ours, the true one stands here.
struct ActiveCall {
  std::uintptr_t slot;            // where on the stack the return address stands
  std::uintptr_t return_address;  // the program's own
  std::uint32_t procedure;
  std::uint32_t left;  // 1: an exception has passed it by; 2: it returned in another thread
  std::uint64_t unused;
};
static_assert(sizeof(ActiveCall) == 32);  // the unwind information in call_hooks.S walks these

struct ThreadTimes {
  // The first three are read by the unwind information in call_hooks.S.
  ThreadTimes* next;
  ActiveCall* base;
  ActiveCall* top;      // one past the newest
  const void* busy;     // frame of the hook under way; nullptr: none
  std::uint64_t last;   // when time was charged last
  std::uint64_t grant;  // calls until the cost is looked at
  std::uint64_t reviewed_at;
  bool paused;  // inside MPI: calls count, time does not
  std::int32_t tid;
  std::uintptr_t stack_low;  // the thread's own stack
  std::uintptr_t stack_high;
  ActiveCall* highest;   // top has been here
  std::uint64_t missed;  // calls that were not measured: signals inside a hook, no room
  // Processor time of long stretches, between `resume` and `take_interval` (docs/procedures.md, "Who shares the
  // processor").
  std::uint64_t long_ticks;  // from so long on; none before the first `resume`
  std::uint64_t cpu_ns;      // the thread's processor clock at TSC `cpu_at`
  std::uint64_t cpu_at;
  bool cpu_known;            // these two are of this interval
  bool cpu_wanted;           // at the next hook, as one of the last intervals had long stretches
  std::uint8_t long_lately;  // so many intervals more it is looked for them
  bool uncovered;            // ... in a procedure, of which no reading tells how much of it was processor time
  std::uint64_t active[kMaxProcedures / 64];
  std::uint64_t touched[kMaxProcedures / 64];
  std::uint32_t depth[kMaxProcedures];
  std::uint64_t since[kMaxProcedures];
  std::uint64_t review_calls[kMaxProcedures];
  CallSums interval[kMaxProcedures];  // since the last MPI call; of a thread that calls none, since the last review
  CallSums before[kMaxProcedures];    // until then
  char maps_text[4096];
};

// Read at each review of a thread's calls. `limit_65536`: share of the thread's time that calls may cost, in
// 1/65536; 0: no limit. Beyond it the procedures that are called most are switched off (code_write.h), until
// the rest is below it.
struct CostRule {
  std::atomic<std::uint64_t> limit_65536{0};
  std::atomic<std::uint64_t> call_ticks{0};  // one call, calibrated
};
extern constinit CostRule cost_rule;

// Ticks of the TSC in 2^20 ns; 0: not known, then times between `resume` and `take_interval` are the TSC's.
extern constinit std::atomic<std::uint64_t> ticks_per_2_20_ns;
// What a thread is preempted, it is for longer than this; a reading of its processor clock costs a four-hundredth.
inline constexpr std::uint64_t kLongStretchNs = 100'000;
inline constexpr std::uint64_t kLeastOffNs = 20'000;
// Intervals with long stretches come between short ones: of a program's MPI calls few follow computing.
inline constexpr std::uint8_t kLongLately = 32;
inline constexpr std::uint64_t kCallsPerReview = 4096;

// Of a procedure that cost switched off: its calls between the last two looks of that thread, and how long that was.
struct SwitchOffRate {
  std::uint64_t calls = 0;
  std::uint64_t ticks = 0;
};
extern constinit SwitchOffRate switch_off_rates[kMaxProcedures];

struct IntervalSums {
  std::uint32_t procedure;
  std::uint32_t processor_time;  // 1: ticks are the thread's processor time; 0: time on the TSC, whoever ran
  CallSums sums;
};
// The calling thread enters MPI at `now`: writes what each procedure did since the last call, at most `room`
// (REQUIRES: room >= kMaxProcedures to be sure of all); returns how many. Time stops until `resume`.
std::uint32_t take_interval(std::uint64_t now, IntervalSums* out, std::uint32_t room) noexcept;
void resume(std::uint64_t now) noexcept;
// Whether the calling thread calls MPI, as far as these two have told, and is in no call now. For signal handlers, too.
bool is_between_mpi_calls() noexcept;

// Calls in threads that call no MPI, as far as these two have told, and so never give them away: up to the last review
// of each.
std::uint64_t calls_beside() noexcept;

// Sums of all threads since the start; not exact for threads that run meanwhile.
CallSums sums_of(std::uint32_t procedure) noexcept;
std::uint64_t missed_calls() noexcept;

// This thread from now on: no measuring (used while the library itself works).
class NotMeasured {
 public:
  NotMeasured() noexcept;
  ~NotMeasured();
  NotMeasured(const NotMeasured&) = delete;
  NotMeasured& operator=(const NotMeasured&) = delete;
};
// In the child of a fork: the calling thread is another one now.
void forked() noexcept;

}  // namespace lbf::procedures

extern "C" {
// call_hooks.S
void lbf_procedures_entry() noexcept;    // what a stub calls
void lbf_procedures_return() noexcept;   // what a measured procedure returns to
void lbf_procedures_nothing() noexcept;  // a procedure to measure the cost of measuring with
extern const unsigned char lbf_procedures_nothing_end;
// call_times.cpp, called from there
void lbf_procedures_enter(std::uint32_t procedure_and_flags, std::uintptr_t* slot) noexcept;
std::uintptr_t lbf_procedures_leave(std::uintptr_t* slot) noexcept;
extern lbf::procedures::ThreadTimes* lbf_procedures_threads;
}
