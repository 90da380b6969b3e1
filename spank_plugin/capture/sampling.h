// Sampler: which executions of a primitive are timed, for C_obs_direct (Hollingsworth & Miller, Sec. 3.2;
// cost/observed_cost.h).
//
// Place in the event's way: inside *capture*, two per thread (recorded calls, counted calls). One of about
// 1,000, at distances that a generator of its own chooses: a program's own period is never met. The execution
// before it is timed, too, and thrown away: the code that times would else be counted with what it waits for
// when it comes into the cache. An execution that took longer than any can lost its processor meanwhile, and is
// not counted.
//
// What the timing adds by itself is more than its readings: the processor does not foresee that they come, and how much
// that takes depends on the program around the call. So one of four is a *null sample*: the same readings at the same
// place, with nothing of the primitive between them. What these take is taken off the others.
//
// What a sample cannot see, because it is around the readings (the wrapper's own entry and end) or passes while the
// processor is busy reading, is found when the ring is made (recorder_cost.cpp) and added to each: `unseen`. noexcept.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/ring.h"

namespace lbf::capture {

// What the timing of an execution adds to it, in ticks: from the last null samples.
class NullSamples {
 public:
  static constexpr std::size_t kKept = 16;

  void note(std::uint64_t ticks) noexcept {
    ticks_[noted_++ % kKept] = ticks;
    std::array<std::uint64_t, kKept> sorted = ticks_;
    const std::size_t count = std::min(noted_, kKept);
    std::sort(sorted.begin(), sorted.begin() + count);
    // The mean of the middle half: an interrupt in one of them does not move it.
    const std::size_t cut = count / 4;
    std::uint64_t sum = 0;
    for (std::size_t i = cut; i < count - cut; ++i) sum += sorted[i];
    const std::size_t used = count - 2 * cut;
    center_ = (sum + used / 2) / used;
  }
  // 0: none was taken yet.
  std::uint64_t center() const noexcept { return center_; }

 private:
  std::array<std::uint64_t, kKept> ticks_{};
  std::size_t noted_ = 0;
  std::uint64_t center_ = 0;
};

// Of a counted call, in 1/256 ticks; 0: not known.
struct CountedIdeal {
  std::uint64_t whole_256 = 0;
  std::uint64_t unseen_256 = 0;
};

class Sampler {
 public:
  static constexpr std::uint64_t kShortest = 512;
  static constexpr std::uint64_t kLongest = 1535;
  static constexpr std::uint64_t kOneNullOf = 4;
  static constexpr std::uint64_t kMostOwedNulls = 64;

  void seed(std::uint64_t seed) noexcept { state_ = seed | 1; }
  // The execution that is timed next.
  std::uint64_t due() const noexcept { return due_; }
  // That one was begun: chooses the next.
  void advance(std::uint64_t executions) noexcept {
    warms_up_ = !warms_up_;
    if (warms_up_) {
      due_ = executions + 1;
      is_null_ = begun_++ == 0 || (state_ >> 40) % kOneNullOf == 0;  // first of all what the others are without
      return;
    }
    state_ ^= state_ << 13;  // xorshift64
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    due_ = executions + kShortest + (state_ >> 11) % (kLongest - kShortest + 1);
  }

  // In 1/256 ticks.
  void set_unseen(std::uint64_t ticks_256) noexcept { unseen_256_ = ticks_256; }

  // The one begun last only warms up.
  bool warms_up() const noexcept { return warms_up_; }
  // The one begun last is a null sample (or warms one up).
  bool is_null() const noexcept { return is_null_; }

  // The one begun last took `ticks`. `longest`: see above.
  void note(ring::PrimitiveCounter& counter, std::uint64_t ticks, std::uint64_t longest) noexcept {
    if (warms_up_ || ticks > longest) return;
    if (is_null_) return nulls_.note(ticks);
    counter.sampled.store(counter.sampled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // Where a sample takes less than the null samples, the next ones make up for it: cut off at 0 each, their mean
    // would be too high. Not without end: what the program does may change.
    const std::uint64_t off = nulls_.center() + owed_;
    owed_ = off > ticks ? std::min(off - ticks, kMostOwedNulls * nulls_.center()) : 0;
    part_256_ += unseen_256_;
    const std::uint64_t seen = ticks > off ? ticks - off : 0;
    counter.sampled_ticks.store(counter.sampled_ticks.load(std::memory_order_relaxed) + seen + part_256_ / 256,
                                std::memory_order_relaxed);
    part_256_ %= 256;
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15u;
  std::uint64_t due_ = kShortest;
  std::uint64_t begun_ = 0;
  std::uint64_t owed_ = 0;
  std::uint64_t unseen_256_ = 0;
  std::uint64_t part_256_ = 0;  // of a tick, not added yet
  bool warms_up_ = false;
  bool is_null_ = false;
  NullSamples nulls_;
};

}  // namespace lbf::capture
