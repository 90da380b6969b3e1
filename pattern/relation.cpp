#include "pattern/relation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace lbf::pattern {
namespace {

// A shift along a line is tried for any distance; on grids for neighbours, and for the second next ones.
constexpr std::int32_t kFarthest = 2;

std::int32_t modulo(std::int32_t value, std::int32_t size) {
  const std::int32_t rest = value % size;
  return rest < 0 ? rest + size : rest;
}

std::int32_t shift_at(const Relation& relation, std::size_t dimension, std::uint32_t step) {
  const std::int32_t shift = relation.shift[dimension];
  if (step == 0 || shift == 0) return shift;
  return shift > 0 ? shift + static_cast<std::int32_t>(step) : shift - static_cast<std::int32_t>(step);
}

// Shifts that lead from one coordinate to another, the shortest first.
std::vector<std::int32_t> shifts_between(std::int32_t from, std::int32_t to, std::int32_t size, bool any_distance) {
  const std::int32_t plain = to - from;
  std::vector<std::int32_t> shifts;
  for (const std::int32_t shift : {plain, plain - size, plain + size}) {
    if (any_distance ? std::abs(shift) < size || shift == 0 : std::abs(shift) <= kFarthest) shifts.push_back(shift);
  }
  std::stable_sort(shifts.begin(), shifts.end(),
                   [](std::int32_t a, std::int32_t b) { return std::abs(a) < std::abs(b); });
  return shifts;
}

void add_shifts(const Grid& grid, GridRule rule, Rank me, Rank peer, std::vector<Relation>& all) {
  const bool is_line = rule == GridRule::kLine;
  const Coordinates from = grid.at(me);
  const Coordinates to = grid.at(peer);
  std::array<std::vector<std::int32_t>, kDimensions> shifts;
  for (std::size_t d = 0; d < kDimensions; ++d) shifts[d] = shifts_between(from[d], to[d], grid.size[d], is_line);
  for (const std::int32_t a : shifts[0]) {
    for (const std::int32_t b : shifts[1]) {
      for (const std::int32_t c : shifts[2]) {
        if (is_line && (b != 0 || c != 0)) continue;
        all.push_back({.kind = Relation::Kind::kShift, .rule = rule, .shift = {a, b, c}});
      }
    }
  }
}

void add_turned_bits(const Grid& grid, GridRule rule, Rank me, Rank peer, std::vector<Relation>& all) {
  const Coordinates from = grid.at(me);
  const Coordinates to = grid.at(peer);
  for (std::uint8_t d = 0; d < kDimensions; ++d) {
    const std::uint32_t bits = static_cast<std::uint32_t>(from[d] ^ to[d]);
    bool is_alone = std::has_single_bit(bits) && std::has_single_bit(static_cast<std::uint32_t>(grid.size[d]));
    for (std::uint8_t o = 0; o < kDimensions; ++o) is_alone = is_alone && (o == d || from[o] == to[o]);
    if (!is_alone) continue;
    const std::int32_t bit = std::countr_zero(bits);
    const std::int32_t highest = std::countr_zero(static_cast<std::uint32_t>(grid.size[d])) - 1;
    all.push_back({.kind = Relation::Kind::kXorHalf, .rule = rule, .dimension = d, .value = highest - bit});
    all.push_back({.kind = Relation::Kind::kXorBit, .rule = rule, .dimension = d, .value = bit});
  }
}

void add_swaps(const Grid& grid, GridRule rule, Rank me, Rank peer, std::vector<Relation>& all) {
  for (const auto& [a, b] : {std::pair<std::uint8_t, std::uint8_t>{0, 1}, {1, 2}, {0, 2}}) {
    if (grid.size[a] != grid.size[b]) continue;
    Coordinates swapped = grid.at(me);
    std::swap(swapped[a], swapped[b]);
    if (grid.rank_at(swapped) == peer)
      all.push_back({.kind = Relation::Kind::kSwap, .rule = rule, .dimension = a, .other = b});
  }
}

}  // namespace

bool Relation::has_steps() const {
  return kind == Relation::Kind::kXorHalf || kind == Relation::Kind::kXorBit || kind == Relation::Kind::kRank ||
         (kind == Relation::Kind::kShift && rule == GridRule::kLine && shift[0] != 0);
}

