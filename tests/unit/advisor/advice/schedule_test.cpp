// Which candidate ends first, with an answerer in Slurm's place.
#include "advisor/advice/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "advisor/advice/advice.h"
#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::schedule_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNow = 1e9;

// Starts by the node count in "-N2".
class FakeSlurm final : public StartSource {
 public:
  Result<StartAnswer> ask(const std::vector<std::string>& flags) override {
    std::string line;
    std::string nodes;
    for (const std::string& word : flags) {
      line += word + ' ';
      if (word.rfind("-N", 0) == 0) nodes = word.substr(2);
      if (word.rfind("--nodelist=/", 0) == 0) {
        std::ostringstream text;
        text << std::ifstream(word.substr(11)).rdbuf();
        host_files.push_back(text.str());
      }
    }
    asked.push_back(line);
    if (asked.size() > fails_after) return Error{ErrorCode::kUnavailable, "Slurm cannot be asked: gone"};
    const auto known = starts_in_s.find(nodes);
    if (known == starts_in_s.end()) return StartAnswer{std::nullopt, "Requested node configuration is not available"};
    return StartAnswer{kNow + known->second, ""};
  }
  std::map<std::string, double> starts_in_s;
  std::size_t fails_after = 1000;
  std::vector<std::string> asked;
  std::vector<std::string> host_files;
};

class ScheduleTest : public testing::Test {
 protected:
  Ranked ranked(const std::string& placement, std::vector<std::uint32_t> node_of_rank, Seconds time_s) const {
    Ranked made;
    engine::Target& target = made.candidate.target;
    target.placement = placement;
    target.nodes = 1 + *std::max_element(node_of_rank.begin(), node_of_rank.end());
    target.node_of_rank = std::move(node_of_rank);
    target.cores_per_node = 4;
    target.network = network_;
    made.candidate.set.network = network_;
    for (std::uint32_t i = 0; i < target.nodes; ++i) made.candidate.node_names.push_back("n" + std::to_string(i));
    made.time_s = time_s;
    made.verdict = Verdict::kReplayed;
    return made;
  }
  // 1, 2 and 4 nodes that take 100, 60 and 40 s; 2 nodes ran.
  void SetUp() override {
    baseline_.now = ranked("block", {0, 0, 1, 1}, 60);
    baseline_.is_what_ran = true;
    baseline_.measured_s = 60;
    trust_.self_error_percent = 2;
    ranking_.ranked = {ranked("block", {0, 1, 2, 3}, 40), ranked("block", {0, 0, 1, 1}, 60),
                       ranked("cyclic", {0, 1, 0, 1}, 61), ranked("block", {0, 0, 0, 0}, 100)};
  }
  Result<Schedule> make(const std::string& limit = "") {
    ScheduleOptions options;
    options.now_s = kNow;
    options.time_limit = limit;
    options.trust = trust_;
    return schedule(ranking_, baseline_, objective_, slurm_, options);
  }
  Advice advised(const Schedule& made) const { return advise(ranking_, baseline_, trust_, graph_, objective_, &made); }
  std::vector<std::uint32_t> order() const {
    std::vector<std::uint32_t> nodes;
    for (const Ranked& one : ranking_.ranked) nodes.push_back(one.candidate.target.nodes);
    return nodes;
  }

  std::shared_ptr<const engine::Network> network_ = test::slow_network();
  CommGraph graph_ = test::graph_of(4, {{0, 2, 100}}, 1);
  Baseline baseline_;
  Trust trust_;
  Objective objective_;
  Ranking ranking_;
  FakeSlurm slurm_;
};

TEST_F(ScheduleTest, TheOneThatEndsFirstIsFirst) {
  slurm_.starts_in_s = {{"1", 0}, {"2", 600}, {"4", 3600}};
  const auto made = make();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(order().front(), 1U) << "100 s from now, 660 and 3640 the others";
  EXPECT_EQ(made->known, 3U);
  const Advice advice = advised(*made);
  ASSERT_TRUE(advice.chosen.has_value()) << advice.why_not;
  EXPECT_EQ(*advice.chosen, 0U);
  EXPECT_NEAR(advice.gain.percent, 100 * (1 - 100.0 / 660), 1e-9) << "of the time to the end";
  EXPECT_NEAR(advice.gain.low_percent, 100 * (1 - (100 + trust_.half_width_percent(100.0 / 60)) / 660), 1e-9)
      << "100 s, and what the prediction may be off";
  EXPECT_THAT(advice.reasons.front(), AllOf(HasSubstr("can start now"), HasSubstr("4 nodes, block would run 60 %")));
  EXPECT_THAT(advice.reasons, Contains(HasSubstr("what runs now starts at")));
}

