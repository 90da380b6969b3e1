// Ranking under a budget, with replays whose times the test decides.
#include "advisor/ranking/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::ranking_test {
namespace {

using testing::HasSubstr;

// Two groups of two ranks, scattered: block cuts both, {0, 1, 0, 1} none.
class RankingTest : public testing::Test {
 protected:
  // The "replay": bytes between nodes, in thousands, plus one second.
  Result<std::vector<Replayed>> replay(const std::vector<engine::Target>& targets) {
    ++passes_;
    now_s_ += pass_s_;
    most_targets_ = std::max(most_targets_, targets.size());
    std::vector<Replayed> replayed;
    for (const engine::Target& target : targets) {
      const NodeTraffic traffic = traffic_of(target.node_of_rank, target.nodes, graph_);
      const Seconds time_s = 1 + static_cast<Seconds>(traffic.between) / 1000;
      replayed.push_back({time_s, target.nodes == stuck_on_ ? "it waits for ever" : ""});
    }
    return replayed;
  }
  ReplayBatch replay_batch() {
    return [this](const std::vector<engine::Target>& targets) { return replay(targets); };
  }
  RankingOptions options() {
    RankingOptions made;
    made.processor_time_s = [this] { return now_s_; };
    return made;
  }
  Candidate candidate(std::uint32_t nodes, std::vector<std::uint32_t> node_of_rank, const std::string& placement) {
    Candidate made;
    for (std::uint32_t node = 0; node < nodes; ++node) made.set.nodes.push_back(node);
    made.set.network = network_;
    made.target.nodes = nodes;
    made.target.cores_per_node = 4;
    made.target.node_of_rank = std::move(node_of_rank);
    made.target.placement = placement;
    made.target.network = network_;
    return made;
  }
  std::vector<Candidate> candidates() {
    return {candidate(2, {0, 0, 1, 1}, "block"), candidate(2, {0, 1, 0, 1}, "cyclic"),
            candidate(4, {0, 1, 2, 3}, "block"), candidate(1, {0, 0, 0, 0}, "block")};
  }