std::optional<Rank> peer_of(const Relation& relation, const Grids& grids, Rank ranks, Rank me, std::uint32_t step) {
  const std::int32_t value = relation.value + static_cast<std::int32_t>(step);
  if (relation.kind == Relation::Kind::kRank) return value < ranks ? std::optional(value) : std::nullopt;
  if (relation.kind == Relation::Kind::kRankFromEnd)
    return relation.value < ranks ? std::optional(ranks - 1 - relation.value) : std::nullopt;
  const Grid* grid = grids.find(relation.rule, ranks);
  if (grid == nullptr) return std::nullopt;
  Coordinates at = grid->at(me);
  const std::uint32_t size = static_cast<std::uint32_t>(grid->size[relation.dimension]);
  switch (relation.kind) {
    case Relation::Kind::kShift:
      for (std::size_t d = 0; d < kDimensions; ++d) at[d] = modulo(at[d] + shift_at(relation, d, step), grid->size[d]);
      break;
    case Relation::Kind::kXorHalf:
    case Relation::Kind::kXorBit: {
      if (!std::has_single_bit(size)) return std::nullopt;
      const std::int32_t bits = std::countr_zero(size);
      if (value >= bits) return std::nullopt;
      at[relation.dimension] ^= 1 << (relation.kind == Relation::Kind::kXorBit ? value : bits - 1 - value);
      break;
    }
    case Relation::Kind::kSwap:
      if (grid->size[relation.dimension] != grid->size[relation.other]) return std::nullopt;
      std::swap(at[relation.dimension], at[relation.other]);
      break;
    default:
      break;
  }
  return grid->rank_at(at);
}

bool stays_inside(const Relation& relation, const Grids& grids, Rank ranks, Rank me, std::uint32_t step) {
  const Grid* grid = grids.find(relation.rule, ranks);
  if (grid == nullptr) return false;
  const Coordinates at = grid->at(me);
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const std::int32_t there = at[d] + shift_at(relation, d, step);
    if (there < 0 || there >= grid->size[d]) return false;
  }
  return true;
}

std::uint32_t steps_of(const Relation& relation, const Grids& grids, Rank ranks) {
  switch (relation.kind) {
    case Relation::Kind::kRank:
      return static_cast<std::uint32_t>(std::max(0, ranks - relation.value));
    case Relation::Kind::kShift:
      return static_cast<std::uint32_t>(std::max(0, ranks - std::abs(relation.shift[0])));
    default:
      break;
  }
  const Grid* grid = grids.find(relation.rule, ranks);
  const std::uint32_t size = grid == nullptr ? 1 : static_cast<std::uint32_t>(grid->size[relation.dimension]);
  if (!std::has_single_bit(size)) return 0;
  const std::int32_t steps = std::countr_zero(size) - relation.value;
  return static_cast<std::uint32_t>(std::max(0, steps));
}

std::vector<Relation> relations_between(const Grids& grids, Rank ranks, Rank me, Rank peer) {
  std::vector<Relation> all;
  for (std::size_t number = 0; number < kGridRules; ++number) {
    const GridRule rule = static_cast<GridRule>(number);
    const Grid* grid = grids.find(rule, ranks);
    if (grid == nullptr) continue;
    add_shifts(*grid, rule, me, peer, all);
    add_turned_bits(*grid, rule, me, peer, all);
    add_swaps(*grid, rule, me, peer, all);
    if (rule != GridRule::kLine) continue;
    all.push_back({.kind = Relation::Kind::kRank, .value = peer});
    all.push_back({.kind = Relation::Kind::kRankFromEnd, .value = ranks - 1 - peer});
  }
  return all;
}

std::string in_words(const Relation& relation, const Grids& grids, Rank ranks) {
  if (relation.kind == Relation::Kind::kRank) return fmt::format("rank {}", relation.value);
  if (relation.kind == Relation::Kind::kRankFromEnd) return fmt::format("rank {}", ranks - 1 - relation.value);
  const Grid* const grid = grids.find(relation.rule, ranks);
  const Coordinates size = grid != nullptr ? grid->size : Coordinates{};
  const std::size_t used = size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1;
  const std::string on =
      fmt::format("{}", fmt::join(size.begin(), size.begin() + static_cast<std::ptrdiff_t>(used), " x "));
  switch (relation.kind) {
    case Relation::Kind::kShift: {
      std::string at;
      for (std::size_t d = 0; d < used; ++d) at += fmt::format("{}{:+d}", d == 0 ? "" : ",", relation.shift[d]);
      return fmt::format("the rank at {} on {}", at, on);
    }
    case Relation::Kind::kSwap:
      return fmt::format("the transposed rank on {}", on);
    default:
      return fmt::format("a butterfly's in dimension {} of {}", relation.dimension + 1, on);
  }
}

}  // namespace lbf::pattern
