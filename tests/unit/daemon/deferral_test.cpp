// Targets under a budget: which go first, what is deferred, and that what is taken up later gives the same numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/steps/replay_budget.h"
#include "predictor/daemon/steps/step_run.h"
#include "predictor/daemon/steps/target_ranking.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/intake/batches.h"

namespace lbf::deferral_test {
namespace {

TEST(ReplayBudget, GrowsWithTheProgramsTime) {
  daemon::ReplayBudget budget;
  EXPECT_TRUE(budget.has_room(0, 1e9)) << "no limit";
  budget.cpu_percent = 10;
  budget.free_cpu_s = 5;
  EXPECT_TRUE(budget.has_room(0, 4.9));
  EXPECT_FALSE(budget.has_room(0, 5));
  EXPECT_TRUE(budget.has_room(100, 14.9));
  EXPECT_FALSE(budget.has_room(100, 15));
}

TEST(ReplayMemory, IsSharedAndGivenBack) {
  daemon::ReplayMemory memory(100);
  {
    daemon::ReplayMemoryShare one(&memory);
    one.set(60);
    daemon::ReplayMemoryShare two(&memory);
    two.set(30);
    EXPECT_EQ(memory.used_bytes(), 90u);
    EXPECT_TRUE(memory.has_room_for(10));
    EXPECT_FALSE(memory.has_room_for(11));
    one.set(10);
    EXPECT_TRUE(memory.has_room_for(60));
  }
  EXPECT_EQ(memory.used_bytes(), 0u);
}

std::shared_ptr<const engine::Network> network(const std::string& name) {
  auto parsed =
      engine::Network::parse("name = \"" + name + "\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 50.0]]\n", name);
  EXPECT_TRUE(parsed.ok());
  return std::make_shared<const engine::Network>(std::move(parsed).value());
}

TEST(TargetRanking, SelfThenWhatTheUserAskedForThenTheNearest) {
  engine::Target ran;
  ran.node_of_rank = {0, 0, 0, 0, 1, 1, 1, 1};
  ran.nodes = 2;
  ran.cores_per_node = 4;
  ran.network = network("own");
  ran.placement = "block";
  const auto ranked = [&](const std::vector<std::string>& asked) {
    std::string out;
    for (const engine::Target& target :
         daemon::ranked_targets(engine::default_targets(ran, {network("far"), network("wide")}), asked))
      out += target.network->name() + std::to_string(target.nodes) + ' ';
    return out;
  };
  EXPECT_EQ(ranked({}), "own2 own1 own4 own8 far2 wide2 far1 far4 wide1 wide4 far8 wide8 ");
  EXPECT_EQ(ranked({"wide"}), "own2 wide2 wide1 wide4 wide8 own1 own4 own8 far2 far1 far4 far8 ");
}

class DeferralTest : public testing::Test {
 protected:
  DeferralTest() {
    for (const auto& [name, latency_us] : {std::pair{"default", "50.0"}, std::pair{"fast", "5.0"}}) {
      std::ofstream(directory_.path() + "/" + name + ".toml")
          << "name = \"" << name << "\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, " << latency_us
          << "], [1000, 90.0]]\n";
    }
    auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
    EXPECT_TRUE(catalog.ok());
    networks_ = std::make_unique<daemon::NetworkCatalog>(std::move(catalog).value());
  }

