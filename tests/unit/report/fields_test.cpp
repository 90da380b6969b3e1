#include "report/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "report/text.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::fields_test {
namespace {

using ::testing::HasSubstr;

std::vector<Column> columns(std::string_view format) {
  auto parsed = parse_format(format);
  EXPECT_TRUE(parsed.ok()) << format;
  return parsed.ok() ? std::move(*parsed) : std::vector<Column>{};
}

TEST(ParseFormat, ReadsNamesWithoutCaseAndWidths) {
  const auto parsed = columns("target%20,PREDICTED%-9,jobid");
  ASSERT_EQ(parsed.size(), 3U);
  EXPECT_EQ(parsed[0].field->name, "Target");
  EXPECT_EQ(parsed[0].width, 20U);
  EXPECT_FALSE(parsed[0].left);
  EXPECT_EQ(parsed[1].width, 9U);
  EXPECT_TRUE(parsed[1].left);
  EXPECT_EQ(parsed[2].field->name, "JobID") << "the whole name goes before JobIDRaw";
}

TEST(ParseFormat, TakesTheStartOfAName) {
  EXPECT_EQ(columns("unmod")[0].field->name, "Unmodelled");
}

TEST(ParseFormat, AllIsEveryField) {
  const auto all = columns("all");
  ASSERT_EQ(all.size(), all_fields().size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].field, &all_fields()[i]);
  EXPECT_EQ(columns("State,ALL,JobID").size(), all.size() + 2);
}

TEST(ParseFormat, NamesWhatIsWrong) {
  for (const char* format : {"", "nothing", "JobID,", "JobID%", "JobID%x", "JobID%0", "JobID%-0", "JobID%99999",
                             "JobID%5x", "%5", "JobID%5%6"}) {
    EXPECT_FALSE(parse_format(format).ok()) << format;
  }
  EXPECT_THAT(parse_format("Elapsed").error().message, HasSubstr("-e lists them"));
}

TEST(ParseFormat, TheListsThatAreUsedWithoutItAreRight) {
  for (const std::string_view format :
       {default_step_format(false), default_step_format(true), default_target_format()}) {
    std::size_t width = 0;
    for (const Column& column : columns(format)) width += column.width + 1;
    EXPECT_LE(width - 1, 80U) << format;
  }
  EXPECT_GT(columns(long_format()).size(), 20U);
}

TEST(HelpFormat, NamesEveryFieldOnce) {
  const std::string help = help_format();
  std::set<std::string_view> names;
  for (const Field& field : all_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_THAT(help, HasSubstr(field.name));
  }
}

TEST(RenderTable, OneLinePerTargetOnlyWhereAColumnIsATargets) {
  const auto steps = fixture("normal.json");
  EXPECT_EQ(render_table(steps, columns("JobID%6,State"), {}), " JobID    State\n------ --------\n 123.0 complete\n");
  TableStyle bare;
  bare.header = false;
  EXPECT_EQ(render_table(steps, columns("Nodes%2,Kind%-6,Predicted,Speedup%5"), bare),
            " 2 self       15.02 s 1.01x\n"
            " 4 LBF        19.50 s 0.78x\n"
            " 1 LBF        12.30 s 1.24x\n"
            " 1 LBF+NF     12.29 s 1.24x\n"
            " 2 NF         8.000 s 1.90x\n");
}

TEST(RenderTable, WhatIsNoNumberIsNotPrintedAsOne) {
  auto steps = fixture("normal.json");
  steps[0].predictions[2].network = "zero";
  steps[0].predictions[2].nodes = 2;
  steps[0].predictions[3].memory_percent = 60;
  steps[0].predictions[4].memory_percent = 100;
  TableStyle style;
  style.parsable = true;
  style.header = false;
  const std::string text = render_table(steps, columns("Trust,Predicted,PredictedRaw,Low,High,Speedup"), style);
  EXPECT_THAT(text, ::testing::StartsWith("number|15.02 s|15.017600|13.95 s|16.09 s|1.01x\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nat_best\\|\\|\\|11.2[0-9] s\\|\\|\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nrange\\|\\|\\|[0-9.]* s\\|[0-9.]* s\\|\n"));
  EXPECT_THAT(text, HasSubstr("\ncannot_tell|cannot tell||||\n"));
  EXPECT_EQ(render_table(steps, columns("Best,BestTarget"), style), "15.02 s|2 nodes, lan-100\n");
}

