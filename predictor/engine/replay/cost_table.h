// CostTable: what messages, and the copies and reductions of collectives, cost on K targets, side by side,
// looked up by size.
//
// A program uses few message sizes, the curves are searched for each only once: rows are kept in a
// direct-mapped cache of bounded size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.h"
#include "predictor/engine/replay/composed.h"
#include "predictor/engine/replay/localities.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

// Of latency and bytes. A message that takes less than an empty one is all latency.
inline Composed flight_of(const PathCost& path, bool inside, Bytes bytes) {
  const Seconds flight_s = path.flight.at(bytes);
  const Seconds latency_s = std::min(path.flight.at(0), flight_s);
  Composed flight;
  add(flight, inside ? Term::kLatencyInside : Term::kLatencyBetween, latency_s);
  add(flight, inside ? Term::kBytesInside : Term::kBytesBetween, flight_s - latency_s);
  flight.value = flight_s;
  return flight;
}

inline Composed cpu_of(Term term, Seconds seconds) {
  Composed cpu;
  add(cpu, term, seconds);
  return cpu;
}

// `Clock`: of the replay (composed.h).
template <typename Clock>
class CostTableOf {
 public:
  // REQUIRES: the targets' networks outlive it.
  explicit CostTableOf(const std::vector<const Target*>& targets);

  // Of every target the same number: the most that one of them has. 2: between nodes and inside one, no more.
  std::size_t localities() const { return localities_; }
  const Localities& localities_of(std::size_t k) const { return targets_[k]; }
  // REQUIRES: locality < localities(). A target that has fewer: the path to its nearest nodes.
  const PathCost& path(std::size_t k, std::size_t locality) const {
    return targets_[k].path(locality < targets_[k].count() ? locality : 0);
  }

  // Costs of a message of `bytes`, valid until the next call: for each locality K flight times, K send_cpu, K
  // recv_cpu (processor work at speed 1).
  const Clock* row(Bytes bytes) {
    const std::size_t slot = static_cast<std::size_t>((bytes * 0x9e3779b97f4a7c15) >> (64 - kSlotBits));
    if (bytes_of_slot_[slot] != bytes || !filled_[slot]) fill(slot, bytes);
    return &rows_[slot * row_size_];
  }
  // The same for work of a rank by itself: K times that of copying `bytes`, or of reducing them (at speed 1).
  // REQUIRES: has_local().
  const Clock* copy_row(Bytes bytes) { return row(bytes) + 3 * localities_ * targets_.size(); }
  const Clock* reduce_row(Bytes bytes) { return copy_row(bytes) + targets_.size(); }
  Bytes memory_bytes() const { return rows_.capacity() * sizeof(Clock); }
  bool has_local() const { return has_local_; }
  bool has_flight() const { return has_flight_; }
  bool has_cpu() const { return has_send_cpu_ || has_recv_cpu_; }
  bool has_send_cpu() const { return has_send_cpu_; }
  bool has_recv_cpu() const { return has_recv_cpu_; }

 private:
  static constexpr unsigned kSlotBits = 8;
  void fill(std::size_t slot, Bytes bytes);

  std::vector<Localities> targets_;
  std::vector<const LocalCost*> local_;
  std::size_t localities_ = 0;
  std::size_t row_size_ = 0;
  std::vector<Bytes> bytes_of_slot_;
  std::vector<char> filled_;
  std::vector<Clock> rows_;
  bool has_local_ = false;
  bool has_flight_ = false;
  bool has_send_cpu_ = false;
  bool has_recv_cpu_ = false;
};

using CostTable = CostTableOf<Seconds>;

template <typename Clock>
CostTableOf<Clock>::CostTableOf(const std::vector<const Target*>& targets)
    : bytes_of_slot_(std::size_t{1} << kSlotBits, 0), filled_(std::size_t{1} << kSlotBits, 0) {
  targets_.reserve(targets.size());
  for (const Target* target : targets) {
    const Localities& localities = targets_.emplace_back(*target);
    local_.push_back(&target->network->local());
    has_local_ = has_local_ || local_.back()->known();
    localities_ = std::max(localities_, localities.count());
    for (std::size_t locality = 0; locality < localities.count(); ++locality) {
      const PathCost& path = localities.path(locality);
      has_flight_ = has_flight_ || !path.flight.points().empty();
      has_send_cpu_ = has_send_cpu_ || !path.send_cpu.points().empty();
      has_recv_cpu_ = has_recv_cpu_ || !path.recv_cpu.points().empty();
    }
  }
  row_size_ = (3 * localities_ + (has_local_ ? 2 : 0)) * targets_.size();
  rows_.resize((std::size_t{1} << kSlotBits) * row_size_);
}

template <typename Clock>
void CostTableOf<Clock>::fill(std::size_t slot, Bytes bytes) {
  const std::size_t count = targets_.size();
  Clock* row = &rows_[slot * row_size_];
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t locality = 0; locality < targets_[k].count(); ++locality) {
      const PathCost& path = targets_[k].path(locality);
      Clock* part = row + locality * 3 * count;
      part[k] = static_cast<Clock>(flight_of(path, locality == Localities::kSelfNode, bytes));
      part[count + k] = static_cast<Clock>(cpu_of(Term::kOverhead, path.send_cpu.at(bytes)));
      part[2 * count + k] = static_cast<Clock>(cpu_of(Term::kOverhead, path.recv_cpu.at(bytes)));
    }
    if (!has_local_) continue;
    Clock* local = row + 3 * localities_ * count;
    local[k] = static_cast<Clock>(cpu_of(Term::kLocal, local_[k]->copy.at(bytes)));
    local[count + k] = static_cast<Clock>(cpu_of(Term::kLocal, local_[k]->reduce.at(bytes)));
  }
  bytes_of_slot_[slot] = bytes;
  filled_[slot] = 1;
}

}  // namespace lbf::engine
