// Distributions on nodes that differ.
#include "advisor/candidate/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/engine/replay/target.h"

namespace lbf::advisor::layout_test {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> laid_out(std::string_view placement, Rank ranks, std::vector<std::uint32_t> cores) {
  const auto placed = lay_out(placement, ranks, cores);
  EXPECT_TRUE(placed.ok()) << (placed.ok() ? "" : placed.error().message);
  return placed.ok() ? *placed : std::vector<std::uint32_t>{};
}

TEST(LayOut, UnequalNodesAreFilledAsSlurmFillsThem) {
  // Dealt: n0, n1, n0, n0, n0 -> four on the first node, one on the second.
  EXPECT_THAT(laid_out("block", 5, {4, 1}), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(laid_out("cyclic", 5, {4, 1}), ElementsAre(0, 1, 0, 0, 0));
  // All processors have a rank: from there on round robin among all.
  EXPECT_THAT(laid_out("cyclic", 7, {4, 1}), ElementsAre(0, 1, 0, 0, 0, 0, 1));
  EXPECT_THAT(laid_out("plane=2", 5, {4, 1}), ElementsAre(0, 0, 1, 1, 0));
}

TEST(LayOut, OnNodesThatAreAlikeItIsPlaceRanks) {
  for (const char* const placement : {"block", "cyclic", "plane=3"}) {
    for (Rank ranks = 1; ranks <= 20; ++ranks) {
      for (std::uint32_t nodes = 1; nodes <= static_cast<std::uint32_t>(ranks); ++nodes) {
        for (const std::uint32_t cores : {1U, 3U, 64U}) {
          EXPECT_EQ(laid_out(placement, ranks, std::vector<std::uint32_t>(nodes, cores)),
                    *engine::place_ranks(placement, ranks, nodes))
              << placement << ' ' << ranks << ' ' << nodes << ' ' << cores;
        }
      }
    }
  }
}

TEST(LayOut, Refuses) {
  const std::vector<std::uint32_t> two{1, 1};
  EXPECT_FALSE(lay_out("blok", 4, two).ok());
  EXPECT_FALSE(lay_out("map=0,1", 2, two).ok());
  EXPECT_FALSE(lay_out("block", 1, two).ok());
  EXPECT_FALSE(lay_out("block", 1, {}).ok());
}

TEST(MostBeyond, CountsTheFullestNode) {
  const std::vector<std::uint32_t> cores{2, 1};
  EXPECT_EQ(most_beyond(std::vector<std::uint32_t>{0, 0, 1}, cores), 0U);
  EXPECT_EQ(most_beyond(std::vector<std::uint32_t>{0, 0, 0, 1}, cores), 1U);
  EXPECT_EQ(most_beyond(std::vector<std::uint32_t>{0, 1, 1, 1}, cores), 2U);
}

}  // namespace
}  // namespace lbf::advisor::layout_test