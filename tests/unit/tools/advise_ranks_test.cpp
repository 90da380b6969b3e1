// lbf-advise --ranks: which rank counts a cluster can run, what tells their times, and how they join what was replayed.
#include "tools/advise/advise_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "advisor/advice/how.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/advisor/fixture.h"
#include "tools/advise/advise_output.h"
#include "tools/advise/advise_session.h"

namespace lbf::advise_ranks_test {
namespace {

using advisor::Source;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using tools::OtherCount;

// 40 s / p of work, nothing else, give or take 2 %; two ranks on a node.
report::ScalingAnswer answer(std::uint32_t ranks) {
  report::ScalingAnswer out;
  out.network = "slow";
  out.ranks_per_node = 2;
  report::ScalingRow& row = out.rows.emplace_back();
  row.there.ranks = ranks;
  row.there.nodes = (ranks + 1) / 2;
  row.there.time_s = 40.0 / ranks;
  row.saying.form = advisor::Saying::Form::kNumber;
  row.saying.predicted_s = row.there.time_s;
  row.saying.low_s = 0.98 * row.there.time_s;
  row.saying.high_s = 1.02 * row.there.time_s;
  row.saying.half_width_percent = 2;
  return out;
}

advisor::CandidateOptions options() {
  advisor::CandidateOptions made;
  made.networks = {advisor::test::slow_network()};
  return made;
}

OtherCount by_law(Rank ranks, const advisor::Cluster& cluster, const Result<report::ScalingAnswer>& laws,
                  const advisor::CandidateOptions& asked = options()) {
  OtherCount other;
  other.ranks = ranks;
  tools::take_law(laws, cluster, asked, other);
  return other;
}

TEST(TakeLaw, WhereTheClusterHasNodes) {
  const advisor::Cluster cluster = advisor::test::even_cluster(6, 2);
  const OtherCount eight = by_law(8, cluster, answer(8));
  ASSERT_THAT(eight.by_law, SizeIs(1));
  const advisor::Ranked& one = eight.by_law.front();
  EXPECT_EQ(advisor::srun_flags(one.candidate, ""), "-N4 -n8 --distribution=block --ntasks-per-node=2");
  EXPECT_EQ(one.time_s, 5);
  EXPECT_EQ(one.said->high_s, 5.1);
  EXPECT_EQ(one.source, Source::kLaw);
  const OtherCount sixteen = by_law(16, cluster, answer(16));
  EXPECT_THAT(sixteen.by_law, IsEmpty());
  EXPECT_EQ(sixteen.why_no_law,
            "no partition has 8 nodes as fast as those that ran with 2 processors each on network slow");
}

TEST(TakeLaw, WithTheThreadsThatRan) {
  report::ScalingAnswer two_threads = answer(8);
  two_threads.threads = 2;
  EXPECT_THAT(by_law(8, advisor::test::even_cluster(6, 2), two_threads).by_law, IsEmpty());
  const OtherCount other = by_law(8, advisor::test::even_cluster(6, 4), two_threads);
  ASSERT_THAT(other.by_law, SizeIs(1));
  EXPECT_THAT(advisor::srun_flags(other.by_law[0].candidate, ""), HasSubstr("--cpus-per-task=2"));
}

TEST(TakeLaw, OnTheSameNetworkAndProcessorsAsFast) {
  const advisor::Cluster fast =
      advisor::test::cluster("[[node]]\nname = \"n[1-6]\"\ncores_per_socket = 2\nspeed = 2.0\n");
  EXPECT_THAT(by_law(8, fast, answer(8)).by_law, IsEmpty());
  report::ScalingAnswer elsewhere = answer(8);
  elsewhere.network = "ib";
  EXPECT_THAT(by_law(8, advisor::test::even_cluster(6, 2), elsewhere).by_law, IsEmpty());
}

TEST(TakeLaw, OfTheNodeCountsThatWereAskedFor) {
  const advisor::Cluster cluster = advisor::test::even_cluster(6, 2);
  advisor::CandidateOptions asked = options();
  asked.node_counts = {2, 4};
  EXPECT_THAT(by_law(8, cluster, answer(8), asked).by_law, SizeIs(1));
  EXPECT_THAT(by_law(12, cluster, answer(12), asked).by_law, IsEmpty());
}

TEST(TakeLaw, WhyThereIsNone) {
  const advisor::Cluster cluster = advisor::test::even_cluster(6, 2);
  report::ScalingAnswer none;
  none.beyond = "8 ranks: no run had several nodes";
  EXPECT_EQ(by_law(8, cluster, none).why_no_law, "no run had several nodes");
  EXPECT_EQ(by_law(8, cluster, invalid_input("jobs 1 and 2 differ")).why_no_law, "jobs 1 and 2 differ");
}

TEST(RunsToLearnFrom, AreTheLastOfEachOtherCount) {
  std::vector<report::Step> steps(5);
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    steps[i].job = 10 + i;
    steps[i].state = report::StepState::kComplete;
    steps[i].ranks = i < 3 ? 8 : 4;
    steps[i].start_s = i == 1 ? 9 : i;
  }
  steps[4].ranks = 16;
  std::vector<std::string> names;
  for (const tools::ProgramRun& run : tools::runs_to_learn_from(steps, 4, "")) names.push_back(run.name);
  EXPECT_THAT(names, ElementsAre("job 11.0", "job 14.0"));
}

std::shared_ptr<tools::AdviseTrace> passes_of(std::unique_ptr<tools::WhatIfTrace> trace) {
  return std::make_shared<tools::AdviseTrace>(std::move(trace), "", 1, [](double) {});
}

// Runs of 40 s / p of work; the one with four ranks, on two nodes, is advised.
class RankCounts : public testing::Test {
 protected:
  std::string trace_of(Rank ranks) {
    const std::string path = directory_.path() + "/" + std::to_string(ranks);
    std::ofstream out(path);
    out << "lbf-trace 1\nranks " << ranks << "\n";
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (has_threads_) out << rank << " regions 1 count=1 threads=2 work=2 critical=1\n";
      out << rank << " exit " << 40.0 / ranks << "\n";
    }
    return path;
  }
  tools::ProgramRun run(Rank ranks) {
    return {"run " + std::to_string(ranks), [path = trace_of(ranks)] { return tools::open_trace(path, ""); }};
  }
  std::unique_ptr<tools::WhatIfTrace> first() {
    auto trace = tools::open_trace(trace_of(4), "");
    EXPECT_TRUE(trace.ok());
    return std::move(*trace);
  }
  // With the laws of COUNTS, but of that with four ranks.
  std::vector<OtherCount> others_of(const std::vector<std::uint32_t>& counts) const {
    std::vector<OtherCount> others;
    for (const std::uint32_t ranks : counts) {
      if (ranks != 4) others.push_back(by_law(static_cast<Rank>(ranks), cluster_, answer(ranks)));
    }
    return others;
  }
  tools::AdviseResult advise(const std::vector<std::uint32_t>& counts, std::vector<OtherCount> others,
                             Seconds budget_s = 5) {
    tools::AdviseOptions asked;
    asked.candidates = options();
    asked.ran.nodes = 2;
    asked.ran.cores = 2;
    asked.ran.network = asked.candidates.networks.front();
    asked.ran.measured_s = 10;
    asked.budget_s = budget_s;
    asked.rank_counts = counts;
    asked.other_counts = std::move(others);
    auto result = tools::advise(*passes_of(first()), cluster_, std::move(asked));
    why_not_ = result ? "" : result.error().message;
    return result ? std::move(*result) : tools::AdviseResult{};
  }
  static std::vector<Source> sources_of(const tools::AdviseResult& result, std::size_t ranks) {
    std::vector<Source> sources;
    for (const advisor::Ranked& one : result.ranking.ranked) {
      if (one.ranks() == ranks) sources.push_back(one.source);
    }
    return sources;
  }
  static std::string text_of(const tools::AdviseResult& result) {
    std::string text = tools::advise_text(result, {});
    std::ranges::replace(text, '\n', ' ');
    return text;
  }

