// lbf-advise --ranks: which rank counts a cluster can run, and how they join what was replayed.
#include "tools/advise/advise_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "advisor/advice/how.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/advisor/fixture.h"
#include "tools/advise/advise_output.h"
#include "tools/advise/advise_session.h"

namespace lbf::advise_ranks_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// 40 s / p of work, nothing else, give or take 2 %; two ranks on a node.
report::ScalingAnswer answer(const std::vector<std::uint32_t>& counts) {
  report::ScalingAnswer out;
  out.network = "slow";
  out.ranks_per_node = 2;
  for (const std::uint32_t ranks : counts) {
    report::ScalingRow& row = out.rows.emplace_back();
    row.there.ranks = ranks;
    row.there.nodes = (ranks + 1) / 2;
    row.there.time_s = 40.0 / ranks;
    row.saying.form = advisor::Saying::Form::kNumber;
    row.saying.predicted_s = row.there.time_s;
    row.saying.low_s = 0.98 * row.there.time_s;
    row.saying.high_s = 1.02 * row.there.time_s;
    row.saying.half_width_percent = 2;
  }
  return out;
}

advisor::CandidateOptions options() {
  advisor::CandidateOptions made;
  made.networks = {advisor::test::slow_network()};
  return made;
}

TEST(OtherCounts, AreThoseThatTheClusterHasNodesFor) {
  const advisor::Cluster cluster = advisor::test::even_cluster(6, 2);
  const tools::RankChoices choices = tools::other_counts(answer({4, 8, 16}), cluster, options(), 4);
  ASSERT_THAT(choices.ranked, SizeIs(1)) << "4 ranks ran: they are replayed";
  const advisor::Ranked& one = choices.ranked.front();
  EXPECT_EQ(advisor::srun_flags(one.candidate, ""), "-N4 -n8 --distribution=block --ntasks-per-node=2");
  EXPECT_EQ(one.time_s, 5);
  EXPECT_EQ(one.said->high_s, 5.1);
  EXPECT_THAT(choices.not_known, ElementsAre("16 ranks: no partition has 8 nodes as fast as those that ran with 2 "
                                             "processors each on network slow"));
}

TEST(OtherCounts, HaveTheThreadsThatRan) {
  report::ScalingAnswer two_threads = answer({8});
  two_threads.threads = 2;
  EXPECT_THAT(tools::other_counts(two_threads, advisor::test::even_cluster(6, 2), options(), 4).ranked, IsEmpty());
  const auto choices = tools::other_counts(two_threads, advisor::test::even_cluster(6, 4), options(), 4);
  ASSERT_THAT(choices.ranked, SizeIs(1));
  EXPECT_THAT(advisor::srun_flags(choices.ranked[0].candidate, ""), HasSubstr("--cpus-per-task=2"));
}

TEST(OtherCounts, AreOnTheSameNetworkAndProcessorsAsFast) {
  const advisor::Cluster fast =
      advisor::test::cluster("[[node]]\nname = \"n[1-6]\"\ncores_per_socket = 2\nspeed = 2.0\n");
  EXPECT_THAT(tools::other_counts(answer({8}), fast, options(), 4).ranked, IsEmpty());
  report::ScalingAnswer elsewhere = answer({8});
  elsewhere.network = "ib";
  EXPECT_THAT(tools::other_counts(elsewhere, advisor::test::even_cluster(6, 2), options(), 4).ranked, IsEmpty());
}

TEST(OtherCounts, OfTheNodeCountsThatWereAskedFor) {
  advisor::CandidateOptions asked = options();
  asked.node_counts = {2, 4};
  const auto choices = tools::other_counts(answer({8, 12}), advisor::test::even_cluster(6, 2), asked, 4);
  ASSERT_THAT(choices.ranked, SizeIs(1));
  EXPECT_EQ(choices.ranked[0].candidate.target.nodes, 4U);
}

// Four ranks of 10 s that never wait ran on two nodes.
class Session : public testing::Test {
 protected:
  Session() { std::ofstream(path_) << "lbf-trace 1\nranks 4\n0 exit 10\n1 exit 10\n2 exit 10\n3 exit 10\n"; }
  tools::AdviseResult advise(const std::vector<std::uint32_t>& counts) {
    auto trace = tools::open_trace(path_, "");
    EXPECT_TRUE(trace.ok());
    tools::AdviseTrace passes(std::move(*trace), "", 1, nullptr);
    const advisor::Cluster cluster = advisor::test::even_cluster(6, 2);
    tools::AdviseOptions asked;
    asked.candidates = options();
    asked.ran.nodes = 2;
    asked.ran.cores = 2;
    asked.ran.network = asked.candidates.networks.front();
    asked.ran.measured_s = 10;
    tools::RankChoices choices = tools::other_counts(answer(counts), cluster, asked.candidates, 4);
    asked.rank_counts = counts;
    asked.other_counts = std::move(choices.ranked);
    asked.counts_not_known = std::move(choices.not_known);
    auto result = tools::advise(passes, cluster, std::move(asked));
    EXPECT_TRUE(result.ok()) << (result ? "" : result.error().message);
    return result ? std::move(*result) : tools::AdviseResult{};
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/t.lbf";
};

TEST_F(Session, CountsOfLawsAndReplaysAreOneRanking) {
  const tools::AdviseResult result = advise({4, 8, 16});
  ASSERT_TRUE(result.advice.chosen);
  EXPECT_THAT(tools::advise_flags(result, ""), HasSubstr("-N4 -n8 "));
  EXPECT_NEAR(result.advice.gain.percent, 50, 1e-9);
  EXPECT_NEAR(result.advice.gain.low_percent, 49, 1e-9) << "by the law's interval";
  std::string text = tools::advise_text(result, {});
  std::ranges::replace(text, '\n', ' ');
  EXPECT_THAT(text, HasSubstr(" Ranks "));
  EXPECT_THAT(text, HasSubstr("Advice: 8 ranks on 4 nodes, block, slow: 5.000 s"));
  EXPECT_THAT(text, HasSubstr(", 1 of other rank counts by laws"));
  EXPECT_THAT(text, HasSubstr("Not known: 16 ranks: no partition"));
  const auto json = nlohmann::json::parse(tools::advise_json(result, {}));
  EXPECT_EQ(json["candidates"][0]["verdict"], "by_laws");
  EXPECT_EQ(json["candidates"][0]["ranks"], 8);
  EXPECT_GT(json["candidates"].size(), 1U);
  EXPECT_THAT(json["counts_not_known"], SizeIs(1));
}

TEST_F(Session, OnlyTheCountsThatWereAskedFor) {
  const tools::AdviseResult result = advise({8});
  EXPECT_THAT(result.ranking.ranked, SizeIs(1));
}

}  // namespace
}  // namespace lbf::advise_ranks_test
