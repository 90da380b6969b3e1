// Programs are recognised, predictions stand beside what was measured later, and the errors are summed up.
#include "db/program_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "db/accuracy.h"
#include "db/migrations.h"
#include "db/prediction_store.h"
#include "db/step_store.h"
#include "tests/support/temporary_directory.h"

namespace lbf::db::program_store_test {
namespace {

TEST(ProfileDistance, IsTheShareOfCallsThatDiffer) {
  const CallProfile a = {{"MPI_Send", 100}, {"MPI_Recv", 100}};
  EXPECT_EQ(profile_distance(a, a), 0);
  EXPECT_EQ(profile_distance({}, {}), 0);
  EXPECT_EQ(profile_distance(a, {{"MPI_Bcast", 7}}), 1);
  EXPECT_DOUBLE_EQ(profile_distance(a, {{"MPI_Recv", 100}, {"MPI_Send", 80}}), 0.1);
  EXPECT_DOUBLE_EQ(profile_distance(a, {{"MPI_Send", 100}, {"MPI_Recv", 100}, {"MPI_Barrier", 50}}), 0.2);
}

TEST(SameInput, KeepsApartWhatDiffersInCallsBytesOrWork) {
  ProgramRun run;
  run.calls_per_rank = {{"MPI_Send", 100}};
  run.work_s = 10;
  run.sent_bytes = 1e6;
  const auto with = [&](auto change) {
    ProgramRun other = run;
    change(other);
    return is_same_input(run, other);
  };
  EXPECT_TRUE(with([](ProgramRun&) {}));
  EXPECT_TRUE(with([](ProgramRun& r) { r.calls_per_rank[0].second = 101; }));
  EXPECT_FALSE(with([](ProgramRun& r) { r.calls_per_rank[0].second = 103; }));
  EXPECT_FALSE(with([](ProgramRun& r) { r.sent_bytes = 2e6; }));
  EXPECT_TRUE(with([](ProgramRun& r) { r.sent_bytes.reset(); })) << "not known is no difference";
  EXPECT_TRUE(with([](ProgramRun& r) { r.work_s = 16; })) << "a restless machine";
  EXPECT_FALSE(with([](ProgramRun& r) { r.work_s = 21; }));
  EXPECT_FALSE(with([](ProgramRun& r) { r.work_s = 4.9; }));
}

PredictionRecord on(std::uint32_t nodes, const std::string& placement, const std::string& network, double predicted_s) {
  PredictionRecord out;
  out.nodes = nodes;
  out.cores_per_node = 2;
  out.placement = placement;
  out.network = network;
  out.contention = "none";
  out.kind = "LBF";
  out.predicted_s = predicted_s;
  return out;
}

TEST(TargetDistance, NamesWhatChanged) {
  const PredictionRecord ran = on(2, "block", "lan", 1);
  const auto to = [&](const PredictionRecord& target) { return std::string(name_of(distance_between(ran, target))); };
  EXPECT_EQ(to(on(2, "block", "lan", 9)), "self");
  EXPECT_EQ(to(on(4, "block", "lan", 1)), "nodes");
  EXPECT_EQ(to(on(2, "cyclic", "lan", 1)), "placement");
  EXPECT_EQ(to(on(2, "block", "fast", 1)), "network");
  EXPECT_EQ(to(on(4, "block", "fast", 1)), "several");
  EXPECT_EQ(to(on(4, "cyclic", "lan", 1)), "several");
  EXPECT_EQ(std::string(name_of(distance_between(on(2, "cyclic", "lan", 1), on(1, "block", "lan", 1)))), "nodes")
      << "on one node all placements are the same";
}

TEST(TargetDistance, OtherThreadsOnTheSameNodesAreAnotherPlacement) {
  const auto with = [](PredictionRecord one, std::uint64_t threads) {
    one.threads = threads;
    return one;
  };
  const PredictionRecord ran = with(on(2, "block", "lan", 1), 2);
  EXPECT_EQ(distance_between(ran, with(on(2, "block", "lan", 1), 1)), TargetDistance::kPlacement);
  EXPECT_EQ(distance_between(ran, with(on(1, "block", "lan", 1), 1)), TargetDistance::kNodes);
  EXPECT_FALSE(is_same_configuration(ran, with(on(2, "block", "lan", 1), 1), 2));
  PredictionRecord wider = with(on(2, "block", "lan", 1), 2);
  wider.cores_per_node = 4;
  EXPECT_TRUE(is_same_configuration(ran, wider, 2)) << "two threads of the one rank use two of them";
  EXPECT_FALSE(is_same_configuration(ran, wider, 4));
}

TEST(Configuration, ProcessorsThatNoRankUsesDoNotCount) {
  PredictionRecord ran = on(4, "block", "lan", 1);
  ran.cores_per_node = 1;
  EXPECT_TRUE(is_same_configuration(ran, on(4, "block", "lan", 1), 4));
  EXPECT_FALSE(is_same_configuration(ran, on(4, "block", "lan", 1), 8)) << "two ranks share one processor";
  EXPECT_FALSE(is_same_configuration(ran, on(2, "block", "lan", 1), 4));
  for (const char* placement : {"plane=2", "map=0,1,1,0"}) {
    PredictionRecord one = on(2, placement, "lan", 1);
    one.cores_per_node = 1;
    EXPECT_FALSE(is_same_configuration(one, on(2, placement, "lan", 1), 4)) << placement;
    one.cores_per_node = 3;
    EXPECT_TRUE(is_same_configuration(one, on(2, placement, "lan", 1), 4)) << placement;
  }
}

class ProgramStoreTest : public testing::Test {
 protected:
  ProgramStoreTest() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    auto database = Database::open(directory_.path() + "/lbf.db");
    if (database) database_ = std::move(database).value();
  }