  CommGraph graph_ = test::graph_of(4, {{0, 2, 5000}, {1, 3, 4000}, {0, 1, 100}}, 0.5);
  std::shared_ptr<const engine::Network> network_ = test::slow_network();
  int passes_ = 0;
  std::size_t most_targets_ = 0;
  Seconds now_s_ = 0;
  Seconds pass_s_ = 0.1;
  std::uint32_t stuck_on_ = 99;
};

TEST_F(RankingTest, BestFirst) {
  const Result<Ranking> ranking = rank(candidates(), graph_, replay_batch(), options());
  ASSERT_TRUE(ranking.ok());
  EXPECT_EQ(passes_, 1);
  ASSERT_EQ(ranking->ranked.size(), 4U);
  EXPECT_EQ(ranking->ranked[0].candidate.target.nodes, 1U);
  EXPECT_DOUBLE_EQ(ranking->ranked[0].time_s, 1.0);
  EXPECT_EQ(ranking->ranked[1].candidate.target.placement, "cyclic");
  EXPECT_DOUBLE_EQ(ranking->ranked[1].time_s, 1.1);
  EXPECT_TRUE(ranking->ranked[0].on_front);
  EXPECT_FALSE(ranking->ranked[1].on_front);
  EXPECT_EQ(ranking->count(Verdict::kReplayed), 4U);
}

TEST_F(RankingTest, WhatTheBudgetDoesNotReachIsDeferred) {
  RankingOptions two = options();
  two.targets_a_pass = 2;
  two.budget_s = 0.15;  // one pass takes 0.1 s
  const Result<Ranking> ranking = rank(candidates(), graph_, replay_batch(), two);
  ASSERT_TRUE(ranking.ok());
  EXPECT_EQ(passes_, 1);
  EXPECT_EQ(most_targets_, 2U);
  EXPECT_EQ(ranking->count(Verdict::kReplayed), 2U);
  EXPECT_EQ(ranking->count(Verdict::kDeferred), 2U);
  EXPECT_EQ(ranking->ranked[0].candidate.target.nodes, 1U) << "the best estimate is replayed first";
  two.budget_s = 0.25;
  EXPECT_EQ(rank(candidates(), graph_, replay_batch(), two)->count(Verdict::kDeferred), 0U);
  two.budget_s = 0;
  EXPECT_EQ(rank(candidates(), graph_, replay_batch(), two)->count(Verdict::kReplayed), 2U)
      << "one pass is always made";
}

TEST_F(RankingTest, WhatCannotBeTheBestIsRuledOut) {
  RankingOptions one = options();
  one.targets_a_pass = 1;
  one.budget_s = 100;
  std::vector<Candidate> some = candidates();
  some[2].target.speed = 0.1;  // 5 s of work at least; the best takes 1 s
  const Result<Ranking> ranking = rank(some, graph_, replay_batch(), one);
  ASSERT_TRUE(ranking.ok());
  EXPECT_EQ(passes_, 3);
  EXPECT_EQ(ranking->ranked.back().verdict, Verdict::kRuledOut);
  EXPECT_EQ(ranking->ranked.back().candidate.target.nodes, 4U);
}

TEST_F(RankingTest, LimitsOfTheObjective) {
  RankingOptions limited = options();
  // Fewer than 1.05 s * 1 node, in hours.
  limited.objective.node_hours_limit = 1.05 / 3600;
  Result<Ranking> ranking = rank(candidates(), graph_, replay_batch(), limited);
  ASSERT_TRUE(ranking.ok());
  EXPECT_EQ(ranking->ranked[0].candidate.target.nodes, 1U);
  EXPECT_EQ(ranking->count(Verdict::kReplayed), 3U) << "0.5 s of work on 2 nodes might do";
  EXPECT_EQ(ranking->count(Verdict::kRuledOut), 1U) << "0.5 s of work on 4 nodes is too much already";

  limited = options();
  limited.objective.goal = Goal::kNodeHours;
  ranking = rank(candidates(), graph_, replay_batch(), limited);
  EXPECT_EQ(ranking->ranked[0].candidate.target.nodes, 1U);
  EXPECT_DOUBLE_EQ(ranking->ranked[0].node_hours(), 1.0 / 3600);
}

TEST_F(RankingTest, StuckTargetsAreNoCandidates) {
  stuck_on_ = 1;
  const Result<Ranking> ranking = rank(candidates(), graph_, replay_batch(), options());
  ASSERT_TRUE(ranking.ok());
  EXPECT_EQ(ranking->ranked[0].candidate.target.placement, "cyclic");
  EXPECT_EQ(ranking->ranked.back().verdict, Verdict::kStuck);
  EXPECT_EQ(ranking->ranked.back().why_stuck, "it waits for ever");
}

TEST_F(RankingTest, ErrorsOfTheReplayArePassedOn) {
  const auto ranking = rank(
      candidates(), graph_,
      [](const std::vector<engine::Target>&) -> Result<std::vector<Replayed>> {
        return invalid_input("rank 3, event 7: no such peer");
      },
      options());
  ASSERT_FALSE(ranking.ok());
  EXPECT_THAT(ranking.error().message, HasSubstr("rank 3, event 7"));
}

TEST_F(RankingTest, TheSearchFindsWhatNoDistributionHas) {
  // The groups (0, 2) and (1, 3) belong together; from blocks one exchange leads there.
  const Cluster cluster = test::even_cluster(2, 2);
  CandidateOptions two_nodes = test::options(4);
  const SearchSpace space{cluster, two_nodes};
  RankingOptions some = options();
  some.budget_s = 10;
  Result<Ranking> ranking = rank({candidate(2, {0, 0, 1, 1}, "block")}, graph_, replay_batch(), some);
  ASSERT_TRUE(ranking.ok());
  ASSERT_TRUE(search_by_replay(*ranking, space, graph_, replay_batch(), some).ok());
  ASSERT_EQ(ranking->ranked.size(), 2U);
  EXPECT_TRUE(ranking->ranked[0].searched);
  EXPECT_TRUE(ranking->ranked[0].candidate.is_map());
  EXPECT_EQ(ranking->ranked[0].candidate.target.node_of_rank[0], ranking->ranked[0].candidate.target.node_of_rank[2]);
  EXPECT_DOUBLE_EQ(ranking->ranked[0].time_s, 1.1);
  // Without a budget nothing is looked for.
  some.budget_s = 0;
  Result<Ranking> none = rank({candidate(2, {0, 0, 1, 1}, "block")}, graph_, replay_batch(), some);
  ASSERT_TRUE(search_by_replay(*none, space, graph_, replay_batch(), some).ok());
  EXPECT_EQ(none->ranked.size(), 1U);
}

TEST_F(RankingTest, TheSearchKeepsWithinTheLimitsOfTheObjective) {
  // On one node it takes longer, but fewer node-hours: 1.5 of 2.2 node-seconds, after a deadline of 1.2 s.
  const ReplayBatch replay = [](const std::vector<engine::Target>& targets) -> Result<std::vector<Replayed>> {
    std::vector<Replayed> replayed;
    for (const engine::Target& target : targets) replayed.push_back({target.nodes == 1 ? 1.5 : 1.1, ""});
    return replayed;
  };
  graph_ = test::graph_of(2, {{0, 1, 1000}});
  const Cluster cluster = test::even_cluster(2, 2);
  const CandidateOptions two_ranks = test::options(2);
  const SearchSpace space{cluster, two_ranks};
  RankingOptions limited = options();
  limited.objective.goal = Goal::kNodeHours;
  limited.budget_s = 10;
  const auto found = [&] {
    Result<Ranking> ranking = rank({candidate(2, {0, 1}, "block")}, graph_, replay, limited);
    EXPECT_TRUE(ranking.ok());
    EXPECT_TRUE(search_by_replay(*ranking, space, graph_, replay, limited).ok());
    return ranking->ranked.size() - 1;
  };
  EXPECT_EQ(found(), 1U);
  limited.objective.deadline_s = 1.2;
  EXPECT_EQ(found(), 0U);
}

}  // namespace
}  // namespace lbf::advisor::ranking_test