#include "advisor/trust/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lbf::advisor::trust_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(Trust, TheIntervalIsAsWideAsWhatIsNotKnown) {
  Trust trust;
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), kAssumedErrorPercent);
  trust.self_error_percent = 0.2;
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 5 + 1.25 * kLeastErrorPercent);
  trust.self_error_percent = -20;  // measured / predicted = 1 / 0.8
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 5 + 1.25 * 25);
  trust.lost_percent = 2;
  trust.unmodelled_percent = 3;
  trust.wildcard_percent = 50;
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 5 + 1.25 * 25 + 10);
  trust.unknown_collectives_percent = 100;
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 5 + 1.25 * 25 + 10 + 5);
  EXPECT_THAT(trust.notes(), Contains(HasSubstr("known by its family alone")));
}

TEST(Trust, TheMoreAPredictionChangesTheWiderItsInterval) {
  Trust trust;
  trust.self_error_percent = 4;  // measured / predicted = 1 / 1.04
  const double alike = trust.half_width_percent(1);
  EXPECT_NEAR(alike, 5 + 1.25 * 4 / 1.04, 1e-12);
  EXPECT_NEAR(trust.half_width_percent(0.5) - alike, 8 * std::log(2), 1e-12);
  EXPECT_NEAR(trust.half_width_percent(2) - alike, 8 * std::log(2), 1e-12) << "slower as well as faster";
  trust.self_error_percent.reset();
  EXPECT_NEAR(trust.half_width_percent(0.5), kAssumedErrorPercent + 8 * std::log(2), 1e-12);
  trust.site = {kLeastOutcomesOfSite, 4};
  EXPECT_DOUBLE_EQ(trust.half_width_percent(0.5), 4) << "outcomes were for other configurations, too";
}

TEST(Trust, WhatWasNotSeenWidensTheInterval) {
  Trust trust;
  trust.self_error_percent = -5;
  trust.unseen_percent = 90;
  trust.extrapolated_percent = 12;
  const double seen_whole = 5 + 1.25 * 100 / 19;
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), seen_whole + 12);
  EXPECT_THAT(trust.notes(), Contains(AllOf(HasSubstr("10.0 % of the run was captured"), HasSubstr("within 12.0 %"))));
  trust.extrapolated_percent.reset();
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), seen_whole + 100);
  EXPECT_THAT(trust.notes(), Contains(HasSubstr("too little was seen")));
}

TEST(Trust, EveryDoubtIsSaid) {
  Trust trust;
  EXPECT_THAT(trust.notes(), Contains(HasSubstr("no self-prediction error")));
  EXPECT_EQ(trust.notes().size(), 1U);
  trust.self_error_percent = -5;
  trust.lost_percent = 2;
  trust.wildcard_percent = 50;
  trust.unmodelled_percent = 3;
  trust.approximated_percent = 4;
  trust.why_partial = "rank 3 stopped";
  const std::vector<std::string> notes = trust.notes();
  for (const char* const part : {"-5.0 %", "rank 3 stopped", "2.0 % of the events", "50.0 % of the messages",
                                 "3.0 % of the time", "4.0 % of the collectives"}) {
    EXPECT_THAT(notes, Contains(HasSubstr(part)));
  }
}

TEST(Trust, ARankCountThatDidNotRunIsARange) {
  Trust trust;
  trust.other_ranks_percent = kOtherRanksPercent;
  const Saying saying = trust.say(10, 1, "lan", 2);
  EXPECT_EQ(saying.form, Saying::Form::kRange);
  EXPECT_NEAR(saying.high_s, 13.8, 1e-9);
  EXPECT_EQ(saying.why, "no run had so many ranks");
  EXPECT_EQ(saying.remedy, "run it once with them");
}

TEST(Trust, OtherRankCountsAreAsUncertainAsTheLawsAreOff) {
  EXPECT_DOUBLE_EQ(other_ranks_percent(std::nullopt), kOtherRanksPercent);
  EXPECT_DOUBLE_EQ(other_ranks_percent(8), kOtherRanksLeastPercent + 8);
}

