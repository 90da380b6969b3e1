// Rows say what step_json() says.
#include "predictor/daemon/http/step_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "predictor/daemon/http/step_json.h"

namespace lbf::step_rows_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

daemon::StepView some_step() {
  daemon::StepView step;
  db::StepRecord& record = step.record;
  record.cluster = "c";
  record.job = 4294967295;
  record.step = 3;
  record.restart = 2;
  record.array_job = 7;
  record.array_task = 0;
  record.user_name = "alice";
  record.uid = 1000;
  record.account = "physics";
  record.partition = "main";
  record.job_name = "a \"b\" \\ \t \xff \xc3\xa9";
  record.command_words = std::vector<std::string>{"./a b", "", "\x01"};
  record.command_cut = true;
  record.state = db::StepState::kPartial;
  record.why_partial = "rank 3 was lost";
  record.nodes = {"n1", "n2"};
  record.ranks = 16;
  record.network = "lan";
  record.start_s = 1.7e9;
  record.measured_s = 1e-7;
  record.events = 18446744073709551615ULL;
  record.mpi_s = 3;
  record.notes = {"one", "two"};
  db::CostRecord& cost = record.cost.emplace();
  cost.limit_percent = 2;
  cost.program_cpu_s = 1e9;
  cost.direct_s = 3e7;
  cost.ideal_s = 2e7;
  cost.windows = 5;
  cost.seen_share = 0.25;
  for (int i = 0; i < 3; ++i) {
    db::PredictionRecord& prediction = step.predictions.emplace_back();
    prediction.target = "2 nodes, block";
    prediction.nodes = 2;
    prediction.cores_per_node = 8;
    prediction.placement = "block";
    prediction.network = "lan";
    prediction.contention = "nic";
    prediction.speed = 0.5;
    prediction.kind = i == 0 ? "self" : "LBF";
    prediction.predicted_s = 12.25;
    prediction.progress_s = 13;
    prediction.measured_at_progress_s = 14;
  }
  step.predictions[0].speedup = 1.5;
  step.predictions[0].self_error_percent = -1.25;
  step.predictions[0].low_s = std::numeric_limits<double>::infinity();
  step.predictions[0].high_s = 15;
  step.predictions[0].seen_share = 0.5;
  step.predictions[1].why_stuck = "it waits";
  step.predictions[1].topology.file = "/etc/topology.conf";
  step.predictions[1].topology.nodes = {"n1"};
  step.predictions[1].taken_up = true;
  step.predictions[2].why_deferred = "no room";
  step.predictions[2].deferred_for_good = true;
  step.predictions[2].partial = true;
  return step;
}

std::string rows_text(const std::vector<db::ListedStep>& steps, const daemon::RowColumns& columns) {
  std::string out;
  daemon::append_rows_head(columns, out);
  for (const db::ListedStep& step : steps) {
    if (&step != &steps.front()) out += ',';
    daemon::append_row(step, columns, out);
  }
  return out + "]}";
}

db::ListedStep listed(const daemon::StepView& step) {
  const auto count = [&](bool (*is)(const db::PredictionRecord&)) {
    return static_cast<std::uint64_t>(std::count_if(step.predictions.begin(), step.predictions.end(), is));
  };
  db::ListedStep made{step.record, step.predictions};
  made.record.node_count = step.record.nodes.size();
  made.record.targets_deferred = count([](const auto& p) { return !p.why_deferred.empty(); });
  made.record.targets_taken_up = count([](const auto& p) { return p.taken_up; });
  return made;
}

// A value of STEP or PREDICTION; of what an object leaves out, what a reader takes for it.
json value_at(const json& object, const std::string& key) {
  if (key == "node_count") return object["nodes"].size();
  if (key == "targets_deferred" || key == "targets_taken_up") {
    const char* const mark = key == "targets_deferred" ? "why_deferred" : "taken_up";
    const json& list = object["predictions"];
    return std::count_if(list.begin(), list.end(), [&](const json& prediction) { return prediction.contains(mark); });
  }
  if (const std::size_t dot = key.find('.'); dot != std::string::npos) {
    const json part = value_at(object, key.substr(0, dot));
    if (part.is_object()) return value_at(part, key.substr(dot + 1));
    if (key == "topology.file") return "";
    if (key == "topology.nodes") return json::array();
    return nullptr;
  }
  if (object.contains(key)) return object[key];
  if (key == "why_deferred" || key == "program_id") return "";
  if (key == "deferred_for_good" || key == "taken_up") return false;
  if (key == "threads") return 0;
  return nullptr;
}

void expect_same(const daemon::StepView& step) {
  const std::string of_predictions = "predictions.";
  const json whole = json::parse(daemon::json_text(daemon::step_json(step, daemon::StepDetail::kList)));
  for (const std::string_view name : daemon::all_row_names()) {
    const auto columns = daemon::parse_rows(name);
    ASSERT_TRUE(columns.ok()) << columns.error().message;
    const std::string text = rows_text({listed(step)}, *columns);
    const json answer = json::parse(text, nullptr, false);
    ASSERT_TRUE(answer.is_object()) << text;
    std::string key(name);
    json expected = json::array();
    if (key.starts_with(of_predictions)) {
      key.erase(0, of_predictions.size());
      EXPECT_EQ(answer["prediction_keys"], json::array({key}));
      json values = json::array();
      for (const json& prediction : whole["predictions"]) values.push_back(json::array({value_at(prediction, key)}));
      expected.push_back(json::array({values}));
    } else {
      EXPECT_EQ(answer["keys"], json::array({key}));
      expected.push_back(json::array({value_at(whole, key)}));
    }
    EXPECT_EQ(answer["rows"].dump(), expected.dump()) << "types, too: 1.0 is not 1";
  }
}

TEST(StepRows, SayWhatTheDocumentSays) {
  expect_same(some_step());
}

TEST(StepRows, OfAStepOfWhichLittleIsKnown) {
  expect_same(daemon::StepView{});
  daemon::StepView old;
  old.record.command = "./old -x";  // stored before the words were kept
  expect_same(old);
}

TEST(StepRows, ColumnsAreInTheOrderThatWasAskedForAndPredictionsLast) {
  const auto columns = daemon::parse_rows("predictions.kind,job,predictions.nodes,cluster");
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ(rows_text({listed(some_step()), listed(daemon::StepView{})}, *columns),
            R"({"keys":["job","cluster"],"prediction_keys":["kind","nodes"],"rows":[)"
            R"([4294967295,"c",[["self",2],["LBF",2],["LBF",2]]],[0,"",[]]]})");
  EXPECT_EQ(rows_text({}, *columns), R"({"keys":["job","cluster"],"prediction_keys":["kind","nodes"],"rows":[]})");
}

TEST(StepRows, OtherNamesAreRefused) {
  for (const char* names :
       {"", "job,", "nothing", "job,job", "predictions.job", "predictions", "cost", "rank_finish_s"}) {
    const auto columns = daemon::parse_rows(names);
    ASSERT_FALSE(columns.ok()) << names;
    EXPECT_THAT(columns.error().message, HasSubstr("rows"));
  }
}

}  // namespace
}  // namespace lbf::step_rows_test