#include "predictor/engine/match/flat_map.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace lbf::flat_map_test {
namespace {

TEST(FlatMap, DoesWhatAMapDoes) {
  engine::FlatMap map;
  std::unordered_map<std::uint32_t, std::uint32_t> expected;
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t key = random() % 300;
    const auto known = expected.find(key);
    const std::uint32_t* found = map.find(key);
    ASSERT_EQ(found != nullptr, known != expected.end());
    if (found != nullptr) {
      ASSERT_EQ(*found, known->second);
      map.erase(key);
      expected.erase(known);
    } else {
      map.insert(key, static_cast<std::uint32_t>(i));
      expected[key] = static_cast<std::uint32_t>(i);
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  std::size_t visited = 0;
  map.for_each([&](std::uint32_t key, std::uint32_t value) {
    ++visited;
    EXPECT_EQ(expected.at(key), value);
  });
  EXPECT_EQ(visited, expected.size());
}

TEST(FlatMap, ExtremeKeys) {
  engine::FlatMap map;
  map.insert(0, 1);
  map.insert(~std::uint32_t{0}, 2);
  EXPECT_EQ(*map.find(0), 1u);
  EXPECT_EQ(*map.find(~std::uint32_t{0}), 2u);
  map.erase(0);
  EXPECT_EQ(map.find(0), nullptr);
  EXPECT_EQ(*map.find(~std::uint32_t{0}), 2u);
}

}  // namespace
}  // namespace lbf::flat_map_test