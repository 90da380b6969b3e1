#include "base/paged_array.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace lbf::paged_array_test {
namespace {

struct Value {
  std::uint64_t number = 7;
  std::uint32_t other = 0;
};

TEST(PagedArray, KeepsWhatItHoldsWhileItGrows) {
  PagedArray<Value> values;
  for (std::uint64_t i = 0; i < 100000; ++i) values.emplace_back().number = i;
  ASSERT_EQ(values.size(), 100000U);
  for (std::uint64_t i = 0; i < 100000; ++i) ASSERT_EQ(values[i].number, i);
}

TEST(PagedArray, NewElementsAreDefaultOnes) {
  PagedArray<Value> values;
  values.grow_to(5000);
  values[4999].number = 1;
  values.grow_to(20000);
  values.grow_to(3);  // never shrinks
  ASSERT_EQ(values.size(), 20000U);
  EXPECT_EQ(values[4999].number, 1U);
  EXPECT_EQ(values[5000].number, 7U);
  EXPECT_EQ(values[19999].number, 7U);
}

TEST(PagedArray, ElementsAreAligned) {
  struct alignas(64) Line {
    std::uint64_t first = 0;
  };
  PagedArray<Line> lines;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(&lines.emplace_back()) % 64, 0U);
  }
}

TEST(PagedMemory, ReservesAtLeastWhatWasAskedForAndMoves) {
  PagedMemory memory;
  EXPECT_EQ(memory.data(), nullptr);
  memory.reserve(1);
  memory.data()[0] = std::byte{42};
  memory.reserve(10 << 20);
  EXPECT_GE(memory.capacity(), std::size_t{10} << 20);
  EXPECT_EQ(memory.data()[0], std::byte{42});
  EXPECT_EQ(memory.data()[memory.capacity() - 1], std::byte{0});
  PagedMemory other = std::move(memory);
  EXPECT_EQ(other.data()[0], std::byte{42});
}

}  // namespace
}  // namespace lbf::paged_array_test