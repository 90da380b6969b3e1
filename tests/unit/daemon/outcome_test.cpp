// Steps: programs that run again, what is expected of them, and deferred targets after the step, across restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "db/database.h"
#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/steps/steps.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/intake/batches.h"

namespace lbf::outcome_test {
namespace {

using namespace std::chrono_literals;

class OutcomeTest : public testing::Test {
 protected:
  OutcomeTest() {
    std::filesystem::create_directory(directory_.path() + "/networks");
    std::ofstream(directory_.path() + "/networks/default.toml")
        << "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 50.0], [1000, 90.0]]\n";
    networks_ = std::make_unique<daemon::NetworkCatalog>(
        std::move(daemon::NetworkCatalog::load(directory_.path() + "/networks", "")).value());
    database_ = std::move(db::Database::open(directory_.path() + "/lbf.db")).value();
    traces_ = std::move(daemon::TraceStore::open(directory_.path() + "/traces")).value();
    program_.build_id = "gnu:aa";
    start();
  }
  ~OutcomeTest() override { steps_.reset(); }

  void start() {
    steps_.reset();
    options_.retention.age = 0h;
    steps_ = std::make_unique<daemon::Steps>(*traces_, *database_, *networks_, options_);
    steps_->recover();
  }
  daemon::StepKey key(std::uint32_t job) const { return {"c", job, 0, 0}; }