  static StepRecord step_of(std::uint32_t job, double start_s, double measured_s) {
    StepRecord step;
    step.cluster = "c";
    step.job = job;
    step.user_name = "u";
    step.uid = 1000;
    step.job_name = "name";
    step.command = "./app x";
    step.command_words = {"./app", "x"};
    step.state = StepState::kComplete;
    step.nodes = {"n1", "n2"};
    step.ranks = 4;
    step.network = "lan";
    step.start_s = start_s;
    step.end_s = start_s + measured_s;
    step.measured_s = measured_s;
    ProgramRun run;
    run.build_id = "gnu:aa";
    run.name = "app";
    run.calls_per_rank = {{"MPI_Send", 100}};
    run.work_s = 10;
    run.calls = 1000;
    run.rank_s = 4 * measured_s;
    step.program = run;
    return step;
  }
  // Where it ran, and what that run predicts for two nodes and four.
  void put(const StepRecord& step, std::uint32_t ran_nodes, double on_two_s, double on_four_s) {
    std::vector<PredictionRecord> predictions = {on(2, "block", "lan", on_two_s), on(4, "block", "lan", on_four_s)};
    if (ran_nodes == 4) std::swap(predictions[0], predictions[1]);
    predictions[0].kind = "self";
    const auto row = StepStore(*database_).put(step, predictions);
    ASSERT_TRUE(row.ok()) << row.error().message;
  }
  // "job<-from distance error"
  std::vector<std::string> outcomes() {
    std::vector<std::string> out;
    const auto read = database_->read([&](SQLite::Database& connection) {
      SQLite::Statement query(connection,
                              "SELECT a.job, b.job, o.distance, round(o.error_percent, 1) FROM outcome o "
                              "JOIN step a ON a.step_row = o.step_row JOIN step b ON b.step_row = o.from_row "
                              "ORDER BY a.job, b.job");
      while (query.executeStep()) {
        out.push_back(query.getColumn(0).getString() + "<-" + query.getColumn(1).getString() + " " +
                      query.getColumn(2).getString() + " " + query.getColumn(3).getString());
      }
    });
    EXPECT_TRUE(read.ok());
    return out;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(ProgramStoreTest, APredictionStandsBesideWhatWasMeasuredLater) {
  put(step_of(1, 1000, 10), 2, 11, 8);  // two nodes: 11 predicted, 10 measured; four nodes: 8
  put(step_of(2, 2000, 10), 4, 9, 10);  // four nodes: 10 measured
  EXPECT_THAT(outcomes(), testing::ElementsAre("1<-1 self 10.0", "2<-1 nodes -20.0", "2<-2 self 0.0"));
}

TEST_F(ProgramStoreTest, ABoundIsNoOutcome) {
  const auto put_on_zero = [&](const StepRecord& step, std::uint32_t ran, std::uint32_t other) {
    std::vector<PredictionRecord> predictions = {on(ran, "block", "zero", 11), on(other, "block", "zero", 8)};
    predictions[0].kind = "self";
    ASSERT_TRUE(StepStore(*database_).put(step, predictions).ok());
  };
  put_on_zero(step_of(1, 1000, 10), 1, 2);
  put_on_zero(step_of(2, 2000, 10), 2, 1);
  EXPECT_THAT(outcomes(), testing::ElementsAre("1<-1 self 10.0")) << "two nodes were a bound, also of themselves";
}

// 1,000 calls in 40 s of ranks; then 200 in 2 s, of which more is not known.
TEST_F(ProgramStoreTest, ARunWhoseCaptureEndedTellsHowOftenItCallsAndNothingElse) {
  const ProgramHint hint{1000, 4, "gnu:aa", {"./app", "x"}};
  StepRecord ended = step_of(2, 2000, 10);
  ended.program->calls = 200;
  ended.program->rank_s = 2;
  ended.program->seen_process_s = 1.5;
  put(ended, 4, 9, 10);
  EXPECT_THAT(outcomes(), testing::IsEmpty());
  const ProgramStore store(*database_);
  EXPECT_NEAR(store.expected_calls_per_s(hint).value().value(), 100, 1e-9);
  put(step_of(1, 1000, 10), 2, 11, 8);
  EXPECT_NEAR(store.expected_calls_per_s(hint).value().value(), (25.0 + 100.0) / 2, 1e-9) << "corrected run by run";
  double process_s = 0;
  ASSERT_TRUE(database_
                  ->read([&](SQLite::Database& connection) {
                    process_s = connection.execAndGet("SELECT sum(seen_process_s) FROM run").getDouble();
                  })
                  .ok());
  EXPECT_EQ(process_s, 1.5);
}

TEST_F(ProgramStoreTest, AStepThatIsWrittenAgainHasItsOutcomesOnce) {
  put(step_of(1, 1000, 10), 2, 11, 8);
  put(step_of(2, 2000, 10), 4, 9, 10);
  const auto before = outcomes();
  put(step_of(2, 2000, 10), 4, 9, 10);
  EXPECT_EQ(outcomes(), before);
  StepRecord running = step_of(2, 2000, 10);  // its relay came back
  running.state = StepState::kRunning;
  running.program.reset();
  put(running, 4, 9, 10);
  EXPECT_THAT(outcomes(), testing::ElementsAre("1<-1 self 10.0"));
}

TEST_F(ProgramStoreTest, OfEachConfigurationItsLatestRunCounts) {
  put(step_of(1, 1000, 10), 2, 10, 8);
  put(step_of(2, 2000, 10), 2, 10, 9);
  put(step_of(3, 3000, 10), 4, 9, 10);
  EXPECT_THAT(outcomes(), testing::Contains("3<-2 nodes -10.0"));
  EXPECT_THAT(outcomes(), testing::Not(testing::Contains(testing::StartsWith("3<-1"))));
}

TEST_F(ProgramStoreTest, ADeferredOrStuckOrPartialPredictionIsNoOutcome) {
  StepRecord first = step_of(1, 1000, 10);
  for (int which = 0; which < 3; ++which) {
    std::vector<PredictionRecord> predictions = {on(2, "block", "lan", 10), on(4, "block", "lan", 8)};
    predictions[0].kind = "self";
    if (which == 0) predictions[1].why_deferred = "no room";
    if (which == 1) predictions[1].why_stuck = "waits";
    if (which == 2) predictions[1].partial = true;
    ASSERT_TRUE(StepStore(*database_).put(first, predictions).ok());
    put(step_of(2, 2000, 10), 4, 9, 10);
    EXPECT_THAT(outcomes(), testing::ElementsAre("1<-1 self 0.0", "2<-2 self 0.0")) << which;
  }
}

TEST_F(ProgramStoreTest, ASuspendedRunIsNoOutcomeAndIsPredictedFrom) {
  StepRecord suspended = step_of(1, 1000, 10);
  suspended.longest_stop_s = 6;
  put(suspended, 2, 4, 3);
  EXPECT_THAT(outcomes(), testing::IsEmpty());
  put(step_of(2, 2000, 4), 4, 3, 4);
  EXPECT_THAT(outcomes(), testing::ElementsAre("2<-1 nodes -25.0", "2<-2 self 0.0"));
}

TEST_F(ProgramStoreTest, ARunBesideOtherProgramsIsNoOutcomeAndIsPredictedFrom) {
  StepRecord disturbed = step_of(1, 1000, 10);
  disturbed.is_disturbed = true;
  put(disturbed, 2, 4, 3);
  EXPECT_THAT(outcomes(), testing::IsEmpty());
  put(step_of(2, 2000, 4), 4, 3, 4);
  EXPECT_THAT(outcomes(), testing::ElementsAre("2<-1 nodes -25.0", "2<-2 self 0.0"));
}

TEST_F(ProgramStoreTest, WorkOfARankByRanksPerMemoryDomain) {
  const auto run_of = [](std::uint32_t job, std::uint32_t density, double work_s) {
    StepRecord step = step_of(job, 1.7e9 + job, 20);
    step.ranks_per_domain = density;
    step.program->work_s = work_s;
    step.program->sent_bytes = 1e6;
    return step;
  };
  StepRecord disturbed = run_of(5, 2, 99);
  disturbed.is_disturbed = true;
  StepRecord seen_in_part = run_of(6, 2, 99);
  seen_in_part.program->sent_bytes.reset();
  StepRecord other_input = run_of(7, 4, 99);
  other_input.command_words = {"./app", "y"};
  StepRecord hybrid = run_of(9, 2, 99);
  hybrid.threads = 2;
  StepRecord on_devices = run_of(10, 2, 99);
  on_devices.device_s = 1;
  StepRecord elsewhere = run_of(11, 2, 99);
  elsewhere.cluster = "other";
  for (const StepRecord& step : {run_of(1, 1, 10), run_of(2, 2, 12), run_of(3, 2, 14), run_of(4, 2, 13), disturbed,
                                 seen_in_part, other_input, run_of(8, 0, 99), hybrid, on_devices, elsewhere})
    put(step, 2, 10, 11);
  ProgramHint hint;
  hint.uid = 1000;
  hint.ranks = 4;
  hint.command = {"./app", "x"};
  hint.cluster = disturbed.cluster;
  const ProgramStore store(*database_);
  using Works = std::map<std::uint32_t, double>;
  EXPECT_EQ(*store.work_by_density(hint), (Works{{1, 10}, {2, 13}}));
  hint.before_s = 1.7e9 + 2;
  EXPECT_EQ(*store.work_by_density(hint), (Works{{1, 10}}));
  hint.uid = 1001;
  EXPECT_EQ(*store.work_by_density(hint), Works{});
}

TEST_F(ProgramStoreTest, TheSameNameWithAnotherBuildIdIsAnotherProgram) {
  put(step_of(1, 1000, 10), 2, 11, 8);
  StepRecord other = step_of(2, 2000, 10);
  other.program->build_id = "gnu:bb";
  put(other, 4, 9, 10);
  EXPECT_THAT(outcomes(), testing::ElementsAre("1<-1 self 10.0", "2<-2 self 0.0"));
  const auto accuracy = AccuracyStore(*database_).accuracy({});
  ASSERT_TRUE(accuracy.ok());
  ASSERT_EQ(accuracy->by_program.size(), 2u);
  EXPECT_EQ(accuracy->by_program[0].name, accuracy->by_program[1].name);
  EXPECT_NE(accuracy->by_program[0].build_id, accuracy->by_program[1].build_id);
}

TEST_F(ProgramStoreTest, AnotherScriptOfTheSameInterpreterIsAnotherProgram) {
  StepRecord first = step_of(1, 1000, 10);
  first.program->script = "a.py:10-00000000";
  put(first, 2, 11, 8);
  StepRecord other = step_of(2, 2000, 10);
  other.program->script = "b.py:10-11111111";
  put(other, 4, 9, 10);
  EXPECT_EQ(outcomes().size(), 2u);
}

TEST_F(ProgramStoreTest, AnotherInputIsKeptApart) {
  put(step_of(1, 1000, 10), 2, 11, 8);
  StepRecord longer = step_of(2, 2000, 40);
  longer.program->calls_per_rank = {{"MPI_Send", 400}};
  put(longer, 4, 9, 10);
  EXPECT_EQ(outcomes().size(), 2u) << "self only";
}

TEST_F(ProgramStoreTest, ErrorsByDistanceProgramAndTime) {
  put(step_of(1, 1793500000, 10), 2, 11, 8);  // 2026-11-01, a Sunday
  put(step_of(2, 1793600000, 10), 4, 9, 10);  // 2026-11-02, a Monday
  const auto all = AccuracyStore(*database_).accuracy({});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->all.outcomes, 3u);
  EXPECT_EQ(all->all.median_percent, 0);
  EXPECT_EQ(all->all.worst_percent, -20);
  ASSERT_EQ(all->by_distance.size(), 2u);
  EXPECT_EQ(all->by_distance[0].name, "self");
  EXPECT_EQ(all->by_distance[0].errors.outcomes, 2u);
  EXPECT_EQ(all->by_distance[1].name, "nodes");
  ASSERT_EQ(all->by_program.size(), 1u);
  EXPECT_EQ(all->by_program[0].ranks, 4);
  ASSERT_EQ(all->by_month.size(), 1u);
  EXPECT_EQ(all->by_month[0].name, "2026-11");
  ASSERT_EQ(all->by_week.size(), 2u);
  EXPECT_EQ(all->by_week[0].name, "2026-W44");
  EXPECT_EQ(all->by_week[1].errors.outcomes, 2u);

  const auto count = [&](std::optional<uid_t> uid, std::optional<double> since_s, std::optional<double> until_s) {
    return AccuracyStore(*database_).accuracy({uid, since_s, until_s})->all.outcomes;
  };
  EXPECT_EQ(count(7, {}, {}), 0u);
  EXPECT_EQ(count(1000, {}, {}), 3u);
  EXPECT_EQ(count({}, 1793550000.0, {}), 2u);
  EXPECT_EQ(count({}, {}, 1793550000.0), 1u);

  const auto fit = AccuracyStore(*database_).fit_of("c", 1, 0, 0, 0);
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit->program.outcomes, 1u) << "self is no other configuration";
  EXPECT_EQ(fit->program.p90_percent, 20);
  EXPECT_EQ(fit->site.outcomes, 1u);
  EXPECT_EQ(AccuracyStore(*database_).fit_of("c", 99, 0, 0, 0)->program.outcomes, 0u);
}

TEST(ErrorSummary, MedianNinetiethPercentileAndWorst) {
  const ErrorSummary ten = summary_of({1, -2, 3, -4, 5, -6, 7, -8, 9, -10});
  EXPECT_EQ(ten.outcomes, 10u);
  EXPECT_DOUBLE_EQ(ten.median_percent, -0.5);
  EXPECT_DOUBLE_EQ(ten.p90_percent, 9);
  EXPECT_DOUBLE_EQ(ten.worst_percent, -10);
  EXPECT_DOUBLE_EQ(summary_of({3}).p90_percent, 3);
  EXPECT_EQ(summary_of({}).outcomes, 0u);
}

TEST_F(ProgramStoreTest, CallsPerSecondAreExpectedFromEarlierRuns) {
  const ProgramStore store(*database_);
  const ProgramHint hint{1000, 4, "", {"./app", "x"}};
  EXPECT_FALSE(store.expected_calls_per_s(hint).value());
  put(step_of(1, 1000, 10), 2, 11, 8);  // 1000 calls in 40 s of the ranks
  EXPECT_DOUBLE_EQ(store.expected_calls_per_s(hint).value().value(), 25);
  StepRecord faster = step_of(2, 2000, 10);
  faster.program->calls = 3000;
  put(faster, 2, 11, 8);
  EXPECT_DOUBLE_EQ(store.expected_calls_per_s(hint).value().value(), 50) << "the mean of 25 and 75";

  EXPECT_FALSE(store.expected_calls_per_s({1001, 4, "", {"./app", "x"}}).value()) << "another user";
  EXPECT_DOUBLE_EQ(store.expected_calls_per_s({1000, 8, "", {"./app", "x"}}).value().value(), 50);
  EXPECT_DOUBLE_EQ(store.expected_calls_per_s({1000, 4, "", {"./app", "other"}}).value().value(), 50);
  EXPECT_FALSE(store.expected_calls_per_s({1000, 4, "", {"./different"}}).value());
  EXPECT_DOUBLE_EQ(store.expected_calls_per_s({1000, 4, "gnu:aa", {}}).value().value(), 50);
}

// Of one node with 4 ranks that was captured for 10 s without a break.
CostRecord cost_of(std::uint64_t recorded_calls, Seconds recording_s, Seconds relay_cpu_s) {
  CostRecord cost;
  cost.recorded_calls = recorded_calls;
  cost.recording_s = recording_s;
  cost.relay_cpu_s = relay_cpu_s;
  cost.once_capture_s = 0.006;
  cost.once_relay_s = 0.002;
  cost.windows = 1;
  cost.program_cpu_s = 40;
  cost.nodes = {{0, "open", 40, recording_s, 0, relay_cpu_s, 10, 10, 0, 1}};
  return cost;
}

TEST_F(ProgramStoreTest, CostsAreExpectedFromEarlierRuns) {
  const ProgramStore store(*database_);
  const ProgramHint hint{1000, 4, "", {"./app", "x"}};
  EXPECT_EQ(store.expected_cost(hint).value().calls_per_s, 0);
  EXPECT_EQ(store.expected_cost(hint).value().relay_share, 0);
  StepRecord step = step_of(1, 1000, 10);
  step.cost = cost_of(10'000, 0.004, 0.03 + 10'000 * cost::kDefaultRelayedCallS);
  put(step, 2, 11, 8);
  cost::CostHistory expected = store.expected_cost(hint).value();
  EXPECT_DOUBLE_EQ(expected.calls_per_s, 25);
  EXPECT_NEAR(expected.call_s, 400e-9, 1e-15);
  EXPECT_NEAR(expected.relay_share, 0.003, 1e-9);

  // Few calls say nothing of a call, windows nothing of the relay's pace.
  StepRecord closed = step_of(2, 2000, 10);
  closed.cost = cost_of(999, 1, 9);
  closed.cost->state = "counting";
  closed.cost->windows = 3;
  put(closed, 2, 11, 8);
  expected = store.expected_cost(hint).value();
  EXPECT_NEAR(expected.call_s, 400e-9, 1e-15);
  EXPECT_NEAR(expected.relay_share, 0.003, 1e-9);

  StepRecord slower = step_of(3, 3000, 10);
  slower.cost = cost_of(2'000, 0.0012, 0.05 + 2'000 * cost::kDefaultRelayedCallS);
  put(slower, 2, 11, 8);
  expected = store.expected_cost(hint).value();
  EXPECT_NEAR(expected.call_s, 500e-9, 1e-15) << "the mean of 400 and 600";
  EXPECT_NEAR(expected.relay_share, 0.004, 1e-9) << "the mean of 3 and 5 ms a second";

  // Half of the time it had no processor: what counts is the time that it used.
  for (const std::uint32_t job : {4U, 5U, 6U, 7U, 8U, 9U}) {
    StepRecord starved = step_of(job, 1000.0 * job, 10);
    starved.cost = cost_of(2'000, 0.0012, 0.05 + 2'000 * cost::kDefaultRelayedCallS);
    starved.cost->program_cpu_s = 20;
    put(starved, 2, 11, 8);
  }
  expected = store.expected_cost(hint).value();
  EXPECT_NEAR(expected.calls_per_s, 50, 6);
  EXPECT_NEAR(expected.relay_share, 0.01, 0.0015);
}

TEST_F(ProgramStoreTest, TheRelaysPaceIsThatOfTheSiteWhereTheProgramIsNew) {
  const ProgramStore store(*database_);
  for (const std::uint32_t job : {1U, 2U, 3U}) {
    StepRecord step = step_of(job, 1000.0 * job, 10);
    step.cost = cost_of(0, 0, job == 3 ? 0.5 : 0.01 * job);
    put(step, 2, 11, 8);
  }
  const cost::CostHistory expected = store.expected_cost({1001, 4, "", {"./different"}}).value();
  EXPECT_EQ(expected.calls_per_s, 0) << "another user's";
  EXPECT_EQ(expected.call_s, 0);
  EXPECT_NEAR(expected.relay_share, 0.002, 1e-9) << "the median of 1, 2 and 50 ms a second";
}

TEST_F(ProgramStoreTest, RunsOfBeforeTheOnceWasApartSayNothingOfTheRelay) {
  const ProgramStore store(*database_);
  StepRecord step = step_of(1, 1000, 10);
  step.cost = cost_of(10'000, 0.004, 0.03);
  step.cost->once_capture_s.reset();
  step.cost->once_relay_s.reset();
  put(step, 2, 11, 8);
  EXPECT_EQ(store.expected_cost({1000, 4, "", {"./app", "x"}}).value().relay_share, 0);
}

TEST_F(ProgramStoreTest, CallsOfProceduresAreExpectedFromTheLatestRunThatMeasuredThem) {
  const ProgramStore store(*database_);
  ProgramHint hint{1000, 4, "", {"./app", "x"}};
  EXPECT_TRUE(store.procedure_calls_per_s(hint).value().empty());
  const auto run = [&](std::uint32_t job, double start_s, const std::vector<std::pair<std::string, double>>& rates) {
    StepRecord step = step_of(job, start_s, 10);
    step.procedures.emplace();
    for (const auto& [name, rate] : rates) {
      ProcedureRecord& one = step.procedures->procedures.emplace_back();
      one.name = name;
      if (rate > 0) one.calls_per_s = rate;
    }
    put(step, 2, 11, 8);
  };
  run(1, 1000, {{"solve", 100}, {"pack", 5}});
  run(2, 2000, {{"solve", 200}, {"never called", 0}});
  using Rates = std::map<std::string, double>;
  EXPECT_EQ(store.procedure_calls_per_s(hint).value(), (Rates{{"solve", 200}, {"pack", 5}}));
  hint.before_s = 2000;
  EXPECT_EQ(store.procedure_calls_per_s(hint).value(), (Rates{{"solve", 100}, {"pack", 5}}))
      << "not from the run itself";
  EXPECT_EQ(store.procedure_calls_per_s({1000, 4, "gnu:aa", {}}).value().size(), 2u) << "by its build id, too";
  EXPECT_TRUE(store.procedure_calls_per_s({1001, 4, "", {"./app", "x"}}).value().empty()) << "another user";
  EXPECT_TRUE(store.procedure_calls_per_s({1000, 4, "", {"./app", "y"}}).value().empty());
}

TEST_F(ProgramStoreTest, DeferredTargetsAreFoundAndGivenUp) {
  PredictionStore predictions(*database_);
  EXPECT_FALSE(predictions.next_deferred(0).value());
  PredictionRecord deferred = on(4, "block", "lan", 0);
  deferred.why_deferred = "no room";
  PredictionRecord self = on(2, "block", "lan", 10);
  self.kind = "self";
  const auto row = StepStore(*database_).put(step_of(1, 1000, 10), {self, deferred});
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(predictions.next_deferred(0).value(), *row);
  EXPECT_THAT(predictions.deferred_targets(*row).value(), testing::ElementsAre(deferred.name()));
  EXPECT_FALSE(predictions.next_deferred(*row).value()) << "above it there is none";
  ASSERT_TRUE(predictions.give_up_deferred(*row, "gone").ok());
  EXPECT_FALSE(predictions.next_deferred(0).value());
  const auto back = predictions.of_step(*row);
  EXPECT_EQ(back->at(0).why_deferred, "");
  EXPECT_EQ(back->at(1).why_deferred, "gone");
  EXPECT_TRUE(back->at(1).deferred_for_good);
}

// Steps of a database from before there were programs stay, without one.
TEST_F(ProgramStoreTest, AnOlderSchemaIsBroughtUpToDate) {
  const std::string path = directory_.path() + "/old.db";
  {
    SQLite::Database old(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    for (const Migration& migration : migrations()) {
      if (migration.number > 4) break;
      old.exec(migration.sql);
    }
    old.exec("PRAGMA user_version = 4");
  }
  auto database = Database::open(path);
  ASSERT_TRUE(database.ok()) << database.error().message;
  EXPECT_TRUE(StepStore(**database).put(step_of(1, 1000, 10), {}).ok());
  EXPECT_TRUE(AccuracyStore(**database).accuracy({}).ok());
}

}  // namespace
}  // namespace lbf::db::program_store_test