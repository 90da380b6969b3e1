#include "pattern/grid.h"

namespace lbf::pattern {
namespace {

struct Factors {
  Rank a = 1;
  Rank b = 1;
  Rank c = 1;
};

// a >= b, as close as can be.
Factors two_factors(Rank ranks) {
  Factors best{ranks, 1, 1};
  for (Rank b = 1; b <= ranks / b; ++b) {
    if (ranks % b == 0) best = {ranks / b, b, 1};
  }
  return best;
}

// a >= b >= c of the smallest sum.
Factors three_factors(Rank ranks) {
  Factors best{ranks, 1, 1};
  for (Rank c = 1; c <= ranks / c / c; ++c) {
    if (ranks % c != 0) continue;
    Factors two = two_factors(ranks / c);
    if (two.b < c) continue;
    if (two.a + two.b + c <= best.a + best.b + best.c) best = {two.a, two.b, c};
  }
  return best;
}

// The side of the squares; 0: there is none.
Rank side_of_squares(Rank ranks) {
  for (Rank side = 1; side <= ranks / side; ++side) {
    if (side * side == ranks || 2 * side * side == ranks) return side;
  }
  return 0;
}

}  // namespace

std::optional<Grid> grid_of(GridRule rule, Rank ranks) {
  switch (rule) {
    case GridRule::kLine:
      return Grid{{ranks, 1, 1}};
    case GridRule::kPlane:
    case GridRule::kPlaneTurned: {
      const auto [a, b, c] = two_factors(ranks);
      return rule == GridRule::kPlane ? Grid{{a, b, c}} : Grid{{b, a, c}};
    }
    case GridRule::kSquares:
    case GridRule::kSquaresInner: {
      const Rank side = side_of_squares(ranks);
      if (side == 0) return std::nullopt;
      const Rank rest = ranks / side / side;
      return rule == GridRule::kSquares ? Grid{{side, side, rest}} : Grid{{rest, side, side}};
    }
    default:
      break;
  }
  const auto [a, b, c] = three_factors(ranks);
  switch (rule) {
    case GridRule::kSpaceAcb:
      return Grid{{a, c, b}};
    case GridRule::kSpaceBac:
      return Grid{{b, a, c}};
    case GridRule::kSpaceBca:
      return Grid{{b, c, a}};
    case GridRule::kSpaceCab:
      return Grid{{c, a, b}};
    case GridRule::kSpaceCba:
      return Grid{{c, b, a}};
    default:
      return Grid{{a, b, c}};
  }
}

Rank likened(const Grid& from, const Grid& to, Rank me) {
  Coordinates at = from.at(me);
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const bool has_inner = to.size[d] > 2;
    const std::int32_t margin = has_inner ? 1 : 0;
    if (at[d] == 0 || from.size[d] == 1) {
      at[d] = 0;
    } else if (at[d] == from.size[d] - 1) {
      at[d] = to.size[d] - 1;
    } else {
      const std::int64_t inner = std::int64_t{at[d] - margin} * (to.size[d] - 2 * margin);
      at[d] = margin + static_cast<std::int32_t>(inner / (from.size[d] - 2 * margin));
    }
  }
  return to.rank_at(at);
}

void Grids::add(Rank ranks) {
  auto& grids = by_ranks_[ranks];
  for (std::size_t rule = 0; rule < kGridRules; ++rule) grids[rule] = grid_of(static_cast<GridRule>(rule), ranks);
}

}  // namespace lbf::pattern
