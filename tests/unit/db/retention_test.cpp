// What lists ask for, and which steps retention removes.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "db/database.h"
#include "db/prediction_store.h"
#include "db/step_list.h"
#include "db/step_store.h"
#include "tests/support/temporary_directory.h"

namespace lbf::db::retention_test {
namespace {

StepRecord step_of(std::uint32_t job, double start_s, std::optional<double> end_s) {
  StepRecord step;
  step.cluster = "c";
  step.job = job;
  step.uid = 1000 + job % 2;
  step.account = job % 3 == 0 ? "physics" : "chemistry";
  step.partition = "main";
  step.state = end_s ? StepState::kComplete : StepState::kRunning;
  step.nodes = {"n" + std::to_string(job % 4), "m"};
  step.start_s = start_s;
  step.end_s = end_s;
  step.calls = {{"MPI_Send", 3, 0.5}};
  return step;
}

PredictionRecord prediction(const std::string& kind, Seconds predicted_s, const std::string& why_stuck = "") {
  PredictionRecord out;
  out.target = kind;
  out.kind = kind;
  out.predicted_s = predicted_s;
  out.why_stuck = why_stuck;
  return out;
}

class RetentionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Database::open(directory_.path() + "/lbf.db");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    database_ = std::move(opened).value();
  }
  StepRow put(const StepRecord& step, const std::vector<PredictionRecord>& predictions = {}) {
    const auto row = StepStore(*database_).put(step, predictions);
    EXPECT_TRUE(row.ok()) << row.error().message;
    return row.ok() ? *row : 0;
  }
  std::vector<std::uint32_t> jobs(const StepQuery& query) {
    std::vector<std::uint32_t> out;
    const auto found = StepStore(*database_).find(query, false);
    EXPECT_TRUE(found.ok()) << found.error().message;
    if (found.ok()) {
      for (const auto& step : *found) {
        out.push_back(step.record.job);
        EXPECT_TRUE(query.matches(step.record));  // running steps are judged by it, stored ones by SQL
      }
    }
    return out;
  }
  std::int64_t count(const std::string& table) {
    std::int64_t rows = 0;
    EXPECT_TRUE(database_
                    ->read([&](SQLite::Database& connection) {
                      rows = connection.execAndGet("SELECT count(*) FROM " + table).getInt64();
                    })
                    .ok());
    return rows;
  }
  test::TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
};

// Whatever the query's size has chosen as its way through the indexes, it selects what matches() does.
TEST_F(RetentionTest, EveryFilterSelectsWhatMatchesDoes) {
  std::vector<StepRecord> all;
  for (std::uint32_t job = 1; job <= 40; ++job) {
    all.push_back(step_of(job, 100.0 * job, job % 10 == 0 ? std::nullopt : std::optional(100.0 * job + 250)));
    if (job % 7 == 0) all.back().array_job = 7;
    put(all.back());
  }
  std::vector<StepQuery> queries(11);
  queries[1].uid = 1001;
  queries[2].account = "physics";
  queries[3].partition = "main";
  queries[3].since_s = 3900;
  queries[4].states = {StepState::kRunning};
  queries[5].states = {StepState::kRunning, StepState::kComplete};
  queries[5].until_s = 2000;
  queries[6].nodes = {"n1", "n3"};
  queries[6].uid = 1001;
  queries[7].job_group = 7;
  queries[8].since_s = 2000;
  queries[8].until_s = 3000;
  queries[8].account = "chemistry";
  queries[9].nodes = {"nowhere"};
  queries[10].partition = "other";
  for (std::size_t i = 0; i < queries.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<std::uint32_t> expected;
    for (const StepRecord& step : all) {
      if (queries[i].matches(step)) expected.push_back(step.job);
    }
    EXPECT_EQ(jobs(queries[i]), expected);
    EXPECT_EQ(expected.empty(), i >= 9);
  }
  StepQuery latest;
  latest.limit = 3;
  latest.since_s = 0;
  EXPECT_EQ(jobs(latest), (std::vector<std::uint32_t>{38, 39, 40}));
}

