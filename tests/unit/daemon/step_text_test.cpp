// What lists get is what step_json() says; summaries less what a reader assumes anyway.
#include "predictor/daemon/http/step_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "predictor/daemon/http/step_json.h"

namespace lbf::step_text_test {
namespace {

using nlohmann::json;

// Without what is null, "", false or an empty list, at any depth.
json without_the_obvious(const json& value) {
  if (value.is_array()) {
    json out = json::array();
    for (const json& item : value) out.push_back(without_the_obvious(item));
    return out;
  }
  if (!value.is_object()) return value;
  json out = json::object();
  for (const auto& [key, item] : value.items()) {
    const bool obvious = item.is_null() || item == "" || item == false || (item.is_array() && item.empty());
    if (!obvious) out[key] = without_the_obvious(item);
  }
  return out;
}

void expect_same(const daemon::StepView& step) {
  for (const daemon::StepDetail detail :
       {daemon::StepDetail::kBrief, daemon::StepDetail::kSummary, daemon::StepDetail::kList}) {
    std::string text;
    daemon::append_step_text(step, detail, text);
    json expected = json::parse(daemon::json_text(daemon::step_json(step, detail)));
    if (detail == daemon::StepDetail::kSummary) expected = without_the_obvious(expected);
    EXPECT_EQ(json::parse(text), expected) << text;
    // Types, too: 1.0 is not 1.
    EXPECT_EQ(json::parse(text).dump(), expected.dump());
  }
}

db::PredictionRecord prediction() {
  db::PredictionRecord made;
  made.target = "2 nodes, block";
  made.nodes = 2;
  made.cores_per_node = 8;
  made.placement = "block";
  made.network = "lan";
  made.contention = "nic";
  made.speed = 1;
  made.kind = "LBF";
  made.predicted_s = 12.25;
  made.progress_s = 12.25;
  return made;
}

daemon::StepView whole_step() {
  daemon::StepView step;
  db::StepRecord& record = step.record;
  record.cluster = "c";
  record.job = 4294967295;
  record.step = 3;
  record.array_job = 7;
  record.array_task = 0;
  record.user_name = "alice";
  record.uid = 1000;
  record.account = "physics";
  record.partition = "main";
  record.job_name = "a \"b\" \\ \t \xff \xc3\xa9";
  record.command_words = std::vector<std::string>{"./a b", ""};
  record.command_cut = true;
  record.state = db::StepState::kPartial;
  record.why_partial = "rank 3 was lost";
  record.nodes = {"n1", "n2"};
  record.ranks = 16;
  record.network = "lan";
  record.start_s = 1.7e9;
  record.end_s = 1700000000.125;
  record.measured_s = 1e-7;
  record.events = 18446744073709551615ULL;
  record.mpi_s = 3;
  record.cost = db::CostRecord{};
  record.cost->limit_percent = 2;
  record.cost->state = "open";
  record.cost->program_cpu_s = 1e9;
  record.node_of_rank = {0, 0, 1};
  record.calls = {{"MPI_Send", 500, 0.4}, {"MPI_Recv", 2, 0}};
  record.unmodelled_calls = {{"MPI_Win_fence", 1, 2}};
  record.notes = {"a note"};
  record.procedures.emplace().procedures.emplace_back().name = "servBusy1";
  step.predictions = {prediction(), prediction(), prediction()};
  step.predictions[0].kind = "self";
  step.predictions[0].speedup = 1.5;
  step.predictions[0].low_s = std::numeric_limits<double>::infinity();
  step.predictions[1].why_stuck = "it waits";
  step.predictions[1].topology.file = "/etc/topology.conf";
  step.predictions[1].topology.nodes = {"n1"};
  step.predictions[1].taken_up = true;
  step.predictions[2].why_deferred = "no room";
  step.predictions[2].deferred_for_good = true;
  step.predictions[2].partial = true;
  return step;
}

TEST(StepText, IsWhatTheDocumentSays) {
  expect_same(whole_step());
}

TEST(StepText, OfAStepOfWhichLittleIsKnown) {
  expect_same(daemon::StepView{});
  daemon::StepView step;
  step.record.command = "./old -x";  // stored before the words were kept
  step.predictions = {prediction()};
  expect_same(step);
}

}  // namespace
}  // namespace lbf::step_text_test