// CostTable: what messages cost on K targets, side by side, looked up by size.
//
// A program uses few message sizes, the curves are searched for each only once: rows are kept in a
// direct-mapped cache of bounded size.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/units.h"
#include "predictor/replay/target.h"

namespace lbf {

class CostTable {
 public:
  explicit CostTable(const std::vector<const Target*>& targets);

  // Costs of a message of `bytes`, valid until the next call: for each locality (remote, then self-node) K
  // flight times, K send_cpu, K recv_cpu (processor work at speed 1).
  const Seconds* row(Bytes bytes) {
    const std::size_t slot = static_cast<std::size_t>((bytes * 0x9e3779b97f4a7c15) >> (64 - kSlotBits));
    if (bytes_of_slot_[slot] != bytes || !filled_[slot]) fill(slot, bytes);
    return &rows_[slot * row_size_];
  }
  bool has_flight() const { return has_flight_; }
  bool has_cpu() const { return has_send_cpu_ || has_recv_cpu_; }
  bool has_send_cpu() const { return has_send_cpu_; }
  bool has_recv_cpu() const { return has_recv_cpu_; }

 private:
  static constexpr unsigned kSlotBits = 8;
  void fill(std::size_t slot, Bytes bytes);

  std::vector<std::shared_ptr<const Network>> networks_;
  std::size_t row_size_;
  std::vector<Bytes> bytes_of_slot_;
  std::vector<char> filled_;
  std::vector<Seconds> rows_;
  bool has_flight_ = false;
  bool has_send_cpu_ = false;
  bool has_recv_cpu_ = false;
};

}  // namespace lbf