// More steps than a narrow window may have: read by their start then.
TEST_F(RetentionTest, AWideWindowGivesTheSameSteps) {
  for (std::uint32_t job = 1; job <= 4100; ++job) put(step_of(job, job, job + 10.0));
  StepQuery query;
  query.since_s = 15;
  query.limit = 2;
  EXPECT_EQ(jobs(query), (std::vector<std::uint32_t>{4099, 4100}));
  query.until_s = 8;
  query.limit = 100;
  EXPECT_EQ(jobs(query), (std::vector<std::uint32_t>{5, 6, 7, 8}));
}

TEST_F(RetentionTest, ListsShowTheFastestTargetAndTheOneThatRan) {
  const StepRow row = put(step_of(1, 1, 2), {prediction("self", 9), prediction("LBF", 3, "would wait for ever"),
                                             prediction("NF", 5), prediction("LBF+NF", 7)});
  const auto shown = PredictionStore(*database_).summary_of_step(row);
  ASSERT_TRUE(shown.ok()) << shown.error().message;
  ASSERT_EQ(shown->size(), 2U);
  EXPECT_EQ(shown->at(0).kind, "self");
  EXPECT_EQ(shown->at(1).kind, "NF");
  // Replaced, as a running step is every few seconds.
  put(step_of(1, 1, 2), {prediction("self", 4), prediction("LBF", 8)});
  const auto later = PredictionStore(*database_).summary_of_step(row);
  ASSERT_EQ(later->size(), 1U);
  EXPECT_EQ(later->at(0).predicted_s, 4);
}

TEST_F(RetentionTest, TheFastestTargetIsOnAMeasuredNetwork) {
  const auto on = [](const std::string& network, std::uint32_t nodes, Seconds predicted_s) {
    PredictionRecord out = prediction(network == "lan" ? "NF" : "LBF", predicted_s);
    out.network = network;
    out.nodes = nodes;
    return out;
  };
  const std::vector<PredictionRecord> all{prediction("self", 9), on("zero", 2, 1), on("nominal-hdr", 2, 2),
                                          on("lan", 2, 5), on("zero", 1, 7)};
  EXPECT_EQ(fastest_of(all), &all[3]);
  const auto shown = PredictionStore(*database_).summary_of_step(put(step_of(1, 1, 2), all));
  ASSERT_EQ(shown->size(), 2U);
  EXPECT_EQ(shown->at(1).network, "lan");
  const std::vector<PredictionRecord> on_one{on("zero", 1, 7)};
  EXPECT_EQ(fastest_of(on_one), &on_one[0]) << "nothing goes over a network";
}

TEST_F(RetentionTest, OldStepsGoWithAllThatBelongsToThem) {
  for (std::uint32_t job = 1; job <= 6; ++job) {
    put(step_of(job, job, job == 3 ? std::nullopt : std::optional(100.0 * job)), {prediction("self", 1)});
  }
  const auto has_trace = [](const StepRecord& step) { return step.job == 2; };
  auto removed = StepStore(*database_).remove_ended_before(450, 1, has_trace);
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(*removed, 1U);
  EXPECT_EQ(jobs({}), (std::vector<std::uint32_t>{2, 3, 4, 5, 6}));
  removed = StepStore(*database_).remove_ended_before(450, 100, has_trace);
  EXPECT_EQ(*removed, 1U);
  // 2 still has its trace, 3 runs.
  EXPECT_EQ(jobs({}), (std::vector<std::uint32_t>{2, 3, 5, 6}));
  EXPECT_EQ(count("prediction"), 4);
  EXPECT_EQ(count("call"), 4);
  EXPECT_EQ(count("step_node"), 8);
  EXPECT_EQ(*StepStore(*database_).remove_ended_before(450, 100, has_trace), 0U);
}

TEST_F(RetentionTest, NodesThatChangeWhileAStepRuns) {
  StepRecord step = step_of(1, 1, std::nullopt);
  put(step);
  step.nodes = {"n9"};
  put(step);
  StepQuery query;
  query.nodes = {"n1"};
  EXPECT_TRUE(jobs(query).empty());
  query.nodes = {"n9"};
  EXPECT_EQ(jobs(query).size(), 1U);
}

}  // namespace
}  // namespace lbf::db::retention_test