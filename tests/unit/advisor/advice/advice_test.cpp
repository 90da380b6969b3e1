// When something is advised, when not, and which facts are given.
#include "advisor/advice/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advisor/advice/reasons.h"
#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::advice_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class AdviceTest : public testing::Test {
 protected:
  Ranked ranked(const std::string& placement, std::vector<std::uint32_t> node_of_rank, std::uint32_t nodes,
                Seconds time_s) const {
    Ranked made;
    made.candidate.target.placement = placement;
    made.candidate.target.node_of_rank = std::move(node_of_rank);
    made.candidate.target.nodes = nodes;
    made.candidate.target.cores_per_node = 2;
    made.candidate.target.network = network_;
    made.candidate.set.network = network_;
    made.bound = bound_of(made.candidate.target, graph_, 0);
    made.time_s = time_s;
    made.verdict = Verdict::kReplayed;
    return made;
  }
  void is_now(Seconds predicted_s, std::optional<Seconds> measured_s) {
    baseline_.now = ranked("block", {0, 0, 1, 1}, 2, predicted_s);
    baseline_.is_what_ran = true;
    baseline_.measured_s = measured_s;
    if (measured_s) trust_.self_error_percent = 100 * (predicted_s - *measured_s) / *measured_s;
  }
  Advice advised(std::vector<Ranked> list, const Objective& objective = {}) const {
    Ranking ranking;
    ranking.ranked = std::move(list);
    put_in_order(ranking.ranked, objective);
    return advise(ranking, baseline_, trust_, graph_, objective);
  }

  std::shared_ptr<const engine::Network> network_ = test::slow_network();
  CommGraph graph_ = test::graph_of(4, {{0, 2, 8200}, {1, 3, 1300}, {0, 1, 500}}, 1);
  Baseline baseline_;
  Trust trust_;
};

TEST_F(AdviceTest, AGainBeyondTheError) {
  is_now(100, 98);  // 2.04 % off
  const Advice advice = advised({ranked("cyclic", {0, 1, 0, 1}, 2, 80), ranked("block", {0, 0, 1, 1}, 2, 100)});
  ASSERT_TRUE(advice.chosen.has_value());
  EXPECT_EQ(*advice.chosen, 0U);
  EXPECT_NEAR(advice.gain.percent, 100 * (1 - 80.0 / 98), 1e-9) << "of the smaller one of predicted and measured";
  EXPECT_THAT(advice.reasons,
              Contains("ranks 0,2 exchange 82 % of the bytes; on one node they leave the link to the others"));
  EXPECT_THAT(advice.reasons, Contains("5 % of the bytes travel between nodes instead of 95 %"));
}

TEST_F(AdviceTest, NoneWithinTheError) {
  is_now(90, 100);  // 10 % off
  const Advice advice = advised({ranked("cyclic", {0, 1, 0, 1}, 2, 84)});
  EXPECT_FALSE(advice.chosen.has_value());
  EXPECT_THAT(advice.why_not, HasSubstr("within the error"));
  EXPECT_NEAR(advice.gain.percent, 100 * (1 - 84.0 / 90), 1e-9) << "what all predictions are wrong by is no gain";
}

TEST_F(AdviceTest, NoneWhenNothingIsBetterOrItIsWhatRuns) {
  is_now(100, 100);
  EXPECT_THAT(advised({ranked("cyclic", {0, 1, 0, 1}, 2, 120)}).why_not, HasSubstr("keep it"));
  EXPECT_THAT(advised({ranked("block", {0, 0, 1, 1}, 2, 100)}).why_not, HasSubstr("keep it"));
}

// 4 ranks ran on 2 nodes; laws tell of 8 on 4 nodes and 16 on 8.
class RankCounts : public AdviceTest {
 protected:
  Ranked of_law(std::uint32_t nodes, Seconds time_s, double half_width_percent) const {
    std::vector<std::uint32_t> node_of_rank;
    for (std::uint32_t rank = 0; rank < 2 * nodes; ++rank) node_of_rank.push_back(rank / 2);
    Ranked made = ranked("block", {0, 0, 1, 1}, nodes, time_s);
    made.candidate.target.node_of_rank = std::move(node_of_rank);
    made.source = Source::kLaw;
    made.said.emplace();
    made.said->form = Saying::Form::kNumber;
    made.said->predicted_s = time_s;
    made.said->half_width_percent = half_width_percent;
    return made;
  }
};

TEST_F(RankCounts, TheFastestWhereThatIsSure) {
  is_now(100, 100);
  const Advice advice = advised({of_law(4, 60, 2), of_law(8, 57, 2)});
  ASSERT_EQ(advice.chosen, std::optional<std::size_t>(0));
  EXPECT_NEAR(advice.gain.high_percent - advice.gain.percent, 1.14, 1e-9) << "2 % of 57 s, in percent of 100 s";
  EXPECT_THAT(advice.reasons,
              testing::ElementsAre("8 ranks on 4 nodes, block would run 5.3 % longer, for 0.53 times the node-hours"));
}

