// CostTable: what messages, and the copies and reductions of collectives, cost on K targets, side by side,
// looked up by size.
//
// A program uses few message sizes, the curves are searched for each only once: rows are kept in a
// direct-mapped cache of bounded size.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"
#include "predictor/engine/replay/localities.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

class CostTable {
 public:
  // REQUIRES: the targets' networks outlive it.
  explicit CostTable(const std::vector<const Target*>& targets);

  // Of every target the same number: the most that one of them has. 2: between nodes and inside one, no more.
  std::size_t localities() const { return localities_; }
  const Localities& localities_of(std::size_t k) const { return targets_[k]; }
  // REQUIRES: locality < localities(). A target that has fewer: the path to its nearest nodes.
  const PathCost& path(std::size_t k, std::size_t locality) const {
    return targets_[k].path(locality < targets_[k].count() ? locality : 0);
  }

  // Costs of a message of `bytes`, valid until the next call: for each locality K flight times, K send_cpu, K
  // recv_cpu (processor work at speed 1).
  const Seconds* row(Bytes bytes) {
    const std::size_t slot = static_cast<std::size_t>((bytes * 0x9e3779b97f4a7c15) >> (64 - kSlotBits));
    if (bytes_of_slot_[slot] != bytes || !filled_[slot]) fill(slot, bytes);
    return &rows_[slot * row_size_];
  }
  // The same for work of a rank by itself: K times that of copying `bytes`, or of reducing them (at speed 1).
  // REQUIRES: has_local().
  const Seconds* copy_row(Bytes bytes) { return row(bytes) + 3 * localities_ * targets_.size(); }
  const Seconds* reduce_row(Bytes bytes) { return copy_row(bytes) + targets_.size(); }
  Bytes memory_bytes() const { return rows_.capacity() * sizeof(Seconds); }
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
  std::vector<Seconds> rows_;
  bool has_local_ = false;
  bool has_flight_ = false;
  bool has_send_cpu_ = false;
  bool has_recv_cpu_ = false;
};

}  // namespace lbf::engine
