// Lists have what is wanted, as it was put, and read nothing else.
#include "db/step_list.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace lbf::db::step_list_test {
namespace {

PredictionRecord prediction_of(const std::string& kind, double predicted_s) {
  PredictionRecord prediction;
  prediction.target = "2 nodes, block";
  prediction.nodes = 2;
  prediction.cores_per_node = 4;
  prediction.placement = "block";
  prediction.network = "lan";
  prediction.contention = "none";
  prediction.speed = 0.5;
  prediction.kind = kind;
  prediction.predicted_s = predicted_s;
  prediction.progress_s = 1.5;
  prediction.measured_at_progress_s = 1.75;
  prediction.rank_finish_s = {1.5, predicted_s};
  return prediction;
}

StepRecord step_of(std::uint32_t job, double start_s) {
  StepRecord step;
  step.cluster = "c";
  step.job = job;
  step.step = 4294967291u;
  step.restart = 1;
  step.user_name = "u";
  step.uid = 1000;
  step.job_name = "name";
  step.state = StepState::kComplete;
  step.nodes = {"n1", "n2"};
  step.ranks = 2;
  step.network = "zero";
  step.start_s = start_s;
  step.end_s = start_s + 10;
  return step;
}

template <typename Record, const auto& kTable>
std::vector<std::string_view> all_names() {
  std::vector<std::string_view> out;
  for (const auto& field : read_fields<Record, kTable>()) out.push_back(field.name);
  return out;
}

ListValues every_value() {
  ListValues values{all_names<StepRecord, kStepFields>(), all_names<PredictionRecord, kPredictionFields>(), true};
  values.step.push_back("cost");
  std::erase(values.prediction, "rank_finish_s_json");  // most of the bytes of a large step
  return values;
}

class StepListTest : public testing::Test {
 protected:
  StepListTest() {
    auto database = Database::open(directory_.path() + "/lbf.db");
    if (database) database_ = std::move(database).value();
  }
  void put(const StepRecord& step, const std::vector<PredictionRecord>& predictions) {
    const auto row = StepStore(*database_).put(step, predictions);
    ASSERT_TRUE(row.ok()) << row.error().message;
  }
  std::vector<ListedStep> list(const StepQuery& query, const ListValues& values) {
    auto steps = list_steps(*database_, query, values);
    EXPECT_TRUE(steps.ok()) << (steps.ok() ? "" : steps.error().message);
    if (!steps.ok()) return {};
    const auto read = read_predictions(*database_, values, *steps);
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    return std::move(*steps);
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(StepListTest, EveryValueComesBackAsItWasPut) {
  StepRecord step = step_of(7, 100.5);
  step.array_job = 5;
  step.array_task = 0;
  step.het_job = 6;
  step.het_offset = 1;
  step.account = "physics";
  step.partition = "main";
  step.command_words = std::vector<std::string>{"./a b", ""};
  step.command_cut = true;
  step.state = StepState::kPartial;
  step.why_partial = "because";
  step.measured_s = 3.25;
  step.events = 10;
  step.messages = 11;
  step.wire_bytes = 12;
  step.stored_bytes = 13;
  step.wildcard_receives = 14;
  step.lost_events = 15;
  step.mpi_s = 16.5;
  step.unmodelled_s = 17.5;
  step.capture_s = 18.5;
  step.relay_cpu_s = 19.5;
  step.lbfd_cpu_s = 20.5;
  step.notes = {"one", "two"};
  CostRecord& cost = step.cost.emplace();
  cost.limit_percent = 2;
  cost.predicted_percent = 0.5;
  cost.corrected_percent = 0.75;
  cost.state = "counting";
  cost.program_cpu_s = 100;
  cost.direct_s = 3;
  cost.ideal_s = 2;
  cost.relay_cpu_s = 1;
  cost.recorded_calls = 21;
  cost.counted_calls = 22;
  cost.disbelieved = 23;
  cost.windows = 24;
  cost.seen_share = 0.25;
  PredictionRecord whole = prediction_of("self", 4);
  whole.speedup = 1.25;
  whole.self_error_percent = -2.5;
  whole.low_s = 3.5;
  whole.high_s = 4.5;
  whole.seen_share = 0.5;
  whole.topology = {"/etc/slurm/topology.conf", {"n1", "n7"}};
  PredictionRecord stuck = prediction_of("NF", 5);
  stuck.why_stuck = "cyclic wait";
  PredictionRecord deferred = prediction_of("LBF", 6);
  deferred.why_deferred = "no room";
  deferred.deferred_for_good = true;
  deferred.partial = true;
  PredictionRecord late = prediction_of("LBF", 7);
  late.taken_up = true;
  put(step, {whole, stuck, deferred, late, late});

  const auto listed = list({}, every_value());
  ASSERT_EQ(listed.size(), 1u);
  const StepRecord& back = listed[0].record;
  EXPECT_EQ(listed[0].record.node_count, 2u);
  EXPECT_EQ(listed[0].record.targets_deferred, 1u);
  EXPECT_EQ(listed[0].record.targets_taken_up, 2u);
  EXPECT_EQ(back.cluster, "c");
  EXPECT_EQ(back.job, 7u);
  EXPECT_EQ(back.step, 4294967291u);
  EXPECT_EQ(back.restart, 1u);
  EXPECT_EQ(back.array_job, 5u);
  EXPECT_EQ(back.array_task, 0u);
  EXPECT_EQ(back.het_job, 6u);
  EXPECT_EQ(back.het_offset, 1u);
  EXPECT_EQ(back.user_name, "u");
  EXPECT_EQ(back.uid, 1000u);
  EXPECT_EQ(back.account, "physics");
  EXPECT_EQ(back.partition, "main");
  EXPECT_EQ(back.job_name, "name");
  EXPECT_EQ(back.command_words, step.command_words);
  EXPECT_TRUE(back.command_cut);
  EXPECT_EQ(back.state, StepState::kPartial);
  EXPECT_EQ(back.why_partial, "because");
  EXPECT_EQ(back.nodes, step.nodes);
  EXPECT_EQ(back.ranks, 2);
  EXPECT_EQ(back.network, "zero");
  EXPECT_EQ(back.start_s, 100.5);
  EXPECT_EQ(back.end_s, 110.5);
  EXPECT_EQ(back.measured_s, 3.25);
  EXPECT_EQ(back.events, 10u);
  EXPECT_EQ(back.messages, 11u);
  EXPECT_EQ(back.wire_bytes, 12u);
  EXPECT_EQ(back.stored_bytes, 13u);
  EXPECT_EQ(back.wildcard_receives, 14u);
  EXPECT_EQ(back.lost_events, 15u);
  EXPECT_EQ(back.mpi_s, 16.5);
  EXPECT_EQ(back.unmodelled_s, 17.5);
  EXPECT_EQ(back.capture_s, 18.5);
  EXPECT_EQ(back.relay_cpu_s, 19.5);
  EXPECT_EQ(back.lbfd_cpu_s, 20.5);
  EXPECT_EQ(back.notes, step.notes);
  ASSERT_TRUE(back.cost);
  EXPECT_EQ(back.cost->limit_percent, 2.0);
  EXPECT_EQ(back.cost->predicted_percent, 0.5);
  EXPECT_EQ(back.cost->corrected_percent, 0.75);
  EXPECT_EQ(back.cost->state, "counting");
  EXPECT_EQ(back.cost->low_percent(), cost.low_percent());
  EXPECT_EQ(back.cost->high_percent(), cost.high_percent());
  EXPECT_EQ(back.cost->recorded_calls, 21u);
  EXPECT_EQ(back.cost->counted_calls, 22u);
  EXPECT_EQ(back.cost->disbelieved, 23u);
  EXPECT_EQ(back.cost->windows, 24u);
  EXPECT_EQ(back.cost->seen_share, 0.25);
  const auto& predictions = listed[0].predictions;
  ASSERT_EQ(predictions.size(), 5u);
  EXPECT_FALSE(predictions[2].taken_up);
  EXPECT_TRUE(predictions[3].taken_up);
  EXPECT_EQ(predictions[0].target, "2 nodes, block");
  EXPECT_EQ(predictions[0].nodes, 2u);
  EXPECT_EQ(predictions[0].cores_per_node, 4u);
  EXPECT_EQ(predictions[0].placement, "block");
  EXPECT_EQ(predictions[0].network, "lan");
  EXPECT_EQ(predictions[0].contention, "none");
  EXPECT_EQ(predictions[0].speed, 0.5);
  EXPECT_EQ(predictions[0].kind, "self");
  EXPECT_EQ(predictions[0].predicted_s, 4);
  EXPECT_EQ(predictions[0].speedup, 1.25);
  EXPECT_EQ(predictions[0].self_error_percent, -2.5);
  EXPECT_EQ(predictions[0].progress_s, 1.5);
  EXPECT_EQ(predictions[0].measured_at_progress_s, 1.75);
  EXPECT_EQ(predictions[0].seen_share, 0.5);
  EXPECT_EQ(predictions[0].low_s, 3.5);
  EXPECT_EQ(predictions[0].high_s, 4.5);
  EXPECT_EQ(predictions[0].topology, whole.topology);
  EXPECT_EQ(predictions[1].why_stuck, "cyclic wait");
  EXPECT_FALSE(predictions[1].partial);
  EXPECT_EQ(predictions[1].topology, TopologyRecord());
  EXPECT_EQ(predictions[2].why_deferred, "no room");
  EXPECT_TRUE(predictions[2].deferred_for_good);
  EXPECT_TRUE(predictions[2].partial);
  EXPECT_TRUE(predictions[2].rank_finish_s.empty());
}

TEST_F(StepListTest, OfAStepOfWhichLittleIsKnown) {
  StepRecord step = step_of(7, 100);
  step.state = StepState::kRunning;
  step.end_s.reset();
  step.command = "./old -x";
  step.nodes.clear();
  put(step, {});
  const auto listed = list({}, every_value());
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_FALSE(listed[0].record.command_words);
  EXPECT_EQ(listed[0].record.command, "./old -x");
  EXPECT_FALSE(listed[0].record.end_s);
  EXPECT_FALSE(listed[0].record.measured_s);
  EXPECT_FALSE(listed[0].record.cost);
  EXPECT_EQ(listed[0].record.node_count, 0u);
  EXPECT_TRUE(listed[0].predictions.empty());
}

TEST_F(StepListTest, ListsShowTheOneThatRanAndTheFastest) {
  const ListValues kind{{"job"}, {"kind", "predicted_s"}, false};
  PredictionRecord stuck = prediction_of("NF", 0.5);
  stuck.why_stuck = "cyclic wait";
  put(step_of(1, 100), {prediction_of("LBF", 9), stuck, prediction_of("LBF", 3), prediction_of("self", 4)});
  put(step_of(2, 200), {prediction_of("self", 3), prediction_of("LBF", 4)});
  put(step_of(3, 300), {stuck});
  const auto listed = list({}, kind);
  ASSERT_EQ(listed.size(), 3u);
  ASSERT_EQ(listed[0].predictions.size(), 2u);
  EXPECT_EQ(listed[0].predictions[0].predicted_s, 3) << "in their own order";
  EXPECT_EQ(listed[0].predictions[1].kind, "self");
  EXPECT_TRUE(listed[0].predictions[0].target.empty()) << "nobody asked for it";
  ASSERT_EQ(listed[1].predictions.size(), 1u) << "the one that ran is the fastest";
  EXPECT_TRUE(listed[2].predictions.empty());
}

TEST_F(StepListTest, OldestFirstAndTheLatestOfThem) {
  for (const double start_s : {300, 100, 200}) put(step_of(static_cast<std::uint32_t>(start_s), start_s), {});
  StepQuery query;
  query.limit = 2;
  for (const bool with_since : {false, true}) {  // two indexes
    if (with_since) query.since_s = 50;
    const auto listed = list(query, {{"job"}, {}, false});
    ASSERT_EQ(listed.size(), 2u);
    EXPECT_EQ(listed[0].record.job, 200u);
    EXPECT_EQ(listed[1].record.job, 300u);
    EXPECT_EQ(listed[1].record.start_s, 300) << "always known";
  }
  query.job_group = 100;
  EXPECT_EQ(list(query, {{"job"}, {}, false}).size(), 1u);
}

TEST_F(StepListTest, SelectsWhatStepStoreSelects) {
  for (std::uint32_t job = 1; job <= 40; ++job) {
    StepRecord step = step_of(job, 100.0 * job);
    step.uid = 1000 + job % 3;
    step.account = job % 4 == 0 ? "physics" : "";
    step.partition = job % 5 == 0 ? "gpu" : "main";
    step.job_name = job % 9 == 0 ? "lu" : "";
    step.state = job % 7 == 0 ? StepState::kPartial : StepState::kComplete;
    step.nodes = {"n" + std::to_string(job % 6)};
    put(step, {});
  }
  std::vector<StepQuery> queries(9);
  queries[1].uid = 1001;
  queries[2].account = "physics";
  queries[3].partition = "gpu";
  queries[4].states = {StepState::kPartial};
  queries[5].nodes = {"n1", "n4"};
  queries[6].states = {StepState::kPartial, StepState::kRunning};
  queries[6].uid = 1000;
  queries[7].cluster = "other";
  queries[8].job_name = "lu";
  EXPECT_EQ(list(queries[8], {{"job"}, {}, false}).size(), 4U);
  for (StepQuery query : queries) {
    for (const bool in_time : {false, true}) {
      if (in_time) {
        query.since_s = 1500;
        query.until_s = 3000;
      }
      const auto found = StepStore(*database_).find(query, false);
      ASSERT_TRUE(found.ok());
      const auto listed = list(query, {{"job"}, {}, false});
      ASSERT_EQ(listed.size(), found->size());
      for (std::size_t i = 0; i < listed.size(); ++i) EXPECT_EQ(listed[i].record.job, (*found)[i].record.job);
    }
  }
}

}  // namespace
}  // namespace lbf::db::step_list_test