TEST_F(ScheduleTest, NobodyIsAskedForWhatCannotEndFirst) {
  slurm_.starts_in_s = {{"1", 0}, {"2", 0}, {"4", 0}};
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(order().front(), 4U);
  // What runs now, and the fastest: nothing that takes longer than 40 s ends before it.
  EXPECT_THAT(slurm_.asked, ElementsAre(HasSubstr("-N2 -n4"), HasSubstr("-N4 -n4")));
  EXPECT_EQ(made->questions, 2U);
  EXPECT_EQ(made->not_asked, 3U);
}

TEST_F(ScheduleTest, OneQuestionForTheSameNodes) {
  slurm_.starts_in_s = {{"1", 7200}, {"2", 5000}, {"4", 7200}};
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->questions, 4U) << "block and cyclic on two nodes want the same";
  EXPECT_EQ(made->not_asked, 1U);
}

TEST_F(ScheduleTest, TheLimitIsPartOfTheQuestionAndOfTheFlags) {
  slurm_.starts_in_s = {{"1", 0}, {"2", 600}, {"4", 3600}};
  ASSERT_TRUE(make().ok());
  // 40 s * 1.02 * 1.25 + 60 s = 111 s.
  EXPECT_THAT(slurm_.asked, Contains(AllOf(HasSubstr("-N4"), HasSubstr("--time=2 "))));
  EXPECT_EQ(flags_with_limit("-N1", ranking_.ranked.front().start), "-N1 --time=4");
  slurm_.asked.clear();
  ASSERT_TRUE(make("1-00:00:00").ok());
  EXPECT_THAT(slurm_.asked, testing::Each(HasSubstr("--time=1-00:00:00 ")));
  EXPECT_EQ(flags_with_limit("-N1", Start{}), "-N1");
}

TEST_F(ScheduleTest, WhatSlurmRefusesIsNotAdvised) {
  slurm_.starts_in_s = {{"2", 0}};
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(order().front(), 2U);
  EXPECT_EQ(made->known, 1U);
  const Advice advice = advised(*made);
  EXPECT_FALSE(advice.chosen.has_value()) << "it is what runs now";
  EXPECT_THAT(advice.why_not, HasSubstr("nothing that Slurm can start ends before"));
  const auto& refused = *std::find_if(ranking_.ranked.begin(), ranking_.ranked.end(),
                                      [](const Ranked& one) { return one.candidate.target.nodes == 4; });
  EXPECT_EQ(refused.start.why_not, "Requested node configuration is not available");
}

TEST_F(ScheduleTest, WhatRunsNowMayBeRefused) {
  slurm_.starts_in_s = {{"1", 0}};
  const auto made = make();
  ASSERT_TRUE(made.ok());
  const Advice advice = advised(*made);
  ASSERT_TRUE(advice.chosen.has_value()) << advice.why_not;
  EXPECT_EQ(ranking_.ranked[*advice.chosen].candidate.target.nodes, 1U);
  EXPECT_LT(advice.gain.percent, 0) << "of run times alone: 100 s instead of 60 s";
}

TEST_F(ScheduleTest, WithoutAnyStartTheTimeDecides) {
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->known, 0U);
  const Advice advice = advised(*made);
  ASSERT_TRUE(advice.chosen.has_value());
  EXPECT_NEAR(advice.gain.percent, 100 * (1 - 40.0 / 60), 1e-9);
}

TEST_F(ScheduleTest, SlurmThatCannotBeAsked) {
  slurm_.fails_after = 0;
  EXPECT_THAT(make().error().message, HasSubstr("gone"));
  slurm_.asked.clear();
  slurm_.fails_after = 2;
  slurm_.starts_in_s = {{"1", 0}, {"2", 600}, {"4", 3600}};
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->known, 1U);
  EXPECT_THAT(made->why_stopped, HasSubstr("gone"));
  EXPECT_EQ(slurm_.asked.size(), 3U) << "nobody is asked after that";
}

