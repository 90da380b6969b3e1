// CallBegins: how long the call before took at least, where other programs had the processor for a part of it.
//
// A thread without a processor does not take its message, nor answer the other end. How long a call took is then a
// matter of whose turn it was when, which no model tells: it is replayed as it ran, for as much as was lost. A message
// needs both its ends, and they take turns in being held up: twice what this end lost (kDelayed; at most the call).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/units.h"
#include "predictor/engine/match/op.h"
#include "predictor/engine/replay/composed.h"

namespace lbf::engine {

// Whether a call may begin with the op. Of several ops of one call only the first has process time.
constexpr bool may_begin_call(const Op& op) {
  return op.work_s != 0 && (takes_message(op.kind) || is_local_work(op.kind));
}

// `Clock`: of the replay (composed.h).
template <typename Clock>
class CallBeginsOf {
 public:
  // Of each rank, on the targets for which BESIDE_OTHERS (one number a target) is not 0.
  void start(std::size_t ranks, const std::vector<double>& beside_others) {
    for (std::size_t k = 0; k < beside_others.size(); ++k) {
      if (beside_others[k] != 0) targets_.push_back(k);
    }
    ranks_ = targets_.empty() ? 0 : ranks;
    began_s_.assign(ranks * targets_.size(), Clock{});
  }
  // false: on no target, or the process is no rank.
  bool notes(ProcessIndex process) const { return process < ranks_; }
  // A call begins at CLOCK, by target. REQUIRES: notes().
  void note(ProcessIndex process, const Clock* clock) {
    Clock* const began_s = &began_s_[process * targets_.size()];
    for (std::size_t i = 0; i < targets_.size(); ++i) began_s[i] = clock[targets_[i]];
  }
  // OP says what the call that began last lost: brings CLOCK to the earliest time at which it can have ended.
  // REQUIRES: notes(), OP is a kDelayed.
  void hold_up(ProcessIndex process, const Op& op, Clock* clock) const {
    using std::max;
    constexpr double kEnds = 2;
    const Clock* const began_s = &began_s_[process * targets_.size()];
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      Clock until_s = began_s[i];
      add(until_s, Term::kBlocked, kEnds * op.call_s);
      clock[targets_[i]] = max(clock[targets_[i]], until_s);
    }
  }
  template <typename Visit>
  void for_each_clock(Visit&& visit) {
    for (Clock& clock : began_s_) visit(clock);
  }
  // KEPT: numbers of targets, ascending, which are numbered anew.
  void drop_targets_except(const std::vector<std::size_t>& kept) {
    std::vector<std::size_t> left;     // of targets_
    std::vector<std::size_t> targets;  // their new numbers
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const auto at = std::lower_bound(kept.begin(), kept.end(), targets_[i]);
      if (at == kept.end() || *at != targets_[i]) continue;
      left.push_back(i);
      targets.push_back(static_cast<std::size_t>(at - kept.begin()));
    }
    std::vector<Clock> began_s;
    for (std::size_t row = 0; row < began_s_.size(); row += targets_.size()) {
      for (const std::size_t i : left) began_s.push_back(began_s_[row + i]);
    }
    targets_ = std::move(targets);
    began_s_ = std::move(began_s);
    if (targets_.empty()) ranks_ = 0;
  }
  Bytes memory_bytes() const { return began_s_.capacity() * sizeof(Clock); }

 private:
  std::size_t ranks_ = 0;             // 0: of no target
  std::vector<std::size_t> targets_;  // ascending
  std::vector<Clock> began_s_;        // [rank][of targets_]
};

using CallBegins = CallBeginsOf<Seconds>;

}  // namespace lbf::engine
