#include <gtest/gtest.h>

#include <array>

#include "cost/observed_cost.h"
#include "cost/predicted_cost.h"

namespace lbf::cost::costs_test {
namespace {

TEST(ObservedCost, SamplesStandForAllExecutions) {
  const std::array primitives{PrimitiveUse{1'000'000, 100, 100 * 60e-9, 40e-9}};
  const ObservedCost cost = observed_cost(primitives);
  EXPECT_NEAR(cost.direct_s, 0.060, 1e-12);
  EXPECT_NEAR(cost.ideal_s, 0.040, 1e-12);
  EXPECT_NEAR(cost.low_s(), 0.060, 1e-12);
  EXPECT_NEAR(cost.high_s(), 0.080, 1e-12);  // direct + (direct - ideal)
}

TEST(ObservedCost, PrimitivesAddUp) {
  const std::array primitives{PrimitiveUse{1'000, 10, 10 * 50e-9, 50e-9}, PrimitiveUse{500, 5, 5 * 2e-6, 1e-6}};
  const ObservedCost cost = observed_cost(primitives);
  EXPECT_NEAR(cost.direct_s, 50e-6 + 1e-3, 1e-15);
  EXPECT_NEAR(cost.cache_s(), 0.5e-3, 1e-12);
}

TEST(ObservedCost, NeverSampledCountsAsIdeal) {
  const std::array primitives{PrimitiveUse{10, 0, 0, 1e-6}};
  EXPECT_NEAR(observed_cost(primitives).direct_s, 1e-5, 1e-15);
  EXPECT_EQ(observed_cost(primitives).cache_s(), 0);
}

TEST(ObservedCost, FasterThanIdealIsNoNegativeCost) {
  const std::array primitives{PrimitiveUse{10, 10, 10 * 30e-9, 40e-9}};
  EXPECT_EQ(observed_cost(primitives).cache_s(), 0);
  EXPECT_NEAR(observed_cost(primitives).high_s(), 300e-9, 1e-15);
}

TEST(PredictedCost, FrequencyTimesCost) {
  const std::array primitives{PrimitiveForecast{20'000, 250e-9}, PrimitiveForecast{1'000, 1e-6}};
  EXPECT_NEAR(predicted_share(primitives), 0.006, 1e-12);
}

TEST(PredictedCost, TheFirstRunReplacesTheGuess) {
  EXPECT_DOUBLE_EQ(corrected(10'000, 500, 1), 500);
}

TEST(PredictedCost, RunsAreAveragedAndRecentOnesCountMore) {
  double expected = corrected(10'000, 400, 1);
  expected = corrected(expected, 600, 2);
  EXPECT_DOUBLE_EQ(expected, 500);
  for (unsigned runs = 3; runs < 100; ++runs) expected = corrected(expected, 900, runs);
  EXPECT_NEAR(expected, 900, 1);
}

}  // namespace
}  // namespace lbf::cost::costs_test