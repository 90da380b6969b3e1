#include "predictor/replay/cost_table.h"

namespace lbf {

CostTable::CostTable(const std::vector<const Target*>& targets)
    : row_size_(6 * targets.size()),
      bytes_of_slot_(std::size_t{1} << kSlotBits, 0),
      filled_(std::size_t{1} << kSlotBits, 0),
      rows_((std::size_t{1} << kSlotBits) * row_size_, 0.0) {
  for (const Target* target : targets) {
    networks_.push_back(target->network);
    for (const bool same_node : {false, true}) {
      const PathCost& path = target->network->path(same_node);
      has_flight_ = has_flight_ || !path.flight.points().empty();
      has_send_cpu_ = has_send_cpu_ || !path.send_cpu.points().empty();
      has_recv_cpu_ = has_recv_cpu_ || !path.recv_cpu.points().empty();
    }
  }
}

void CostTable::fill(std::size_t slot, Bytes bytes) {
  const std::size_t count = networks_.size();
  Seconds* row = &rows_[slot * row_size_];
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t locality = 0; locality < 2; ++locality) {
      const PathCost& path = networks_[k]->path(locality == 1);
      Seconds* part = row + locality * 3 * count;
      part[k] = path.flight.at(bytes);
      part[count + k] = path.send_cpu.at(bytes);
      part[2 * count + k] = path.recv_cpu.at(bytes);
    }
  }
  bytes_of_slot_[slot] = bytes;
  filled_[slot] = 1;
}

}  // namespace lbf
