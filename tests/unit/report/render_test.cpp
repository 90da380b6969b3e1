#include "report/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/json_printer.h"
#include "report/text.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::render_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Render : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
  static std::string page(const char* name) { return render_step(fixture(name).at(0), PageStyle{}); }
};

TEST_F(Render, ANormalStep) {
  EXPECT_EQ(page("normal.json"),
            R"(Job 123.0  lmp -in in.melt
  4 ranks on 2 nodes (node[1-2]), network lan-100, user alice
  started 2023-11-14T22:13:20, measured 15.20 s, complete

  Nodes Network  Placement Kind     Predicted        Low       High  Speedup
  ----- -------- --------- ------ ----------- ---------- ---------- --------
      2 lan-100  block     self       15.02 s    13.95 s    16.09 s    1.01x
      1 lan-100  block     LBF        12.30 s    11.23 s    13.37 s    1.24x *
      4 lan-100  block     LBF        19.50 s    17.71 s    21.29 s    0.78x
      1 lan-fast block     LBF+NF     12.29 s    11.22 s    13.36 s    1.24x *
      2 lan-fast block     NF         8.000 s    7.028 s    8.972 s    1.90x
  * more ranks or threads than processors on a node: such predictions are the
  least exact ones.

  Self-prediction error -1.2 %: the configuration that ran, predicted 15.02 s,
  measured 15.20 s.
  Capture overhead 0.12 % of the ranks' processor time (capture 50.0 ms, relay
  20.0 ms), 120345 events.
  MPI 19.7 % of the ranks' time; 3.0 % of MPI time unmodelled.
  Unmodelled: MPI_Win_fence (10 calls, 0.35 s), MPI_Put (3 calls, 10.0 ms).
  Note: process time is known to 0.1 ms

On 1 node it would take 12.30 s instead of 15.20 s (1.24x), give or take 8.7 %:
    srun -N1 -n4 --overcommit --cpus-per-task=2 /usr/bin/lmp -in in.melt
On network lan-fast, 2 nodes, it would take 8.000 s instead of 15.20 s (1.90x),
give or take 12 %; the network is not chosen by an srun flag but by the
partition, a constraint or settings of MPI, with these flags:
    srun -N2 -n4 --distribution=block --ntasks-per-node=2 ...
)");
}

// A job on a busy machine was told that "the model misses something".
TEST_F(Render, SaysFirstWhoElseHadTheProcessors) {
  Step step = fixture("normal.json").at(0);
  step.others_s = 7.5;
  step.delayed_s = 7.75;
  const auto fourth_line = [&] {
    std::istringstream page(render_step(step, PageStyle{}));
    std::string line;
    for (int i = 0; i < 4; ++i) std::getline(page, line);
    return line;
  };
  EXPECT_EQ(fourth_line(), "  Other programs had the processors for 7.500 s of 15.20 s. Only the");
  step.others_s = 0.2;
  step.limited_s = 3.0;
  EXPECT_EQ(fourth_line(), "  The job's CPU limit was used up for 3.000 s of 15.20 s. Only the configuration");
  step.limited_s = 0.0;
  EXPECT_EQ(fourth_line(), "") << "less than 2 %";
  step.stolen_percent = 3.25;
  EXPECT_EQ(fourth_line(), "  The host of the virtual machines took 3.2 % of the processors' time (steal).");
}

TEST_F(Render, ATargetThatIsDeferred) {
  Step step = fixture("normal.json").at(0);
  TargetPrediction& last = step.predictions.back();
  last.predicted_s.reset();
  last.speedup.reset();
  last.why_deferred = "no room";
  const std::string text = render_step(step, PageStyle{});
  EXPECT_THAT(text, HasSubstr("deferred          -          -        -\n"));
  EXPECT_THAT(text,
              HasSubstr("1 target is deferred until lbfd has room; ask again later, or now: lbf-whatif\n123.0\n"));
  last.deferred_for_good = true;
  EXPECT_THAT(render_step(step, PageStyle{}),
              HasSubstr("1 target is deferred and will not be predicted: the trace is gone.\n"));
}

