#include "cost/held_up.h"

#include <gtest/gtest.h>

namespace lbf::cost::held_up_test {
namespace {

TEST(HeldUp, EveryOtherRankWaitsForTheOneWhoseProcessorWasTaken) {
  HeldUp two(2);
  two.see(0.5, 0.6, 2);
  EXPECT_DOUBLE_EQ(two.total_s(), 0.5);
  HeldUp many(64);
  many.see(0.01, 0.01, 64);
  EXPECT_DOUBLE_EQ(many.total_s(), 0.63);
}

TEST(HeldUp, NobodyWhereAProcessorWasIdle) {
  HeldUp held(64);
  held.see(0.5, 0, 32);
  EXPECT_EQ(held.total_s(), 0);
  held.see(1.0, 0.1, 32);  // a part of the time
  EXPECT_DOUBLE_EQ(held.total_s(), 3.1);
}

TEST(HeldUp, OnlyRanksThatCouldRun) {
  HeldUp shared(2);  // eight ranks on two processors: one runs beside the one that was pushed aside
  shared.see(0.5, 30, 8);
  EXPECT_DOUBLE_EQ(shared.total_s(), 0.5);
  HeldUp one(1);
  one.see(0.5, 30, 4);
  EXPECT_EQ(one.total_s(), 0);
  HeldUp alone(2);
  alone.see(0.5, 0.5, 1);
  EXPECT_EQ(alone.total_s(), 0);
}

TEST(HeldUp, ReadingsThatGoBackwardsCountAsNoTime) {
  HeldUp held(2);
  held.see(0.5, 0.5, 2);
  held.see(0.4, 0.3, 2);  // a rank ended
  EXPECT_DOUBLE_EQ(held.total_s(), 0.5);
}

}  // namespace
}  // namespace lbf::cost::held_up_test