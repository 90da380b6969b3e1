#include "predictor/engine/metric/extrapolation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "predictor/engine/match/blocks.h"

namespace lbf::extrapolation_test {
namespace {

TEST(Extrapolation, EverythingSeenIsWhatWasPredicted) {
  const engine::Extrapolated all = engine::extrapolate({10, 7}, {}, 10);
  EXPECT_DOUBLE_EQ(all.predicted_s, 7);
  EXPECT_DOUBLE_EQ(all.low_s, 7);
  EXPECT_DOUBLE_EQ(all.high_s, 7);
  EXPECT_DOUBLE_EQ(all.seen_share, 1);
}

TEST(Extrapolation, WindowsStandForTheRestAndTheStartForItself) {
  const std::vector<engine::SeenStretch> windows{{1, 2}, {1, 2}, {2, 4}};
  const engine::Extrapolated run = engine::extrapolate({2, 1}, windows, 26);  // 20 s unseen, at a ratio of 2
  EXPECT_DOUBLE_EQ(run.predicted_s, 1 + 8 + 40);
  EXPECT_DOUBLE_EQ(run.low_s, run.predicted_s);  // all windows agree
  EXPECT_DOUBLE_EQ(run.high_s, run.predicted_s);
  EXPECT_DOUBLE_EQ(run.seen_share, 6.0 / 26);
}

TEST(Extrapolation, ByHand) {
  // Ratio 3/2; residuals -0.5 and 0.5; deviation of the ratio sqrt(0.5 * 2 / 1) / 2 = 0.5; t(1) = 12.706.
  const std::vector<engine::SeenStretch> windows{{1, 1}, {1, 2}};
  const engine::Extrapolated run = engine::extrapolate({0, 0}, windows, 12);
  EXPECT_DOUBLE_EQ(run.predicted_s, 3 + 15);
  // The 10 s that nobody saw scatter by themselves, too.
  EXPECT_NEAR(run.high_s, 18 + 12.7062 * 0.5 * std::sqrt(1 + 2.0 / 10) * 10, 1e-3);
  EXPECT_DOUBLE_EQ(run.low_s, 3);  // not below what was seen
}

TEST(Extrapolation, OneWindowHasNoInterval) {
  const std::vector<engine::SeenStretch> windows{{1, 3}};
  const engine::Extrapolated run = engine::extrapolate({1, 1}, windows, 10);
  EXPECT_DOUBLE_EQ(run.predicted_s, 4 + 24);
  EXPECT_DOUBLE_EQ(run.low_s, 0);
  EXPECT_DOUBLE_EQ(run.high_s, kNeverS);
}

TEST(Extrapolation, BlocksOfAMomentHaveNoInterval) {
  const std::vector<engine::SeenStretch> blocks{{1, 1}, {1, 2}, {1, 1.5}, {1, 1}};
  EXPECT_LT(engine::extrapolate({4, 5.5}, {}, 100, blocks).high_s, kNeverS);
  EXPECT_EQ(engine::extrapolate({4, 5.5}, {}, 1000, blocks).high_s, kNeverS);
}

TEST(Extrapolation, WithoutWindowsTheStartStandsForTheRest) {
  const engine::Extrapolated run = engine::extrapolate({2, 3}, {}, 10);
  EXPECT_DOUBLE_EQ(run.predicted_s, 15);
  EXPECT_DOUBLE_EQ(run.high_s, kNeverS);
}

TEST(Extrapolation, NothingSeenSaysNothing) {
  const engine::Extrapolated run = engine::extrapolate({0, 0}, {}, 10);
  EXPECT_DOUBLE_EQ(run.predicted_s, 0);
  EXPECT_DOUBLE_EQ(run.high_s, kNeverS);
  EXPECT_DOUBLE_EQ(run.seen_share, 0);
}

TEST(Extrapolation, FewWindowsSpeakThroughTheirBlocks) {
  const std::vector<engine::SeenStretch> windows{{2, 4}, {2, 2}};
  const std::vector<engine::SeenStretch> blocks{{1, 1.5}, {1, 2.5}, {1, 0.5}, {1, 1.5}};
  const engine::Extrapolated run = engine::extrapolate({1, 5}, windows, 17, blocks);  // 12 s unseen, at a ratio of 1.5
  EXPECT_DOUBLE_EQ(run.predicted_s, 5 + 6 + 18);
  // Residuals 0, 1, -1, 0: deviation of the ratio sqrt(2 * 4 / 3) / 4; that of one block twice as much. The run is two
  // doublings of what was seen.
  const double of_one = std::sqrt(8.0 / 3) / 2;
  const double half_s = 3.18245 * of_one * std::sqrt((1 + 4.0 / 12) / 4 + 2) * 12;
  EXPECT_NEAR(run.high_s, 29 + half_s, 1e-3);
  EXPECT_NEAR(run.low_s, std::max(29 - half_s, 11.0), 1e-3);
  EXPECT_EQ(engine::extrapolate({1, 5}, windows, 17, std::span(blocks).first(1)).high_s,
            engine::extrapolate({1, 5}, windows, 17).high_s);
}

// A capture that ended after a long wait and a moment of calls: two blocks, and no more than two can tell.
TEST(Extrapolation, TwoBlocksThatDifferHaveAWideInterval) {
  const std::vector<engine::SeenStretch> blocks{{4, 1}, {1, 1.5}};
  const engine::Extrapolated run = engine::extrapolate({5, 2.5}, {}, 20, blocks);  // 15 s unseen, at a ratio of 0.5
  EXPECT_DOUBLE_EQ(run.predicted_s, 10);
  // Residuals -1 and 1; deviation of the ratio 2 / 5; that of one block sqrt(2) times as much.
  const double half_s = 12.7062 * 0.4 * std::sqrt(1 + 5.0 / 15 + 2 * std::log2(1 + 15.0 / 5)) * 15;
  EXPECT_NEAR(run.high_s, 10 + half_s, 1e-2);
  EXPECT_DOUBLE_EQ(run.low_s, 2.5);
  EXPECT_EQ(engine::extrapolate({5, 2.5}, {}, 20, std::span(blocks).first(1)).high_s, kNeverS) << "one tells nothing";
}

TEST(Extrapolation, ThatTwoOrThreeBlocksAgreeSaysNothing) {
  const std::vector<engine::SeenStretch> blocks(4, {1, 1});
  for (const std::size_t count : {2, 3}) {
    EXPECT_EQ(engine::extrapolate({4, 4}, {}, 20, std::span(blocks).first(count)).high_s, kNeverS) << count;
  }
  EXPECT_EQ(engine::extrapolate({4, 4}, {}, 20, blocks).high_s, 20);
}

TEST(Extrapolation, ManyWindowsNeedNoBlocks) {
  const std::vector<engine::SeenStretch> windows{{1, 1}, {1, 2}, {1, 1}, {1, 2}};
  const std::vector<engine::SeenStretch> blocks(8, {0.5, 0.5});
  EXPECT_EQ(engine::extrapolate({1, 1}, windows, 20, blocks).high_s, engine::extrapolate({1, 1}, windows, 20).high_s);
}

TEST(Blocks, AreJoinedToEqualLengths) {
  // A window of 100 units and a half: blocks as they grow, each with its own length as measured time.
  std::vector<engine::SeenStretch> of_window;
  double units = 0;
  for (std::uint32_t number = 0; units < 100.5; ++number) {
    const double length = std::min(engine::blocks::length(number), 100.5 - units);
    of_window.push_back({length, 2 * length});
    units += length;
  }
  const auto joined = engine::blocks::joined(std::span<const engine::SeenStretch>(of_window));
  ASSERT_GE(joined.size(), 8u);
  ASSERT_LE(joined.size(), 17u);
  double sum = 0;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    sum += joined[i].measured_s;
    EXPECT_DOUBLE_EQ(joined[i].predicted_s, 2 * joined[i].measured_s);
    if (i + 1 == joined.size()) break;
    EXPECT_DOUBLE_EQ(joined[i].measured_s, joined[0].measured_s) << i;
  }
  EXPECT_DOUBLE_EQ(sum, 100.5);
  EXPECT_TRUE(engine::blocks::joined(std::span<const engine::SeenStretch>()).empty());
}

// A run whose capture ended early: its ratio is a stationary process, seen from the start on for SEEN of CELLS cells.
// CORRELATION: of one cell with the next. How often the interval covers the truth, of 1000 runs.
int covered_from_the_start(int seen, int cells, double correlation) {
  std::mt19937 random(20261122);
  std::normal_distribution<double> normal;
  int covered = 0;
  for (int run = 0; run < 1000; ++run) {
    double state = normal(random);
    std::vector<engine::SeenStretch> blocks;
    engine::SeenStretch start;
    engine::SeenStretch block;
    Seconds truth_s = 0;
    for (int cell = 0; cell < cells; ++cell) {
      state = correlation * state + std::sqrt(1 - correlation * correlation) * normal(random);
      const engine::SeenStretch stretch{1, 1.2 * (1 + 0.2 * state)};
      truth_s += stretch.predicted_s;
      if (cell >= seen) continue;
      for (engine::SeenStretch* sum : {&start, &block}) {
        sum->measured_s += stretch.measured_s;
        sum->predicted_s += stretch.predicted_s;
      }
      if ((cell + 1) % (seen / 8) != 0) continue;
      blocks.push_back(block);
      block = {};
    }
    const engine::Extrapolated estimate = engine::extrapolate(start, {}, cells, blocks);
    covered += estimate.low_s <= truth_s && truth_s <= estimate.high_s ? 1 : 0;
  }
  return covered;
}

TEST(Extrapolation, TheStartsIntervalCoversTheTruth) {
  for (const double correlation : {0.0, 0.9, 0.98}) {
    // 0.98: what is correlated lasts for half of what was seen. Then the scatter of blocks knows half of it.
    EXPECT_GE(covered_from_the_start(80, 160, correlation), correlation > 0.95 ? 850 : 900) << correlation;
    EXPECT_GE(covered_from_the_start(80, 1600, correlation), 900) << correlation;
    EXPECT_GE(covered_from_the_start(80, 8000, correlation), 900) << correlation;
  }
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
    std::vector<engine::SeenStretch> windows;
    Seconds run_s = 0;
    Seconds truth_s = 0;
    for (int cell = 0; cell < 400; ++cell) {
      const Seconds measured_s = length(random);
      const engine::SeenStretch stretch{measured_s, measured_s * ratio(random)};
      run_s += stretch.measured_s;
      truth_s += stretch.predicted_s;
      if (cell % 20 == 0) windows.push_back(stretch);
    }
    const engine::Extrapolated estimate = engine::extrapolate({0, 0}, windows, run_s);
    covered += estimate.low_s <= truth_s && truth_s <= estimate.high_s ? 1 : 0;
  }
  EXPECT_GE(covered, kRuns * 90 / 100);
  EXPECT_LE(covered, kRuns * 99 / 100);
}

}  // namespace
}  // namespace lbf::extrapolation_test