  // The whole program as a step; returns the answer to its first relay.
  daemon::Registered run(std::uint32_t job, const nlohmann::json& limits = nullptr) {
    daemon::Registered first;
    const auto nodes = static_cast<std::uint32_t>(program_.ranks_of_node.size());
    for (std::uint32_t node = 0; node < nodes; ++node) {
      nlohmann::json description = program_.description(node, job);
      if (!limits.is_null()) description["limits"] = limits;
      description["start_realtime_ns"] = 1700000000000000000 + std::int64_t{job} * 1000000000;
      const auto answer = steps_->register_stream(caller_, key(job), node, description.dump());
      EXPECT_TRUE(answer.ok()) << (answer ? "" : answer.error().message);
      if (node == 0 && answer) first = *answer;
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      std::uint64_t sequence = 0;
      for (const std::string& batch : program_.batches_of(node)) {
        const auto stored = steps_->append(caller_, key(job), node, ++sequence, test::bytes_of(batch));
        EXPECT_TRUE(stored.ok()) << (stored ? "" : stored.error().message);
      }
      EXPECT_TRUE(steps_->end_stream(caller_, key(job), node, {sequence, 0, "step_end"}).ok());
    }
    return first;
  }
  daemon::StepView wait_for(std::uint32_t job, const std::function<bool(const daemon::StepView&)>& is_reached) {
    daemon::StepView view;
    for (int i = 0; i < 2000; ++i) {
      auto found = steps_->get(caller_, key(job), daemon::StepDetail::kFull);
      if (found) view = std::move(found).value();
      if (found && is_reached(view)) return view;
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << "job " << job << " does not get there";
    return view;
  }
  daemon::StepView finished(std::uint32_t job) {
    daemon::StepView view =
        wait_for(job, [](const daemon::StepView& v) { return v.record.state != db::StepState::kRunning; });
    EXPECT_EQ(view.record.state, db::StepState::kComplete) << view.record.why_partial;
    // The database has it a moment later.
    for (int i = 0; i < 2000; ++i) {
      const auto state = db::StepStore(*database_).state_of("c", job, 0, 0, 0);
      if (state && state->has_value() && **state != db::StepState::kRunning) break;
      std::this_thread::sleep_for(5ms);
    }
    return view;
  }
  db::Accuracy accuracy() { return steps_->accuracy({}).value(); }
  static std::size_t deferred(const daemon::StepView& view) {
    return static_cast<std::size_t>(std::count_if(view.predictions.begin(), view.predictions.end(),
                                                  [](const auto& p) { return !p.why_deferred.empty(); }));
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<daemon::NetworkCatalog> networks_;
  std::unique_ptr<db::Database> database_;
  std::unique_ptr<daemon::TraceStore> traces_;
  daemon::StepsOptions options_;
  std::unique_ptr<daemon::Steps> steps_;
  test::RingProgram program_;
  const daemon::Caller caller_{::getuid(), true};
  std::atomic<int> clock_{0};
};

// A rank's work is 24 % more with two ranks per memory domain than with one.
TEST_F(OutcomeTest, RunsAtTwoDensitiesTellTheMemoryDemandOfTheNext) {
  steps_.reset();
  std::ofstream(directory_.path() + "/networks/default.toml", std::ios::app)
      << "[memory]\nbandwidth_MBps = [[1, 10000.0], [2, 12000.0]]\n";
  networks_ = std::make_unique<daemon::NetworkCatalog>(
      std::move(daemon::NetworkCatalog::load(directory_.path() + "/networks", "")).value());
  start();
  const auto dense = [&](std::uint32_t job) {
    program_.ranks_of_node = {{0, 1}, {2, 3}};
    program_.more_work = 1.4;
    run(job);
    return finished(job);
  };
  const daemon::StepView first = dense(1);
  EXPECT_EQ(first.record.ranks_per_domain, 2u);
  program_.ranks_of_node = {{0}, {1}, {2}, {3}};
  program_.more_work = 1;
  run(2);
  const daemon::StepView second = finished(2);
  EXPECT_EQ(second.record.ranks_per_domain, 1u);
  EXPECT_EQ(second.record.memory_demand_MBps, 0) << "until then one density is known";
  const daemon::StepView third = dense(3);
  EXPECT_NEAR(third.record.memory_demand_MBps, 1.24 * 6000, 10);
  EXPECT_EQ(third.predictions.back().memory_percent, 0);
}

TEST_F(OutcomeTest, AProgramThatRunsAgainElsewhereHasAnOutcome) {
  EXPECT_FALSE(run(1).expected_calls_per_s) << "it never ran";
  const daemon::StepView first = finished(1);
  const auto four =
      std::find_if(first.predictions.begin(), first.predictions.end(), [](const auto& p) { return p.nodes == 4; });
  ASSERT_NE(four, first.predictions.end());

  program_.ranks_of_node = {{0}, {1}, {2}, {3}};
  const auto expected = run(2).expected_calls_per_s;
  ASSERT_TRUE(expected);
  double calls = 0;
  for (const db::CallRecord& call : first.record.calls) calls += static_cast<double>(call.calls);
  // RingProgram's ranks take 0.5 + 0.1 rank + (batches - 1) seconds.
  EXPECT_NEAR(*expected, calls / (4 * 3.5 + 0.6), 1e-9);
  const daemon::StepView second = finished(2);

  const db::Accuracy found = accuracy();
  EXPECT_EQ(found.all.outcomes, 3u) << "two for themselves, one of four nodes predicted from two";
  ASSERT_EQ(found.by_distance.size(), 2u);
  EXPECT_EQ(found.by_distance[1].name, "nodes");
  EXPECT_NEAR(found.by_distance[1].errors.median_percent, 100 * (four->predicted_s / *second.record.measured_s - 1),
              1e-9);
  ASSERT_EQ(found.by_program.size(), 1u);
  EXPECT_EQ(found.by_program[0].name, "ring");

  const nlohmann::json json = daemon::accuracy_json(found);
  EXPECT_EQ(json["by_distance"][1]["distance"], "nodes");
  EXPECT_EQ(json["by_program"][0]["build_id"], "gnu:aa");
  const auto fit = steps_->fit_of(caller_, key(2));
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(daemon::error_fit_json(*fit)["program"]["outcomes"], 1);
}

// Two nodes, each with 3,000 calls recorded, which took 0.05 s, in the ranks' time in events.
TEST_F(OutcomeTest, ARunWhoseCaptureEndedCorrectsWhatIsExpected) {
  program_.unseen_s = 100;
  program_.cost = {{"recorded_calls", 3000}, {"recording_s", 0.05}, {"direct_s", 0.06}};
  EXPECT_FALSE(run(1).expected_calls_per_s);
  finished(1);
  EXPECT_EQ(accuracy().all.outcomes, 0u) << "it is not recognised";
  const auto expected = run(2).expected_calls_per_s;
  ASSERT_TRUE(expected);
  const double rounds = program_.rounds * program_.batches;
  const double seen_s = rounds * (1e-3 * (1 + 2 + 3 + 4) + 4 * (1e-6 + 1e-5));
  EXPECT_NEAR(*expected, 6000 / (seen_s - 0.1), 1e-6 * *expected) << "of relays that do not say how long they looked";
  finished(2);
}

// Recorded was a moment in which the program called more often than ever: the rate is that of all that was counted.
TEST_F(OutcomeTest, ARunWhoseCaptureEndedCountsAllCallsUntilThen) {
  program_.unseen_s = 100;
  program_.cost = {{"recorded_calls", 3000}, {"counted_calls", 17000}, {"recording_s", 0.05},
                   {"direct_s", 0.06},       {"watched_s", 8.06},      {"program_cpu_s", 0}};
  run(1);
  finished(1);
  const auto expected = run(2).expected_calls_per_s;
  ASSERT_TRUE(expected);
  EXPECT_NEAR(*expected, 2 * 20000 / (2 * 8.0), 1e-6 * *expected);
  finished(2);
}

// Each rank with 1.5 threads at work in the mean: in processor time, as the history of other runs is.
TEST_F(OutcomeTest, ARunWhoseCaptureEndedHasItsRateInProcessorTime) {
  program_.unseen_s = 100;
  const Seconds all_ranks_s = 4 * 3.5 + 0.6;  // RingProgram
  program_.cost = {
      {"recorded_calls", 3000}, {"counted_calls", 17000}, {"watched_s", 8.0}, {"program_cpu_s", 1.5 * all_ranks_s / 2}};
  run(1);
  finished(1);
  const auto expected = run(2).expected_calls_per_s;
  ASSERT_TRUE(expected);
  EXPECT_NEAR(*expected, 20000 / 8.0 / 1.5, 1e-6 * *expected);
  finished(2);
}

TEST_F(OutcomeTest, AnotherBuildOfTheSameNameIsAnotherProgram) {
  run(1);
  finished(1);
  program_.ranks_of_node = {{0}, {1}, {2}, {3}};
  program_.build_id = "gnu:bb";
  run(2);
  finished(2);
  EXPECT_EQ(accuracy().by_program.size(), 2u);
  EXPECT_EQ(accuracy().all.outcomes, 2u) << "each for itself";
}

// Until the relay says what ran, nothing is known.
TEST_F(OutcomeTest, WithoutABuildIdThereIsNoProgram) {
  program_.build_id.clear();
  run(1);
  finished(1);
  EXPECT_EQ(accuracy().all.outcomes, 0u);
}

TEST_F(OutcomeTest, DeferredTargetsAreTakenUpAfterARestart) {
  run(1);
  const daemon::StepView whole = finished(1);
  options_.run.budget.cpu_percent = 1;
  options_.run.cpu_clock = [this] { return 1000.0 * ++clock_; };
  start();
  run(2);
  const daemon::StepView second = finished(2);
  EXPECT_EQ(deferred(second), second.predictions.size() - 1);
  start();
  steps_->tick();
  const daemon::StepView later = wait_for(2, [&](const daemon::StepView& v) {
    steps_->tick();
    return deferred(v) == 0;
  });
  EXPECT_EQ(later.record.state, db::StepState::kComplete);
  EXPECT_EQ(steps_->running(), 0u);
  ASSERT_EQ(later.predictions.size(), whole.predictions.size());
  for (std::size_t i = 0; i < whole.predictions.size(); ++i) {
    EXPECT_EQ(later.predictions[i].predicted_s, whole.predictions[i].predicted_s);
    EXPECT_EQ(later.predictions[i].rank_finish_s, whole.predictions[i].rank_finish_s);
    EXPECT_EQ(later.predictions[i].taken_up, i > 0) << i;
    EXPECT_FALSE(whole.predictions[i].taken_up);
  }
  db::StepQuery query;
  query.job = 2;
  const auto listed = steps_->list(query, {{"targets_deferred", "targets_taken_up"}, {}, false});
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().record.targets_deferred, 0u);
  EXPECT_EQ(listed->front().record.targets_taken_up, whole.predictions.size() - 1);
}

TEST_F(OutcomeTest, WhatRetentionTookIsGivenUp) {
  options_.run.budget.cpu_percent = 1;
  options_.run.cpu_clock = [this] { return 1000.0 * ++clock_; };
  start();
  run(1);
  const daemon::StepView before = finished(1);
  ASSERT_GT(deferred(before), 0u);
  std::filesystem::remove_all(directory_.path() + "/traces/c/1.0.0");
  start();
  steps_->tick();
  const daemon::StepView after =
      wait_for(1, [&](const daemon::StepView& v) { return v.predictions.back().deferred_for_good; });
  EXPECT_EQ(deferred(after), deferred(before));
  EXPECT_THAT(after.predictions.back().why_deferred, testing::HasSubstr("retention"));
  EXPECT_EQ(after.predictions.front().predicted_s, before.predictions.front().predicted_s);
}

TEST_F(OutcomeTest, AStepsTracesHaveALimit) {
  std::uint64_t first_batches = 0;
  for (std::uint32_t node = 0; node < 2; ++node) first_batches += program_.batches_of(node)[0].size();
  options_.step_trace_limit_bytes = first_batches;
  start();
  run(1);
  const daemon::StepView view =
      wait_for(1, [](const daemon::StepView& v) { return v.record.state != db::StepState::kRunning; });
  EXPECT_EQ(view.record.state, db::StepState::kPartial);
  EXPECT_THAT(view.record.why_partial, testing::HasSubstr("step_trace_limit_mb"));
  EXPECT_LE(view.record.stored_bytes, first_batches);
  EXPECT_GT(view.record.stored_bytes, 0u);
}

TEST_F(OutcomeTest, AUsersStepMayBeWorthLessOfLbfdsTime) {
  options_.run.cpu_clock = [this] { return 1000.0 * ++clock_; };  // lbfd has no limit of its own
  start();
  run(1);
  EXPECT_EQ(deferred(finished(1)), 0u);
  run(2, {{"step_cpu_percent", 1}});
  const daemon::StepView limited = finished(2);
  EXPECT_EQ(deferred(limited), limited.predictions.size() - 1);
  EXPECT_EQ(limited.predictions.front().why_deferred, "");
  EXPECT_THAT(limited.record.notes, testing::Not(testing::Contains(testing::HasSubstr("more than this lbfd allows"))));
}

TEST_F(OutcomeTest, NoUsersStepGetsMoreOfLbfdThanOthers) {
  options_.run.budget.cpu_percent = 10;
  options_.run.cpu_clock = [this] { return 1000.0 * ++clock_; };
  options_.step_trace_limit_bytes = 2 << 20;
  start();
  run(1, {{"step_cpu_percent", 10000}, {"step_trace_limit_mb", 3}});
  const daemon::StepView view = finished(1);
  EXPECT_EQ(deferred(view), view.predictions.size() - 1);
  EXPECT_THAT(view.record.notes,
              testing::IsSupersetOf({std::string("step_cpu_percent=10000: more than this lbfd allows; 10 % is used"),
                                     std::string("step_trace_limit_mb=3: more than this lbfd allows; 2 MB is used")}));
}

TEST_F(OutcomeTest, AUsersTraceLimitIsItsStepsOnly) {
  const std::string batch = test::make_batch(0, 1, 200'000);
  ASSERT_GT(batch.size(), 1u << 19);
  ASSERT_LT(batch.size(), 1u << 20) << "one has room, two have not";
  for (const std::uint32_t job : {1U, 2U}) {
    nlohmann::json description = {{"job", job}, {"step", 0}, {"nodes", {"n"}}, {"node_index", 0}, {"tasks", 1}};
    if (job == 2) description["limits"] = {{"step_trace_limit_mb", 1}};
    ASSERT_TRUE(steps_->register_stream(caller_, key(job), 0, description.dump()).ok());
    ASSERT_TRUE(steps_->append(caller_, key(job), 0, 1, test::bytes_of(batch)).ok());
    ASSERT_TRUE(steps_->append(caller_, key(job), 0, 2, test::bytes_of(test::make_batch(0, 2, 200'000))).ok());
    ASSERT_TRUE(steps_->end_stream(caller_, key(job), 0, {2, 0, "step_end"}).ok());
  }
  const auto is_over = [](const daemon::StepView& v) { return v.record.state != db::StepState::kRunning; };
  const daemon::StepView free = wait_for(1, is_over);
  EXPECT_THAT(free.record.why_partial, testing::Not(testing::HasSubstr("step_trace_limit_mb")));
  EXPECT_GT(free.record.stored_bytes, 1u << 20);
  const daemon::StepView limited = wait_for(2, is_over);
  EXPECT_EQ(limited.record.state, db::StepState::kPartial);
  EXPECT_THAT(limited.record.why_partial, testing::HasSubstr("step_trace_limit_mb"));
  EXPECT_LE(limited.record.stored_bytes, 1u << 20);
}

}  // namespace
}  // namespace lbf::outcome_test