TEST_F(RankCounts, TheCheaperOneWhereItIsNot) {
  is_now(100, 100);
  const Advice advice = advised({of_law(4, 60, 2), of_law(8, 57, 10)});
  ASSERT_EQ(advice.chosen, std::optional<std::size_t>(1));
  EXPECT_THAT(
      advice.reasons,
      testing::ElementsAre("16 ranks on 8 nodes, block would run 5 % shorter, for 1.9 times the node-hours; that "
                           "it is shorter is within the error"));
}

TEST_F(RankCounts, OfThePatternAreRangesWhateverIsKnownOfTheRanksThatRan) {
  is_now(100, 100);
  trust_.program = {20, 3};
  const Ranked there = ranked("block", {0, 0, 1, 1, 2, 2, 3, 3}, 4, 90);
  EXPECT_EQ(baseline_.say(trust_, there).half_width_percent, 3);
  Ranked of_pattern = there;
  of_pattern.source = Source::kPattern;
  of_pattern.other_ranks_percent = 30;
  const Saying saying = baseline_.say(trust_, of_pattern);
  EXPECT_GT(saying.half_width_percent, 30);
  EXPECT_EQ(saying.why, "no run had so many ranks");
  EXPECT_THAT(advised({of_pattern}).why_not, HasSubstr("8 ranks on 4 nodes, block"));
}

// 50 of 150 s were other programs', which no candidate has: it takes 100 s without them, 80 s by the measured time.
TEST_F(AdviceTest, OtherProgramsOfTheRunAreNoGain) {
  is_now(150, 120);
  baseline_.others_s = 50;
  EXPECT_DOUBLE_EQ(baseline_.time_s(), 80);
  EXPECT_DOUBLE_EQ(baseline_.change_of(ranked("cyclic", {0, 1, 0, 1}, 2, 50)), 0.5);
  EXPECT_FALSE(advised({ranked("cyclic", {0, 1, 0, 1}, 2, 100)}).chosen.has_value());
  EXPECT_NEAR(advised({ranked("cyclic", {0, 1, 0, 1}, 2, 20)}).gain.percent, 75, 1e-9);
  baseline_.measured_s = 160;
  EXPECT_DOUBLE_EQ(baseline_.time_s(), 100);
}

TEST_F(AdviceTest, FasterNodesAreNotWhatRuns) {
  is_now(100, 100);
  Ranked faster = ranked("block", {0, 0, 1, 1}, 2, 50);
  faster.candidate.target.speed = 2;
  EXPECT_TRUE(advised({faster}).chosen.has_value());
  Ranked larger = ranked("block", {0, 0, 1, 1}, 2, 50);
  larger.candidate.target.cores_per_node = 64;
  EXPECT_THAT(advised({larger}).why_not, HasSubstr("keep it")) << "two ranks use two processors";
  baseline_.now.candidate.target.cores_per_node = 1;
  EXPECT_TRUE(advised({larger}).chosen.has_value());
}

TEST_F(AdviceTest, WithoutAMeasurementTheAssumedErrorCounts) {
  is_now(100, std::nullopt);
  EXPECT_FALSE(advised({ranked("cyclic", {0, 1, 0, 1}, 2, 94)}).chosen.has_value());
  EXPECT_TRUE(advised({ranked("cyclic", {0, 1, 0, 1}, 2, 90)}).chosen.has_value());
}

TEST_F(AdviceTest, ASimplerOneThatIsAsGood) {
  is_now(100, 100);
  const std::vector<std::uint32_t> cyclic{0, 1, 0, 1};
  Advice advice = advised({ranked("map", {1, 0, 1, 0}, 2, 80), ranked("cyclic", cyclic, 2, 80.5)});
  ASSERT_TRUE(advice.chosen.has_value());
  EXPECT_EQ(*advice.chosen, 1U) << "no host file for half a percent";
  advice = advised({ranked("map", {1, 0, 1, 0}, 2, 80), ranked("cyclic", cyclic, 2, 82)});
  EXPECT_EQ(*advice.chosen, 0U);
}

TEST_F(AdviceTest, ADistributionMayNeedAHostFileToo) {
  is_now(100, 100);
  Ranked uneven = ranked("block", {0, 0, 0, 1}, 2, 80);
  uneven.candidate.target.cores_of_node = {3, 1};
  uneven.candidate.target.speed_of_node = {1, 1};
  EXPECT_EQ(advised({uneven, ranked("cyclic", {0, 1, 0, 1}, 2, 80.5)}).chosen, 1U);
  EXPECT_EQ(advised({uneven, ranked("cyclic", {0, 1, 0, 1}, 2, 82)}).chosen, 0U);
}