TEST(Trust, TheIntervalIsFittedToOutcomesWhereThereAreEnough) {
  Trust trust;
  trust.self_error_percent = -5;
  trust.lost_percent = 2;
  trust.unmodelled_percent = 3;
  trust.wildcard_percent = 10;
  EXPECT_EQ(trust.basis(), Trust::Basis::kSelfError);
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 5 + 1.25 * 100 / 19 + 6);
  trust.site = {kLeastOutcomesOfSite, 12};
  EXPECT_EQ(trust.basis(), Trust::Basis::kSite);
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 18) << "what is special about this trace comes on top";
  EXPECT_THAT(trust.notes(), Contains(HasSubstr("fitted to 10 outcomes of this site")));
  trust.program = {kLeastOutcomesOfProgram - 1, 20};
  EXPECT_EQ(trust.basis(), Trust::Basis::kSite) << "too few";
  trust.program = {kLeastOutcomesOfProgram, 7};
  EXPECT_EQ(trust.basis(), Trust::Basis::kProgram);
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 9) << "its own outcomes have the rest in them, but not what was lost";
  EXPECT_THAT(trust.notes(), Contains(HasSubstr("fitted to 5 outcomes of this program: 90 %")));
  trust.program.p90_percent = 1;
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 100.0 / 19 + 2) << "never narrower than the error of this very run";
}

TEST(Trust, WithoutMeasuredTimeOutcomesServe) {
  Trust trust;
  trust.site = {kLeastOutcomesOfSite, 4};
  EXPECT_DOUBLE_EQ(trust.half_width_percent(1), 4);
  EXPECT_THAT(trust.notes(), testing::Not(Contains(HasSubstr("is taken"))));
}

using Form = Saying::Form;

TEST(Saying, ANumberWithItsInterval) {
  Trust trust;
  trust.self_error_percent = 0.5;
  const Saying saying = trust.say(10, 1, "lan", 2);
  EXPECT_EQ(saying.form, Form::kNumber);
  EXPECT_DOUBLE_EQ(saying.half_width_percent, 5 + 1.25);
  EXPECT_DOUBLE_EQ(saying.low_s, 10 * (1 - 0.0625));
  EXPECT_DOUBLE_EQ(saying.high_s, 10 * (1 + 0.0625));
  EXPECT_EQ(saying.in_words(), "10.00 s");
  EXPECT_EQ(saying.give_or_take(), "6.2 %");
  EXPECT_EQ(saying.why + saying.remedy, "");
}

// "2 nodes would take 1.57 s on zero, give or take 24 %": the line of every first lbf-run.
TEST(Saying, NoNetworkIsABoundAcrossNodes) {
  Trust trust;
  trust.self_error_percent = 0.5;
  const Saying saying = trust.say(1.57, 0.5, "zero", 2);
  EXPECT_EQ(saying.form, Form::kAtBest);
  EXPECT_DOUBLE_EQ(saying.low_s, 1.57 * (1 - (5 + 1.25 + 8 * std::log(2)) / 100)) << "with the error of the model";
  EXPECT_EQ(saying.in_words(), "at best 1.385 s");
  EXPECT_FALSE(saying.has_interval());
  EXPECT_THAT(saying.remedy, HasSubstr("lbf-calibrate --name"));
  EXPECT_EQ(trust.say(1.57, 1, "zero", 1).form, Form::kNumber) << "on one node it is not used";
}

TEST(Saying, PublicFiguresAreARange) {
  Trust trust;
  trust.self_error_percent = 0.5;
  const Saying saying = trust.say(10, 1, "nominal-hdr", 2);
  EXPECT_EQ(saying.form, Form::kRange);
  EXPECT_DOUBLE_EQ(saying.half_width_percent, 5 + 1.25 + kNominalPercent);
  EXPECT_EQ(saying.in_words(3), "9.38 s to 13.1 s") << "real networks are no faster";
  EXPECT_THAT(saying.why, HasSubstr("nominal-hdr is from public figures"));
  EXPECT_EQ(saying.remedy, kMeasureNetwork);
  EXPECT_EQ(trust.say(10, 1, "nominal-hdr", 1).form, Form::kNumber);
}

