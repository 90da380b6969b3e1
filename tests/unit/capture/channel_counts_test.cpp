#include "spank_plugin/capture/channel_counts.h"

#include <gtest/gtest.h>

#include <compare>
#include <map>
#include <random>
#include <tuple>

namespace lbf::capture {
namespace {

using Key = std::tuple<std::uint32_t, std::int32_t, std::int32_t, bool>;

std::map<Key, std::int64_t> taken(ChannelCounts& counts) {
  std::map<Key, std::int64_t> result;
  counts.take_changes([&](const ChannelEnd& end, std::int64_t count) {
    EXPECT_TRUE(result.emplace(Key{end.comm, end.peer, end.tag, end.receives}, count).second);
  });
  return result;
}

TEST(ChannelCounts, CountsEachChannelByItself) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count({0, 1, 7, false});
  counts.count({0, 1, 7, false});
  counts.count({0, 1, 7, true});
  counts.count({0, 2, 7, false});
  counts.count({3, 1, 7, false});
  counts.count({0, 1, 8, false});
  EXPECT_EQ(taken(counts), (std::map<Key, std::int64_t>{{{0, 1, 7, false}, 2},
                                                        {{0, 1, 7, true}, 1},
                                                        {{0, 2, 7, false}, 1},
                                                        {{3, 1, 7, false}, 1},
                                                        {{0, 1, 8, false}, 1}}));
}

TEST(ChannelCounts, BeginsAnewWhenTaken) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count({0, 1, 7, false});
  counts.count({0, 2, 7, false});
  EXPECT_EQ(taken(counts).size(), 2u);
  EXPECT_TRUE(taken(counts).empty());
  counts.count({0, 2, 7, false});
  EXPECT_EQ(taken(counts), (std::map<Key, std::int64_t>{{{0, 2, 7, false}, 1}}));
}

TEST(ChannelCounts, ACancelledReceiveDoesNotCount) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count({0, 1, 7, true});
  counts.count({0, 1, 7, true}, -1);
  counts.count({0, 1, 7, true});
  counts.count({0, 1, 7, true}, -1);
  counts.count({0, 5, 7, true}, -1);  // posted while recording
  EXPECT_EQ(taken(counts), (std::map<Key, std::int64_t>{{{0, 5, 7, true}, -1}}));
}

TEST(ChannelCounts, ExtremeTagsAndPeers) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count({0xffffffffu, 0x7fffffff, 0x7fffffff, true});
  counts.count({0, 0, 0, false});
  counts.count({0, -1, -2, false});
  EXPECT_EQ(taken(counts), (std::map<Key, std::int64_t>{{{0xffffffffu, 0x7fffffff, 0x7fffffff, true}, 1},
                                                        {{0, 0, 0, false}, 1},
                                                        {{0, -1, -2, false}, 1}}));
}

TEST(ChannelCounts, SaysWhenItHadNoRoom) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(4));
  for (std::int32_t peer = 0; peer < 14; ++peer) counts.count({0, peer, 0, false});
  EXPECT_TRUE(counts.complete());
  counts.count({0, 14, 0, false});
  EXPECT_FALSE(counts.complete());
  EXPECT_EQ(taken(counts).size(), 14u);
  counts.count({0, 3, 0, false});  // those that are there go on
  EXPECT_EQ(taken(counts).size(), 1u);
}

TEST(ChannelCounts, AgreesWithAMap) {
  std::mt19937 random(7);
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(12));
  std::map<Key, std::int64_t> expected;
  for (int i = 0; i < 200'000; ++i) {
    const ChannelEnd end{static_cast<std::uint32_t>(random() % 4), static_cast<std::int32_t>(random() % 50),
                         static_cast<std::int32_t>(random() % 8), random() % 2 == 0};
    counts.count(end);
    ++expected[Key{end.comm, end.peer, end.tag, end.receives}];
    if (random() % 10'000 == 0) {
      EXPECT_EQ(counts.changed(), expected.size());
      EXPECT_EQ(taken(counts), expected);
      expected.clear();
    }
  }
  EXPECT_TRUE(counts.complete());
  EXPECT_EQ(taken(counts), expected);
}

}  // namespace
}  // namespace lbf::capture
