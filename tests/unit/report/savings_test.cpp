// lbf-report --savings: which runs count, what they would have saved, and what is said of the others.
#include "report/savings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/advice.h"
#include "report/field_keys.h"

namespace lbf::report::savings_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TargetPrediction target(std::uint32_t nodes, const char* kind, Seconds predicted_s) {
  TargetPrediction out;
  out.nodes = nodes;
  out.kind = kind;
  out.network = "ib";
  out.predicted_s = predicted_s;
  out.self_error_percent = 0.0;
  out.seen_share = 1.0;
  return out;
}

// 4 nodes for an hour; on 2 it would take half of that.
Step step(const char* program = "lmp", const char* account = "physics") {
  Step out;
  out.command = std::string("/usr/bin/") + program + " -in x";
  out.account = account;
  out.partition = "main";
  out.state = StepState::kComplete;
  out.ranks = 8;
  out.network = "ib";
  out.measured_s = 3600;
  out.predictions = {target(4, "self", 3600), target(2, "LBF", 1800), target(1, "LBF", 7200)};
  return out;
}

TEST(Savings, NodeHoursOfTheAdvisedConfigurationWithItsInterval) {
  const Step one = step();
  const TargetPrediction* const here = advise(one).here;
  ASSERT_NE(here, nullptr);
  EXPECT_EQ(*here->nodes, 2u);
  const double half = saying_of(one, *here)->half_width_percent / 100;
  const Saved saved = saved_by(one);
  EXPECT_EQ(saved.advised, 1u);
  EXPECT_DOUBLE_EQ(saved.used, 4);
  EXPECT_DOUBLE_EQ(saved.saved, 4 - 1);              // 2 nodes, half an hour
  EXPECT_DOUBLE_EQ(saved.low, 4 - 1 * (1 + half));   // the prediction is too short
  EXPECT_DOUBLE_EQ(saved.high, 4 - 1 * (1 - half));  // too long
}

TEST(Savings, AreCountedFromTheSmallerOfMeasuredAndSelfPredictedTime) {
  Step one = step();
  one.predictions[0].predicted_s = 3420;  // 5 % too short
  for (TargetPrediction& prediction : one.predictions) prediction.self_error_percent = -5.0;
  EXPECT_DOUBLE_EQ(saved_by(one).used, 4);
  EXPECT_DOUBLE_EQ(saved_by(one).saved, 4 * 0.95 - 1);
}

TEST(Savings, ARunWithoutAdviceCountsAndSavesNothing) {
  Step one = step();
  one.predictions[1].predicted_s = 3500;  // not surely faster
  const Saved saved = saved_by(one);
  EXPECT_EQ(saved.steps, 1u);
  EXPECT_EQ(saved.advised, 0u);
  EXPECT_EQ(saved.used, 4);
  EXPECT_EQ(saved.saved, 0);
  Step other_network = step();
  other_network.predictions[1].network = "eth";
  EXPECT_EQ(saved_by(other_network).advised, 0u) << "no choice of node counts";
  Step more_nodes = step();
  more_nodes.predictions[1] = target(8, "LBF", 600);
  EXPECT_EQ(saved_by(more_nodes).advised, 0u) << "nobody knows whether there are as many";
}

TEST(Savings, OnlyTrustedPredictionsCount) {
  EXPECT_EQ(trusted(step()), Trusted::kTrusted);
  Step one = step();
  one.state = StepState::kRunning;
  EXPECT_EQ(trusted(one), Trusted::kRunning);
  one.state = StepState::kPartial;
  EXPECT_EQ(trusted(one), Trusted::kPartial);
  one = step();
  one.predictions[0].seen_share = 0.005;
  EXPECT_EQ(trusted(one), Trusted::kSeenTooLittle);
  one.predictions[0].low_s = 3000;
  one.predictions[0].high_s = 4000;
  EXPECT_EQ(trusted(one), Trusted::kTrusted) << "it has an interval (protocol/seen_run.h)";
  one = step();
  one.predictions[0].self_error_percent = 10.1;
  EXPECT_EQ(trusted(one), Trusted::kSelfErrorTooLarge);
  one.predictions[0].self_error_percent = -10.0;
  EXPECT_EQ(trusted(one), Trusted::kTrusted);
  one = step();
  one.predictions.erase(one.predictions.begin());
  EXPECT_EQ(trusted(one), Trusted::kNoSelfPrediction);
  one = step();
  one.measured_s.reset();
  EXPECT_EQ(trusted(one), Trusted::kNoSelfPrediction);
  one = step();
  one.others_s = 360;
  EXPECT_EQ(trusted(one), Trusted::kLostToOthers);
}

Savings some() {
  Savings savings;
  savings.add(step());
  savings.add(step("lmp", "chemistry"));
  savings.add(step("pw.x", ""));
  Step partial = step();
  partial.state = StepState::kPartial;
  savings.add(partial);
  Step wrong = step();
  wrong.predictions[0].self_error_percent = 30;
  savings.add(wrong);
  Step deferred = step();
  deferred.predictions[1].predicted_s.reset();
  deferred.predictions[1].why_deferred = "no room";
  savings.add(deferred);
  return savings;
}

