// Pool clock: what threads without MPI calls and without OpenMP's entries did in a long gap (pthreads, TBB, a BLAS of
// its own): the processor time of the process against that of the thread. docs/adr/0012-threads.md.
//
// Place in the event's way: inside *capture*, beside ProcessClock (clock.h), where a long gap is judged.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/clock.h"
#include "spank_plugin/capture/region_times.h"

namespace lbf::capture {

// A gap with a pool is one region. `unblocked`: the thread was off the processor, but the pool worked for it.
struct PoolGap {
  RegionTimes times;
  std::uint64_t threads = 0;  // 0: none
  std::uint64_t unblocked = 0;
};

// Of a gap in which the thread was CPU ticks on a processor and BLOCKED off it, and others OTHERS on theirs. THREADS:
// as many as were seen at work at once in gaps before, which tells in a gap of serial and shared work what is serial.
// OTHERS up to TOLERANCE are noise: the thread's own time between the reads of its clock and of the process's.
constexpr PoolGap pool_gap(std::uint64_t cpu, std::uint64_t blocked, std::uint64_t others, std::uint64_t threads,
                           std::uint64_t tolerance) noexcept {
  const std::uint64_t unblocked = smaller(blocked, others);
  const std::uint64_t wall = cpu + unblocked;
  if (wall == 0 || others < wall / 10 || others <= tolerance) return {};
  const std::uint64_t work = cpu + others;
  const std::uint64_t at_once = (work + wall / 2) / wall;
  const std::uint64_t team = at_once > threads ? at_once : threads;
  return {{wall, work, smaller(wall, work), 0}, team > 2 ? team : 2, unblocked};
}

// A thread that runs on while the rank is in MPI calls (it spins, or drives MPI) is no pool, which waits for work then.
// At most one such thread is looked for: workers, too, may spin for a while.
class Helper {
 public:
  // Others ran for OTHERS ticks of a call of TICKS.
  constexpr void note_call(std::uint64_t ticks, std::uint64_t others) noexcept {
    call_ticks_ += ticks;
    in_calls_ += smaller(others, ticks);
  }
  // Of OTHERS ticks in a gap of GAP those that may be a pool's. Of one that is hardly more than the helper nothing is
  // known.
  constexpr std::uint64_t without(std::uint64_t gap, std::uint64_t others) const noexcept {
    const std::uint64_t rest = above(others, in_proportion(gap, call_ticks_, in_calls_));
    return rest * 3 < others * 2 ? 0 : rest;
  }

 private:
  std::uint64_t call_ticks_ = 0;
  std::uint64_t in_calls_ = 0;
};

// Used by its thread only.
class PoolClock {
 public:
  // Whether others_in() a gap of GAP ticks reads a clock.
  bool is_due(std::uint64_t gap) const noexcept { return gap >= read_after_; }
  // A pool's ticks in the gap of GAP ticks that ends now, when the thread's processor time is CPU_NS. Not read: 0.
  std::uint64_t others_in(std::uint64_t gap, std::uint64_t cpu_ns) noexcept {
    if (!is_due(gap)) return 0;
    const bool is_first = reference_ticks_ == 0;
    const Read read = read_others(cpu_ns);
    const std::uint64_t all = in_proportion(gap, read.ticks > gap ? read.ticks : gap, read.others);
    watches_calls_ = (is_first ? read.others : all) * 10 >= gap;
    const std::uint64_t others = is_first ? 0 : helper_.without(gap, all);
    set_next(others * 10 >= gap ? kLeastGap : 2 * read_after_);
    return others;
  }
  // Whether a call of TICKS tells who else runs in it.
  bool wants_call(std::uint64_t ticks) const noexcept { return watches_calls_ && ticks >= least_gap(); }
  // The call of TICKS that ends now, when the thread's processor time is CPU_NS.
  void note_call(std::uint64_t ticks, std::uint64_t cpu_ns) noexcept {
    const Read read = read_others(cpu_ns);
    if (read.ticks <= ticks + ticks / 4) helper_.note_call(read.ticks, read.others);  // of little else
  }
  std::uint64_t threads() const noexcept { return threads_; }
  void note_threads(std::uint64_t threads) noexcept { threads_ = threads > threads_ ? threads : threads_; }

 private:
  static constexpr std::uint64_t kLeastGap = 0;
  static constexpr std::uint64_t kReads = 100;  // of such a gap a read is a part

  struct Read {
    std::uint64_t ticks;   // since the last one
    std::uint64_t others;  // in them
  };
  Read read_others(std::uint64_t cpu_ns) noexcept {
    const std::uint64_t begin = ticks_now();
    const std::uint64_t others_ns = above(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID), cpu_ns);
    const std::uint64_t now = ticks_now();
    const Read read{now - reference_ticks_, ticks_from_ns(above(others_ns, reference_others_ns_))};
    reference_others_ns_ = others_ns;
    reference_ticks_ = now;
    read_cost_ = now - begin;
    return read;
  }
  std::uint64_t least_gap() const noexcept { return kReads * read_cost_; }
  // Where there is no pool it is asked for ever more rarely; a long gap says at once that there is one.
  void set_next(std::uint64_t wanted) noexcept {
    const std::uint64_t most = 16 * (least_gap() > tick_clock.cpu_threshold ? least_gap() : tick_clock.cpu_threshold);
    read_after_ = wanted > most ? most : wanted > least_gap() ? wanted : least_gap();
  }

  Helper helper_;
  bool watches_calls_ = false;
  std::uint64_t read_cost_ = 0;  // ticks
  std::uint64_t read_after_ = 1;
  std::uint64_t reference_ticks_ = 0;
  std::uint64_t reference_others_ns_ = 0;
  std::uint64_t threads_ = 0;
};

}  // namespace lbf::capture
