#include "tools/skeleton/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lbf::statistics_test {
namespace {

TEST(Quartiles, AreThoseOfRsDefault) {
  // R: quantile(c(1, 2, 4, 8)) gives 1.75, 3, 5.
  const tools::Quartiles four = tools::quartiles_of(std::vector<Seconds>{8, 1, 4, 2});
  EXPECT_DOUBLE_EQ(four.first, 1.75);
  EXPECT_DOUBLE_EQ(four.median, 3);
  EXPECT_DOUBLE_EQ(four.third, 5);
  const tools::Quartiles one = tools::quartiles_of(std::vector<Seconds>{7});
  EXPECT_DOUBLE_EQ(one.first, 7);
  EXPECT_DOUBLE_EQ(one.third, 7);
}

TEST(ScaledRatio, IsTheScaleTimesTheRatioOfGeometricMeans) {
  const tools::Estimate estimate = tools::scaled_ratio(10, std::vector<Seconds>{2, 8}, std::vector<Seconds>{1, 4});
  EXPECT_NEAR(estimate.value, 20, 1e-12);
  ASSERT_TRUE(estimate.bounds.has_value());
  EXPECT_LT(estimate.bounds->low, 20);
  EXPECT_GT(estimate.bounds->high, 20);
  // Symmetric in the logarithm.
  EXPECT_NEAR(estimate.bounds->low * estimate.bounds->high, 400, 1e-6);
}

TEST(ScaledRatio, HasStudentsInterval) {
  // Logarithms 0.1, 0, -0.1: mean 0, deviation 0.1, error 0.1 / sqrt(3); t(0.975, 2) = 4.302653.
  const std::vector<Seconds> now{std::exp(0.1), 1, std::exp(-0.1)};
  const tools::Estimate of_one = tools::scaled_ratio(1, now, std::vector<Seconds>{1});
  ASSERT_TRUE(of_one.bounds.has_value());
  EXPECT_NEAR(std::log(of_one.bounds->high), 4.302653 * 0.1 / std::sqrt(3.0), 1e-6);
  // Welch: equal variances and sizes: 4 degrees; t(0.975, 4) = 2.776445.
  const tools::Estimate of_two = tools::scaled_ratio(1, now, now);
  ASSERT_TRUE(of_two.bounds.has_value());
  EXPECT_NEAR(std::log(of_two.bounds->high), 2.776445 * 0.1 * std::sqrt(2.0 / 3.0), 1e-6);
}

TEST(ScaledRatio, SaysWhereNothingIsKnownOfTheSpread) {
  const std::vector<Seconds> one{2};
  EXPECT_FALSE(tools::scaled_ratio(1, one, one).bounds.has_value());
  const tools::Estimate equal = tools::scaled_ratio(3, std::vector<Seconds>{2, 2}, one);
  ASSERT_TRUE(equal.bounds.has_value());
  EXPECT_DOUBLE_EQ(equal.bounds->low, 3);
  EXPECT_DOUBLE_EQ(equal.bounds->high, 3);
}

}  // namespace
}  // namespace lbf::statistics_test