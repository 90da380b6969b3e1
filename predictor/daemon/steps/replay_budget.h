// ReplayBudget, ReplayMemory: how much of lbfd the targets of a step may take (docs/lbfd.md, "Budgets").
//
// Place in the cost system: Hollingsworth & Miller treat "data analysis workstations" as a resource with a limit like
// the program's processor time: hypotheses are worked down from a ranked list as far as it reaches; what does not fit
// is deferred, not dropped.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "predictor/engine/metric/predictor.h"

namespace lbf::daemon {

// Processor time of one step's replays, while it runs, against that of its program.
struct ReplayBudget {
  double cpu_percent = 0;  // of the ranks' time so far; 0: no limit
  Seconds free_cpu_s = 5;  // each step has so much in any case: short jobs are predicted as a whole

  bool is_limited() const { return cpu_percent > 0; }
  // `rank_s`: sum of the ranks' measured times so far.
  Seconds allowed_s(Seconds rank_s) const { return free_cpu_s + cpu_percent / 100 * rank_s; }
  bool has_room(Seconds rank_s, Seconds spent_s) const { return !is_limited() || spent_s < allowed_s(rank_s); }
};

// Memory of all replays together, as far as it can be told. Thread-safe.
class ReplayMemory {
 public:
  // `limit_bytes` 0: no limit.
  explicit ReplayMemory(Bytes limit_bytes) : limit_bytes_(limit_bytes) {}
  bool is_limited() const { return limit_bytes_ > 0; }
  bool has_room_for(Bytes bytes) const { return !is_limited() || used_bytes_ + bytes <= limit_bytes_; }
  Bytes used_bytes() const { return used_bytes_; }

 private:
  friend class ReplayMemoryShare;
  const Bytes limit_bytes_;
  std::atomic<Bytes> used_bytes_{0};
};

// What one replay takes of it. REQUIRES: the memory outlives the share.
class ReplayMemoryShare {
 public:
  explicit ReplayMemoryShare(ReplayMemory* memory) : memory_(memory) {}  // nullptr: nobody counts
  ~ReplayMemoryShare() { set(0); }
  ReplayMemoryShare(const ReplayMemoryShare&) = delete;
  ReplayMemoryShare& operator=(const ReplayMemoryShare&) = delete;
  void set(Bytes bytes) {
    if (memory_ != nullptr) memory_->used_bytes_ += bytes - bytes_;  // wraps where it shrinks
    bytes_ = bytes;
  }

 private:
  ReplayMemory* memory_;
  Bytes bytes_ = 0;
};

// An estimate: what a rank takes on each target and what an event takes until it was replayed on all of them, each
// rounded up from bench/replay_throughput.
constexpr Bytes replay_bytes(Rank ranks, std::size_t targets, std::uint64_t events_in_flight) {
  constexpr Bytes kOfRankAndTarget = 512;
  constexpr Bytes kOfEvent = 128;
  return static_cast<Bytes>(ranks) * targets * kOfRankAndTarget + events_in_flight * kOfEvent;
}

// Times that one clock holds: a target with composed clocks takes the memory of so many.
constexpr std::size_t times_of(engine::Clocks clocks) {
  return clocks == engine::Clocks::kComposed ? 1 + engine::kTerms : 1;
}

}  // namespace lbf::daemon