  std::shared_ptr<daemon::StepTrace> make_trace(const std::string& name) {
    const auto describe = [&](std::uint32_t node) {
      return protocol::decode_step_description(program_.description(node, 7).dump()).value();
    };
    auto trace =
        std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/" + name, describe(0), 1)).value();
    for (std::uint32_t node = 0; node < 2; ++node) EXPECT_TRUE(trace->register_stream(describe(node)).ok());
    return trace;
  }
  void append(daemon::StepTrace& trace, std::size_t batch) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      EXPECT_TRUE(trace.append(node, batch, test::bytes_of(program_.batches_of(node)[batch - 1])).ok());
    }
  }
  void end(daemon::StepTrace& trace) {
    for (std::uint32_t node = 0; node < 2; ++node) EXPECT_TRUE(trace.end_stream(node, {batches(), 0, "step_end"}).ok());
  }
  static daemon::StepRun::Progress drain(daemon::StepRun& run) {
    daemon::StepRun::Progress progress = daemon::StepRun::Progress::kMore;
    while (progress == daemon::StepRun::Progress::kMore) progress = run.work();
    return progress;
  }
  std::size_t batches() const { return static_cast<std::size_t>(program_.batches); }
  static std::size_t deferred(const daemon::StepView& view) {
    return static_cast<std::size_t>(std::count_if(view.predictions.begin(), view.predictions.end(),
                                                  [](const auto& p) { return !p.why_deferred.empty(); }));
  }
  // A step whose replays cost what `cost_s` says at the time: the fake clock moves by it at each look, so that each
  // turn costs as much. The ring's 4 ranks have run 2.6 s together after their first batches, and 4 s more after each.
  daemon::StepRunOptions limited(const double& cost_s) {
    daemon::StepRunOptions options;
    options.budget.cpu_percent = 100;
    options.budget.free_cpu_s = 0.5;
    options.targets_per_pass = 2;
    options.cpu_clock = [this, &cost_s] { return now_s_ += cost_s; };
    return options;
  }
  std::shared_ptr<const daemon::StepView> whole() {
    auto trace = make_trace("whole");
    daemon::StepRun run(trace, *networks_, {});
    for (std::size_t batch = 1; batch <= batches(); ++batch) append(*trace, batch);
    end(*trace);
    EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
    return run.view();
  }
  static void expect_same(const daemon::StepView& one, const daemon::StepView& other) {
    EXPECT_EQ(one.record.state, other.record.state) << one.record.why_partial << other.record.why_partial;
    ASSERT_EQ(one.predictions.size(), other.predictions.size());
    for (std::size_t i = 0; i < one.predictions.size(); ++i) {
      const db::PredictionRecord& a = one.predictions[i];
      const db::PredictionRecord& b = other.predictions[i];
      EXPECT_EQ(a.target + a.network, b.target + b.network);
      EXPECT_EQ(a.predicted_s, b.predicted_s) << a.target;
      EXPECT_EQ(a.rank_finish_s, b.rank_finish_s) << a.target;
      EXPECT_EQ(a.speedup, b.speedup) << a.target;
      EXPECT_EQ(a.partial, b.partial) << a.target;
      EXPECT_EQ(a.why_deferred, b.why_deferred) << a.target;
    }
  }

  test::TemporaryDirectory directory_;
  test::RingProgram program_;
  std::unique_ptr<daemon::NetworkCatalog> networks_;
  double now_s_ = 0;
};

