// Laws of parts of made-up runs, the time that they make, and what is refused.
#include "advisor/scaling/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lbf::advisor::scaling_test {
namespace {

using testing::HasSubstr;

constexpr Shape kRoot{-0.5, false};

std::vector<Sample> samples(const std::vector<double>& counts, const auto& value_of, Seconds of_s = 10) {
  std::vector<Sample> out;
  for (const double ranks : counts) out.push_back({ranks, value_of(ranks), of_s});
  return out;
}

// --- one law

TEST(FitLaw, ThreeRunsGiveEachSimpleLawBackExactly) {
  const struct {
    Law law;
    Shape kind;
  } kCases[] = {
      {{0, 8, kInverse}, kInverse}, {{3, 0, kOne}, kInverse},           {{0.5, 6, kInverse}, kInverse},
      {{0, 0.4, kLog}, kLog},       {{0, 4, {-2.0 / 3, false}}, kOne},  {{1, 0.3, kLog}, kOne},
      {{0, 0.1, kLinear}, kLog},    {{0.2, 0.05, {1, true}}, kInverse}, {{0.7, 5, kRoot}, kOne},
  };
  for (const auto& [law, kind] : kCases) {
    const auto given = samples({2, 4, 16, 64}, [&law = law](double ranks) { return law.at(ranks); });
    const FittedLaw fitted = fit_law(given, kind);
    for (const double ranks : {1.0, 8.0, 100.0, 1024.0})
      EXPECT_NEAR(fitted.law.at(ranks), law.at(ranks), 1e-6 * law.at(ranks)) << law.in_words();
    EXPECT_NEAR(fitted.left_out, 0, 1e-9) << law.in_words();
    EXPECT_FALSE(fitted.is_assumed);
  }
}

// Work of 8 s / p with 1 % of noise: with more terms it would fit the noise.
TEST(FitLaw, NoiseMakesNoTerms) {
  const std::vector<Sample> given = {{2, 4.03, 5}, {4, 1.99, 3}, {8, 1.005, 2}};
  const FittedLaw fitted = fit_law(given, kInverse);
  EXPECT_EQ(fitted.law.shape, kInverse);
  EXPECT_EQ(fitted.law.constant, 0);
  EXPECT_GT(fitted.left_out, 0);
}

// 2 + 8 / p: leaving one count out shows that 1 / p alone does not say it.
TEST(FitLaw, LeaveOneOutParts1OverPFromAConstantBesideIt) {
  const FittedLaw fitted = fit_law(samples({2, 4, 8}, [](double p) { return 2 + 8 / p; }), kInverse);
  EXPECT_NEAR(fitted.law.constant, 2, 1e-9);
  EXPECT_NEAR(fitted.law.factor, 8, 1e-9);
  EXPECT_EQ(fitted.law.shape, kInverse);
}

TEST(FitLaw, TwoRunsGiveTheLawOfTheKind) {
  EXPECT_EQ(fit_law(samples({4, 8}, [](double p) { return 8 / p; }), kInverse).law.in_words(), "8.00 s / p");
  EXPECT_EQ(fit_law(samples({4, 8}, [](double p) { return 2 * std::log2(p); }), kLog).law.in_words(), "2.00 s log2(p)");
  EXPECT_EQ(fit_law(samples({4, 8}, [](double) { return 3.0; }), kLog).law.in_words(), "3.00 s");
  EXPECT_EQ(fit_law(samples({4, 8}, [](double p) { return 1 + 8 / p; }), kInverse).law.in_words(),
            "1.00 s + 8.00 s / p");
}

// Of two runs nobody knows whether a part that grows does so as log2(p) or as p: the interval has both.
TEST(FitLaw, OfTwoRunsAGrowingPartIsUncertain) {
  const FittedLaw fitted = fit_law(samples({4, 8}, [](double p) { return p == 4 ? 1.0 : 1.5; }), kInverse);
  EXPECT_NEAR(fitted.law.at(64), 3, 1e-9) << "0.5 log2(p)";
  ASSERT_EQ(fitted.others.size(), 1U);
  EXPECT_NEAR(fitted.others[0].at(64), 8.5, 1e-9) << "0.5 + p / 8";
}

TEST(FitLaw, OfOneCountItIsAssumed) {
  const FittedLaw fitted = fit_law(samples({4}, [](double) { return 2.0; }), kLog);
  EXPECT_TRUE(fitted.is_assumed);
  EXPECT_NEAR(fitted.law.at(16), 4, 1e-9);
  ASSERT_EQ(fitted.others.size(), 2U);
  EXPECT_NEAR(fitted.others[0].at(16), 2, 1e-9);
  EXPECT_NEAR(fitted.others[1].at(16), 8, 1e-9);
}

TEST(FitLaw, APartThatNeverTakesTimeTakesNone) {
  for (const std::vector<double>& counts : {std::vector<double>{4}, {4, 8}, {4, 8, 16}})
    EXPECT_EQ(fit_law(samples(counts, [](double) { return 0.0; }), kLog).law.at(64), 0);
}

// --- runs

// On nodes of 4: work 96 s / p, 0.1 s log2(p) of latency, of which all is between nodes from the second one on, and 1 s
// that stays.
ScalingRun run(std::uint32_t ranks, double error_percent = 0) {
  ScalingRun out;
  out.ranks = ranks;
  out.nodes = (ranks + 3) / 4;
  out.error_percent = error_percent;
  out.parts[static_cast<std::size_t>(Part::kWork)] = 96.0 / ranks;
  out.parts[static_cast<std::size_t>(out.nodes > 1 ? Part::kLatencyBetween : Part::kLatencyInside)] =
      0.1 * std::log2(ranks);
  out.parts[static_cast<std::size_t>(Part::kKept)] = 1;
  return out;
}

Scaling scaling(std::vector<ScalingRun> runs, Problem problem = Problem::kSame) {
  auto made = Scaling::make(std::move(runs), problem);
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

TEST(Scaling, PutsTheLawsTogether) {
  const Scaling made = scaling({run(32), run(8), run(16)});
  const ScalingForecast there = *made.at(64, 16);
  EXPECT_NEAR(there.time_s, 96.0 / 64 + 0.6 + 1, 1e-6);
  EXPECT_NEAR(there.low_s, there.time_s, 0.02 * there.time_s);
  EXPECT_NEAR(there.high_s, there.time_s, 0.02 * there.time_s);
  EXPECT_NEAR(there.node_hours(), 16 * there.time_s / 3600, 1e-9);
  EXPECT_NEAR(made.efficiency(there), (12 + 0.3 + 1) / (there.time_s * 8), 1e-6);
  EXPECT_EQ(made.bound_by(there), Part::kKept);
  EXPECT_NEAR(made.efficiency(*made.at(8, 2)), 1, 1e-6);
}

TEST(Scaling, CostsOfAnotherNetworkScaleTheirParts) {
  const Scaling made = scaling({run(8), run(16), run(32)});
  EXPECT_NEAR(made.at(64, 16, {.latency = 10, .gap = 100})->time_s, 96.0 / 64 + 6 + 1, 1e-6);
  EXPECT_NEAR(made.at(64, 16, {.speed = 2})->time_s, 2 * 96.0 / 64 + 0.6 + 1, 1e-6);
}

// The prediction of what ran may be off by 5 %: so may this one.
TEST(Scaling, TheErrorOfTheRunsWidensTheInterval) {
  const ScalingForecast sure = *scaling({run(8), run(16), run(32)}).at(64, 16);
  const ScalingForecast there = *scaling({run(8), run(16, 5), run(32)}).at(64, 16);
  EXPECT_NEAR(there.high_s - sure.high_s, 0.05 * there.time_s, 1e-6);
  EXPECT_NEAR(sure.low_s - there.low_s, 0.05 * there.time_s, 1e-6);
}

TEST(Scaling, OneRankHasNoMessages) {
  const Scaling made = scaling({run(1), run(2), run(4)});
  EXPECT_NEAR(made.at(1, 1)->time_s, 97, 1e-6);
  EXPECT_NEAR(made.at(2, 1)->time_s, 49.1, 1e-6);
}

TEST(Scaling, SeveralNodesAreNoExtrapolationOfOne) {
  const auto there = scaling({run(1), run(2), run(4)}).at(8, 2);
  ASSERT_FALSE(there);
  EXPECT_THAT(there.error().message, HasSubstr("no run had several nodes: run it once with 8 ranks on 2 nodes"));
  const auto inside = scaling({run(8), run(16)}).at(4, 1);
  ASSERT_FALSE(inside);
  EXPECT_THAT(inside.error().message, HasSubstr("no run had one node only: run it once with 4 ranks on 1 node"));
}

// One run on several nodes: the law of the latency between them is assumed, and the interval says so.
TEST(Scaling, APartThatOneRunToldHasAWideInterval) {
  const ScalingForecast there = *scaling({run(2), run(4), run(8)}).at(64, 16);
  EXPECT_NEAR(there.time_s, 96.0 / 64 + 0.6 + 1, 1e-6);
  EXPECT_EQ(there.widest, Part::kLatencyBetween);
  EXPECT_GE(there.high_s, there.time_s - 0.6 + 0.3 * 8 - 1e-6) << "if it grows as p";
}

TEST(Scaling, SaysWorkWhereAllRanksDoIt) {
  const auto with_serial_work = [](std::uint32_t ranks) {
    ScalingRun out = run(ranks);
    out.parts[static_cast<std::size_t>(Part::kWork)] += 3;
    return out;
  };
  const Scaling made = scaling({with_serial_work(8), with_serial_work(16), with_serial_work(32)});
  EXPECT_EQ(made.bound_by(*made.at(64, 16)), Part::kWork);
  EXPECT_NEAR(made.law(Part::kWork, true)->law.constant, 3, 1e-6);
}

TEST(Scaling, WeakRunsHaveTheSameWorkInEachRank) {
  const auto weak = [](std::uint32_t ranks) {
    ScalingRun out = run(ranks);
    out.parts[static_cast<std::size_t>(Part::kWork)] = 12;
    return out;
  };
  const Scaling made = scaling({weak(8), weak(16), weak(32)}, Problem::kSameForEachRank);
  const ScalingForecast there = *made.at(128, 32);
  EXPECT_NEAR(there.time_s, 12 + 0.7 + 1, 1e-6);
  EXPECT_NEAR(made.efficiency(there), (12 + 0.3 + 1) / there.time_s, 1e-6);
}

// --- refusals

std::string why_not(std::vector<ScalingRun> runs, Problem problem = Problem::kSame) {
  const auto made = Scaling::make(std::move(runs), problem);
  return made ? "made" : made.error().message;
}

TEST(Scaling, RefusesOneRankCountAndSaysWhichRunSettlesIt) {
  EXPECT_EQ(why_not({run(8), run(8)}), "one rank count (8) makes no law: run it once with 16 ranks");
}

TEST(Scaling, RefusesCountsThatAreTooCloseToTell) {
  EXPECT_EQ(why_not({run(16), run(20)}),
            "16 and 20 ranks are too close to tell 1/p from a constant: run it once with 40 ranks");
}

TEST(Scaling, RefusesOtherProblems) {
  ScalingRun other = run(16);
  other.parts[static_cast<std::size_t>(Part::kWork)] *= 3;
  EXPECT_THAT(why_not({run(8), other}), HasSubstr("no common problem: together 8 ranks work 96 s, 16 ranks 288 s"));
  EXPECT_THAT(why_not({run(8), run(32)}, Problem::kSameForEachRank), HasSubstr("no common problem: each of 32 ranks"));
}

// --- knee

// T = 96 / p + 1 on 4, 8, ... ranks: p T^2 is 2500, 1352, 784, 512, 400, 392, 484.
TEST(Knee, IsWhereEfficiencyOverTimeIsLargest) {
  std::vector<ScalingForecast> by_ranks;
  for (const std::uint32_t ranks : {4U, 8U, 16U, 32U, 64U, 128U, 256U}) {
    ScalingForecast& there = by_ranks.emplace_back();
    there.ranks = ranks;
    there.time_s = 96.0 / ranks + 1;
  }
  EXPECT_EQ(knee_of(by_ranks), std::optional<std::size_t>(5));
  by_ranks.pop_back();
  EXPECT_EQ(knee_of(by_ranks), std::nullopt) << "the last one: it may lie beyond";
  EXPECT_EQ(knee_of({}), std::nullopt);
}

TEST(AmdahlBound, IsWhatStaysAndTheWorkThatShrinks) {
  const AmdahlBound bound = amdahl_bound(run(8));
  EXPECT_NEAR(bound.stays_s, 1.3, 1e-9);
  EXPECT_NEAR(bound.at(16), 1.3 + 6, 1e-9);
}

TEST(Law, IsSaidInWords) {
  EXPECT_EQ((Law{2, 3, kInverse}.in_words()), "2.00 s + 3.00 s / p");
  EXPECT_EQ((Law{0, 0.5, {2.0 / 3, true}}.in_words()), "0.50 s log2(p) p^0.67");
  EXPECT_EQ((Law{0, 3, kOne}.in_words()), "3.00 s");
  EXPECT_EQ((Law{0, 0, kLog}.in_words()), "0 s");
}

}  // namespace
}  // namespace lbf::advisor::scaling_test