TEST(Savings, ByProgramAccountAndPartition) {
  const Savings savings = some();
  EXPECT_EQ(savings.all().steps, 4u);
  EXPECT_DOUBLE_EQ(savings.all().used, 16);
  EXPECT_DOUBLE_EQ(savings.all().saved, 9);
  const auto programs = savings.lines(0);
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].key, "lmp");
  EXPECT_DOUBLE_EQ(programs[0].saved.saved, 6);
  EXPECT_EQ(programs[1].key, "pw.x");
  const auto accounts = savings.lines(1);
  ASSERT_EQ(accounts.size(), 3u);
  for (const Savings::Line& line : accounts) EXPECT_DOUBLE_EQ(line.saved.saved, 3);
  EXPECT_EQ(accounts[0].key, "-");
  EXPECT_EQ(savings.lines(2).size(), 1u);
  EXPECT_EQ(savings.unknown(Trusted::kPartial).unknown_steps, 1u);
  EXPECT_EQ(savings.with_deferred(), 1u);
}

TEST(Savings, TheSentences) {
  const Savings savings = some();
  EXPECT_THAT(savings_sentence(savings, {}), StartsWith("Of 16.0 node-hours with trusted predictions, 9.00 (56.2 %) "
                                                        "would have been saved at the advised node counts; between "));
  EXPECT_EQ(unknown_sentence(savings),
            "Not known: 2 runs, 8.00 node-hours: 1 partial (4.00), 1 self-prediction error above 10 % (4.00). Of 1 run "
            "further targets are to be replayed yet.");
  EXPECT_EQ(savings_sentence({}, {}), "No run has trusted predictions.");
  EXPECT_EQ(unknown_sentence({}), "");
}

// A run that is not trusted saves nothing that is known: it is in no sum, and its node-hours stand beside the sums.
TEST(Savings, RunsThatAreNotTrustedAreNotKnownInEachGroup) {
  Savings savings = some();
  Step wrong = step("mystery", "biology");
  wrong.predictions[0].self_error_percent = 30;
  savings.add(wrong);
  EXPECT_DOUBLE_EQ(savings.all().used, 16);
  EXPECT_EQ(savings.all().unknown_steps, 3u);
  EXPECT_DOUBLE_EQ(savings.all().unknown_used, 12);
  for (std::size_t group = 0; group < Savings::kGroups.size(); ++group) {
    Saved sum;
    for (const Savings::Line& line : savings.lines(group)) sum.add(line.saved);
    EXPECT_DOUBLE_EQ(sum.unknown_used, 12) << Savings::kGroups[group];
    EXPECT_DOUBLE_EQ(sum.used, 16) << Savings::kGroups[group];
  }
  const Savings::Line last = savings.lines(0).back();
  EXPECT_EQ(last.key, "mystery");
  EXPECT_EQ(last.saved.steps, 0u);
  EXPECT_EQ(last.saved.high, 0);
  EXPECT_DOUBLE_EQ(last.saved.unknown_used, 4);
}

TEST(Savings, Table) {
  const std::string table = render_savings(some(), {});
  EXPECT_THAT(table, StartsWith("Group     Key           Steps Advised NodeHours   Saved     Low    High NotKnown\n"));
  EXPECT_THAT(table, HasSubstr("\nprogram   lmp               3       2      12.0    6.00 "));
  EXPECT_THAT(table, HasSubstr("    8.00\nprogram   pw.x              1       1      4.00    3.00 "));
  EXPECT_EQ(render_savings({}, {}), "");
  TableStyle parsable;
  parsable.parsable = true;
  parsable.header = false;
  EXPECT_THAT(render_savings(some(), parsable), StartsWith("all||4|3|16.0|9.00|"));
}

TEST(Savings, Json) {
  Selection selection;
  selection.since = 1700000000;
  const auto json = nlohmann::json::parse(savings_json(some(), selection));
  const auto& savings = json["savings"];
  EXPECT_EQ(savings["since"], 1700000000.0);
  EXPECT_TRUE(savings["until"].is_null());
  EXPECT_EQ(savings["all"]["saved_node_hours"], 9.0);
  EXPECT_EQ(savings["by_program"][0]["program"], "lmp");
  EXPECT_EQ(savings["by_account"].size(), 3u);
  EXPECT_EQ(savings["all"]["not_known_node_hours"], 8.0);
  EXPECT_EQ(savings["not_known"][0], (nlohmann::json{{"why", "partial"}, {"steps", 1}, {"node_hours", 4.0}}));
  EXPECT_EQ(savings["steps_with_deferred_targets"], 1);
}

TEST(Savings, PlotAndPageHaveEveryGroupAndWhatIsLeftOut) {
  Savings savings = some();
  Step evil = step("<b>&", "a\x1b[2J");
  savings.add(evil);
  for (const auto characters : {PlotCharacters::kAscii, PlotCharacters::kUnicode}) {
    const std::string plot = plot_savings(savings, {}, 80, characters);
    for (const char* words :
         {"by program", "by account", "by partition", "lmp", "physics", "main", "Not known: 2 runs"})
      EXPECT_THAT(plot, HasSubstr(words));
    EXPECT_EQ(plot.find('\x1b'), std::string::npos);
  }
  const std::string page = savings_html(savings, {}, "0.2.0");
  for (const char* words : {"By program", "By account", "By partition", "&lt;b&gt;&amp;", "Not known: 2 runs", "<svg"})
    EXPECT_THAT(page, HasSubstr(words));
  for (const char* words : {"<script", "http://", "https://", "\x1b", "<b>"})
    EXPECT_EQ(page.find(words), std::string::npos);
}

}  // namespace
}  // namespace lbf::report::savings_test
