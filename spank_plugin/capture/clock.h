// Clocks of the capture: the time-stamp counter for every call, the CPU clock only where it is amortised.
//
// Place in the event's way: inside *capture*, below the recorder. Implements decision 6 (process time without
// a system call per event) and decision 7 (off-CPU time is split into preempted and blocked) of the design;
// docs/capture.md, "Process time".
#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "spank_plugin/capture/switch_mark.h"

namespace lbf::capture {

inline constexpr std::uint64_t kDefaultCpuThresholdNs = 100'000;  // gaps shorter than this are taken on trust
inline constexpr std::uint64_t kReadsInThreshold = 100;           // ... and than so many readings of the CPU clock
inline constexpr std::uint64_t kOffCpuToleranceNs = 20'000;       // less than this off the processor is noise
inline constexpr std::uint64_t kPureLoopNs = 2'000;               // between two failed polls: a polling loop
// Gaps and calls from this length on are judged by the CPU clock, and it is read again after ten times that, whatever
// the thread's mark of switches says: a hypervisor's part is in the clock alone.
inline constexpr std::uint64_t kTrustedMarkNs = 1'000'000;
inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

inline std::uint64_t read_clock_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// Ticks of the process: the TSC where CPUID says that it runs at one rate on all processors and in all sleep
// states, else CLOCK_MONOTONIC nanoseconds. One per process, set up by `clock_start`, then read-only but for
// the rate, which MPI_Init (long enough to measure it over) sets before it returns.
struct TickClock {
  bool tsc = false;
  double ticks_per_ns = 1.0;
  std::uint64_t start_ticks = 0;  // the three clocks, read together at the start
  std::uint64_t start_monotonic_ns = 0;
  std::uint64_t start_realtime_ns = 0;
  std::uint64_t cpu_threshold = kNever;  // ticks; kNever until the rate is known
  std::uint64_t off_cpu_tolerance = 0;   // ticks
  std::uint64_t pure_loop = 0;           // ticks
  std::uint64_t trusted_mark = 0;        // ticks
  std::uint64_t cpu_read = 0;            // ticks that one read of the CPU clock costs
  std::uint64_t tick_read = 0;           // the same for ticks_now
};
extern constinit TickClock tick_clock;
// One request or member of a dear call takes no longer than such a part of off_cpu_tolerance.
inline constexpr std::uint64_t kPartsInTolerance = 64;

inline std::uint64_t ticks_now() noexcept {
#if defined(__x86_64__)
  if (tick_clock.tsc) [[likely]]
    return __rdtsc();
#endif
  return read_clock_ns(CLOCK_MONOTONIC);
}

inline std::uint64_t ticks_from_ns(std::uint64_t ns) noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(ns) * tick_clock.ticks_per_ns);
}

// Chooses the tick source and reads the three clocks. Call once, before any thread records.
void clock_start() noexcept;
// Measures the tick rate since `clock_start` and the cost of a CPU-clock read; from then on gaps are judged.
// The threshold is such that a read costs at most 1 % of the interval that it ends.
void clock_calibrate() noexcept;

// What one gap between two MPI calls was, in ticks. cpu + preempted + blocked = gap.
struct GapSplit {
  std::uint64_t preempted = 0;
  std::uint64_t blocked = 0;
};

// Decisions 6 and 7 as arithmetic. `cpu_since_reference`: CPU ticks used since the reference; `trusted`: wall
// ticks between the reference and the gap's start (short gaps and short calls: wall = CPU); `run_delay`:
// ticks spent waiting for a processor. Off-CPU time up to `tolerance` counts as process time.
constexpr GapSplit split_gap(std::uint64_t gap, std::uint64_t cpu_since_reference, std::uint64_t trusted,
                             std::uint64_t run_delay, std::uint64_t tolerance) noexcept {
  std::uint64_t cpu = cpu_since_reference > trusted ? cpu_since_reference - trusted : 0;
  if (cpu > gap) cpu = gap;
  const std::uint64_t off = gap - cpu;
  if (off <= tolerance) return {};
  const std::uint64_t preempted = run_delay < off ? run_delay : off;
  return {preempted, off - preempted};
}

// Of RUN_DELAY ticks since it was last read what lies in OFF of the ticks off the processor, where IN_PARTS others were
// in regions and waits for a device. It may lie in any of them, so each has its share.
constexpr std::uint64_t delay_outside_parts(std::uint64_t off, std::uint64_t in_parts,
                                            std::uint64_t run_delay) noexcept {
  if (in_parts == 0) return run_delay;
  const double share = static_cast<double>(off) / (static_cast<double>(off) + static_cast<double>(in_parts));
  return static_cast<std::uint64_t>(share * static_cast<double>(run_delay));
}

// Of RUN_DELAY ticks what lies in a call of CALL ticks, where the thread used CPU of the WALL that ends with it: at
// most half of the call (lbf::delay_in_call_ns).
constexpr std::uint64_t delay_in_call(std::uint64_t call, std::uint64_t wall, std::uint64_t cpu,
                                      std::uint64_t run_delay) noexcept {
  const std::uint64_t off = wall > cpu ? wall - cpu : 0;
  const std::uint64_t delay = run_delay < off ? run_delay : off;
  return delay < call / 2 ? delay : call / 2;
}