  test::TemporaryDirectory directory_;
  const advisor::Cluster cluster_ = advisor::test::even_cluster(6, 2);
  std::string why_not_;
  bool has_threads_ = false;  // the ranks of what runs
};

TEST_F(RankCounts, OfLawsAndReplaysAreOneRanking) {
  std::vector<OtherCount> others = others_of({4, 8, 16});
  for (OtherCount& other : others) other.why_no_trace = "the pattern is refused: why";
  const tools::AdviseResult result = advise({4, 8, 16}, std::move(others));
  ASSERT_TRUE(result.advice.chosen) << why_not_;
  EXPECT_THAT(tools::advise_flags(result, ""), HasSubstr("-N4 -n8 "));
  EXPECT_NEAR(result.advice.gain.percent, 50, 1e-9);
  EXPECT_NEAR(result.advice.gain.low_percent, 49, 1e-9) << "by the law's interval";
  EXPECT_THAT(
      text_of(result),
      AllOf(HasSubstr(" Ranks By "), HasSubstr("  8 laws "), HasSubstr("  4 trace "),
            HasSubstr("Advice: 8 ranks on 4 nodes, block, slow: 5.000 s"),
            HasSubstr(", 1 of other rank counts by laws"), HasSubstr("By laws: 8 ranks: the pattern is refused: why."),
            HasSubstr("Not known: 16 ranks: no partition"), HasSubstr("slow; the pattern is refused: why.")));
  const auto json = nlohmann::json::parse(tools::advise_json(result, {}));
  EXPECT_EQ(json["candidates"][0]["verdict"], "by_laws");
  EXPECT_EQ(json["candidates"][0]["source"], "laws");
  EXPECT_EQ(json["candidates"][0]["ranks"], 8);
  EXPECT_GT(json["candidates"].size(), 1U);
  EXPECT_THAT(json["counts_by_laws"], ElementsAre("8 ranks: the pattern is refused: why"));
  EXPECT_THAT(json["counts_not_known"], SizeIs(1));
}

