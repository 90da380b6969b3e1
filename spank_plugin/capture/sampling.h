// Sampler: which executions of a primitive are timed, for C_obs_direct (Hollingsworth & Miller, Sec. 3.2;
// cost/observed_cost.h).
//
// Place in the event's way: inside *capture*, two per thread (recorded calls, counted calls). One of about
// 1,000, at distances that a generator of its own chooses: a program's own period is never met. The execution
// before it is timed, too, and thrown away: the code that times would else be counted with what it waits for
// when it comes into the cache. An execution that took longer than any can lost its processor meanwhile, and is
// not counted. noexcept.
#pragma once

#include <atomic>
#include <cstdint>

#include "spank_plugin/capture/ring.h"

namespace lbf::capture {

class Sampler {
 public:
  static constexpr std::uint64_t kShortest = 512;
  static constexpr std::uint64_t kLongest = 1535;

  void seed(std::uint64_t seed) noexcept { state_ = seed | 1; }
  // The execution that is timed next.
  std::uint64_t due() const noexcept { return due_; }
  // That one was begun: chooses the next.
  void advance(std::uint64_t executions) noexcept {
    warms_up_ = !warms_up_;
    if (warms_up_) {
      due_ = executions + 1;
      return;
    }
    state_ ^= state_ << 13;  // xorshift64
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    due_ = executions + kShortest + (state_ >> 11) % (kLongest - kShortest + 1);
  }

  // The one begun last only warms up.
  bool warms_up() const noexcept { return warms_up_; }

  // `ticks`: what the timed execution took; `reads`: of that, the timing itself; `longest`: see above.
  static void count(ring::PrimitiveCounter& counter, std::uint64_t ticks, std::uint64_t reads,
                    std::uint64_t longest) noexcept {
    if (ticks > longest) return;
    const std::uint64_t own = ticks > reads ? ticks - reads : 0;
    counter.sampled.store(counter.sampled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    counter.sampled_ticks.store(counter.sampled_ticks.load(std::memory_order_relaxed) + own,
                                std::memory_order_relaxed);
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15u;
  std::uint64_t due_ = kShortest;
  bool warms_up_ = false;
};

}  // namespace lbf::capture
