// lbf-report --procedures: the table, what is best, and what is said where nothing is known.
#include "report/procedures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::procedures_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Procedures, ATableAndTheBestMove) {
  EXPECT_EQ(
      render_procedures(fixture("procedures.json"), {}),
      "job 12.0, spa original: measured 8.5 s, replayed 8 s\n"
      "Procedure State    Calls Time_s Self_s OnPath ToReceiver_s  Gain ToSender_s  Gain Stayed_s Zeroed_s  Gain\n"
      "servBusy2 measured    48      6      6  75.0%            4 50.0%        8.5 -6.2%                 3 62.5%\n"
      "servBusy1 off         24      2    1.5  12.5%          7.5  6.2%          8  0.0%      1.5        7 12.5%\n"
      "critical path 8 s to the end of rank 0: process time in none of these 0.8 s (10.0 %), MPI 0.2 s (2.5 %)\n"
      "  ranks: 0 7 s (87.5 %), others 1 s (12.5 %)\n"
      "  MPI functions: MPI_Recv 0.2 s (2.5 %)\n"
      "best move: servBusy2 in the receiver of its messages: 4 s instead of 8 s, 50.0 % shorter\n"
      "off: servBusy1: 3 ranks: it is called too often\n"
      "refused: memcpy: 'memcpy' cannot be measured\n");
}

TEST(Procedures, Parsable) {
  TableStyle style;
  style.parsable = true;
  const std::string text = render_procedures(fixture("procedures.json"), style);
  EXPECT_THAT(text, testing::StartsWith("JobID|Procedure|State|Calls|"));
  EXPECT_THAT(text, HasSubstr("\n12.0|servBusy2|measured|48|6|6|75.0%|4|50.0%||8.5|-6.2%||3|62.5%|-|-\n"));
  EXPECT_THAT(text, HasSubstr("\n12.0|memcpy|refused|0|0|0|-|-|-||-|-||-|-|-|-\n"));
}

TEST(Procedures, WithoutAnyThereIsNothing) {
  EXPECT_EQ(render_procedures(fixture("normal.json"), {}), "");
}

TEST(Procedures, NothingGainsAndNothingIsPredicted) {
  Step step;
  step.job = 3;
  step.procedures.emplace();
  Procedure one;
  one.name = "f";
  one.state = "measured";
  one.receiver_s = 9;
  one.sender_s = 8;
  step.procedures->procedures = {one};
  EXPECT_FALSE(best_move(*step.procedures)) << "how long it ran is not known";
  EXPECT_THAT(render_procedures({step}, {}), Not(HasSubstr("best move")));
  step.procedures->path.emplace();
  step.procedures->path->as_it_ran_s = 8;
  EXPECT_FALSE(best_move(*step.procedures));
  EXPECT_THAT(render_procedures({step}, {}), HasSubstr("no move of one of these makes the run shorter\n"));
  step.procedures->procedures[0].sender_s = 6;
  EXPECT_EQ(best_move_line(*step.procedures), "f in the sender of its messages: 6 s instead of 8 s, 25.0 % shorter");
}

// What measuring was predicted to cost and did, and what samples stand in for.
TEST(Procedures, CostsAndSamplesAreShown) {
  Step step;
  step.job = 4;
  step.procedures.emplace();
  step.procedures->path.emplace();
  step.procedures->path->as_it_ran_s = 8;
  step.procedures->path->length_s = 8;
  Procedure measured;
  measured.name = "f";
  measured.state = "measured";
  measured.predicted_cost_percent = 0.04;
  measured.observed_cost_percent = 0.1234;
  Procedure sampled;
  sampled.name = "tiny";
  sampled.state = "refused";
  sampled.inclusive_s = 0;
  sampled.exclusive_s = 0;
  sampled.sampled_s = 2.5;
  sampled.receiver_s = 6;
  Procedure refused;
  refused.name = "gone";
  refused.state = "refused";
  step.procedures->procedures = {measured, sampled, refused};
  const std::string text = render_procedures({step}, {});
  EXPECT_THAT(text, HasSubstr(" CostPred   Cost\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nf +measured .* 0.04% +0.123%\n"));
  step.procedures->procedures[0].predicted_from = "limit";
  EXPECT_THAT(render_procedures({step}, {}), testing::ContainsRegex("\nf +measured .* <=0.04% +0.123%\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\ntiny +sampled +- +2.5 +- .* 6 "));
  EXPECT_THAT(text, Not(HasSubstr("\ngone")));
  EXPECT_THAT(text, HasSubstr("best move: tiny in the receiver of its messages: 6 s instead of 8 s, 25.0 % shorter "
                              "(its time is sampled)\n"));
}