TEST_F(DeferralTest, TheConfigurationThatRanIsPredictedWhateverItCosts) {
  auto trace = make_trace("dear");
  const double cost_s = 1000;
  daemon::StepRun run(trace, *networks_, limited(cost_s));
  for (std::size_t batch = 1; batch <= batches(); ++batch) {
    append(*trace, batch);
    EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  }
  end(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const auto view = run.view();
  const auto all = whole();
  EXPECT_EQ(view->record.state, db::StepState::kComplete) << view->record.why_partial;
  EXPECT_EQ(view->predictions.front().rank_finish_s, all->predictions.front().rank_finish_s);
  EXPECT_EQ(view->predictions.front().why_deferred, "");
  EXPECT_EQ(view->predictions.size(), all->predictions.size());
  EXPECT_EQ(deferred(*view), all->predictions.size() - 1);
  EXPECT_THAT(view->record.notes, testing::Contains(testing::HasSubstr("targets are deferred: ")));
  EXPECT_GT(view->record.lbfd_cpu_s, 1000);
  const nlohmann::json json = daemon::step_json(*view, daemon::StepDetail::kFull)["predictions"][1];
  EXPECT_TRUE(json["predicted_s"].is_null());
  EXPECT_TRUE(json["speedup"].is_null());
  EXPECT_THAT(json["why_deferred"].get<std::string>(), testing::HasSubstr("step_cpu_percent"));
}

TEST_F(DeferralTest, WhatWasDeferredIsTakenUpWhenThereIsRoomAndGivesTheSameNumbers) {
  auto trace = make_trace("late");
  double cost_s = 1.0;  // of each batch of the configuration that ran: more than the program's time allows
  daemon::StepRun run(trace, *networks_, limited(cost_s));
  append(*trace, 1);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  const std::size_t behind = deferred(*run.view());
  EXPECT_GT(behind, 0u) << "two batches cost 2 s, the program's ranks had less";
  cost_s = 0.01;  // the rate fell
  for (std::size_t batch = 2; batch <= batches(); ++batch) {
    append(*trace, batch);
    EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  }
  EXPECT_EQ(deferred(*run.view()), 0u);
  end(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  expect_same(*run.view(), *whole());
}

TEST_F(DeferralTest, WhatIsLeftAfterTheStepIsTakenUpFromTheStoredTrace) {
  auto trace = make_trace("after");
  const double cost_s = 1000;
  daemon::StepRun run(trace, *networks_, limited(cost_s));
  for (std::size_t batch = 1; batch <= batches(); ++batch) append(*trace, batch);
  end(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  EXPECT_GT(deferred(*run.view()), 0u);
  daemon::StepRunOptions options;
  options.cpu_spent_before_s = run.view()->record.lbfd_cpu_s;
  daemon::StepRun again(trace, *networks_, options);
  EXPECT_EQ(drain(again), daemon::StepRun::Progress::kFinished);
  expect_same(*again.view(), *whole());
  EXPECT_GE(again.view()->record.lbfd_cpu_s, options.cpu_spent_before_s);
}

// What the path is made of comes after all targets. A step without room for it is complete all the same.
TEST_F(DeferralTest, WhatThePathIsMadeOfTakesRoomLikeATarget) {
  auto trace = make_trace("path");
  const double cost_s = 1000;
  daemon::StepRun run(trace, *networks_, limited(cost_s));
  for (std::size_t batch = 1; batch <= batches(); ++batch) append(*trace, batch);
  end(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  EXPECT_EQ(run.view()->record.state, db::StepState::kComplete);
  EXPECT_FALSE(run.view()->record.path_work_s);
  daemon::StepRun again(trace, *networks_, {});
  EXPECT_EQ(drain(again), daemon::StepRun::Progress::kFinished);
  EXPECT_EQ(again.view()->record.path_work_s, whole()->record.path_work_s);
  EXPECT_TRUE(again.view()->record.path_work_s);
}

TEST_F(DeferralTest, NearerTargetsAreTakenFirst) {
  auto trace = make_trace("some");
  double cost_s = 0.45;  // room for some of the passes
  daemon::StepRun run(trace, *networks_, limited(cost_s));
  for (std::size_t batch = 1; batch <= batches(); ++batch) append(*trace, batch);
  end(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const auto view = run.view();
  const std::size_t waiting = deferred(*view);
  ASSERT_GT(waiting, 0u);
  ASSERT_LT(waiting, view->predictions.size() - 1) << "some had room";
  for (std::size_t i = 0; i < view->predictions.size(); ++i) {
    EXPECT_EQ(!view->predictions[i].why_deferred.empty(), i >= view->predictions.size() - waiting) << i;
  }
}

TEST_F(DeferralTest, MemoryOfAllStepsIsALimit) {
  auto trace = make_trace("memory");
  daemon::StepRunOptions options;
  options.memory = std::make_shared<daemon::ReplayMemory>(daemon::replay_bytes(4, 1, 1000));
  options.targets_per_pass = 2;
  daemon::StepRun run(trace, *networks_, options);
  daemon::ReplayMemoryShare other_step(options.memory.get());
  other_step.set(daemon::replay_bytes(4, 1, 1000));
  append(*trace, 1);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  EXPECT_THAT(run.view()->predictions.back().why_deferred, testing::HasSubstr("replay_memory_mb"));
  other_step.set(0);  // it ended
  for (std::size_t batch = 2; batch <= batches(); ++batch) append(*trace, batch);
  end(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  expect_same(*run.view(), *whole());
}

}  // namespace
}  // namespace lbf::deferral_test