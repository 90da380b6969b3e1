#include "predictor/engine/replay/cost_table.h"

#include <algorithm>

namespace lbf::engine {

CostTable::CostTable(const std::vector<const Target*>& targets)
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
  rows_.resize((std::size_t{1} << kSlotBits) * row_size_, 0.0);
}

void CostTable::fill(std::size_t slot, Bytes bytes) {
  const std::size_t count = targets_.size();
  Seconds* row = &rows_[slot * row_size_];
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t locality = 0; locality < targets_[k].count(); ++locality) {
      const PathCost& path = targets_[k].path(locality);
      Seconds* part = row + locality * 3 * count;
      part[k] = path.flight.at(bytes);
      part[count + k] = path.send_cpu.at(bytes);
      part[2 * count + k] = path.recv_cpu.at(bytes);
    }
    if (!has_local_) continue;
    Seconds* local = row + 3 * localities_ * count;
    local[k] = local_[k]->copy.at(bytes);
    local[count + k] = local_[k]->reduce.at(bytes);
  }
  bytes_of_slot_[slot] = bytes;
  filled_[slot] = 1;
}

}  // namespace lbf::engine
