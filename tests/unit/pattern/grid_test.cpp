// Process grids and relations between ranks.
#include "pattern/grid.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pattern/relation.h"

namespace lbf::pattern {
namespace {

TEST(GridRules, FactorsAreAsCloseToEachOtherAsCanBe) {
  EXPECT_EQ(*grid_of(GridRule::kPlane, 8), (Grid{{4, 2, 1}}));
  EXPECT_EQ(*grid_of(GridRule::kPlaneTurned, 8), (Grid{{2, 4, 1}}));
  EXPECT_EQ(*grid_of(GridRule::kPlane, 12), (Grid{{4, 3, 1}}));
  EXPECT_EQ(*grid_of(GridRule::kPlane, 7), (Grid{{7, 1, 1}}));
  EXPECT_EQ(*grid_of(GridRule::kSpace, 12), (Grid{{3, 2, 2}}));
  EXPECT_EQ(*grid_of(GridRule::kSpace, 32), (Grid{{4, 4, 2}}));
  EXPECT_EQ(*grid_of(GridRule::kSpaceCab, 32), (Grid{{2, 4, 4}}));
  EXPECT_EQ(*grid_of(GridRule::kSpace, 5), (Grid{{5, 1, 1}}));
}

TEST(GridRules, ATranspositionNeedsSquares) {
  EXPECT_EQ(*grid_of(GridRule::kSquares, 16), (Grid{{4, 4, 1}}));
  EXPECT_EQ(*grid_of(GridRule::kSquares, 32), (Grid{{4, 4, 2}}));
  EXPECT_EQ(*grid_of(GridRule::kSquaresInner, 32), (Grid{{2, 4, 4}}));
  EXPECT_EQ(*grid_of(GridRule::kSquares, 18), (Grid{{3, 3, 2}}));
  EXPECT_FALSE(grid_of(GridRule::kSquares, 12).has_value());
}

TEST(Grids, ARankHasItsPlaceAndBack) {
  const Grid grid{{2, 3, 4}};
  for (Rank rank = 0; rank < 24; ++rank) EXPECT_EQ(grid.rank_at(grid.at(rank)), rank);
  EXPECT_EQ(grid.at(23), (Coordinates{1, 2, 3}));
}

// Each relation that is found leads from the one rank to the other.
TEST(Relations, AllThatAreFoundLeadThere) {
  for (const Rank ranks : {4, 6, 8, 16}) {
    Grids grids;
    grids.add(ranks);
    for (Rank me = 0; me < ranks; ++me) {
      for (Rank peer = 0; peer < ranks; ++peer) {
        const auto all = relations_between(grids, ranks, me, peer);
        ASSERT_FALSE(all.empty());
        for (const Relation& relation : all)
          EXPECT_EQ(peer_of(relation, grids, ranks, me), peer)
              << ranks << ": " << me << in_words(relation, grids, ranks);
      }
    }
  }
}

TEST(Relations, AButterflyHasAStepForEachBit) {
  Grids grids;
  grids.add(16);
  const Relation from_outside{.kind = Relation::Kind::kXorHalf, .rule = GridRule::kLine};
  const Relation from_inside{.kind = Relation::Kind::kXorBit, .rule = GridRule::kLine};
  EXPECT_EQ(steps_of(from_outside, grids, 16), 4U);
  for (std::uint32_t step = 0; step < 4; ++step) {
    EXPECT_EQ(peer_of(from_outside, grids, 16, 5, step), 5 ^ (8 >> step));
    EXPECT_EQ(peer_of(from_inside, grids, 16, 5, step), 5 ^ (1 << step));
  }
  EXPECT_FALSE(peer_of(from_inside, grids, 16, 5, 4).has_value());
}

TEST(Relations, AShiftGoesAroundTheEndsUnlessItStaysInside) {
  Grids grids;
  grids.add(4);
  const Relation next{.kind = Relation::Kind::kShift, .rule = GridRule::kLine, .shift = {1, 0, 0}};
  EXPECT_EQ(peer_of(next, grids, 4, 3), 0);
  EXPECT_FALSE(stays_inside(next, grids, 4, 3));
  EXPECT_TRUE(stays_inside(next, grids, 4, 2));
}

}  // namespace
}  // namespace lbf::pattern
