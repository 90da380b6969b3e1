// Sizes as functions of the rank count and of a rank's place.
#include "pattern/formula.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

namespace lbf::pattern {
namespace {

using Truth = std::function<std::uint64_t(const Grid&, const Coordinates&)>;

// Learnt from 4, 8 and 16 ranks, asked for 32 and 64; how many places are wrong.
int wrong_places(GridRule rule, const Truth& truth, GridRule tried_first, std::array<bool, kDimensions> likely = {}) {
  Grids grids;
  std::vector<FormulaSample> samples;
  for (const Rank ranks : {4, 8, 16, 32, 64}) {
    grids.add(ranks);
    const Grid& grid = *grids.find(rule, ranks);
    for (Rank me = 0; me < ranks && ranks <= 16; ++me) samples.push_back({ranks, me, truth(grid, grid.at(me)), 0});
  }
  const Formula formula = Formula::fit(samples, grids, {tried_first, likely});
  EXPECT_TRUE(formula.is_exact());
  int wrong = 0;
  for (const Rank ranks : {32, 64}) {
    const Grid& grid = *grids.find(rule, ranks);
    for (Rank me = 0; me < ranks; ++me) wrong += formula.at(grids, ranks, me) != truth(grid, grid.at(me));
  }
  return wrong;
}

TEST(Formulas, OfGrids) {
  const auto constant = [](const Grid&, const Coordinates&) { return std::uint64_t{8}; };
  EXPECT_EQ(wrong_places(GridRule::kLine, constant, GridRule::kLine), 0);
  const auto share = [](const Grid& grid, const Coordinates&) {
    return std::uint64_t{1 << 20} / static_cast<unsigned>(grid.size[0]);
  };
  EXPECT_EQ(wrong_places(GridRule::kLine, share, GridRule::kLine), 0);
  EXPECT_EQ(wrong_places(GridRule::kPlane, share, GridRule::kPlane), 0);
  const auto face = [](const Grid& grid, const Coordinates&) {
    return std::uint64_t{8} * static_cast<unsigned>(96 / grid.size[1]) * static_cast<unsigned>(96 / grid.size[2]);
  };
  // Two of three dimensions have two ranks each in all runs: only the likely ones can be told.
  EXPECT_EQ(wrong_places(GridRule::kSpace, face, GridRule::kSpace, {false, true, true}), 0);
}

TEST(Formulas, OfBlocksThatAreNotEven) {
  const auto edge = [](const Grid& grid, const Coordinates& at) {
    return std::uint64_t{40} * static_cast<unsigned>(block_of(33, grid.size[1], at[1], false));
  };
  EXPECT_EQ(wrong_places(GridRule::kPlane, edge, GridRule::kPlane), 0);
  const auto balanced = [](const Grid& grid, const Coordinates& at) {
    return std::uint64_t{8} * static_cast<unsigned>(block_of(101, grid.size[0], at[0], true));
  };
  EXPECT_EQ(wrong_places(GridRule::kLine, balanced, GridRule::kLine), 0);
}

TEST(Formulas, OfBlocksWithoutTheBorder) {
  const auto edge = [](const Grid& grid, const Coordinates& at) {
    const int ends = (at[1] == 0 ? 1 : 0) + (at[1] == grid.size[1] - 1 ? 1 : 0);
    return std::uint64_t{40} * static_cast<unsigned>(64 / grid.size[1] - ends);
  };
  EXPECT_EQ(wrong_places(GridRule::kPlane, edge, GridRule::kPlane), 0);
}

TEST(Formulas, OfFacesWithAHalo) {
  const auto face = [](const Grid& grid, const Coordinates&) {
    return std::uint64_t{8} * static_cast<unsigned>(64 / grid.size[0] + 2) *
           static_cast<unsigned>(64 / grid.size[1] + 2);
  };
  EXPECT_EQ(wrong_places(GridRule::kSpace, face, GridRule::kSpace, {true, true, false}), 0);
}

TEST(Formulas, AreFoundOnAnotherGridThanTheFirst) {
  const auto edge = [](const Grid& grid, const Coordinates&) {
    return std::uint64_t{9600} / static_cast<unsigned>(grid.size[1]);
  };
  EXPECT_EQ(wrong_places(GridRule::kPlaneTurned, edge, GridRule::kLine), 0);
}

TEST(Formulas, OfALoopThatGoesOnFromStepToStep) {
  Grids grids;
  std::vector<FormulaSample> samples;
  for (const Rank ranks : {4, 8, 16, 64}) {
    grids.add(ranks);
    const unsigned steps = static_cast<unsigned>(std::log2(ranks));
    for (std::uint32_t step = 0; step < steps && ranks < 64; ++step)
      samples.push_back({ranks, 0, std::uint64_t{100} << step, step});
  }
  const Formula formula = Formula::fit(samples, grids, {});
  EXPECT_TRUE(formula.is_exact());
  EXPECT_EQ(formula.at(grids, 64, 3, 5), 3200U);
}

TEST(Formulas, WithoutARuleAreAPowerLawOfTheMeans) {
  Grids grids;
  std::vector<FormulaSample> samples;
  for (const Rank ranks : {2, 4, 8}) {
    grids.add(ranks);
    for (Rank me = 0; me < ranks; ++me)
      samples.push_back({ranks, me, static_cast<std::uint64_t>(80000 / ranks + me * me * 7 % 11), 0});
  }
  grids.add(16);
  const Formula formula = Formula::fit(samples, grids, {});
  EXPECT_FALSE(formula.is_exact());
  EXPECT_NEAR(static_cast<double>(formula.at(grids, 16, 0)), 5000, 50);
}

}  // namespace
}  // namespace lbf::pattern
