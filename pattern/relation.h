// Relation: which rank a rank sends to or receives from, as a rule that holds at any number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "pattern/grid.h"

namespace lbf::pattern {

struct Relation {
  enum class Kind : std::uint8_t {
    kShift,        // coordinate + shift, around the ends
    kRank,         // the rank `value`
    kRankFromEnd,  // the rank `value` from the last one
    kXorHalf,      // the coordinate with its bit of size >> (value + 1) turned: butterflies from the outside
    kXorBit,       // ... with its bit 1 << value turned: from the inside
    kSwap,         // coordinates of two dimensions exchanged
  };
  Kind kind = Kind::kShift;
  GridRule rule = GridRule::kLine;
  std::uint8_t dimension = 0;  // kXorHalf, kXorBit; kSwap: the first of the two
  std::uint8_t other = 0;      // kSwap
  std::array<std::int32_t, kDimensions> shift{};
  std::int32_t value = 0;

  friend bool operator==(const Relation&, const Relation&) = default;
  // Whether it goes on from step to step of a loop: kXorHalf, kXorBit, kRank, and kShift on a line.
  bool has_steps() const;
};

// The other rank for ME at a step of the loop that the relation goes on in (0: there is none). Nothing: there is no
// such rank. REQUIRES: RANKS was added to GRIDS.
std::optional<Rank> peer_of(const Relation& relation, const Grids& grids, Rank ranks, Rank me, std::uint32_t step = 0);
// Whether a shift stays inside of the grid, without going around its ends. REQUIRES: a shift.
bool stays_inside(const Relation& relation, const Grids& grids, Rank ranks, Rank me, std::uint32_t step = 0);

// How many steps a relation has at a rank count. REQUIRES: has_steps(), RANKS was added to GRIDS.
std::uint32_t steps_of(const Relation& relation, const Grids& grids, Rank ranks);

// All relations by which ME meets PEER, preferred ones first.
std::vector<Relation> relations_between(const Grids& grids, Rank ranks, Rank me, Rank peer);

// "the rank at +0,+1 on 4 x 8": as it is with so many ranks, for messages. REQUIRES: RANKS was added to GRIDS.
std::string in_words(const Relation& relation, const Grids& grids, Rank ranks);

}  // namespace lbf::pattern
