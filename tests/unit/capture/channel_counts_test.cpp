#include "spank_plugin/capture/channel_counts.h"

#include <gtest/gtest.h>

#include <compare>
#include <map>
#include <random>
#include <tuple>

namespace lbf::capture {
namespace {

using Key = std::tuple<std::uint32_t, std::int32_t, std::int32_t, bool>;

ChannelEnd end_of(std::uint32_t comm, std::int32_t peer, std::int32_t tag, bool receives) {
  return {comm, peer, tag, receives ? SkippedSide::kReceives : SkippedSide::kSends};
}


std::map<Key, std::uint64_t> taken(ChannelCounts& counts) {
  std::map<Key, std::uint64_t> result;
  EXPECT_TRUE(counts.take_changes([&](const ChannelEnd& end, std::uint64_t count) {
    return result.emplace(Key{end.comm, end.peer, end.tag, end.side == SkippedSide::kReceives}, count).second;
  }));
  EXPECT_TRUE(counts.empty());
  return result;
}

TEST(ChannelCounts, CountsEachChannelByItself) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count(end_of(0, 1, 7, false));
  counts.count(end_of(0, 1, 7, false));
  counts.count(end_of(0, 1, 7, true));
  counts.count(end_of(0, 2, 7, false));
  counts.count(end_of(3, 1, 7, false));
  counts.count(end_of(0, 1, 8, false));
  EXPECT_EQ(taken(counts), (std::map<Key, std::uint64_t>{{{0, 1, 7, false}, 2},
                                                        {{0, 1, 7, true}, 1},
                                                        {{0, 2, 7, false}, 1},
                                                        {{3, 1, 7, false}, 1},
                                                        {{0, 1, 8, false}, 1}}));
}

TEST(ChannelCounts, BeginsAnewWhenTaken) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count(end_of(0, 1, 7, false));
  counts.count(end_of(0, 2, 7, false));
  EXPECT_EQ(taken(counts).size(), 2u);
  EXPECT_TRUE(taken(counts).empty());
  counts.count(end_of(0, 2, 7, false));
  EXPECT_EQ(taken(counts), (std::map<Key, std::uint64_t>{{{0, 2, 7, false}, 1}}));
}

TEST(ChannelCounts, SidesAreApart) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  for (const SkippedSide side : {SkippedSide::kSends, SkippedSide::kReceives, SkippedSide::kCollectives})
    counts.count({5, -1, -1, side}, 1 + static_cast<std::uint64_t>(side));
  std::map<SkippedSide, std::uint64_t> found;
  counts.take_changes([&](const ChannelEnd& end, std::uint64_t count) {
    EXPECT_EQ(end.comm, 5u);
    EXPECT_EQ(end.peer, -1);
    EXPECT_EQ(end.tag, -1);
    found[end.side] = count;
    return true;
  });
  EXPECT_EQ(found, (std::map<SkippedSide, std::uint64_t>{
                       {SkippedSide::kSends, 1}, {SkippedSide::kReceives, 2}, {SkippedSide::kCollectives, 3}}));
}

TEST(ChannelCounts, WhatIsNotTakenStays) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  for (std::int32_t peer = 0; peer < 10; ++peer) counts.count({0, peer, 0}, 3);
  std::uint64_t sum = 0;
  int left = 4;
  EXPECT_FALSE(counts.take_changes([&](const ChannelEnd&, std::uint64_t count) {
    if (left-- == 0) return false;
    sum += count;
    return true;
  }));
  counts.count({0, 5, 0});
  for (const auto& [key, count] : taken(counts)) sum += count;
  EXPECT_EQ(sum, 31u);
}

TEST(ChannelCounts, ATableThatWasFullGoesOnWithOtherChannels) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(6));
  std::uint64_t sum = 0;
  for (std::int32_t tag = 0; tag < 10'000; ++tag) {
    if (counts.count({0, 1, tag})) continue;
    for (const auto& [key, count] : taken(counts)) sum += count;
    ASSERT_TRUE(counts.count({0, 1, tag}));
  }
  for (const auto& [key, count] : taken(counts)) sum += count;
  EXPECT_EQ(sum, 10'000u);
}

TEST(ChannelCounts, ExtremeTagsAndPeers) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count(end_of(0xffffffffu, 0x7fffffff, 0x7fffffff, true));
  counts.count(end_of(0, 0, 0, false));
  counts.count(end_of(0, -1, -2, false));
  EXPECT_EQ(taken(counts), (std::map<Key, std::uint64_t>{{{0xffffffffu, 0x7fffffff, 0x7fffffff, true}, 1},
                                                        {{0, 0, 0, false}, 1},
                                                        {{0, -1, -2, false}, 1}}));
}

TEST(ChannelCounts, SaysWhenItHasNoRoom) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(4));
  for (std::int32_t peer = 0; peer < 14; ++peer) EXPECT_TRUE(counts.count({0, peer, 0}));
  EXPECT_FALSE(counts.count({0, 14, 0}));
  EXPECT_TRUE(counts.count({0, 3, 0}));  // those that are there go on
  EXPECT_EQ(taken(counts).size(), 14u);
}

TEST(ChannelCounts, AgreesWithAMap) {
  std::mt19937 random(7);
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(12));
  std::map<Key, std::uint64_t> expected;
  for (int i = 0; i < 200'000; ++i) {
    const Key key{static_cast<std::uint32_t>(random() % 4), static_cast<std::int32_t>(random() % 50),
                  static_cast<std::int32_t>(random() % 8), random() % 2 == 0};
    ASSERT_TRUE(counts.count(std::apply(end_of, key)));
    ++expected[key];
    if (random() % 10'000 == 0) {
      EXPECT_EQ(taken(counts), expected);
      expected.clear();
    }
  }
  EXPECT_EQ(taken(counts), expected);
}

}  // namespace
}  // namespace lbf::capture
