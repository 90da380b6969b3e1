#include "cost/budget.h"

#include <gtest/gtest.h>

namespace lbf::cost::budget_test {
namespace {

TEST(Budget, StartsWithTheAllowanceOfItsDepth) {
  EXPECT_DOUBLE_EQ(Budget(0.02, 2).left_s(), 0.04);
}

TEST(Budget, WhatWasAdvancedIsNotEarnedAgain) {
  Budget budget(0.02, 2);
  budget.spend(0.04);
  budget.earn(1.5);
  EXPECT_DOUBLE_EQ(budget.left_s(), 0);
  budget.earn(1.5);  // half a second of it repays the rest
  EXPECT_DOUBLE_EQ(budget.left_s(), 0.02);
}

TEST(Budget, HoldsNoMoreThanItsDepth) {
  Budget budget(0.02, 2);
  budget.earn(1000);
  EXPECT_DOUBLE_EQ(budget.left_s(), 0.04);
}

TEST(Budget, WhatWasOverspentIsEarnedBackFirst) {
  Budget budget(0.5, 2);
  budget.earn(2);
  budget.spend(1.75);
  EXPECT_DOUBLE_EQ(budget.left_s(), -0.75);
  budget.earn(2);
  EXPECT_DOUBLE_EQ(budget.left_s(), 0.25);
}

TEST(Budget, NothingIsEarnedOrSpentBackwards) {
  Budget budget(0.5, 2);
  budget.earn(-3);
  budget.spend(-3);
  EXPECT_DOUBLE_EQ(budget.left_s(), 1);
}

}  // namespace
}  // namespace lbf::cost::budget_test