// `lbf-report` showed "1.mpirun-d5+", which no `-j` takes.
TEST(RenderTable, JobIdsAreNeverCut) {
  std::vector<Step> steps{fixture("partial.json").at(0), fixture("partial.json").at(0)};
  steps[1].job = 4294967294;
  steps[1].array_job = 4294967293;
  steps[1].array_task = 1000000;
  steps[1].step = kFirstRunNumber + 0xd5;
  EXPECT_EQ(render_table(steps, columns("State%8,JobID,NTasks%6"), {}),
            "   State JobID                             NTasks\n"
            "-------- --------------------------------- ------\n"
            " partial 9.0                                    4\n"
            " partial 4294967293_1000000.mpirun-00000d5      4\n");
  EXPECT_EQ(render_table(steps, columns("State%8,JobID"), {}).find(" \n"), std::string::npos);
  EXPECT_EQ(render_table(steps, columns("JobID%9"), {}), "    JobID\n---------\n      9.0\n42949672+\n") << "asked for";
  Table table(columns("State%8,JobID,NTasks%6"), {});
  table.add(steps[1]);
  table.add(steps[0]);
  EXPECT_EQ(table.take_text(), render_table(steps, columns("State%8,JobID,NTasks%6"), {}));
}

TEST(RenderTable, Parsable) {
  TableStyle style;
  style.parsable = true;
  const auto steps = fixture("partial.json");
  EXPECT_EQ(render_table(steps, columns("JobID,Nodes,Cores,PredictedRaw,User"), style),
            "JobID|Nodes|Cores|PredictedRaw|User\n9.0|2|1||\n9.0|1|1||\n")
      << "half of its events were lost";
  style.trailing = true;
  style.delimiter = "; ";
  style.header = false;
  EXPECT_EQ(render_table(steps, columns("JobID,Reason"), style), "9.0; node n2 was silent for 60 s; \n");
}

// A job's name with the delimiter in it moved the columns: a partial step read "complete".
TEST(RenderTable, NoNameHasTheDelimiterInIt) {
  std::vector<Step> steps{fixture("partial.json").at(0)};
  steps[0].job_name = "a|9.0|complete|";
  TableStyle style;
  style.parsable = true;
  style.header = false;
  EXPECT_EQ(render_table(steps, columns("JobName,State"), style), "a?9.0?complete?|partial\n");
  style.delimiter = "?";
  steps[0].job_name = "who?";
  EXPECT_EQ(render_table(steps, columns("JobName,State"), style), "who_?partial\n");
  style.delimiter = "::";
  steps[0].job_name = "a:b:";
  EXPECT_EQ(render_table(steps, columns("JobName,State"), style), "a?b?::partial\n");
  style.delimiter = "\u2502";
  steps[0].job_name = "a\u2502b\u2500";
  EXPECT_EQ(render_table(steps, columns("JobName,State"), style), "a?b\u2500\u2502partial\n");
  style.delimiter = "";
  EXPECT_EQ(render_table(steps, columns("State,State"), style), "partialpartial\n");
  style.parsable = false;
  EXPECT_EQ(render_table(steps, columns("State%8"), style), " partial\n");
}

TEST(RenderTable, NoFieldOfARowHasTheDelimiterInIt) {
  TableStyle style;
  style.parsable = true;
  for (const char* file : {"normal.json", "partial.json", "windows.json"}) {
    for (const std::string delimiter : {"|", ",", ".", "0", "e"}) {
      style.delimiter = delimiter;
      std::istringstream lines(render_table(fixture(file), columns("ALL"), style));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(static_cast<std::size_t>(std::count(line.begin(), line.end(), delimiter.front())),
                  all_fields().size() - 1)
            << file << ", " << line;
      }
    }
  }
}