TEST_F(Render, ARunThatWasCapturedInWindows) {
  const std::string text = page("windows.json");
  EXPECT_THAT(text, AllOf(HasSubstr("Low"), HasSubstr("High"), HasSubstr("53.28 s"), HasSubstr("65.52 s")));
  EXPECT_THAT(text, Not(HasSubstr("SelfError"))) << "it stands below the table";
  EXPECT_THAT(text, HasSubstr("Capture overhead 0.71 to 0.94 %"));
  EXPECT_THAT(text, HasSubstr("Starting the capture took 32.9 ms once (programs 28.0 ms, relays 4.90 ms)"));
  EXPECT_THAT(text, HasSubstr("lbfd's replays took 4.78 s of processor time, 2.00 % of the program's"));
  EXPECT_THAT(text, HasSubstr("Seen 8.1 % of the run"));
  EXPECT_THAT(text, HasSubstr("Only 8.1 % of the run was captured"));
}

TEST_F(Render, SharesAreOfWhatWasSeen) {
  Step step = fixture("windows.json").at(0);
  const double all_s = *step.measured_s * static_cast<double>(*step.ranks);
  step.cost->seen_share = 0.002;
  step.mpi_s = 0.001 * all_s;
  EXPECT_THAT(render_step(step, PageStyle{}), HasSubstr("MPI 50.0 % of the ranks' time that was seen"));
  step.mpi_s = 0.1 * all_s;  // one call that began when all were seen
  EXPECT_THAT(render_step(step, PageStyle{}), Not(HasSubstr("MPI ")));
}

TEST_F(Render, ATargetOnWhichTheProgramWouldNotEnd) {
  Step step = fixture("normal.json")[0];
  TargetPrediction& elsewhere = step.predictions.back();
  elsewhere.predicted_s.reset();
  elsewhere.speedup.reset();
  elsewhere.why_stuck = "cyclic wait";
  const std::string page = render_step(step, PageStyle{});
  EXPECT_THAT(page, HasSubstr("2 lan-fast block     NF           stuck          -          -        -\n"));
  EXPECT_THAT(page, Not(HasSubstr("On network lan-fast")));
}

TEST_F(Render, ARunningStepSaysSoFar) {
  EXPECT_THAT(page("running.json"), AllOf(HasSubstr("measured so far 100.0 s, running"), HasSubstr("So far: On 1 node"),
                                          HasSubstr("1.20x"), Not(HasSubstr("MPI 0"))));
}

TEST_F(Render, APartialStepSaysWhy) {
  EXPECT_THAT(page("partial.json"),
              AllOf(HasSubstr("Partial: node n2 was silent for 60 s\n"), HasSubstr("12 events lost")));
}

TEST_F(Render, AStepOfWhichNothingIsKnownIsShort) {
  EXPECT_EQ(page("no_predictions.json"),
            "Job 10.batch\n  complete\n\nNo predictions: nothing of this step could be replayed.\n");
}

TEST_F(Render, EveryPageFits80ColumnsAndActsOnNoTerminal) {
  for (const char* name :
       {"normal.json", "running.json", "partial.json", "no_predictions.json", "odd_texts.json", "windows.json"}) {
    std::istringstream lines(page(name));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), 80U) << name << ": " << line;
      EXPECT_EQ(line, printable(line)) << name;
    }
  }
}

TEST_F(Render, ColorsOnlyWhereAsked) {
  const Step step = fixture("normal.json")[0];
  PageStyle style;
  style.color = true;
  const std::string with = render_step(step, style);
  EXPECT_THAT(with, HasSubstr("\x1b[32m      1 lan-100"));
  EXPECT_THAT(with, Not(HasSubstr("\x1b[32m      4 lan-100")));
  EXPECT_THAT(page("normal.json"), Not(HasSubstr("\x1b")));
}

TEST_F(Render, NoHeader) {
  PageStyle style;
  style.header = false;
  EXPECT_THAT(render_step(fixture("normal.json")[0], style), Not(HasSubstr("Placement")));
}

