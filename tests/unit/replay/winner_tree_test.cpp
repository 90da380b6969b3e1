#include "predictor/engine/replay/winner_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lbf::winner_tree_test {
namespace {

// Of the sources with the earliest time the smallest.
engine::WinnerTree::Source first_of(const std::vector<Seconds>& times) {
  return static_cast<engine::WinnerTree::Source>(std::min_element(times.begin(), times.end()) - times.begin());
}

TEST(WinnerTree, GivesTheEarliestAndOfEqualOnesTheSmallestSource) {
  std::mt19937 random(3);
  for (const std::size_t sources : {1U, 2U, 5U, 64U, 100U}) {
    engine::WinnerTree tree(sources);
    EXPECT_EQ(tree.top().time_s, kNeverS);
    std::vector<Seconds> times(sources, kNeverS);
    for (int i = 0; i < 20000; ++i) {
      // As in a replay the winner moves most often; few times, so that many are equal.
      const auto source = i % 3 != 0 ? tree.top().source : static_cast<engine::WinnerTree::Source>(random() % sources);
      times[source] = i % 11 == 0 ? kNeverS : static_cast<Seconds>(random() % 8);
      tree.set(source, times[source]);
      const engine::WinnerTree::Source first = first_of(times);
      ASSERT_EQ(tree.top().time_s, times[first]);
      ASSERT_EQ(tree.top().source, first);
    }
  }
}

}  // namespace
}  // namespace lbf::winner_tree_test