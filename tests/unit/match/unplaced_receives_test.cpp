// Which receives wait for which: as when each one is compared with all that were posted before it.
#include "predictor/engine/match/unplaced_receives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace lbf::unplaced_receives_test {
namespace {

using engine::UnplacedReceives;
using Pattern = UnplacedReceives::Pattern;
using testing::ElementsAre;
using testing::IsEmpty;

// The rule, one by one.
class Plain {
 public:
  bool holds_up(const Pattern& pattern) const { return is_held_up(pattern, held_.size()); }
  void add(std::uint32_t record, const Pattern& pattern) { held_.push_back({record, pattern}); }
  std::vector<std::uint32_t> remove(std::uint32_t record) {
    std::erase_if(held_, [&](const Held& held) { return held.record == record; });
    std::vector<std::uint32_t> passed;
    for (std::size_t i = 0; i < held_.size();) {
      if (held_[i].pattern.is_wildcard() || is_held_up(held_[i].pattern, i)) {
        ++i;
        continue;
      }
      passed.push_back(held_[i].record);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return passed;
  }

 private:
  struct Held {
    std::uint32_t record;
    Pattern pattern;
  };
  bool is_held_up(const Pattern& pattern, std::size_t older) const {
    return std::any_of(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(older), [&](const Held& held) {
      const Pattern& other = held.pattern;
      return other.comm == pattern.comm && (other.peer == kAnyRank || other.peer == pattern.peer) &&
             (other.tag == kAnyTag || other.tag == pattern.tag);
    });
  }
  std::vector<Held> held_;
};

std::vector<std::uint32_t> removed(UnplacedReceives& receives, std::uint32_t entry) {
  std::vector<std::uint32_t> passed;
  receives.remove(entry, [&](std::uint32_t record) { passed.push_back(record); });
  return passed;
}

TEST(UnplacedReceives, WaitForOlderOnesThatCouldTakeTheSame) {
  engine::MemoryAccount account;
  UnplacedReceives receives(&account);
  const std::uint32_t any = receives.add(1, {0, kAnyRank, 7});
  EXPECT_TRUE(receives.holds_up({0, 3, 7}));
  EXPECT_FALSE(receives.holds_up({0, 3, 8}));
  EXPECT_FALSE(receives.holds_up({1, 3, 7}));
  receives.add(2, {0, 3, 7});
  receives.add(3, {0, 3, 7});
  EXPECT_TRUE(receives.holds_up({0, 3, 7}));
  EXPECT_THAT(removed(receives, any), ElementsAre(2, 3));
  EXPECT_TRUE(receives.empty());
}

TEST(UnplacedReceives, AreThoseOfTheRuleInItsOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    engine::MemoryAccount account;
    UnplacedReceives receives(&account);
    Plain plain;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> here;  // record, entry
    for (std::uint32_t record = 0; record < 300; ++record) {
      const Pattern pattern{static_cast<std::uint32_t>(random() % 2),
                            random() % 4 == 0 ? kAnyRank : static_cast<Rank>(random() % 3),
                            random() % 4 == 0 ? kAnyTag : static_cast<std::int32_t>(random() % 3)};
      if (!pattern.is_wildcard()) {
        ASSERT_EQ(receives.holds_up(pattern), plain.holds_up(pattern));
      }
      if (pattern.is_wildcard() || plain.holds_up(pattern)) {
        here.emplace_back(record, receives.add(record, pattern));
        plain.add(record, pattern);
      }
      if (here.empty() || random() % 3 == 0) continue;
      const std::size_t gone = random() % here.size();
      const std::vector<std::uint32_t> passed = removed(receives, here[gone].second);
      ASSERT_EQ(passed, plain.remove(here[gone].first));
      here.erase(here.begin() + static_cast<std::ptrdiff_t>(gone));
      std::erase_if(here, [&](const auto& held) { return std::ranges::count(passed, held.first) > 0; });
    }
  }
}

TEST(UnplacedReceives, SayWhichAreNew) {
  engine::MemoryAccount account;
  UnplacedReceives receives(&account);
  receives.add(1, {0, kAnyRank, kAnyTag});
  const std::uint32_t second = receives.add(2, {0, 1, 1});
  receives.add(3, {0, 1, 1});
  removed(receives, second);
  std::vector<std::uint32_t> seen;
  receives.for_each_recent([&](std::uint32_t record) { seen.push_back(record); });
  EXPECT_THAT(seen, ElementsAre(1, 3));
  seen.clear();
  receives.for_each_recent([&](std::uint32_t record) { seen.push_back(record); });
  EXPECT_THAT(seen, IsEmpty());
}

// A batch of a few hundred bytes had 50,000 wildcards that never ended, and as many receives behind them. Each posting
// and each end looked at all of them.
TEST(UnplacedReceives, CostNoMoreWhereManyWait) {
  constexpr std::uint32_t kMany = 50000;
  engine::MemoryAccount account;
  UnplacedReceives receives(&account);
  std::vector<std::uint32_t> wildcards;
  for (std::uint32_t i = 0; i < kMany; ++i) wildcards.push_back(receives.add(i, {0, kAnyRank, kAnyTag}));
  for (std::uint32_t i = 0; i < kMany; ++i) receives.add(kMany + i, {0, 1, static_cast<std::int32_t>(i)});
  for (std::uint32_t i = 0; i + 1 < kMany; ++i) EXPECT_THAT(removed(receives, wildcards[i]), IsEmpty());
  EXPECT_EQ(removed(receives, wildcards.back()).size(), kMany);
}

// A wildcard that is posted once and never ends, and receives that come and go behind it.
TEST(UnplacedReceives, MemoryFollowsThoseThatAreHere) {
  engine::MemoryAccount account;
  UnplacedReceives receives(&account);
  receives.add(0, {0, kAnyRank, kAnyTag});
  for (std::uint32_t i = 1; i < 200000; ++i) {
    removed(receives, receives.add(i, {0, 1, static_cast<std::int32_t>(i)}));
    if (i % 1000 == 0) receives.for_each_recent([](std::uint32_t) {});
  }
  EXPECT_LT(account.bytes, 100000u);
}

}  // namespace
}  // namespace lbf::unplaced_receives_test
