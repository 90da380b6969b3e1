// See node_layout.h.
#include "predictor/engine/match/node_layout.h"

#include <algorithm>
#include <unordered_map>

namespace lbf::engine {
namespace {

// `ranks` sorted by `key`, in rank order where it is equal; `first`: where each key begins, and the end.
void sort_by(const std::vector<std::uint32_t>& key, std::uint32_t keys, std::vector<std::uint32_t>& ranks,
             std::vector<std::uint32_t>& first) {
  first.assign(keys + std::size_t{1}, 0);
  for (const std::uint32_t k : key) ++first[k + std::size_t{1}];
  for (std::size_t k = 1; k < first.size(); ++k) first[k] += first[k - 1];
  ranks.resize(key.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t rank = 0; rank < key.size(); ++rank) ranks[next[key[rank]]++] = rank;
}

}  // namespace

NodeLayout::NodeLayout(std::span<const std::uint32_t> node_of_rank) {
  std::unordered_map<std::uint32_t, std::uint32_t> number_of_node;
  std::vector<std::uint32_t> size_of_node;
  std::uint32_t most = 0;
  node_of_.reserve(node_of_rank.size());
  local_rank_of_.reserve(node_of_rank.size());
  for (const std::uint32_t node : node_of_rank) {
    const auto [entry, is_new] = number_of_node.emplace(node, static_cast<std::uint32_t>(number_of_node.size()));
    if (is_new) size_of_node.push_back(0);
    node_of_.push_back(entry->second);
    local_rank_of_.push_back(size_of_node[entry->second]++);
    most = std::max(most, size_of_node[entry->second]);
  }
  sort_by(node_of_, static_cast<std::uint32_t>(size_of_node.size()), by_node_, first_of_node_);
  sort_by(local_rank_of_, most, by_local_rank_, first_of_local_rank_);
  place_among_peers_.resize(node_of_.size());
  for (std::uint32_t local = 0; local < most; ++local) {
    const std::span<const std::uint32_t> peers = ranks_at(local);
    for (std::uint32_t place = 0; place < peers.size(); ++place) place_among_peers_[peers[place]] = place;
  }
}

}  // namespace lbf::engine
