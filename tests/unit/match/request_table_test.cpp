#include "predictor/engine/match/request_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

namespace lbf::request_table_test {
namespace {

// Starts and ends requests whose numbers `next` gives, in any order; the table says what a map says.
template <typename Next>
void compare_with_map(Next next, std::size_t active) {
  engine::RequestTable table;
  std::unordered_map<std::uint32_t, std::uint32_t> expected;
  std::vector<std::uint32_t> numbers;
  std::mt19937 random(7);
  for (std::uint32_t i = 0; i < 50000; ++i) {
    const std::uint32_t number = next(i);
    engine::ActiveRequest* const found = table.find(number);
    ASSERT_EQ(found != nullptr, expected.contains(number)) << number;
    engine::ActiveRequest* const at_once = table.find_at_once(number);
    ASSERT_TRUE(at_once == nullptr || at_once == found) << number;
    if (found == nullptr) {
      engine::ActiveRequest* const slot = i % 2 == 0 ? table.free_slot(number) : nullptr;
      if (slot != nullptr) {
        table.occupy(*slot, {number, i, engine::RequestKind::kSend, i});
      } else {
        table.insert({number, i, engine::RequestKind::kSend, i});
      }
      expected[number] = i;
      numbers.push_back(number);
    } else {
      ASSERT_EQ(table.free_slot(number), nullptr) << number;
      ASSERT_EQ(found->value, expected[number]);
      ASSERT_EQ(found->note, engine::ActiveRequest::cut(expected[number]));
      ASSERT_EQ(found->what(), engine::RequestKind::kSend);
    }
    if (numbers.size() > active) {
      std::swap(numbers[random() % numbers.size()], numbers.back());
      engine::ActiveRequest* const last = i % 3 == 0 ? table.find_at_once(numbers.back()) : nullptr;
      if (last != nullptr) {
        table.vacate(*last);
      } else {
        table.erase(numbers.back());
      }
      ASSERT_EQ(table.find(numbers.back()), nullptr);
      expected.erase(numbers.back());
      numbers.pop_back();
    }
    ASSERT_EQ(table.size(), expected.size());
  }
  std::size_t visited = 0;
  table.for_each([&](const engine::ActiveRequest& request) {
    ++visited;
    EXPECT_EQ(request.value, expected.at(request.number));
  });
  EXPECT_EQ(visited, expected.size());
}

TEST(RequestTable, RunsOfNumbers) {
  compare_with_map([](std::uint32_t i) { return i; }, 100);
}

TEST(RequestTable, NumbersThatAreUsedAgain) {
  compare_with_map([](std::uint32_t i) { return i * 7919 % 300; }, 200);
}

TEST(RequestTable, NumbersThatWantTheSamePlace) {
  compare_with_map([](std::uint32_t i) { return i % 3000 << 20; }, 50);
}

TEST(RequestTable, ExtremeNumbers) {
  compare_with_map([](std::uint32_t i) { return ~std::uint32_t{0} - i % 40 * (i % 7); }, 30);
}

TEST(ActiveRequest, PostingOrderGoesOnWhereTheCounterStartsAgain) {
  EXPECT_TRUE(engine::is_before(3, 4));
  EXPECT_FALSE(engine::is_before(4, 3));
  EXPECT_FALSE(engine::is_before(4, 4));
  const std::uint32_t last = engine::ActiveRequest::cut(~std::uint32_t{0});
  EXPECT_TRUE(engine::is_before(last, engine::ActiveRequest::cut(last + 1)));
  EXPECT_TRUE(engine::is_before(~std::uint32_t{0}, 0));
}

}  // namespace
}  // namespace lbf::request_table_test