TEST_F(AdviceTest, OfDistributionsThatAreAlikeTheSimplest) {
  is_now(100, 100);
  const std::vector<std::uint32_t> cyclic{0, 1, 0, 1};
  const std::vector<std::uint32_t> two{1, 1, 0, 0};  // not where it runs now
  EXPECT_EQ(advised({ranked("plane=2", two, 2, 80), ranked("cyclic", cyclic, 2, 80.01), ranked("block", two, 2, 80.02)})
                .chosen,
            2U);
  EXPECT_EQ(advised({ranked("plane=2", two, 2, 80), ranked("cyclic", cyclic, 2, 80.01), ranked("block", two, 2, 80.5)})
                .chosen,
            1U);
  EXPECT_EQ(advised({ranked("plane=2", two, 2, 80), ranked("block", {0, 1, 2, 3}, 4, 80.01)}).chosen, 0U)
      << "other nodes are another matter";
}

TEST_F(AdviceTest, LimitsOfTheObjective) {
  is_now(100, 100);
  Objective deadline;
  deadline.goal = Goal::kNodeHours;
  deadline.deadline_s = 50;
  const std::vector<Ranked> list{ranked("block", {0, 0, 0, 0}, 1, 120), ranked("block", {0, 1, 2, 3}, 4, 45)};
  const Advice within = advised(list, deadline);
  ASSERT_TRUE(within.chosen.has_value()) << within.why_not;
  EXPECT_LT(within.gain.percent, 100) << "more node-hours than now, but now is too late";
  deadline.deadline_s = 40;
  EXPECT_THAT(advised(list, deadline).why_not, HasSubstr("keeps within the limits"));
}

TEST_F(AdviceTest, ABoundIsNeverAdvised) {
  is_now(100, 100);
  const auto bound = [this](Seconds time_s) {
    Ranked made = ranked("block", {0, 1, 2, 3}, 4, time_s);
    made.candidate.target.network = std::make_shared<const engine::Network>(engine::Network::zero());
    return made;
  };
  Advice advice = advised({bound(20)});
  EXPECT_FALSE(advice.chosen.has_value());
  EXPECT_THAT(advice.why_not, HasSubstr("every candidate's time is a bound"));
  EXPECT_THAT(advice.unmeasured, testing::AllOf(HasSubstr("4 nodes"), HasSubstr("at best"),
                                                HasSubstr("measure the network: lbf-calibrate --name")));
  advice = advised({bound(20), ranked("cyclic", {0, 1, 0, 1}, 2, 80)});
  EXPECT_EQ(advice.chosen, 1U) << "behind the bound";
  EXPECT_NE(advice.unmeasured, "");
  advice = advised({bound(95), ranked("cyclic", {0, 1, 0, 1}, 2, 80)});
  EXPECT_EQ(advice.chosen, 0U);
  EXPECT_EQ(advice.unmeasured, "") << "it cannot be better";
}

TEST_F(AdviceTest, WhatCannotBeToldIsNotAdvised) {
  is_now(100, 100);
  Ranked unknown = ranked("cyclic", {0, 1, 0, 1}, 2, 10);
  unknown.memory_percent = 100;
  EXPECT_THAT(advised({unknown}).why_not, HasSubstr("no time can be told"));
  unknown.memory_percent = 60;
  EXPECT_TRUE(advised({unknown}).chosen.has_value()) << "a range is sure enough";
}

TEST_F(AdviceTest, NothingToCompareWith) {
  is_now(100, std::nullopt);
  baseline_.now.verdict = Verdict::kStuck;
  baseline_.now.why_stuck = "cyclic wait";
  EXPECT_THAT(advised({ranked("cyclic", {0, 1, 0, 1}, 2, 10)}).why_not, HasSubstr("cyclic wait"));
}

TEST_F(AdviceTest, ReasonsAreCountsOrSilence) {
  const Ranked now = ranked("block", {0, 0, 1, 1}, 2, 100);
  EXPECT_THAT(reasons(now, now, graph_), IsEmpty());
  // The same cut, but every rank has a processor of its own: 2 s of work become 1 s, of 4 s.
  Ranked crowded = ranked("block", {0, 0, 1, 1}, 2, 4);
  crowded.candidate.target.cores_per_node = 1;
  crowded.bound = bound_of(crowded.candidate.target, graph_, 0);
  EXPECT_THAT(reasons(now, crowded, graph_),
              testing::ElementsAre("the busiest processor has 1 s of work instead of 2 s"));
}

}  // namespace
}  // namespace lbf::advisor::advice_test