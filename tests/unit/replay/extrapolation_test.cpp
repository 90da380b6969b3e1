#include "predictor/metric/extrapolation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lbf {
namespace {

TEST(Extrapolation, EverythingSeenIsWhatWasPredicted) {
  const Extrapolated all = extrapolate({10, 7}, {}, 10);
  EXPECT_DOUBLE_EQ(all.predicted_s, 7);
  EXPECT_DOUBLE_EQ(all.low_s, 7);
  EXPECT_DOUBLE_EQ(all.high_s, 7);
  EXPECT_DOUBLE_EQ(all.seen_share, 1);
}

TEST(Extrapolation, WindowsStandForTheRestAndTheStartForItself) {
  const std::vector<SeenStretch> windows{{1, 2}, {1, 2}, {2, 4}};
  const Extrapolated run = extrapolate({2, 1}, windows, 26);  // 20 s unseen, at a ratio of 2
  EXPECT_DOUBLE_EQ(run.predicted_s, 1 + 8 + 40);
  EXPECT_DOUBLE_EQ(run.low_s, run.predicted_s);  // all windows agree
  EXPECT_DOUBLE_EQ(run.high_s, run.predicted_s);
  EXPECT_DOUBLE_EQ(run.seen_share, 6.0 / 26);
}

TEST(Extrapolation, ByHand) {
  // Ratio 3/2; residuals -0.5 and 0.5; deviation of the ratio sqrt(0.5 * 2 / 1) / 2 = 0.5; t(1) = 12.706.
  const std::vector<SeenStretch> windows{{1, 1}, {1, 2}};
  const Extrapolated run = extrapolate({0, 0}, windows, 12);
  EXPECT_DOUBLE_EQ(run.predicted_s, 3 + 15);
  EXPECT_DOUBLE_EQ(run.high_s, 18 + 12.706 * 0.5 * 10);
  EXPECT_DOUBLE_EQ(run.low_s, 3);  // not below what was seen
}

TEST(Extrapolation, OneWindowHasNoInterval) {
  const std::vector<SeenStretch> windows{{1, 3}};
  const Extrapolated run = extrapolate({1, 1}, windows, 10);
  EXPECT_DOUBLE_EQ(run.predicted_s, 4 + 24);
  EXPECT_DOUBLE_EQ(run.low_s, 0);
  EXPECT_DOUBLE_EQ(run.high_s, kNeverS);
}

TEST(Extrapolation, WithoutWindowsTheStartStandsForTheRest) {
  const Extrapolated run = extrapolate({2, 3}, {}, 10);
  EXPECT_DOUBLE_EQ(run.predicted_s, 15);
  EXPECT_DOUBLE_EQ(run.high_s, kNeverS);
}

TEST(Extrapolation, NothingSeenSaysNothing) {
  const Extrapolated run = extrapolate({0, 0}, {}, 10);
  EXPECT_DOUBLE_EQ(run.predicted_s, 0);
  EXPECT_DOUBLE_EQ(run.high_s, kNeverS);
  EXPECT_DOUBLE_EQ(run.seen_share, 0);
}

// A program whose ratio varies from moment to moment, seen in windows of varying length: the interval covers
// the truth about as often as it says.
TEST(Extrapolation, IntervalCoversTheTruth) {
  std::mt19937 random(20261121);
  std::lognormal_distribution<double> ratio(0.3, 0.4);
  std::uniform_real_distribution<double> length(0.5, 1.5);
  int covered = 0;
  constexpr int kRuns = 1000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<SeenStretch> windows;
    Seconds run_s = 0;
    Seconds truth_s = 0;
    for (int cell = 0; cell < 400; ++cell) {
      const Seconds measured_s = length(random);
      const SeenStretch stretch{measured_s, measured_s * ratio(random)};
      run_s += stretch.measured_s;
      truth_s += stretch.predicted_s;
      if (cell % 20 == 0) windows.push_back(stretch);
    }
    const Extrapolated estimate = extrapolate({0, 0}, windows, run_s);
    covered += estimate.low_s <= truth_s && truth_s <= estimate.high_s ? 1 : 0;
  }
  EXPECT_GE(covered, kRuns * 90 / 100);
  EXPECT_LE(covered, kRuns * 99 / 100);
}

}  // namespace
}  // namespace lbf