TEST_F(ScheduleTest, AComputedMappingIsAskedForWithItsHosts) {
  ranking_.ranked = {ranked("map", {1, 0, 1, 0}, 50), ranked("map", {0, 1, 0, 1}, 55)};
  slurm_.starts_in_s = {{"2", 0}};
  ASSERT_TRUE(make().ok());
  EXPECT_THAT(slurm_.host_files, ElementsAre("n1\nn0\nn1\nn0\n")) << "two ranks on each of the same nodes: once";
}

TEST_F(ScheduleTest, SoIsADistributionThatNeedsAHostFile) {
  Ranked uneven = ranked("block", {0, 0, 0, 1}, 50);
  uneven.candidate.target.cores_of_node = {3, 1};
  uneven.candidate.target.speed_of_node = {1, 1};
  ranking_.ranked = {uneven};
  slurm_.starts_in_s = {{"2", 0}};
  ASSERT_TRUE(make().ok());
  EXPECT_THAT(slurm_.host_files, ElementsAre("n0\nn0\nn0\nn1\n"));
}

TEST_F(ScheduleTest, TheNumberOfQuestionsIsBounded) {
  ranking_.ranked.clear();
  for (std::uint32_t i = 0; i < 40; ++i) {
    Ranked one = ranked("block", {0, 0, 0, 0}, 40 + i);
    one.candidate.set.partition = "p" + std::to_string(i);
    ranking_.ranked.push_back(one);
  }
  slurm_.starts_in_s = {{"1", 9000}, {"2", 9000}};
  objective_.node_hours_limit = 60.0 / 3600;
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->questions, kMostQuestions);
  EXPECT_EQ(slurm_.asked.size(), kMostQuestions);
  EXPECT_EQ(made->beyond_bound, 21U - (kMostQuestions - 1)) << "21 keep within 60 node-seconds";
}

TEST_F(ScheduleTest, NobodyIsAskedForMoreThanAPartitionAllows) {
  const Cluster limited = test::cluster(
      "[[node]]\nname = \"n[1-4]\"\n[[partition]]\nname = \"short\"\nnodes = \"n[1-4]\"\ndefault = "
      "true\nmax_time_s = "
      "150\n");
  slurm_.starts_in_s = {{"1", 0}, {"2", 0}, {"4", 9000}};
  ScheduleOptions options;
  options.now_s = kNow;
  options.cluster = &limited;
  // 100 s on one node need 4 minutes (100 * 1.25 + 60 s), 60 s three, 40 s two: 2.5 are allowed.
  ranking_.ranked.back().candidate.set.partition = "short";
  const auto made = schedule(ranking_, baseline_, objective_, slurm_, options);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->questions, 1U);
  EXPECT_EQ(ranking_.ranked.front().candidate.target.nodes, 4U);
  EXPECT_EQ(baseline_.now.start.why_not, "its time limit (3 minutes) is above the partition's (2.5 minutes)");
  EXPECT_EQ(ranking_.ranked.back().start.why_not, "its time limit (4 minutes) is above the partition's (2.5 minutes)");
}

TEST(TimeLimit, SrunsForms) {
  EXPECT_EQ(parse_time_limit("90"), 5400.0);
  EXPECT_EQ(parse_time_limit("90:30"), 5430.0);
  EXPECT_EQ(parse_time_limit("1:30:30"), 5430.0);
  EXPECT_EQ(parse_time_limit("2-3"), 2 * 86400.0 + 3 * 3600);
  EXPECT_EQ(parse_time_limit("2-3:4:5"), 2 * 86400.0 + 3 * 3600 + 245);
  for (const char* wrong : {"", "x", "1:", ":1", "1-", "-1", "1:2:3:4", "1-2:3:4:5", "1.5", "1 ", "--1"})
    EXPECT_FALSE(parse_time_limit(wrong).has_value()) << wrong;
}

TEST(TimeLimit, WholeMinutes) {
  EXPECT_EQ(time_limit_of(0, 8), "1");
  EXPECT_EQ(time_limit_of(48, 0), "2") << "48 * 1.25 + 60 = 120";
  EXPECT_EQ(time_limit_of(48.1, 0), "3");
  EXPECT_EQ(time_limit_of(3600, 10), "84");
}

}  // namespace
}  // namespace lbf::advisor::schedule_test