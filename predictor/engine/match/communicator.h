// Communicator: what the matcher keeps of one, from its definition until its last member freed it.
//
// Place in the event's way: a part of *match*.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "event/rank_list.h"
#include "predictor/engine/match/node_layout.h"

namespace lbf::engine {

// A group of ranks; who knows a member's place at once.
class RankGroup {
 public:
  RankGroup() = default;
  // REQUIRES: ranks, none of them twice.
  explicit RankGroup(std::span<const std::uint64_t> members) : ranks_(members) {
    if (ranks_.is_regular()) return;
    by_rank_.resize(ranks_.size());
    for (std::uint32_t place = 0; place < by_rank_.size(); ++place) by_rank_[place] = place;
    std::sort(by_rank_.begin(), by_rank_.end(), [this](auto a, auto b) { return ranks_[a] < ranks_[b]; });
  }
  std::size_t size() const { return ranks_.size(); }
  bool empty() const { return ranks_.empty(); }
  Rank operator[](std::size_t place) const { return ranks_[place]; }
  Rank front() const { return ranks_.front(); }
  // Nothing: the rank is no member.
  std::optional<std::uint32_t> place_of(Rank rank) const {
    std::size_t place = ranks_.size();
    if (ranks_.is_regular()) {
      place = ranks_.regular_place_of(rank);
    } else {
      const auto at = std::lower_bound(by_rank_.begin(), by_rank_.end(), rank,
                                       [this](std::uint32_t a, Rank wanted) { return ranks_[a] < wanted; });
      if (at != by_rank_.end() && ranks_[*at] == rank) place = *at;
    }
    return place < ranks_.size() ? std::optional(static_cast<std::uint32_t>(place)) : std::nullopt;
  }
  Bytes memory_bytes() const { return ranks_.memory_bytes() + by_rank_.capacity() * sizeof(by_rank_[0]); }

 private:
  RankList ranks_;
  std::vector<std::uint32_t> by_rank_;  // places in rank order; empty where the ranks are regular
};

struct Communicator {
  RankGroup group;                   // intracommunicator: all members
  RankGroup remote_group;            // intercommunicator: the group that does not hold group[0]
  std::optional<NodeLayout> layout;  // intracommunicator, where the nodes are known and a collective went by them
  std::size_t frees = 0;

  std::size_t size() const { return group.size() + remote_group.size(); }
  // In its group.
  std::optional<std::uint32_t> place_of(Rank rank) const {
    const std::optional<std::uint32_t> place = group.place_of(rank);
    return place ? place : remote_group.place_of(rank);
  }
  Bytes memory_bytes() const {
    return group.memory_bytes() + remote_group.memory_bytes() + (layout ? layout->memory_bytes() : 0);
  }
};

}  // namespace lbf::engine