TEST(Table, PutsTheStepsInOrderHoweverTheyCome) {
  const Step normal = fixture("normal.json").at(0);
  TableStyle style;
  style.parsable = true;
  Table table(columns("JobIDRaw,Nodes"), style);
  EXPECT_EQ(table.steps(), 0U);
  for (const std::uint64_t job : {5U, 3U, 4U}) {
    Step step = normal;
    step.job = job;
    step.predictions.resize(job - 2);
    table.add(step);
  }
  EXPECT_EQ(table.steps(), 3U);
  EXPECT_EQ(table.take_text(), "JobIDRaw|Nodes\n3.0|2\n4.0|2\n4.0|4\n5.0|2\n5.0|4\n5.0|1\n");
}

TEST(Table, IsWhatRenderTableSays) {
  const auto steps = fixture("partial.json");
  Table table(columns("JobID,Target,Predicted"), {});
  for (const Step& step : steps) table.add(step);
  EXPECT_EQ(table.take_text(), render_table(steps, columns("JobID,Target,Predicted"), {}));
}

TEST(RenderTable, CostsAndIntervals) {
  TableStyle style;
  style.parsable = true;
  EXPECT_EQ(
      render_table(
          fixture("windows.json"),
          columns("JobID,OverheadLimit,OverheadPredicted,OverheadLow,OverheadHigh,OverheadOnce,OverheadTotal,Seen,"
                  "Windows,CaptureState,Predicted,Low,High"),
          style),
      "JobID|OverheadLimit|OverheadPredicted|OverheadLow|OverheadHigh|OverheadOnce|OverheadTotal|Seen|Windows|"
      "CaptureState|"
      "Predicted|Low|High\n"
      "124.0|1.00%|12.50%|0.71%|0.94%|32.90 ms|0.95%|8.10%|7|counting|59.40 s|53.28 s|65.52 s\n"
      "124.0|1.00%|12.50%|0.71%|0.94%|32.90 ms|0.95%|8.10%|7|counting|cannot tell||\n");
  // What was stored before there were costs.
  EXPECT_EQ(render_table(fixture("partial.json"), columns("JobID,OverheadLimit,Seen,Low"), style),
            "JobID|OverheadLimit|Seen|Low\n9.0|||\n9.0|||\n");
}

// The list shows no gain that the report of the step would not call one.
TEST(RenderTable, AGainIsOneByTheRuleOfTheReport) {
  TableStyle style;
  style.parsable = true;
  style.header = false;
  Step step = fixture("normal.json")[0];
  const auto cells = [&] { return render_table({step}, columns("BestGain,BestTarget,Best"), style); };
  const std::string trusted = cells();
  EXPECT_NE(trusted.front(), '|');
  for (TargetPrediction& prediction : step.predictions) prediction.self_error_percent = -95;
  EXPECT_EQ(cells(), "||\n");
  Step alone = step;
  alone.predictions.resize(1);
  EXPECT_EQ(render_table({alone}, columns("BestGain"), style), "\n") << "-95 % of the run itself is no gain either";
  for (TargetPrediction& prediction : step.predictions) {
    prediction.seen_share = 0.002;
    prediction.low_s = prediction.high_s = std::nullopt;
    prediction.keep_what_is_known();
  }
  EXPECT_EQ(cells(), "||\n");
}

TEST(RenderTable, AStepWithoutPredictionsIsStillALine) {
  TableStyle style;
  style.header = false;
  style.parsable = true;
  EXPECT_EQ(render_table(fixture("no_predictions.json"), columns("JobID,Target,Predicted,Best"), style),
            "10.batch|||\n");
}

TEST(RenderTable, EveryFieldOfEveryFixtureHasAValueThatFits) {
  for (const char* name :
       {"normal.json", "running.json", "partial.json", "no_predictions.json", "odd_texts.json", "windows.json"}) {
    for (const Step& step : fixture(name)) {
      for (const Field& field : all_fields()) {
        const TargetPrediction* target = step.predictions.empty() ? nullptr : &step.predictions.back();
        const std::string value = field.value(step, target);
        EXPECT_EQ(value, printable(value)) << field.name;
        EXPECT_EQ(display_width(fit(value, field.width, field.left)), field.width) << field.name;
      }
    }
  }
}

}  // namespace
}  // namespace lbf::report::fields_test