// A warning stood below eight numbers.
TEST(Saying, WhatCannotBeTrustedIsNoNumber) {
  Trust trust;
  trust.network = "lan";
  trust.self_error_percent = 10.0;
  EXPECT_EQ(trust.say(10, 1, "lan", 2).form, Form::kNumber);
  trust.self_error_percent = 10.1;
  EXPECT_EQ(trust.doubt(), Doubt::kSelfErrorTooLarge);
  const Saying here = trust.say(10, 1, "lan", 2);
  EXPECT_EQ(here.form, Form::kRange);
  EXPECT_EQ(here.why, "the self-prediction error is +10.1 %");
  EXPECT_THAT(here.remedy, HasSubstr("pin the ranks"));
  EXPECT_EQ(trust.say(10, 0.5, "fast", 2).remedy, "run it once on network fast");
  trust.network = "zero";
  trust.nodes = 2;
  EXPECT_EQ(trust.say(10, 1, "zero", 1).remedy, kMeasureNetwork) << "the error is the network's";
  trust.self_error_percent = 1;
  trust.is_lost_to_others = true;
  EXPECT_EQ(trust.doubt(), Doubt::kLostToOthers);
  EXPECT_EQ(trust.say(10, 1, "lan", 1).form, Form::kRange);
  EXPECT_THAT(trust.say(10, 1, "lan", 1).remedy, HasSubstr("run it alone"));
}

TEST(Saying, AWideIntervalIsARangeAndTheWidestTellsNothing) {
  Trust trust;
  trust.self_error_percent = 0;
  const double self = 5 + 1.25 * kLeastErrorPercent;
  EXPECT_EQ(trust.say(10, 1, "lan", 2, {kWidestNumberPercent - self}).form, Form::kNumber);
  EXPECT_EQ(trust.say(10, 1, "lan", 2, {kWidestNumberPercent - self + 0.01}).form, Form::kRange);
  EXPECT_EQ(trust.say(10, 1, "lan", 2, {kWidestRangePercent - self - 0.01}).form, Form::kRange);
  EXPECT_EQ(trust.say(10, 1, "lan", 2, {kWidestRangePercent - self}).form, Form::kCannotTell);
  trust.unseen_percent = 92;
  trust.extrapolated_percent = 30;
  EXPECT_EQ(trust.say(10, 1, "lan", 2).remedy, "raise the overhead limit");
  trust.extrapolated_percent.reset();
  const Saying unknown = trust.say(10, 1, "lan", 2);
  EXPECT_EQ(unknown.in_words(), "cannot tell");
  EXPECT_EQ(unknown.why, "only 8 % of the run was captured");
  EXPECT_EQ(unknown.remedy, "raise the overhead limit");
  trust.too_little_seen = "only 0.2 % of the run was captured";
  EXPECT_EQ(trust.doubt(), Doubt::kSeenTooLittle);
  EXPECT_EQ(trust.say(10, 1, "zero", 2).form, Form::kCannotTell) << "no bound either: it is extrapolated";
}

TEST(Saying, ExchangesMayOnlyTakeLonger) {
  Trust trust;
  trust.self_error_percent = 0;
  const Saying without = trust.say(10, 1, "lan", 2);
  const Saying with = trust.say(10, 1, "lan", 2, {0, 6});
  EXPECT_EQ(with.low_s, without.low_s);
  EXPECT_NEAR(with.high_s, without.high_s + 10 * 0.06, 1e-9);
  EXPECT_NEAR(with.half_width_percent, without.half_width_percent + 6, 1e-9);
  EXPECT_TRUE(with.is_number());
  const Saying range = trust.say(10, 1, "lan", 2, {0, 60});
  EXPECT_EQ(range.form, Form::kRange);
  EXPECT_THAT(range.why, HasSubstr("may take turns"));
  EXPECT_EQ(range.remedy, "run it once there");
}

TEST(Gain, OfTheObjectivesValue) {
  const Gain gain = gain_of(100, 80, 10);
  EXPECT_NEAR(gain.percent, 20, 1e-9);
  EXPECT_NEAR(gain.low_percent, 12, 1e-9);   // 88 instead of 80
  EXPECT_NEAR(gain.high_percent, 28, 1e-9);  // 72
  EXPECT_TRUE(gain.is_certain());
  EXPECT_FALSE(gain_of(100, 92, 10).is_certain()) << "101.2 would be a loss";
}

}  // namespace
}  // namespace lbf::advisor::trust_test