TEST_F(Render, CoresAndSpeedAreColumnsOnlyWhereTheyDiffer) {
  EXPECT_THAT(page("normal.json"), Not(HasSubstr("Cores")));
  EXPECT_THAT(page("odd_texts.json"), AllOf(HasSubstr("Cores"), HasSubstr("Speed ")));
}

TEST_F(Render, JoinsAnswersOnceAndSorted) {
  const auto joined =
      join_answers({R"({"steps":[{"job":2,"step":1},{"job":2,"step":0}]})",
                    R"({"steps":[{"job":2,"step":1},{"job":1,"step":5},{"job":2,"step":0,"restart":1}]})"});
  ASSERT_TRUE(joined.ok());
  const auto document = nlohmann::json::parse(*joined);
  ASSERT_EQ(document["steps"].size(), 4U);
  EXPECT_EQ(document["steps"][0]["job"], 1);
  EXPECT_EQ(document["steps"][1]["step"], 0);
  EXPECT_EQ(document["steps"][2]["restart"], 1);
  EXPECT_EQ(document["steps"][3]["step"], 1);
}

TEST_F(Render, JobsOfOneNumberAreNoDuplicatesOfEachOther) {
  const auto step = [](const std::string& more) { return R"({"state":"complete","job":2,"step":0)" + more + "}"; };
  const auto joined = join_answers({R"({"steps":[)" + step(R"(,"submit":9)") + "," + step(R"(,"submit":5)") + "]}",
                                    R"({"steps":[)" + step(R"(,"submit":9)") + "," + step("") + "]}"});
  ASSERT_TRUE(joined.ok());
  const auto steps = parse_steps(*joined);
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  ASSERT_EQ(steps->size(), 3U);
  EXPECT_EQ(key_of(steps->at(0)), "/2/0/0");
  EXPECT_EQ(key_of(steps->at(1)), "/2/0/0/5");
  EXPECT_EQ(key_of(steps->at(2)), "/2/0/0/9");
  EXPECT_EQ(one_per_job(*steps).size(), 3U);
}

TEST_F(Render, RefusesToJoinWhatIsNoAnswer) {
  for (const char* answer : {"", "<html>", "[]", "{}", R"({"steps":{}})"}) {
    EXPECT_FALSE(join_answers({answer}).ok()) << answer;
  }
  EXPECT_TRUE(join_answers({}).ok());
  EXPECT_TRUE(join_answers({R"({"steps":[1,null,{"job":"x"}]})"}).ok()) << "parse_steps names the fault";
}

TEST_F(Render, JsonKeepsEverythingAndActsOnNoTerminal) {
  const auto joined = join_answers({fixture_text("odd_texts.json")});
  ASSERT_TRUE(joined.ok());
  const auto text = print_json(*joined, JsonLayout::kPretty);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(nlohmann::json::parse(*text), nlohmann::json::parse(fixture_text("odd_texts.json")));
  for (const char c : *text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
}

TEST(JoinAnswers, KeepsArraysAndHeterogeneousJobsTogetherInTheirOwnOrder) {
  // The last task of an array has the array's number; one job asked for twice is there once.
  const auto joined = join_answers({R"({"steps":[
      {"job":7,"step":0,"array_job":7,"array_task":3},{"job":9,"step":0,"array_job":7,"array_task":2},
      {"job":8,"step":0,"array_job":null,"array_task":null}]})",
                                    R"({"steps":[{"job":9,"step":0,"array_job":7,"array_task":2},
      {"job":6,"step":0,"het_job":5,"het_offset":1},{"job":5,"step":0,"het_job":5,"het_offset":0}]})"});
  ASSERT_TRUE(joined.ok());
  const auto steps = nlohmann::json::parse(*joined)["steps"];
  std::vector<int> jobs;
  for (const auto& step : steps) jobs.push_back(step["job"]);
  EXPECT_EQ(jobs, (std::vector<int>{5, 6, 9, 7, 8}));
}

}  // namespace
}  // namespace lbf::report::render_test