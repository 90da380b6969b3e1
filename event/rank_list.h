// RankList: the members of a group in their order, in little memory.
//
// Most groups are every n-th rank from a first one on: rows and columns of a grid, the ranks of a node, copies of the
// world. Of these three numbers are kept, whatever the size. Others keep each member.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace lbf {

class RankList {
 public:
  RankList() = default;
  // REQUIRES: each is below kMaxRanks.
  explicit RankList(std::span<const std::uint64_t> members) : size_(members.size()) {
    if (size_ > 0) first_ = static_cast<std::int64_t>(members[0]);
    if (size_ > 1) step_ = static_cast<std::int64_t>(members[1]) - first_;
    for (std::size_t place = 1; place < size_; ++place) {
      if (static_cast<std::int64_t>(members[place]) == regular(place)) continue;
      listed_.reserve(size_);
      for (const std::uint64_t member : members) listed_.push_back(static_cast<Rank>(member));
      return;
    }
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Rank operator[](std::size_t place) const {
    return listed_.empty() ? static_cast<Rank>(regular(place)) : listed_[place];
  }
  Rank front() const { return (*this)[0]; }
  bool is_regular() const { return listed_.empty(); }
  // REQUIRES: is_regular(). Of the rank; size(): it is no member.
  std::size_t regular_place_of(Rank rank) const {
    if (size_ == 0 || step_ == 0) return size_ > 0 && rank == first_ ? 0 : size_;
    const std::int64_t distance = rank - first_;
    const std::int64_t place = distance / step_;
    const bool is_member = distance % step_ == 0 && place >= 0 && static_cast<std::size_t>(place) < size_;
    return is_member ? static_cast<std::size_t>(place) : size_;
  }
  // Some rank that is a member twice; kAnyRank: none is.
  Rank double_member() const {
    if (listed_.empty()) return size_ > 1 && step_ == 0 ? front() : kAnyRank;
    std::vector<Rank> sorted = listed_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    return twice != sorted.end() ? *twice : kAnyRank;
  }
  bool equals(std::span<const std::uint64_t> members) const {
    if (members.size() != size_) return false;
    for (std::size_t place = 0; place < size_; ++place) {
      if (members[place] != static_cast<std::uint64_t>((*this)[place])) return false;
    }
    return true;
  }
  Bytes memory_bytes() const { return listed_.capacity() * sizeof(Rank); }

 private:
  std::int64_t regular(std::size_t place) const { return first_ + step_ * static_cast<std::int64_t>(place); }

  std::size_t size_ = 0;
  std::int64_t first_ = 0;
  std::int64_t step_ = 0;
  std::vector<Rank> listed_;  // empty: a regular group
};

}  // namespace lbf