TEST(Procedures, OfARunThatWasCapturedInPartTheTableSaysWhatItIsOf) {
  Step step;
  step.job = 4;
  step.cost.emplace();
  step.cost->seen_share = 0.25;
  step.procedures.emplace();
  CriticalPath& path = step.procedures->path.emplace();
  path.as_it_ran_s = 8;
  path.length_s = 8;
  path.unseen_s = 6;
  path.other_work_s = 1;
  Procedure measured;
  measured.name = "f";
  measured.state = "measured";
  measured.critical_path_s = 1;
  step.procedures->procedures = {measured};
  const std::string text = render_procedures({step}, {});
  EXPECT_THAT(text, testing::ContainsRegex("\nf +measured +- +- +- +50.0% "));
  EXPECT_THAT(text,
              HasSubstr("process time in none of these 1 s (12.5 %), MPI 0 s (0.0 %), not captured 6 s (75.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("\n25 % of the run was captured: calls, times and the path's parts (OnPath, too) are of "
                              "that, what is predicted is extrapolated"));
  HtmlPage page;
  page.step = &step;
  EXPECT_THAT(render_html(page),
              testing::AllOf(HasSubstr("not captured 6 s (75.0 %)"), HasSubstr("<p>25 % of the run was captured"),
                             HasSubstr("<td>50.0 %</td>")));
  step.cost->seen_share = 1;
  EXPECT_THAT(render_procedures({step}, {}), Not(HasSubstr("of the run was captured")));
}

TEST(Procedures, ThePageHasASection) {
  auto steps = fixture("procedures.json");
  steps.front().procedures->procedures.front().predicted_cost_percent = 0.5;
  steps.front().procedures->procedures.front().predicted_from = "limit";
  HtmlPage page;
  page.step = &steps.front();
  const std::string text = render_html(page);
  EXPECT_THAT(text, HasSubstr("What if a procedure ran elsewhere"));
  EXPECT_THAT(text, HasSubstr("<td>&le; 0.5 %</td>"));
  EXPECT_THAT(text, HasSubstr("<td class=\"text\">servBusy2</td><td class=\"text\">measured</td><td>48</td>"));
  EXPECT_THAT(text, HasSubstr("&#39;memcpy&#39; cannot be measured"));
  const auto others = fixture("normal.json");
  page.step = &others.front();
  EXPECT_THAT(render_html(page), Not(HasSubstr("What if a procedure")));
}

TEST(Procedures, WhatIsNotAsTheApiSaysIsAnError) {
  for (const char* bad :
       {R"({"job":1,"step":0,"state":"complete","procedures":[]})",
        R"({"job":1,"step":0,"state":"complete","procedures":{"procedures":[1]}})",
        R"({"job":1,"step":0,"state":"complete","procedures":{"procedures":[{"calls":-1}]}})",
        R"({"job":1,"step":0,"state":"complete","procedures":{"critical_path":{"ranks":[[0]]}}})",
        R"({"job":1,"step":0,"state":"complete","procedures":{"critical_path":{"functions":[[1,1]]}}})"}) {
    EXPECT_FALSE(parse_steps(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace lbf::report::procedures_test