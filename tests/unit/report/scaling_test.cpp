// lbf-report --scaling: which steps belong together, what is refused, and how the answer looks.
#include "report/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/field_keys.h"

namespace lbf::report::scaling_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// On nodes of 4 processors: 96 s / p of work, 0.1 s log2(p) of latency between nodes, 1 s that stays. The run took as
// long as that.
Step step(std::uint32_t job, std::int32_t ranks, const char* command = "/usr/bin/lmp -in melt") {
  Step out;
  out.cluster = "c";
  out.job = job;
  out.user_name = "alice";
  out.command = command;
  out.program_id = "gnu:1234";
  out.state = StepState::kComplete;
  out.ranks = ranks;
  out.node_count = static_cast<std::uint64_t>(ranks + 3) / 4;
  out.network = "ib";
  out.threads = 0;
  out.start_s = 1.7e9 + job;
  out.path_work_s = 96.0 / ranks;
  out.path_rank_work_s = 96.0 / ranks;
  for (auto* part : {&out.path_copies_s, &out.path_overhead_s, &out.path_latency_inside_s, &out.path_bytes_inside_s,
                     &out.path_bytes_between_s, &out.path_unseen_s})
    *part = 0;
  out.path_latency_between_s = 0.1 * std::log2(ranks);
  out.path_kept_s = 1;
  out.measured_s = 96.0 / ranks + 0.1 * std::log2(ranks) + 1;
  TargetPrediction& self = out.predictions.emplace_back();
  self.kind = "self";
  self.nodes = static_cast<std::uint32_t>(*out.node_count);
  self.cores_per_node = 4;
  self.predicted_s = out.measured_s;
  self.self_error_percent = 2.0;
  self.seen_share = 1.0;
  return out;
}