// Run delay of calls that were off the processor, where reading it after each of them would be dear: between two
// readings a call has the share of time off the processor that the last reading found; the next one makes good what was
// too little or too much by then. All in ticks.
class DelayShare {
 public:
  // Whether what a reading costs is less than 1 % of the time off the processor that it tells of, OFF being the last of
  // it.
  bool is_worth_reading(std::uint64_t off, std::uint64_t cost) const noexcept {
    return unread_ + off >= kReadsInThreshold * cost;
  }
  // Of OFF more ticks, without a reading.
  std::uint64_t estimate(std::uint64_t off) noexcept {
    const auto delay = static_cast<std::uint64_t>(share_ * static_cast<double>(off));
    unread_ += off;
    given_ += delay;
    return delay;
  }
  // Of the last OFF ticks, where all since the last reading had DELAY. What a call had is what the next ones are
  // expected to have; a gap tells nothing of them.
  std::uint64_t settle(std::uint64_t off, std::uint64_t delay, bool in_call) noexcept {
    const std::uint64_t whole = unread_ + off;
    if (in_call && whole > 0) share_ = delay < whole ? static_cast<double>(delay) / static_cast<double>(whole) : 1;
    const std::uint64_t left = delay > given_ ? delay - given_ : 0;
    unread_ = given_ = 0;
    return left;
  }
  // Time off the processor that no reading told of yet.
  std::uint64_t unread() const noexcept { return unread_; }

 private:
  std::uint64_t unread_ = 0;
  std::uint64_t given_ = 0;  // of unread_
  double share_ = 0;
};

// A thread's CPU clock and the reference that gaps are judged against. Used by its own thread only. Where the thread's
// mark says that it had its processor all the time, the clock is not read: a system call, which takes microseconds
// where the program has the caches.
class ProcessClock {
 public:
  // Opens what tells run delay from blocking: /proc/thread-self/schedstat (field 2: ns spent runnable without
  // a processor). Where the kernel has none, context switches of getrusage stand in.
  void open() noexcept;
  void close() noexcept;

  // The reference becomes now.
  void renew() noexcept;
  // Of a thread that was there before the run: its gap begins at TICKS, and no time before that is what the processor
  // time since the reference was used for.
  void begin_run(std::uint64_t ticks) noexcept;
  // Judges the gap [last_leave, enter]; the reference becomes now. Up to IN_PARTS ticks off the processor were waiting
  // for the threads of parallel regions, or for a device, which have them. REQUIRES: enter >= last_leave.
  GapSplit end_gap(std::uint64_t last_leave, std::uint64_t enter, std::uint64_t in_parts = 0) noexcept;
  // Whether a call that began at `enter` and returns at `now` has to renew the reference: a long call,
  // because its own off-CPU time must not be charged to the next gap; or many short ones, so that what is
  // taken on trust stays bounded. While no long gap occurs the second kind of renewal is made ever rarer, up
  // to 16 thresholds.
  bool wants_renewal(std::uint64_t enter, std::uint64_t now) const noexcept {
    return now - looked_ticks_ >= renew_after_ || now - enter >= threshold_;
  }
  // Returns delay_in_call(): 0 where it was not off the processor for longer than the tolerance.
  std::uint64_t renew_after_call(std::uint64_t enter, std::uint64_t now) noexcept;
  // The thread's processor time when its clock was last looked at.
  std::uint64_t cpu_ns() const noexcept { return cpu_ns_; }
  // The shortest gap that is worth a look: tick_clock.cpu_threshold, or where a reading takes longer than it did then,
  // 100 of them, up to a millisecond.
  std::uint64_t threshold() const noexcept { return threshold_; }
  // What all readings took, of the CPU clock and of the run delay, in ticks.
  std::uint64_t spent_ticks() const noexcept { return spent_ticks_; }

 private:
  struct RunDelay {
    std::uint64_t delay_ns = 0;     // schedstat
    std::uint64_t voluntary = 0;    // getrusage
    std::uint64_t involuntary = 0;  // getrusage
  };
  RunDelay read_run_delay() noexcept;
  // Of TICKS that end NOW, whether all were on the processor, and all since the reference; then that is noted.
  bool was_on_processor(std::uint64_t ticks, std::uint64_t now) noexcept;
  void read_clock() noexcept;
  // That of OFF ticks off the processor, the last ones, in a call or in a gap, read now.
  std::uint64_t take_delay_ticks(std::uint64_t off, bool in_call) noexcept;

  int schedstat_fd_ = -1;
  SwitchMark mark_;
  std::uint64_t reference_cpu_ns_ = 0;
  std::uint64_t reference_ticks_ = 0;
  std::uint64_t looked_ticks_ = 0;  // the reference, or when the mark was last found intact
  std::uint64_t cpu_ns_ = 0;        // then
  std::uint64_t spent_ticks_ = 0;
  std::uint64_t read_cost_ = 0;  // ticks, the mean of the last ones
  std::uint64_t threshold_ = kNever;
  std::uint64_t renew_after_ = kNever;
  RunDelay reference_delay_{};
  DelayShare delay_share_;
  std::uint64_t delay_read_cost_ = 0;  // ticks, the mean of the last ones
  std::uint64_t off_in_parts_ = 0;     // since reference_delay_ was read
};

}  // namespace lbf::capture
