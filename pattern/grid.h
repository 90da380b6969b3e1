// Process grids, and the rules by which programs choose one for a number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "base/units.h"

namespace lbf::pattern {

inline constexpr std::size_t kDimensions = 3;
using Coordinates = std::array<std::int32_t, kDimensions>;

// Row-major: the last coordinate varies fastest, as MPI_Cart_create has it. Unused dimensions have size 1.
struct Grid {
  Coordinates size{1, 1, 1};

  Coordinates at(Rank rank) const { return {rank / (size[1] * size[2]), rank / size[2] % size[1], rank % size[2]}; }
  Rank rank_at(const Coordinates& at) const { return (at[0] * size[1] + at[1]) * size[2] + at[2]; }
  friend bool operator==(const Grid&, const Grid&) = default;
};

// In the order in which they are preferred.
enum class GridRule : std::uint8_t {
  kLine,
  kPlane,        // the two factors closest to each other, the larger one first, as MPI_Dims_create has them
  kPlaneTurned,  // the smaller one first
  kSpace,        // three factors a >= b >= c, as close to each other as can be
  kSpaceAcb,
  kSpaceBac,
  kSpaceBca,
  kSpaceCab,
  kSpaceCba,
  kSquares,       // a x a x b, b 1 or 2: what a transposition needs
  kSquaresInner,  // b x a x a
};
inline constexpr std::size_t kGridRules = 11;
// Nothing: the rule has no grid for so many ranks. REQUIRES: RANKS > 0.
std::optional<Grid> grid_of(GridRule rule, Rank ranks);

// The rank of TO at the same place as ME of FROM: corners are at corners, edges at edges.
Rank likened(const Grid& from, const Grid& to, Rank me);

// Of the rank counts that were added.
class Grids {
 public:
  void add(Rank ranks);
  // nullptr: the rule has none. REQUIRES: RANKS was added.
  const Grid* find(GridRule rule, Rank ranks) const {
    const std::optional<Grid>& grid = by_ranks_.find(ranks)->second[static_cast<std::size_t>(rule)];
    return grid ? &*grid : nullptr;
  }

 private:
  std::map<Rank, std::array<std::optional<Grid>, kGridRules>> by_ranks_;
};

}  // namespace lbf::pattern