ScalingAnswer answer(const std::vector<Step>& steps, const ScalingQuestion& question = {}) {
  auto made = scaling_of(steps, question);
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

std::string why_not(const std::vector<Step>& steps, const ScalingQuestion& question = {}) {
  const auto made = scaling_of(steps, question);
  return made ? "answered" : made.error().message;
}

const std::vector<Step> kThree = {step(14, 32), step(12, 8), step(13, 16)};

TEST(Scaling, Golden) {
  const ScalingAnswer found = answer(kThree, {advisor::Problem::kSame, {8, 16, 32, 64, 128, 512}});
  EXPECT_EQ(scaling_head(found),
            "lmp -in melt: one problem at all rank counts, 4 ranks a node, network ib. From jobs 12.0, 13.0, 14.0.");
  EXPECT_EQ(render_scaling(found, {}),
            R"(  Ranks  Nodes      Time       Low      High  Measured Efficiency NodeHours BoundBy
------- ------ --------- --------- --------- --------- ---------- --------- ---------------------
      8      2    13.3 s    13.0 s    13.6 s    13.3 s      100 %   0.00739 blocked time
     16      4    7.40 s    7.25 s    7.56 s    7.40 s       90 %   0.00822 blocked time
     32      8    4.50 s    4.41 s    4.59 s    4.50 s       74 %      0.01 blocked time
    64*     16    3.10 s    2.99 s    3.19 s         -       54 %    0.0138 blocked time
    128     32    2.45 s    2.28 s    2.59 s         -       34 %    0.0218 blocked time
    512    128    2.09 s    1.76 s    2.49 s         -       10 %    0.0742 blocked time
)");
  EXPECT_EQ(scaling_sentences(found),
            "The knee is at 64 ranks: there efficiency over run time is largest. What bounds it there: blocked time. "
            "The runs with fewer ranks say 4.50 s of 32 ranks, which took 4.50 s: +0.0 %.");
}

TEST(Scaling, SaysHowFarTheLawsOfFewerRanksAreOffTheLargestRun) {
  std::vector<Step> steps = kThree;
  steps[0].path_kept_s = *steps[0].path_kept_s + 1.5;
  EXPECT_THAT(scaling_sentences(answer(steps)),
              HasSubstr("The runs with fewer ranks say 4.50 s of 32 ranks, which took 6.00 s: -25.0 %."));
  EXPECT_THAT(scaling_sentences(answer({step(12, 8), step(13, 16)})), Not(HasSubstr("fewer ranks")));
}

TEST(Scaling, NamesTheReplayOfTheProgramWhereItDidNotRun) {
  std::vector<Step> steps = kThree;
  steps.push_back(step(15, 16));
  EXPECT_EQ(whatif_command(answer(steps)), "lbf-whatif 12.0 15.0 14.0 --ranks 64 --nodes 16 --cores 4 --network ib");
  EXPECT_EQ(whatif_command(answer(kThree, {advisor::Problem::kSame, {8, 32}})), "") << "they ran";
  for (Step& one : steps) one.threads = 2;
  EXPECT_EQ(whatif_command(answer(steps)), "") << "threads are not extrapolated";
}

TEST(Scaling, SaysWhatRanAndUpTo8TimesTheMost) {
  std::vector<std::uint32_t> ranks;
  for (const ScalingRow& row : answer(kThree).rows) ranks.push_back(row.there.ranks);
  EXPECT_EQ(ranks, (std::vector<std::uint32_t>{8, 16, 32, 64, 128, 256}));
}

TEST(Scaling, SaysNoMoreThanTheCountsThatWereAskedFor) {
  const ScalingAnswer found = answer(kThree, {advisor::Problem::kSame, {64, 0, 24}});
  ASSERT_THAT(found.rows, SizeIs(2));
  EXPECT_EQ(found.rows[0].there.ranks, 24U);
  EXPECT_NEAR(found.rows[0].there.time_s, 4 + 0.1 * std::log2(24) + 1, 1e-6);
  EXPECT_EQ(found.rows[1].there.nodes, 16U);
}

TEST(Scaling, WhatWasNotCapturedIsAsWhatWas) {
  std::vector<Step> steps = kThree;
  for (Step& one : steps) {
    TargetPrediction& self = one.predictions.front();
    self.seen_share = 0.5;
    one.path_unseen_s = one.measured_s;  // as long again
    self.low_s = 0.9 * *self.predicted_s;
    self.high_s = 1.05 * *self.predicted_s;
  }
  const ScalingRow there = answer(steps, {advisor::Problem::kSame, {64}}).rows.at(0);
  EXPECT_NEAR(there.there.time_s, 2 * 3.1, 1e-6);
  const advisor::ScalingForecast whole = answer(kThree, {advisor::Problem::kSame, {64}}).rows.at(0).there;
  EXPECT_NEAR(there.there.high_s / there.there.time_s, whole.high_s / whole.time_s + 0.10, 1e-3)
      << "wider by the interval";
  steps[0].predictions.front().high_s.reset();
  EXPECT_THAT(why_not(steps), HasSubstr("job 14.0: too little of it was captured"));
}

TEST(Scaling, ImbalanceIsWhatThePathWorksMoreThanTheMeanRank) {
  std::vector<Step> steps = kThree;
  for (Step& one : steps) one.path_work_s = 1.25 * *one.path_rank_work_s;
  const ScalingRow there = answer(steps, {advisor::Problem::kSame, {64}}).rows.at(0);
  EXPECT_NEAR(there.there.parts[static_cast<std::size_t>(advisor::Part::kWork)], 1.5, 1e-6);
  EXPECT_NEAR(there.there.parts[static_cast<std::size_t>(advisor::Part::kImbalance)], 0.375, 1e-6);
}

// Public figures are best cases: 25 % more above.
TEST(Scaling, OnANominalNetworkATimeIsARange) {
  std::vector<Step> steps = kThree;
  for (Step& one : steps) one.network = "nominal-hdr";
  const ScalingAnswer found = answer(steps);
  EXPECT_EQ(found.knee, std::nullopt);
  const ScalingRow& row = found.rows.at(3);
  EXPECT_EQ(row.saying.form, advisor::Saying::Form::kRange);
  EXPECT_NEAR(row.saying.high_s, row.there.high_s + 0.25 * row.there.time_s, 1e-9);
  EXPECT_THAT(render_scaling(found, {}), HasSubstr("     64     16         -    2.99 s    3.9"));
  EXPECT_THAT(
      scaling_sentences(found),
      HasSubstr("Where the knee is cannot be told. Why no number with 8 ranks: nominal-hdr is from public figures, "
                "not measured here. To get one, measure the network"));
  EXPECT_EQ(nlohmann::json::parse(scaling_json({found}))["scaling"][0]["rows"][3]["trust"], "range");
}

TEST(Scaling, WithoutADescribedNetworkATimeIsABound) {
  std::vector<Step> steps = kThree;
  for (Step& one : steps) one.network = "zero";
  const ScalingAnswer found = answer(steps);
  EXPECT_EQ(found.rows.at(3).saying.in_words(3), "at best 2.99 s");
  EXPECT_THAT(render_scaling(found, {}), HasSubstr("     64     16         -    2.99 s         -         -"));
  EXPECT_TRUE(nlohmann::json::parse(scaling_json({found}))["scaling"][0]["rows"][3]["high_s"].is_null());
}

TEST(Scaling, FromADoubtfulRunATimeIsARange) {
  std::vector<Step> steps = kThree;
  steps[1].predictions.front().self_error_percent = -12;
  const advisor::Saying saying = answer(steps).rows.at(3).saying;
  EXPECT_EQ(saying.form, advisor::Saying::Form::kRange);
  EXPECT_EQ(saying.why, "the predictions of the runs are doubtful");
}

// The replay leaves out what others took, as far as it was seen.
TEST(Scaling, FromARunThatLostProcessorsToOthersATimeIsARange) {
  std::vector<Step> steps = kThree;
  steps[1].others_s = 1;
  const advisor::Saying saying = answer(steps).rows.at(3).saying;
  EXPECT_EQ(saying.form, advisor::Saying::Form::kRange);
  EXPECT_EQ(saying.why, "others had processors of the runs");
}

// 0 to 15 s on 16 lines: a line is a second.
TEST(Scaling, Plot) {
  const ScalingAnswer found = answer(kThree, {advisor::Problem::kSame, {8, 16, 64, 128}});
  EXPECT_EQ(plot_scaling(found, {48, 16, false, false}), R"(lmp -in melt: one problem at all rank counts, 4
ranks a node, network ib. From jobs 12.0, 13.0,
14.0.

Run time over ranks

15.0 s +
       |    |
       |    o X
       |
       |
10.0 s +
       |
       |              |
       |              o X
       |
5.00 s +
       |
       |                        o         |
       |                                  o
       |
   0 s +
       +----------------------------------------
             8        16        64*       128
        ranks
           100 %     90 %      54 %      34 %
        efficiency

  o predicted
  X measured, the mean of the runs
  | how far a time may be off
  * the knee

The knee is at 64 ranks: there efficiency over
run time is largest. What bounds it there:
blocked time. The runs with fewer ranks say 4.50
s of 32 ranks, which took 4.50 s: +0.0 %.
)");
}

TEST(Scaling, PlotOfOneRunHasItsSentencesOnly) {
  const std::string text = plot_scaling(answer({step(12, 8)}), {48, 16, false, false});
  EXPECT_THAT(text, HasSubstr("Amdahl's bound"));
  EXPECT_THAT(text, testing::Not(HasSubstr("Run time over ranks")));
}

TEST(Scaling, Page) {
  std::vector<Step> steps = kThree;
  for (Step& one : steps) one.command = "/usr/bin/lmp -in <melt>";
  const std::string page = scaling_html({answer(steps)}, "1.0");
  EXPECT_THAT(page, HasSubstr("<h2 id=\"s0\">lmp -in &lt;melt&gt;</h2>"));
  EXPECT_THAT(page, HasSubstr("The knee is at 64 ranks"));
  EXPECT_THAT(page, HasSubstr("<title>64 ranks: 3.100 s ("));
  EXPECT_THAT(page, HasSubstr("<title>measured: 13.30 s</title>"));
  EXPECT_THAT(page, HasSubstr(">knee</text>"));
  EXPECT_THAT(page, HasSubstr("<td>64</td><td>16</td><td>3.100 s</td>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>work_s</td><td class=\"text\">96.0 s / p</td></tr>"));
  EXPECT_THAT(scaling_html({answer({step(12, 8)})}, "1.0"), HasSubstr("there is nothing to draw"));
  EXPECT_THAT(scaling_html({}, "1.0"), HasSubstr("No program ran"));
}

// 8 ranks on 2 nodes of 2 processors: what was measured is no time of 8 ranks with a processor each.
TEST(Scaling, ATimeOfSharedProcessorsIsNotShown) {
  std::vector<Step> steps = kThree;
  steps[1].predictions.front().cores_per_node = 2;
  const ScalingAnswer found = answer(steps);
  EXPECT_FALSE(found.rows.at(0).measured_s);
  EXPECT_THAT(scaling_sentences(found), HasSubstr("Some runs had more ranks than processors."));
}

TEST(Scaling, BeyondTheFirstCountThatCannotBeToldThereIsNone) {
  std::vector<Step> steps = {step(12, 1), step(13, 2), step(14, 4)};
  for (Step& one : steps) one.path_latency_between_s = 0;
  const ScalingAnswer found = answer(steps);
  EXPECT_EQ(found.rows.back().there.ranks, 4U);
  EXPECT_EQ(found.beyond, "8 ranks: no run had several nodes: run it once with 8 ranks on 2 nodes");
}

// 1, 2 and 4 ranks on a node of 4 processors were that much; on one of 16, 16 fit; on one of 2, any number shares them.
TEST(Scaling, ANodeTakesAsManyRanksAsItHasProcessors) {
  std::vector<Step> steps = {step(12, 1), step(13, 2), step(14, 4)};
  const auto nodes_of_16_ranks = [&](std::uint32_t cores) {
    for (Step& one : steps) one.predictions.front().cores_per_node = cores;
    const ScalingAnswer found = answer(steps, {advisor::Problem::kSame, {16}});
    return found.rows.empty() ? found.beyond : std::to_string(found.rows[0].there.nodes);
  };
  EXPECT_THAT(nodes_of_16_ranks(4), HasSubstr("no run had several nodes"));
  EXPECT_EQ(nodes_of_16_ranks(16), "1");
  EXPECT_EQ(nodes_of_16_ranks(2), "1");
  EXPECT_THAT(scaling_head(answer(steps)), HasSubstr(", on one node, "));
}

TEST(Scaling, OneRunMakesABoundAndNoLaw) {
  const ScalingAnswer found = answer({step(12, 8)});
  EXPECT_THAT(found.rows, IsEmpty());
  EXPECT_EQ(render_scaling(found, {}), "");
  EXPECT_EQ(scaling_sentences(found),
            "Amdahl's bound with the serial part that was seen (1.30 s of 13.3 s): at best 7.30 s with 16 ranks, "
            "4.30 s with 32 ranks, 2.80 s with 64 ranks; it ran 13.3 s with 8. This is no prediction: what is not work "
            "may grow with the ranks. Not known: one rank count (8) makes no law: run it once with 16 ranks.");
}

TEST(Scaling, RefusesRunsWithoutACommonProblem) {
  const Step first = step(12, 8);
  const auto with = [&](const auto& change) {
    Step other = step(13, 16);
    change(other);
    return why_not({first, other});
  };
  EXPECT_EQ(with([](Step&) {}), "answered");
  EXPECT_EQ(with([](Step& other) { other.program_id = "gnu:5678"; }),
            "jobs 12.0 and 13.0 ran different programs, or it was built anew between them");
  EXPECT_EQ(with([](Step& other) { other.cluster = "d"; }), "jobs 12.0 and 13.0 ran on different clusters");
  EXPECT_EQ(with([](Step& other) { other.network = "eth"; }),
            "jobs 12.0 and 13.0 ran on different networks, ib and eth");
  EXPECT_EQ(with([](Step& other) { other.threads = 4; }),
            "jobs 12.0 and 13.0 had 0 and 4 threads a rank; run one of them as the other");
  EXPECT_EQ(with([](Step& other) { other.node_count = 2; }),
            "job 12.0 has 8 ranks on 2 nodes, job 13.0 8 a node: run one of them as the other");
  EXPECT_THAT(with([](Step& other) { other.path_work_s = *other.path_rank_work_s *= 3; }),
              HasSubstr("no common problem"));
  EXPECT_THAT(with([](Step& other) { other.state = StepState::kRunning; }), HasSubstr("job 13.0: it is running"));
  EXPECT_THAT(with([](Step& other) {
                other.state = StepState::kPartial;
                other.why_partial = "rank 3 was lost";
              }),
              HasSubstr("job 13.0: it is partial: rank 3 was lost"));
  EXPECT_THAT(with([](Step& other) { other.state = StepState::kPartial; }),
              HasSubstr("job 13.0: it is partial: lbfd gives no reason"));
  EXPECT_THAT(with([](Step& other) { other.path_work_s.reset(); }),
              HasSubstr("job 13.0: lbfd has not replayed what its time is made of"));
}

TEST(Scaling, OtherArgumentsAreTakenFromTheUserAndSaid) {
  const std::vector<Step> steps = {step(12, 8, "/usr/bin/lmp -grid 2 4"), step(13, 16, "/usr/bin/lmp -grid 4 4")};
  EXPECT_THAT(scaling_sentences(answer(steps)), HasSubstr("The arguments of jobs 12.0 and 13.0 differ"));
}

TEST(Scaling, WeakHasNoKneeAndTheEfficiencyOfEqualTimes) {
  std::vector<Step> steps = kThree;
  for (Step& one : steps) one.path_work_s = one.path_rank_work_s = 12;
  EXPECT_THAT(why_not(steps), HasSubstr("--weak is for problems that grow with the ranks"));
  const ScalingAnswer found = answer(steps, {advisor::Problem::kSameForEachRank, {}});
  EXPECT_EQ(found.knee, std::nullopt);
  EXPECT_NEAR(found.rows.back().efficiency, 13.3 / 13.8, 1e-6);
  EXPECT_THAT(scaling_head(found), HasSubstr("the same problem for each rank"));
}

TEST(Families, AreStepsOfOneProgramWithTheSameArguments) {
  std::vector<Step> steps = {step(1, 8),  step(2, 16, "other"), step(3, 16), step(4, 8, "other"),
                             step(5, 32), step(6, 8, "once"),   step(7, 16)};
  steps.push_back(step(8, 64));
  steps.back().user_name = "bob";
  steps.push_back(step(9, 64));
  steps.back().program_id = "gnu:5678";
  steps.push_back(step(10, 64));
  steps.back().state = StepState::kRunning;
  steps.push_back(step(11, 64));
  steps.back().path_work_s.reset();
  const auto families = families_of(steps);
  ASSERT_THAT(families, SizeIs(2));
  EXPECT_EQ(answer(families[0]).jobs, (std::vector<std::string>{"1.0", "3.0", "7.0", "5.0"}));
  EXPECT_EQ(answer(families[1]).command, "other");
}

TEST(Scaling, AsJson) {
  const auto list = nlohmann::json::parse(scaling_json({answer(kThree)}))["scaling"];
  ASSERT_THAT(list, SizeIs(1));
  const auto& one = list[0];
  EXPECT_EQ(one["knee_ranks"], 64);
  EXPECT_EQ(one["problem"], "strong");
  EXPECT_EQ(one["laws"]["work_s"], "96.0 s / p");
  EXPECT_EQ(one["laws"]["latency_between_s"], "100 ms log2(p)");
  ASSERT_THAT(one["rows"], SizeIs(6));
  EXPECT_NEAR(one["rows"][3]["predicted_s"], 3.1, 1e-6);
  EXPECT_NEAR(one["rows"][3]["parts"]["work_s"], 1.5, 1e-6);
  EXPECT_TRUE(one["rows"][3]["measured_s"].is_null());
  EXPECT_EQ(one["rows"][3]["bound_by"], "kept_s");
}

}  // namespace
}  // namespace lbf::report::scaling_test