TEST_F(RankCounts, OfThePatternHaveAllCandidates) {
  std::vector<OtherCount> others = others_of({8});
  const auto trace = first();
  EXPECT_THAT(tools::take_traces("run 4", *trace, {run(2)}, passes_of, others), IsEmpty());
  const tools::AdviseResult result = advise({8}, std::move(others));
  EXPECT_EQ(why_not_, "");
  EXPECT_THAT(sources_of(result, 8), AllOf(SizeIs(testing::Gt(2U)), Each(Source::kPattern)));
  EXPECT_THAT(sources_of(result, 4), IsEmpty()) << "nobody asked for it";
  const advisor::Ranked& best = result.ranking.ranked.front();
  EXPECT_NEAR(best.time_s, 5, 1e-6);
  const advisor::Saying saying = result.baseline.say(result.trust, best);
  EXPECT_EQ(saying.form, advisor::Saying::Form::kRange);
  EXPECT_EQ(saying.why, "no run had so many ranks");
  EXPECT_GT(saying.half_width_percent, advisor::kOtherRanksPercent);
  const auto json = nlohmann::json::parse(tools::advise_json(result, {}));
  EXPECT_EQ(json["candidates"][0]["verdict"], "replayed");
  EXPECT_EQ(json["candidates"][0]["source"], "pattern");
  EXPECT_THAT(json["counts_by_laws"], IsEmpty());
}

TEST_F(RankCounts, OfAnotherRunAreOfItsTrace) {
  std::vector<OtherCount> others = others_of({2, 8});
  const auto trace = first();
  tools::take_traces("run 4", *trace, {run(2)}, passes_of, others);
  const tools::AdviseResult result = advise({2, 4, 8}, std::move(others));
  EXPECT_THAT(sources_of(result, 2), Contains(Source::kTrace));
  EXPECT_THAT(sources_of(result, 4), Contains(Source::kTrace));
  EXPECT_THAT(sources_of(result, 8), Contains(Source::kPattern));
  for (const advisor::Ranked& one : result.ranking.ranked) {
    EXPECT_NEAR(one.time_s, 40.0 / static_cast<double>(one.ranks()), 1e-6);
    EXPECT_NE(result.baseline.say(result.trust, one).is_number(), one.ranks() == 8) << one.ranks();
  }
}

TEST_F(RankCounts, WithoutAPatternSayWhy) {
  std::vector<OtherCount> others = others_of({8});
  const auto trace = first();
  const tools::ProgramRun gone{
      "job 7", [] {
        return Result<std::unique_ptr<tools::WhatIfTrace>>(Error{ErrorCode::kNotFound, "its trace is removed"});
      }};
  EXPECT_THAT(tools::take_traces("run 4", *trace, {gone}, passes_of, others),
              ElementsAre("job 7 is left out: its trace is removed"));
  EXPECT_EQ(others[0].why_no_trace, "the pattern is refused: all runs have 4 ranks: run it once with 8");
  const tools::AdviseResult result = advise({8}, std::move(others));
  EXPECT_THAT(sources_of(result, 8), ElementsAre(Source::kLaw));
}

TEST_F(RankCounts, BeyondTheBudgetAreByLaws) {
  std::vector<OtherCount> others = others_of({8});
  const auto trace = first();
  tools::take_traces("run 4", *trace, {run(2)}, passes_of, others);
  const tools::AdviseResult result = advise({4, 8}, std::move(others), 1e-9);
  EXPECT_THAT(sources_of(result, 8), ElementsAre(Source::kLaw));
  EXPECT_THAT(text_of(result), HasSubstr("By laws: 8 ranks: the budget was over: --budget gives more."));
}

TEST_F(RankCounts, OfRanksWithThreadsAreByLaws) {
  has_threads_ = true;
  std::vector<OtherCount> others = others_of({8});
  const auto trace = first();
  tools::take_traces("run 4", *trace, {run(2)}, passes_of, others);
  const tools::AdviseResult result = advise({4, 8}, std::move(others));
  EXPECT_THAT(sources_of(result, 8), ElementsAre(Source::kLaw));
  ASSERT_THAT(result.counts_by_laws, SizeIs(1));
  EXPECT_EQ(result.counts_by_laws[0].why, "threads of ranks are not extrapolated");
}

TEST_F(RankCounts, OfNeitherAreAnError) {
  std::vector<OtherCount> others = others_of({8});
  const auto trace = first();
  tools::take_traces("run 4", *trace, {run(2)}, passes_of, others);
  others[0].by_law.clear();
  others[0].why_no_law = "no law";
  advise({8}, std::move(others), 1e-9);
  EXPECT_EQ(why_not_, "8 ranks: no law; the budget was over: --budget gives more") << "there is nothing to rank";
}

}  // namespace
}  // namespace lbf::advise_ranks_test
