#include "spank_plugin/capture/channel_counts.h"

#include <gtest/gtest.h>

#include <compare>
#include <map>
#include <random>
#include <tuple>

namespace lbf::capture::channel_counts_test {
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

using Counts = std::map<Key, std::uint64_t>;

Counts taken_of(ChannelCounts& counts, std::uint32_t comm) {
  Counts result;
  EXPECT_TRUE(counts.take_changes_of(comm, [&](const ChannelEnd& end, std::uint64_t count) {
    return result.emplace(Key{end.comm, end.peer, end.tag, end.side == SkippedSide::kReceives}, count).second;
  }));
  return result;
}

// Each communicator that was freed brought the counts of all others into the ring.
TEST(ChannelCounts, ThoseOfACommunicatorAreTakenAlone) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  for (const std::uint32_t comm : {0U, 5U, 0U, 7U, 5U}) counts.count(end_of(comm, 1, 3, false));
  counts.count(end_of(5, 2, 3, true));
  EXPECT_EQ(taken_of(counts, 5), (Counts{{{5, 1, 3, false}, 2}, {{5, 2, 3, true}, 1}}));
  EXPECT_TRUE(taken_of(counts, 5).empty());
  counts.count(end_of(5, 1, 3, false));
  EXPECT_EQ(taken(counts), (Counts{{{0, 1, 3, false}, 2}, {{5, 1, 3, false}, 1}, {{7, 1, 3, false}, 1}}));
}

TEST(ChannelCounts, WhatOfACommunicatorIsNotTakenStays) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  for (std::int32_t peer = 0; peer < 4; ++peer) counts.count(end_of(5, peer, 3, false));
  int left = 3;
  EXPECT_FALSE(counts.take_changes_of(5, [&](const ChannelEnd&, std::uint64_t) { return left-- > 0; }));
  EXPECT_EQ(taken_of(counts, 5).size(), 1u);
}

TEST(ChannelCounts, WhereManyChannelsWereCountedAllAreTaken) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(10));
  for (std::int32_t peer = 0; peer < 200; ++peer) counts.count(end_of(0, peer, 3, false));
  counts.count(end_of(5, 1, 3, false));
  EXPECT_EQ(taken_of(counts, 5).size(), 201u);
  EXPECT_TRUE(counts.empty());
}

TEST(ChannelCounts, CommunicatorsThatComeAndGoNeverFillTheTable) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(6));
  std::uint64_t sum = 0;
  for (std::uint32_t comm = 1; comm <= 10'000; ++comm) {
    ASSERT_TRUE(counts.count(end_of(0, 1, 3, false)));
    ASSERT_TRUE(counts.count(end_of(comm, 1, 3, false)));
    for (const auto& [key, count] : taken_of(counts, comm)) sum += count;
  }
  for (const auto& [key, count] : taken(counts)) sum += count;
  EXPECT_EQ(sum, 20'000u);
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
  EXPECT_EQ(taken(counts),
            (std::map<Key, std::uint64_t>{
                {{0xffffffffu, 0x7fffffff, 0x7fffffff, true}, 1}, {{0, 0, 0, false}, 1}, {{0, -1, -2, false}, 1}}));
}

TEST(ChannelCounts, ACounterSaysWhoseItIs) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  const std::vector<ChannelEnd> ends = {{0xffffffffu, 0x7fffffff, 0x7fffffff, SkippedSide::kReceives},
                                        {3, -1, -1, SkippedSide::kCollectives},
                                        {0, 5, 0, SkippedSide::kSends}};
  for (const ChannelEnd& end : ends) {
    counts.count(end);
    counts.remember(1, end, 0x1000, end.peer, end.tag);
  }
  for (const ChannelEnd& end : ends) {
    std::uint64_t* counter = nullptr;
    ASSERT_TRUE(counts.recall(end.side, 0x1000, end.peer, end.tag, counter));
    EXPECT_EQ(ChannelCounts::end_of(counter), PackedEnd(end));
    EXPECT_EQ(ChannelCounts::end_of(counter).end(), end);
  }
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

std::uint64_t* recalled(ChannelCounts& counts, SkippedSide side, std::uint64_t comm, std::int32_t peer,
                        std::int32_t tag) {
  std::uint64_t* counter = nullptr;
  return counts.recall(side, comm, peer, tag, counter) ? counter : nullptr;
}

constexpr std::uint64_t kComm = 0x7f00'1234'5600;

TEST(ChannelCounts, AChannelIsRecalledByWhatTheProgramCallsIt) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  EXPECT_EQ(recalled(counts, SkippedSide::kSends, kComm, 3, 7), nullptr);
  counts.count(end_of(2, 41, 7, false));
  counts.remember(0, end_of(2, 41, 7, false), kComm, 3, 7);
  std::uint64_t* const counter = recalled(counts, SkippedSide::kSends, kComm, 3, 7);
  ASSERT_NE(counter, nullptr);
  *counter += 4;
  counts.count(end_of(2, 41, 7, false));
  EXPECT_EQ(taken(counts), (std::map<Key, std::uint64_t>{{{2, 41, 7, false}, 6}}));
}

