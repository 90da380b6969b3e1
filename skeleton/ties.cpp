#include "skeleton/ties.h"

#include <algorithm>
#include <numeric>

namespace lbf::skeleton {

Ties::Ties(std::size_t nodes, Rank ranks) : parent_(nodes), under_way_(static_cast<std::size_t>(ranks)) {
  std::iota(parent_.begin(), parent_.end(), 0u);
}

void Ties::execute(std::uint32_t node, const Exchange& exchange) {
  for (const Exchange::Part& part : exchange.parts) {
    UnderWay& mine = under_way_[static_cast<std::size_t>(part.rank)];
    for (std::uint32_t i = part.begin; i < part.begin + part.count; ++i) {
      const Operation& operation = exchange.operations[i];
      for_each_ended(operation, exchange.values_of(operation), [&](std::uint32_t slot) {
        if (slot >= mine.slots.size() || !mine.slots[slot]) return;
        tie(node, mine.node);
        mine.slots[slot] = false;
        --mine.count;
      });
      if (!begins_request(operation.kind)) continue;
      if (mine.count > 0) tie(node, mine.node);
      mine.node = node;
      mine.slots.resize(std::max<std::size_t>(mine.slots.size(), operation.slot + 1));
      if (!mine.slots[operation.slot]) ++mine.count;
      mine.slots[operation.slot] = true;
    }
  }
}

std::uint32_t Ties::group_of(std::uint32_t node) {
  while (parent_[node] != node) {
    parent_[node] = parent_[parent_[node]];
    node = parent_[node];
  }
  return node;
}

void Ties::tie(std::uint32_t a, std::uint32_t b) {
  parent_[group_of(a)] = group_of(b);
}

}  // namespace lbf::skeleton
