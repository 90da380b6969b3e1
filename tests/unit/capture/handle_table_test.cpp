// The handle table against std::map, and the block pool.
#include "spank_plugin/capture/handle_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

namespace lbf::capture::handle_table_test {
namespace {

TEST(HandleTableTest, DoesWhatAMapDoes) {
  HandleTable<std::uint32_t> table;
  ASSERT_TRUE(table.open(8));
  std::map<std::uint64_t, std::uint32_t> model;
  std::mt19937 random(2);
  for (std::uint32_t step = 0; step < 200'000; ++step) {
    // Few distinct keys, aligned like pointers: many collisions, and every kind of hole.
    const std::uint64_t key = 0x7f0000000000u + (random() % 300) * 64;
    if (random() % 2 == 0 && model.size() < 200) {
      std::uint32_t* value = table.insert(key);
      ASSERT_NE(value, nullptr);
      if (!model.contains(key)) {
        EXPECT_EQ(*value, 0u);
      }
      *value = step;
      model[key] = step;
    } else {
      table.erase(key);
      model.erase(key);
    }
    ASSERT_EQ(table.size(), model.size());
    if (step % 64 == 0) {
      for (std::uint64_t i = 0; i < 300; ++i) {
        const std::uint64_t k = 0x7f0000000000u + i * 64;
        const std::uint32_t* value = table.find(k);
        ASSERT_EQ(value != nullptr, model.contains(k));
        if (value != nullptr) {
          ASSERT_EQ(*value, model[k]);
        }
      }
    }
  }
}

TEST(HandleTableTest, RefusesWhenFullAndGoesOnAfterwards) {
  HandleTable<std::uint32_t> table;
  ASSERT_TRUE(table.open(4));
  std::uint64_t inserted = 0;
  while (table.insert((inserted + 1) * 64) != nullptr) ++inserted;
  EXPECT_GE(inserted, 13u);
  EXPECT_LT(inserted, 16u);
  EXPECT_EQ(table.find(99'999), nullptr);
  EXPECT_NE(table.insert(64), nullptr);  // it is there already
  table.erase(64);
  EXPECT_NE(table.insert(123), nullptr);
}

TEST(BlockPoolTest, BlocksDoNotOverlapAndComeBack) {
  BlockPool pool;
  std::map<char*, std::size_t> live;
  std::mt19937 random(3);
  std::set<void*> seen;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 3 != 0 || live.empty()) {
      const std::size_t bytes = 1 + random() % 5000;
      auto* p = static_cast<char*>(pool.take(bytes));
      ASSERT_NE(p, nullptr);
      seen.insert(p);
      std::memset(p, 0x5a, bytes);
      const auto next = live.lower_bound(p);
      if (next != live.end()) {
        ASSERT_LE(p + bytes, next->first);
      }
      if (next != live.begin()) {
        const auto previous = std::prev(next);
        ASSERT_LE(previous->first + previous->second, p);
      }
      live[p] = bytes;
    } else {
      const auto victim = live.begin();
      pool.give_back(victim->first, victim->second);
      live.erase(victim);
    }
  }
  EXPECT_LT(seen.size(), 1300u);  // freed blocks are used again
}

TEST(BlockPoolTest, TakesBlocksLargerThanAChunk) {
  BlockPool pool;
  auto* p = static_cast<char*>(pool.take(std::size_t{3} << 20));
  ASSERT_NE(p, nullptr);
  p[(std::size_t{3} << 20) - 1] = 1;
}

TEST(ScratchTest, GrowsAndKeepsAnswering) {
  Scratch<std::uint64_t> scratch;
  for (std::size_t n : {1u, 100u, 10u, 100'000u}) {
    std::uint64_t* data = scratch.get(n);
    ASSERT_NE(data, nullptr);
    data[n - 1] = n;
  }
  scratch.release();
}

}  // namespace
}  // namespace lbf::capture::handle_table_test