TEST(ChannelCounts, NoOtherChannelIsRecalledForIt) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count(end_of(0, 3, 7, false));
  counts.remember(0, end_of(0, 3, 7, false), kComm, 3, 7);
  for (std::int32_t peer = -2; peer < 300; ++peer) {
    for (std::int32_t tag = -1; tag < 60; ++tag) {
      const bool same = peer == 3 && tag == 7;
      EXPECT_EQ(recalled(counts, SkippedSide::kSends, kComm, peer, tag) != nullptr, same) << peer << ' ' << tag;
    }
  }
  for (std::uint64_t comm = 0; comm < 10'000; ++comm)
    EXPECT_EQ(recalled(counts, SkippedSide::kSends, comm, 3, 7), nullptr);
  EXPECT_EQ(recalled(counts, SkippedSide::kReceives, kComm, 3, 7), nullptr);
}

TEST(ChannelCounts, WhatWasTakenIsNotRecalled) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count(end_of(0, 3, 7, false));
  counts.remember(0, end_of(0, 3, 7, false), kComm, 3, 7);
  taken(counts);
  EXPECT_EQ(recalled(counts, SkippedSide::kSends, kComm, 3, 7), nullptr);
  // Without a count it is not among those that are taken: a counter that is added to would be lost.
  counts.remember(0, end_of(0, 3, 7, false), kComm, 3, 7);
  EXPECT_EQ(recalled(counts, SkippedSide::kSends, kComm, 3, 7), nullptr);
}

TEST(ChannelCounts, NamesAreForgottenWhereTheyAreFewAndWhereTheyAreMany) {
  for (const std::int32_t many : {1, 31, 32, 33, 200}) {
    ChannelCounts counts;
    ASSERT_TRUE(counts.open(10));
    for (int round = 0; round < 2; ++round) {
      for (std::int32_t peer = 0; peer < many; ++peer) {
        counts.count(end_of(0, peer, 7, false));
        counts.remember(0, end_of(0, peer, 7, false), kComm, peer, 7);
      }
      EXPECT_NE(recalled(counts, SkippedSide::kSends, kComm, many - 1, 7), nullptr);
      taken(counts);
      for (std::int32_t peer = 0; peer < many; ++peer)
        ASSERT_EQ(recalled(counts, SkippedSide::kSends, kComm, peer, 7), nullptr) << peer << " of " << many;
    }
  }
}

TEST(ChannelCounts, WhatCouldNotBeTakenMustBeFoundAnew) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  for (std::int32_t peer = 0; peer < 4; ++peer) {
    counts.count({0, peer, 0});
    counts.remember(0, {0, peer, 0}, kComm, peer, 0);
  }
  int left = 2;
  EXPECT_FALSE(counts.take_changes([&](const ChannelEnd&, std::uint64_t) { return left-- > 0; }));
  for (std::int32_t peer = 0; peer < 4; ++peer)
    EXPECT_EQ(recalled(counts, SkippedSide::kSends, kComm, peer, 0), nullptr);
}

TEST(ChannelCounts, NamesOfAnotherEpochAreForgotten) {
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(8));
  counts.count({0, 3, 7});
  counts.remember(1, {0, 3, 7}, kComm, 3, 7);
  EXPECT_EQ(counts.names_epoch(), 1u);
  counts.count({1, 5, 8});
  counts.remember(2, {1, 5, 8}, kComm, 5, 8);
  EXPECT_EQ(counts.names_epoch(), 2u);
  EXPECT_EQ(recalled(counts, SkippedSide::kSends, kComm, 3, 7), nullptr);
  EXPECT_NE(recalled(counts, SkippedSide::kSends, kComm, 5, 8), nullptr);
}

// As the recorder does: recall, else count and remember; handles change now and then.
TEST(ChannelCounts, RecalledOrNotItAgreesWithAMap) {
  std::mt19937 random(11);
  ChannelCounts counts;
  ASSERT_TRUE(counts.open(16));
  std::map<Key, std::uint64_t> expected;
  std::uint32_t epoch = 0;
  std::uint64_t times_recalled = 0;
  for (int i = 0; i < 200'000; ++i) {
    if (random() % 5'000 == 0) ++epoch;
    const std::uint32_t comm = (static_cast<std::uint32_t>(random()) % 4 + epoch) % 1'000;
    const std::uint64_t handle = kComm + comm % 4 * 64;  // the handles of those that are gone are used again
    const auto peer = static_cast<std::int32_t>(random() % 50);
    const auto tag = static_cast<std::int32_t>(random() % 8);
    const bool receives = random() % 2 == 0;
    const ChannelEnd end = end_of(comm, peer + 100, tag, receives);
    std::uint64_t* const counter =
        counts.names_epoch() == epoch ? recalled(counts, end.side, handle, peer, tag) : nullptr;
    if (counter != nullptr) {
      ++*counter;
      ++times_recalled;
    } else {
      ASSERT_TRUE(counts.count(end));
      counts.remember(epoch, end, handle, peer, tag);
    }
    ++expected[Key{comm, peer + 100, tag, receives}];
    if (random() % 10'000 == 0) {
      EXPECT_EQ(taken(counts), expected);
      expected.clear();
    }
  }
  EXPECT_EQ(taken(counts), expected);
  EXPECT_GT(times_recalled, 10'000u);
}

}  // namespace
}  // namespace lbf::capture::channel_counts_test