#include "cost/window_grid.h"

#include <gtest/gtest.h>

#include <set>

namespace lbf::cost::window_grid_test {
namespace {

constexpr Nanoseconds kCell = 1'000'000'000;
constexpr Nanoseconds kNow = 1'795'000'000'123'456'789;  // some day in 2026

TEST(WindowGrid, OpensOnceInEachCell) {
  const WindowGrid grid(kCell, 42);
  for (std::int64_t cell = kNow / kCell; cell < kNow / kCell + 1000; ++cell) {
    EXPECT_EQ(grid.opening_ns(cell) / kCell, cell);
  }
}

TEST(WindowGrid, OpeningsSpreadEvenlyOverTheCell) {
  const WindowGrid grid(kCell, 42);
  int tenths[10] = {};
  for (std::int64_t cell = 0; cell < 10'000; ++cell) ++tenths[(grid.opening_ns(cell) % kCell) * 10 / kCell];
  for (const int count : tenths) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

TEST(WindowGrid, NextOpeningIsTheFirstLaterOne) {
  const WindowGrid grid(kCell, 7);
  Nanoseconds now = kNow;
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds next = grid.next_opening_ns(now, 0);
    ASSERT_GT(next, now);
    // None in between: the openings of the cells from now's to next's are at most now, but for the last.
    for (std::int64_t cell = now / kCell; cell < next / kCell; ++cell) ASSERT_LE(grid.opening_ns(cell), now);
    now = next;
  }
}

TEST(WindowGrid, ThinnerOpeningsAreOpeningsOfTheDenserGrid) {
  const WindowGrid grid(kCell, 7);
  std::set<Nanoseconds> dense;
  for (Nanoseconds now = kNow; now < kNow + 70 * kCell;) dense.insert(now = grid.next_opening_ns(now, 0));
  for (const unsigned thinning : {1u, 2u, 3u, 5u}) {
    for (Nanoseconds now = kNow; now < kNow + 64 * kCell;) {
      now = grid.next_opening_ns(now, thinning);
      if (now >= kNow + 64 * kCell) break;
      EXPECT_TRUE(dense.contains(now)) << thinning;
    }
  }
}

TEST(WindowGrid, StepsHaveOpeningsOfTheirOwn) {
  EXPECT_NE(WindowGrid(kCell, 1).opening_ns(5), WindowGrid(kCell, 2).opening_ns(5));
}

}  // namespace
}  // namespace lbf::cost::window_grid_test