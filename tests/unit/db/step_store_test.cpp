// StepStore and PredictionStore: what is put comes back, and queries select.
#include "db/step_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <functional>

#include "db/prediction_store.h"
#include "tests/support/temporary_directory.h"

namespace lbf::db::step_store_test {
namespace {

StepRecord step_of(std::uint32_t job, uid_t uid, double start_s, std::optional<double> end_s) {
  StepRecord step;
  step.cluster = "c";
  step.job = job;
  step.step = 4294967291u;  // Slurm's batch step
  step.restart = 1;
  step.user_name = "u";
  step.uid = uid;
  step.job_name = "name";
  step.command = "a b";
  step.state = end_s ? StepState::kComplete : StepState::kRunning;
  step.nodes = {"n1", "n2"};
  step.ranks = 2;
  step.node_of_rank = {0, 1};
  step.network = "zero";
  step.start_s = start_s;
  step.end_s = end_s;
  step.events = 10;
  step.calls = {{"MPI_Send", 3, 0.5}, {"MPI_Recv", 3, 0.25}};
  step.unmodelled_calls = {{"MPI_Win_fence", 1, 0.125}};
  step.notes = {"one", "two"};
  return step;
}

PredictionRecord prediction_of(const std::string& target, double predicted_s) {
  PredictionRecord prediction;
  prediction.target = target;
  prediction.nodes = 2;
  prediction.cores_per_node = 4;
  prediction.placement = "block";
  prediction.network = "zero";
  prediction.contention = "none";
  prediction.kind = "self";
  prediction.predicted_s = predicted_s;
  prediction.self_error_percent = -2.5;
  prediction.rank_finish_s = {1.5, predicted_s};
  return prediction;
}

class StepStoreTest : public testing::Test {
 protected:
  StepStoreTest() {
    auto database = Database::open(directory_.path() + "/lbf.db");
    if (database) database_ = std::move(database).value();
  }
  std::vector<std::uint32_t> jobs(const StepQuery& query) {
    std::vector<std::uint32_t> found;
    const auto steps = StepStore(*database_).find(query, false);
    EXPECT_TRUE(steps.ok());
    for (const auto& step : *steps) found.push_back(step.record.job);
    return found;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
};

// Slurm gives a job number again.
TEST_F(StepStoreTest, JobsOfOneNumberHaveRowsOfTheirOwn) {
  StepStore steps(*database_);
  StepRecord first = step_of(7, 1000, 100, 200);
  StepRecord second = step_of(7, 1001, 300, std::nullopt);
  second.submit_s = 290;
  const auto row = steps.put(first, {prediction_of("first", 2.0)});
  const auto other = steps.put(second, {});
  ASSERT_TRUE(row.ok());
  ASSERT_TRUE(other.ok());
  EXPECT_NE(*row, *other);
  EXPECT_EQ(*steps.put(second, {}), *other) << "again the same";
  EXPECT_EQ(jobs({}), (std::vector<std::uint32_t>{7, 7}));
  StepQuery query;
  query.submit_s = 290;
  const auto found = steps.find(query, false);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().record.uid, 1001U);
  EXPECT_EQ(found->front().record.submit_s, 290U);
  EXPECT_FALSE(query.matches(first));
  EXPECT_TRUE(query.matches(second));
  EXPECT_EQ(**steps.state_of("c", 7, first.step, 1, 0), StepState::kComplete);
  EXPECT_EQ(**steps.state_of("c", 7, first.step, 1, 290), StepState::kRunning);
  EXPECT_FALSE(steps.state_of("c", 7, first.step, 1, 291)->has_value());
}

TEST_F(StepStoreTest, GivesBackWhatWasPut) {
  StepStore steps(*database_);
  PredictionStore predictions(*database_);
  StepRecord step = step_of(7, 1000, 100.5, std::nullopt);
  step.measured_s = 3.25;
  step.why_partial = "because";
  PredictionRecord stuck = prediction_of("second", 3.0);
  stuck.why_stuck = "cyclic wait";
  stuck.topology = {"/etc/slurm/topology.conf", {"n1", "n7"}};
  const auto row = steps.put(step, {prediction_of("first", 2.0), stuck});
  ASSERT_TRUE(row.ok()) << row.error().message;
  const auto found = steps.find({}, true);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  const StepRecord& back = found->front().record;
  EXPECT_EQ(back.step, 4294967291u);
  EXPECT_EQ(back.restart, 1u);
  EXPECT_EQ(back.nodes, step.nodes);
  EXPECT_EQ(back.node_of_rank, step.node_of_rank);
  EXPECT_EQ(back.start_s, 100.5);
  EXPECT_FALSE(back.end_s.has_value());
  EXPECT_EQ(back.measured_s, 3.25);
  EXPECT_EQ(back.why_partial, "because");
  EXPECT_EQ(back.notes, step.notes);
  ASSERT_EQ(back.calls.size(), 2u);
  EXPECT_EQ(back.calls[1].function, "MPI_Recv");
  ASSERT_EQ(back.unmodelled_calls.size(), 1u);
  EXPECT_EQ(back.unmodelled_calls[0].total_s, 0.125);
  const auto listed = predictions.of_step(*row);
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(listed->at(1).target, "second");
  EXPECT_EQ(listed->at(0).why_stuck, "");
  EXPECT_EQ(listed->at(1).why_stuck, "cyclic wait");
  EXPECT_EQ(listed->at(0).topology, TopologyRecord());
  EXPECT_EQ(listed->at(1).topology, stuck.topology);
  EXPECT_EQ(listed->at(1).rank_finish_s, (std::vector<Seconds>{1.5, 3.0}));
  const auto without_ranks = predictions.of_step(*row, /*with_ranks=*/false);
  ASSERT_TRUE(without_ranks.ok());
  EXPECT_TRUE(without_ranks->at(1).rank_finish_s.empty());
  EXPECT_EQ(without_ranks->at(1).predicted_s, 3.0);
  EXPECT_EQ(without_ranks->at(1).why_stuck, "cyclic wait");
  EXPECT_EQ(without_ranks->at(1).topology, stuck.topology);
  EXPECT_EQ(stuck.without_ranks().topology, stuck.topology);
  EXPECT_FALSE(listed->at(0).speedup.has_value());
  EXPECT_EQ(listed->at(0).self_error_percent, -2.5);
}

TEST_F(StepStoreTest, CostsAndIntervalsComeBack) {
  StepStore steps(*database_);
  StepRecord step = step_of(7, 1000, 1, 2.0);
  CostRecord cost;
  cost.limit_percent = 2;
  cost.predicted_percent = 0.5;
  cost.corrected_percent = 3.5;
  cost.state = "counting";
  cost.program_cpu_s = 100;
  cost.direct_s = 1;
  cost.ideal_s = 0.75;
  cost.relay_cpu_s = 0.5;
  cost.recorded_calls = 10;
  cost.counted_calls = 20;
  cost.disbelieved = 1;
  cost.windows = 4;
  cost.seen_share = 0.25;
  cost.nodes = {{1, "counting", 100, 1, 0.75, 0.5, 10, 40, 2, 4, 0.0625, 0.03125, 0.125}};
  cost.held_up_s = 0.125;
  cost.once_capture_s = 0.0625;
  cost.once_relay_s = 0.03125;
  cost.recording_s = 0.875;
  cost.ranks = {{0, 0.25, 0.125, 4, 8, 50}, {1, 0.75, 0.625, 6, 12, 50}};
  step.cost = cost;
  PredictionRecord whole = prediction_of("whole", 2);
  PredictionRecord part = prediction_of("part", 3);
  part.seen_share = 0.25;
  part.low_s = 2.5;
  PredictionRecord told = part;
  told.high_s = 4;
  const auto row = steps.put(step, {whole, part, told});
  ASSERT_TRUE(row.ok()) << row.error().message;

  const auto found = steps.find({}, true);
  ASSERT_TRUE(found.ok() && found->front().record.cost);
  const CostRecord& back = *found->front().record.cost;
  EXPECT_EQ(back.limit_percent, 2);
  EXPECT_EQ(back.predicted_percent, 0.5);
  EXPECT_EQ(back.corrected_percent, 3.5);
  EXPECT_EQ(back.state, "counting");
  EXPECT_EQ(back.recorded_calls, 10u);
  EXPECT_EQ(back.counted_calls, 20u);
  EXPECT_EQ(back.disbelieved, 1u);
  EXPECT_EQ(back.windows, 4u);
  EXPECT_EQ(back.seen_share, 0.25);
  EXPECT_DOUBLE_EQ(back.low_percent().value(), 1.5);
  EXPECT_DOUBLE_EQ(back.high_percent().value(), 1.875);
  EXPECT_EQ(back.held_up_s, 0.125);
  ASSERT_EQ(back.nodes.size(), 1u);
  EXPECT_EQ(back.nodes[0].node, 1u);
  EXPECT_EQ(back.nodes[0].regulated_s, 40);
  EXPECT_EQ(back.nodes[0].once_capture_s, 0.0625);
  EXPECT_EQ(back.nodes[0].once_relay_s, 0.03125);
  EXPECT_EQ(back.nodes[0].held_up_s, 0.125);
  EXPECT_EQ(back.once_s(), 0.09375);
  EXPECT_EQ(back.recording_s, 0.875);
  EXPECT_DOUBLE_EQ(back.total_high_percent().value(), 1.875 + 0.09375);
  EXPECT_EQ(back.nodes[0].windows, 4u);
  ASSERT_EQ(back.ranks.size(), 2u);
  EXPECT_EQ(back.ranks[1].counted_calls, 12u);
  EXPECT_EQ(back.ranks[1].direct_s, 0.75);
  const auto brief = steps.find({}, false);
  ASSERT_TRUE(brief.ok() && brief->front().record.cost);
  EXPECT_TRUE(brief->front().record.cost->ranks.empty());

  const auto predictions = PredictionStore(*database_).of_step(*row);
  ASSERT_TRUE(predictions.ok());
  EXPECT_EQ(predictions->at(0).seen_share, 1);
  EXPECT_FALSE(predictions->at(0).low_s);
  EXPECT_EQ(predictions->at(1).seen_share, 0.25);
  EXPECT_EQ(predictions->at(1).low_s, 2.5);
  EXPECT_FALSE(predictions->at(1).high_s);
  EXPECT_EQ(predictions->at(2).high_s, 4);
  EXPECT_EQ(told.without_ranks().high_s, 4);

  // Put again without: gone.
  step.cost.reset();
  ASSERT_TRUE(steps.put(step, {}).ok());
  EXPECT_FALSE(steps.find({}, true)->front().record.cost);
}

TEST_F(StepStoreTest, ArrayHetAndTheCommandsWordsComeBack) {
  StepStore steps(*database_);
  StepRecord step = step_of(7, 1000, 1, 2.0);
  step.command_words = {"a", "b c", ""};
  step.command_cut = true;
  step.array_job = 5;
  step.array_task = 0;
  ASSERT_TRUE(steps.put(step, {}).ok());
  StepRecord component = step_of(8, 1000, 2, 3.0);
  component.het_job = 7;
  component.het_offset = 1;
  ASSERT_TRUE(steps.put(component, {}).ok());
  const auto found = steps.find({}, false);
  ASSERT_EQ(found->size(), 2u);
  const StepRecord& task = found->at(0).record;
  EXPECT_EQ(task.command_words, step.command_words);
  EXPECT_TRUE(task.command_cut);
  EXPECT_EQ(task.array_job, 5u);
  EXPECT_EQ(task.array_task, 0u);
  EXPECT_FALSE(task.het_job || task.het_offset);
  const StepRecord& other = found->at(1).record;
  EXPECT_FALSE(other.command_words) << "not said is not the empty command";
  EXPECT_FALSE(other.array_job || other.array_task);
  EXPECT_EQ(other.het_job, 7u);
  EXPECT_EQ(other.het_offset, 1u);
}

// As sacct: a number is that job, all tasks of that array, and all components of that heterogeneous job. The
// store and StepQuery::matches (of running steps) must agree.
TEST_F(StepStoreTest, SelectsArraysAndHeterogeneousJobs) {
  StepStore steps(*database_);
  std::vector<StepRecord> all;
  const auto add = [&](std::uint32_t job, const std::function<void(StepRecord&)>& change) {
    all.push_back(step_of(job, 1000, job, job + 1.0));
    change(all.back());
    ASSERT_TRUE(steps.put(all.back(), {}).ok());
  };
  add(10, [](StepRecord& step) { step.array_job = 10, step.array_task = 2; });  // the last task keeps the number
  add(11, [](StepRecord& step) { step.array_job = 10, step.array_task = 1; });
  add(12, [](StepRecord& step) { step.het_job = 12, step.het_offset = 0; });
  add(13, [](StepRecord& step) { step.het_job = 12, step.het_offset = 1; });
  add(14, [](StepRecord&) {});
  using Jobs = std::vector<std::uint32_t>;
  const auto expect = [&](const std::function<void(StepQuery&)>& ask, const Jobs& expected) {
    StepQuery query;
    ask(query);
    EXPECT_EQ(jobs(query), expected);
    Jobs matching;
    for (const StepRecord& step : all) {
      if (query.matches(step)) matching.push_back(step.job);
    }
    EXPECT_EQ(matching, expected);
  };
  expect([](StepQuery& query) { query.job_group = 10; }, {10, 11});
  expect([](StepQuery& query) { query.job = 10; }, {10});
  expect([](StepQuery& query) { query.job_group = 11; }, {11});
  expect([](StepQuery& query) { query.job_group = 10, query.array_task = 2; }, {10});
  expect([](StepQuery& query) { query.job_group = 10, query.array_task = 3; }, {});
  expect([](StepQuery& query) { query.job_group = 12; }, {12, 13});
  expect([](StepQuery& query) { query.job_group = 12, query.het_offset = 0; }, {12});
  expect([](StepQuery& query) { query.job_group = 14; }, {14});
  expect([](StepQuery& query) { query.job_group = 14, query.array_task = 0; }, {});
  expect([](StepQuery& query) { query.array_task = 1; }, {11});
}

TEST_F(StepStoreTest, PuttingAgainReplaces) {
  StepStore steps(*database_);
  const auto first = steps.put(step_of(7, 1000, 1, std::nullopt), {prediction_of("a", 1), prediction_of("b", 1)});
  StepRecord done = step_of(7, 1000, 1, 9.0);
  done.calls.resize(1);
  const auto second = steps.put(done, {prediction_of("c", 1)});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  const auto found = steps.find({}, true);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().record.state, StepState::kComplete);
  EXPECT_EQ(found->front().record.calls.size(), 1u);
  EXPECT_EQ(PredictionStore(*database_).of_step(*first)->size(), 1u);
  EXPECT_EQ(*steps.state_of("c", 7, 4294967291u, 1, 0), StepState::kComplete);
  EXPECT_EQ(*steps.state_of("c", 8, 4294967291u, 1, 0), std::nullopt);
}

TEST_F(StepStoreTest, StepAndPredictionsAreOneTransaction) {
  StepStore steps(*database_);
  PredictionRecord bad = prediction_of("x", 1);
  bad.kind = "guess";  // refused by the schema
  EXPECT_FALSE(steps.put(step_of(7, 1000, 1, 2.0), {bad}).ok());
  EXPECT_TRUE(steps.find({}, false)->empty());
}

TEST_F(StepStoreTest, Selects) {
  StepStore steps(*database_);
  ASSERT_TRUE(steps.put(step_of(3, 1000, 300, 310.0), {}).ok());
  ASSERT_TRUE(steps.put(step_of(1, 1000, 100, 110.0), {}).ok());
  ASSERT_TRUE(steps.put(step_of(2, 1001, 200, std::nullopt), {}).ok());
  using Jobs = std::vector<std::uint32_t>;
  EXPECT_EQ(jobs({}), (Jobs{1, 2, 3}));
  StepQuery query;
  query.uid = 1000;
  EXPECT_EQ(jobs(query), (Jobs{1, 3}));
  query = {};
  query.job = 2;
  EXPECT_EQ(jobs(query), Jobs{2});
  query = {};
  query.since_s = 150;
  EXPECT_EQ(jobs(query), (Jobs{2, 3}));  // 2 is still running
  query = {};
  query.until_s = 200;
  EXPECT_EQ(jobs(query), (Jobs{1, 2}));
  query = {};
  query.limit = 2;
  EXPECT_EQ(jobs(query), (Jobs{2, 3}));  // the latest ones
  query = {};
  query.cluster = "' OR 1 --";
  EXPECT_TRUE(jobs(query).empty());
}

TEST_F(StepStoreTest, RemovingAStepRemovesWhatHangsOnIt) {
  StepStore steps(*database_);
  const auto row = steps.put(step_of(7, 1000, 1, 2.0), {prediction_of("a", 1)});
  ASSERT_TRUE(database_->write([](SQLite::Database& connection) { connection.exec("DELETE FROM step"); }).ok());
  EXPECT_TRUE(PredictionStore(*database_).of_step(*row)->empty());
}

TEST_F(StepStoreTest, BytesThatAreNotUtf8DoNotBreakAStep) {
  StepStore steps(*database_);
  StepRecord step = step_of(7, 1000, 1, 2.0);
  step.command = "a \xff\xfe";
  step.nodes = {"n\xff"};
  ASSERT_TRUE(steps.put(step, {}).ok());
  EXPECT_EQ(steps.find({}, true)->size(), 1u);
}

TEST_F(StepStoreTest, ProceduresComeBackAndGoWithTheStep) {
  StepRecord step = step_of(7, 1000, 10, 20);
  step.procedures.emplace();
  ProcedureRecord f;
  f.name = "solve";
  f.state = "off";
  f.note = "2 ranks: too often";
  f.ranks = 2;
  f.calls = 12345678901;
  f.inclusive_s = 3;
  f.exclusive_s = 2.5;
  f.critical_path_s = 2;
  f.receiver_s = 5.5;
  f.zeroed_s = 3.25;
  f.stayed_receiver_s = 0.125;
  f.predicted_cost = 0.0004;
  f.predicted_from = "history";
  f.observed_cost = 0.25;
  f.calls_per_s = 6e6;
  f.samples = 1000;
  f.sampled_s = 2.75;
  f.sampled_low_s = 2.5;
  f.sampled_high_s = 3;
  ProcedureRecord refused;
  refused.name = "memcpy";
  refused.state = "refused";
  step.procedures->procedures = {f, refused};
  CriticalPathRecord path;
  path.as_it_ran_s = 6;
  path.length_s = 6;
  path.unseen_s = 0.125;
  path.ends_at = 1;
  path.ranks = {{0, 4.0}, {-1, 2.0}};
  path.functions = {{"MPI_Recv", 0.5}};
  path.partial = true;
  step.procedures->path = path;
  ASSERT_TRUE(StepStore(*database_).put(step, {}).ok());
  const auto found = StepStore(*database_).find({}, true);
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE(found->front().record.procedures);
  const ProcedureReport& back = *found->front().record.procedures;
  ASSERT_EQ(back.procedures.size(), 2u);
  EXPECT_EQ(back.procedures[0].name, "solve");
  EXPECT_EQ(back.procedures[0].state, "off");
  EXPECT_EQ(back.procedures[0].note, "2 ranks: too often");
  EXPECT_EQ(back.procedures[0].ranks, 2u);
  EXPECT_EQ(back.procedures[0].calls, 12345678901u);
  EXPECT_EQ(back.procedures[0].exclusive_s, 2.5);
  EXPECT_EQ(back.procedures[0].critical_path_s, 2.0);
  EXPECT_EQ(back.procedures[0].receiver_s, 5.5);
  EXPECT_FALSE(back.procedures[0].sender_s);
  ASSERT_TRUE(back.path);
  EXPECT_EQ(back.path->unseen_s, 0.125);
  EXPECT_EQ(back.procedures[0].zeroed_s, 3.25);
  EXPECT_EQ(back.procedures[0].stayed_receiver_s, 0.125);
  EXPECT_FALSE(back.procedures[0].stayed_sender_s);
  EXPECT_EQ(back.procedures[0].predicted_cost, 0.0004);
  EXPECT_EQ(back.procedures[0].predicted_from, "history");
  EXPECT_EQ(back.procedures[0].observed_cost, 0.25);
  EXPECT_EQ(back.procedures[0].calls_per_s, 6e6);
  EXPECT_EQ(back.procedures[0].samples, 1000u);
  EXPECT_EQ(back.procedures[0].sampled_s, 2.75);
  EXPECT_EQ(back.procedures[0].sampled_low_s, 2.5);
  EXPECT_EQ(back.procedures[0].sampled_high_s, 3.0);
  EXPECT_EQ(back.procedures[1].state, "refused");
  EXPECT_FALSE(back.procedures[1].predicted_cost || back.procedures[1].sampled_s);
  ASSERT_TRUE(back.path);
  EXPECT_EQ(back.path->ranks, path.ranks);
  EXPECT_EQ(back.path->functions, path.functions);
  EXPECT_EQ(back.path->ends_at, 1);
  EXPECT_TRUE(back.path->partial);
  EXPECT_FALSE(StepStore(*database_).find({}, false)->front().record.procedures) << "lists do not need them";
  step.procedures.reset();
  ASSERT_TRUE(StepStore(*database_).put(step, {}).ok());
  EXPECT_FALSE(StepStore(*database_).find({}, true)->front().record.procedures);
}

TEST_F(StepStoreTest, ProceduresThatWereDeferredAreTakenUp) {
  StepRecord step = step_of(7, 1000, 10, 20);
  step.procedures.emplace();
  step.procedures->why_deferred = "no room";
  const auto row = StepStore(*database_).put(step, {});
  ASSERT_TRUE(row.ok());
  PredictionStore predictions(*database_);
  EXPECT_EQ(*predictions.next_deferred(0), std::optional<StepRow>(*row));
  ASSERT_TRUE(predictions.give_up_deferred(*row, "its trace is gone").ok());
  EXPECT_FALSE(predictions.next_deferred(0)->has_value());
  EXPECT_EQ(StepStore(*database_).find({}, true)->front().record.procedures->why_deferred, "its trace is gone");
}

}  // namespace
}  // namespace lbf::db::step_store_test