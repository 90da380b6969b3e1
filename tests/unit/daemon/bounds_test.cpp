// What one step and one user may take of lbfd (docs/lbfd.md, "Bounds"): each bound with a small number.
#include "predictor/daemon/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "predictor/daemon/steps/memory_accounts.h"
#include "predictor/daemon/steps/procedure_search.h"
#include "predictor/daemon/steps/replay_marks.h"
#include "predictor/daemon/steps/step_procedures.h"
#include "predictor/daemon/steps/step_run.h"
#include "predictor/daemon/steps/turn_queue.h"
#include "predictor/daemon/steps/user_rates.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/intake/batches.h"

namespace lbf::bounds_test {
namespace {

using daemon::Bounds;
using daemon::MemoryAccounts;
using daemon::ReplayMarks;
using testing::HasSubstr;
using namespace std::chrono_literals;

// --- memory

TEST(MemoryAccounts, AStepAUserAndAllHaveABoundEach) {
  Bounds bounds;
  bounds.step_memory_bytes = Bytes{10} << 20;
  bounds.user_memory_bytes = Bytes{15} << 20;
  bounds.all_memory_bytes = Bytes{20} << 20;
  const auto accounts = std::make_shared<MemoryAccounts>(bounds);
  MemoryAccounts::Account one(accounts, 1);
  MemoryAccounts::Account two(accounts, 1);
  MemoryAccounts::Account other(accounts, 2);
  EXPECT_EQ(one.why_not(Bytes{10} << 20), "");
  EXPECT_THAT(one.why_not(Bytes{11} << 20), HasSubstr("step_memory_mb"));
  one.set(Bytes{9} << 20);
  EXPECT_EQ(two.why_not(Bytes{6} << 20), "");
  EXPECT_THAT(two.why_not(Bytes{7} << 20), HasSubstr("user_memory_mb"));
  two.set(Bytes{6} << 20);
  // 15 of 20 are one user's: it is he who gives way, also where it is the other one who asks for more.
  EXPECT_EQ(other.why_not(Bytes{8} << 20), "");
  other.set(Bytes{8} << 20);
  EXPECT_THAT(one.why_not(Bytes{9} << 20), HasSubstr("memory_mb"));
  {
    MemoryAccounts::Account third(accounts, 1);
    third.set(1);
    EXPECT_EQ(accounts->of_user(1), (Bytes{15} << 20) + 1);
  }
  EXPECT_EQ(accounts->of_user(1), Bytes{15} << 20) << "what is gone is given back";
}

// --- turns

TEST(TurnQueue, UsersTakeTurnsAndLeaveAThreadFree) {
  daemon::TurnQueue<int> queue(3);
  for (int i = 0; i < 4; ++i) queue.add(1, i);
  ASSERT_TRUE(queue.take());
  ASSERT_TRUE(queue.take());
  EXPECT_FALSE(queue.take()) << "a thread stays free for whoever comes next";
  queue.add(2, 10);
  EXPECT_EQ(queue.take()->second, 10) << "one user's fourth step does not go before another's first";
  EXPECT_TRUE(queue.done(1));
  EXPECT_EQ(queue.take()->second, 2);
  EXPECT_FALSE(queue.take());
  EXPECT_TRUE(queue.done(2));
  EXPECT_FALSE(queue.take());
}

TEST(TurnQueue, OfOneThreadAUserHasIt) {
  daemon::TurnQueue<int> queue(1);
  queue.add(1, 0);
  EXPECT_TRUE(queue.take());
}

TEST(TurnQueue, AThreadIsLentWhileNobodyWaitsAndOneStaysFree) {
  daemon::TurnQueue<int> queue(4);
  queue.add(1, 0);
  ASSERT_TRUE(queue.take());
  EXPECT_TRUE(queue.lend(1));
  queue.add(2, 0);
  EXPECT_FALSE(queue.lend(1)) << "user 2 waits";
  ASSERT_TRUE(queue.take());
  EXPECT_FALSE(queue.lend(1)) << "three are at work";
  EXPECT_FALSE(queue.done(2));
  EXPECT_TRUE(queue.lend(1));
  queue.add(1, 1);
  EXPECT_FALSE(queue.take()) << "threads that are lent are their user's";
  EXPECT_TRUE(queue.done(1));
  EXPECT_TRUE(queue.take());
}

TEST(TurnQueue, OfTwoThreadsNoneIsLent) {
  daemon::TurnQueue<int> queue(2);
  queue.add(1, 0);
  ASSERT_TRUE(queue.take());
  EXPECT_FALSE(queue.lend(1));
}

// --- rates

TEST(UserRates, StepsInABurstAndInTheLongRun) {
  Bounds bounds;
  bounds.user_starts_at_once = 3;
  bounds.user_starts_per_s = 1;
  daemon::UserRates rates(bounds);
  const daemon::UserRates::Clock::time_point now{1000s};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rates.begin_step(1, now));
  EXPECT_FALSE(rates.begin_step(1, now));
  EXPECT_TRUE(rates.begin_step(2, now)) << "another user's are others";
  EXPECT_TRUE(rates.begin_step(1, now + 1s));
  EXPECT_FALSE(rates.begin_step(1, now + 1s));
}

// --- marks

TEST(ReplayMarks, TheNextStartFindsWhatWasUnderWay) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/marks";
  {
    auto marks = std::move(ReplayMarks::open(path)).value();
    EXPECT_TRUE(marks->found().empty());
    { const ReplayMarks::Mark over(*marks, "c/1.0.0"); }
    ReplayMarks::Mark under_way(*marks, "c/2.0.0");
    under_way.set_at_hand("3.17");
    under_way.set_at_hand("3.4");
    const ReplayMarks::Mark just_begun(*marks, "c/3.0.0");
    // As after kill -9: the file is what it is now.
    auto next = std::move(ReplayMarks::open(path)).value();
    EXPECT_THAT(next->found(),
                testing::UnorderedElementsAre(testing::Pair("c/2.0.0", "3.4"), testing::Pair("c/3.0.0", "")));
  }
  EXPECT_TRUE((*ReplayMarks::open(path))->found().empty()) << "found once";
}

TEST(ReplayMarks, MoreThanThereIsRoomForAreNotMarked) {
  const test::TemporaryDirectory directory;
  auto marks = std::move(ReplayMarks::open(directory.path() + "/marks")).value();
  std::vector<std::unique_ptr<ReplayMarks::Mark>> all;
  for (std::size_t i = 0; i < ReplayMarks::kSlots + 2; ++i) {
    all.push_back(std::make_unique<ReplayMarks::Mark>(*marks, std::string(300, 'x')));
    all.back()->set_at_hand(std::string(300, 'y'));
  }
}

// --- procedures

// 60,000 names of 4,000 bytes made 538 MB of database that stayed for ever.
TEST(StepProcedures, NamesAndTheirBytesHaveABound) {
  daemon::StepProcedures procedures;
  procedures.set_bounds(3, 100);
  EXPECT_TRUE(procedures.define(0, 0, "a").ok());
  EXPECT_TRUE(procedures.define(0, 1, "b").ok());
  EXPECT_FALSE(procedures.define(0, 2, std::string(99, 'c')).ok());
  EXPECT_TRUE(procedures.define(0, 3, "d").ok());
  const auto more = procedures.define(0, 4, "e");
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kLimit);
  EXPECT_EQ(more.error().message, procedures.define(1, 77, "f").error().message) << "one note, whatever comes";
  EXPECT_TRUE(procedures.define(1, 0, "a").ok()) << "of another rank";
  EXPECT_EQ(procedures.names().size(), 3u);
}

// Each record looked at all ranks that had told something: quadratic in ranks.
TEST(ProcedureSearch, CandidatesOfManyRanksAreCountedAsTheyCome) {
  daemon::ProcedureSearch search;
  constexpr std::int32_t kRanks = 200'000;
  for (std::int32_t rank = 0; rank < kRanks; ++rank) search.take_candidate(rank, 0, 0, 1, {});
  for (int i = 0; i < kRanks; ++i) ASSERT_TRUE(search.is_due(0, kRanks));
  search.take_candidate(7, 0, 1, 1, {});
  search.take_candidate(8, 0, 2, 1, {{"f"}, 1});
  search.take_candidate(9, 0, 1, 1, {{"f"}, 1});
  daemon::ProcedureSearch::Evidence evidence;
  evidence.ranks = kRanks;
  search.decide(evidence);
  EXPECT_GT(search.memory_bytes(), std::size_t{kRanks});
}

// --- one step

class BoundedStep : public testing::Test {
 protected:
  BoundedStep() {
    auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
    EXPECT_TRUE(catalog.ok());
    networks_ = std::make_unique<daemon::NetworkCatalog>(std::move(catalog).value());
    options_.stream_start_timeout = 0ms;
  }
  std::shared_ptr<daemon::StepTrace> make_trace(const test::RingProgram& program) {
    const auto describe = [&](std::uint32_t node) {
      return protocol::decode_step_description(program.description(node, 7).dump()).value();
    };
    auto trace =
        std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/step", describe(0), 1)).value();
    for (std::uint32_t node = 0; node < program.ranks_of_node.size(); ++node) {
      EXPECT_TRUE(trace->register_stream(describe(node)).ok());
      std::uint64_t sequence = 0;
      for (const std::string& batch : program.batches_of(node))
        EXPECT_TRUE(trace->append(node, ++sequence, test::bytes_of(batch)).ok());
      EXPECT_TRUE(trace->end_stream(node, {sequence, 0, "step_end"}).ok());
    }
    return trace;
  }
  static void drain(daemon::StepRun& run) {
    while (run.work() == daemon::StepRun::Progress::kMore) {
    }
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<daemon::NetworkCatalog> networks_;
  daemon::StepRunOptions options_;
};

// Two ranks that said that they had left out 2^31 - 1 collectives each took 6 minutes of one turn, and nobody else was
// predicted meanwhile.
TEST_F(BoundedStep, ATurnThatTakesTooLongEndsThePredictionAndTheRestIsCounted) {
  options_.bounds.turn_cpu_s = 1e-9;
  daemon::StepRun run(make_trace({}), *networks_, options_);
  drain(run);
  const auto view = run.view();
  EXPECT_EQ(view->record.state, db::StepState::kPartial);
  EXPECT_THAT(view->record.why_partial, HasSubstr("turn_limit_s"));
  EXPECT_THAT(view->record.why_partial, testing::Not(HasSubstr("stopped;")));
  EXPECT_GT(view->record.measured_s.value_or(0), 0) << "what ranks say of themselves is counted to the end";
  EXPECT_FALSE(view->record.calls.empty());
}

// SIGTERM: what was not replayed is no fault of the step.
TEST_F(BoundedStep, WhenLbfdEndsATurnEndsAndNothingIsSaidOfIt) {
  bool ends = false;
  options_.lbfd_ends = [&] { return ends; };
  daemon::StepRun run(make_trace({}), *networks_, options_);
  EXPECT_EQ(run.work(), daemon::StepRun::Progress::kMore);
  ends = true;
  drain(run);
  EXPECT_EQ(run.work(), daemon::StepRun::Progress::kIdle);
  const auto view = run.view();
  EXPECT_EQ(view->record.state, db::StepState::kRunning);
  EXPECT_EQ(view->record.why_partial, "");
}

TEST_F(BoundedStep, AStepThatHoldsTooMuchIsPartialAndGivesItBack) {
  options_.accounts = std::make_shared<MemoryAccounts>(options_.bounds);
  daemon::StepRun run(make_trace({}), *networks_, options_);
  for (int batch = 0; batch < 3; ++batch) EXPECT_EQ(run.work(), daemon::StepRun::Progress::kMore);
  const Bytes held = options_.accounts->of_user(1);
  MemoryAccounts::Account another(options_.accounts, 1);
  another.set(options_.bounds.user_memory_bytes);
  drain(run);
  const auto view = run.view();
  EXPECT_EQ(view->record.state, db::StepState::kPartial);
  EXPECT_THAT(view->record.why_partial, HasSubstr("user_memory_mb"));
  EXPECT_FALSE(view->record.calls.empty()) << "what was known stays";
  EXPECT_FALSE(view->predictions.empty());
  another.set(0);
  EXPECT_LT(options_.accounts->of_user(1), held);
}

// A description of 732 bytes announced 2^20 ranks: tables of 5 GB for ranks of which none spoke.
TEST_F(BoundedStep, AnnouncedRanksCostNothingUntilTheySpeak) {
  const nlohmann::json text = {{"job", 7}, {"step", 0}, {"node_index", 0}, {"nodes", {"n0"}}, {"tasks", 1 << 20}};
  const auto description = protocol::decode_step_description(text.dump()).value();
  auto trace =
      std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/large", description, 1)).value();
  ASSERT_TRUE(trace->register_stream(description).ok());
  options_.accounts = std::make_shared<MemoryAccounts>(options_.bounds);
  daemon::StepRun run(trace, *networks_, options_);
  EXPECT_EQ(run.work(), daemon::StepRun::Progress::kIdle);
  EXPECT_LT(options_.accounts->of_user(1), Bytes{100'000});
  BatchEncoder encoder;
  encoder.add_control(R"({"type":"stats","rank":0,"elapsed_s":1.0,"calls":[[1,5,0.5]]})");
  ASSERT_TRUE(trace->append(0, 1, test::bytes_of(encoder.finish(0, 1))).ok());
  ASSERT_TRUE(trace->end_stream(0, {1, 0, "step_end"}).ok());
  drain(run);
  EXPECT_EQ(run.view()->record.state, db::StepState::kPartial);
  EXPECT_THAT(run.view()->record.why_partial, HasSubstr("nothing is predicted of 1048576 ranks"));
  EXPECT_LT(options_.accounts->of_user(1), Bytes{100'000});
}

TEST_F(BoundedStep, ACommandOfManyWordsIsCut) {
  options_.bounds.step_command_bytes = 8;
  test::RingProgram program;
  daemon::StepRun run(make_trace(program), *networks_, options_);
  drain(run);
  EXPECT_EQ(run.view()->record.command, "./ring");
  EXPECT_TRUE(run.view()->record.command_cut);
  EXPECT_EQ(run.view()->record.state, db::StepState::kComplete) << run.view()->record.why_partial;
}

// --- lbfd

using BoundedDaemon = test::DaemonTest;

// A batch of 167 bytes after which lbfd died at every start. Here its deaths are written, not died.
TEST_F(BoundedDaemon, AStepThatEndsLbfdAgainAndAgainIsSetAsideUntilAnAdminWantsIt) {
  start();
  test::RingProgram program;
  const auto batches = program.batches_of(0);
  put(program, 7, 0);
  post(7, 0, 1, batches[0]);
  stop(SIGKILL);
  const std::string deaths = path("state/traces/c/7.0.0/replay-deaths");
  std::ofstream(deaths) << "2 2 0.1";
  start();
  const nlohmann::json step = json_request("GET", key(7));
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("lbfd ended while it replayed this step"));
  EXPECT_EQ(request("POST", stream(7, 0) + "/batches/2", batches[1]).status, 403);
  stop(SIGTERM);
  start();
  EXPECT_EQ(request("PUT", stream(7, 0), program.description(0, 7).dump()).status, 403) << "at each start";
  const std::string all = log();
  const std::string said = "partial from now on: lbfd ended while";
  EXPECT_EQ(all.find(said), all.rfind(said)) << "logged once";
  EXPECT_NE(all.find(said), std::string::npos);
  stop(SIGTERM);

  EXPECT_NE(
      std::system(
          (std::string(LBFD_COMMAND) + " --config " + path("lbfd.toml") + " --retry c/9/0/0 2>/dev/null").c_str()),
      0);
  EXPECT_EQ(
      std::system(
          (std::string(LBFD_COMMAND) + " --config " + path("lbfd.toml") + " --retry c/7/0/0 2>/dev/null").c_str()),
      0);
  start();
  put(program, 7, 0);
  for (std::uint64_t sequence = 2; sequence <= batches.size(); ++sequence) post(7, 0, sequence, batches[sequence - 1]);
  end(7, 0, batches.size());
  put(program, 7, 1);
  std::uint64_t sequence = 0;
  for (const std::string& batch : program.batches_of(1)) post(7, 1, ++sequence, batch);
  end(7, 1, sequence);
  const nlohmann::json whole =
      wait_for(7, [](const nlohmann::json& now) { return now.value("state", "") == "complete"; });
  EXPECT_EQ(whole["why_partial"], "");
  const std::string retry = path("state/traces/c/7.0.0/retry");
  for (int i = 0; i < 200 && std::filesystem::exists(retry); ++i) {  // it goes when the step is complete for all
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_FALSE(std::filesystem::exists(retry));
}

// Such a step was "running" for ever, and its trace was never removed.
TEST_F(BoundedDaemon, AStepThatCannotBeOpenedIsPartial) {
  start();
  test::RingProgram program;
  put(program, 7, 0);
  put(program, 7, 1);
  post(7, 0, 1, program.batches_of(0)[0]);
  stop(SIGTERM);
  std::ofstream(path("state/traces/c/7.0.0/step.json")) << R"({"owner_uid":0,"version":1})";
  start();
  const nlohmann::json step = json_request("GET", key(7));
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("its trace cannot be read"));
  EXPECT_EQ(step["job_name"], "ring") << "what was known stays";
  EXPECT_EQ(request("POST", stream(7, 0) + "/batches/2", "x").status, 400);
}

TEST_F(BoundedDaemon, AUsersStepsWithoutEndAreRefusedAndOthersAreNot) {
  if (::getuid() != 0) GTEST_SKIP() << "needs two users";
  write_config("user_steps = 3\n");
  start();
  const auto describe = [](std::uint32_t job, uid_t uid) {
    nlohmann::json description = test::RingProgram().description(0, job);
    description["uid"] = uid;
    return description.dump();
  };
  for (std::uint32_t job = 1; job <= 3; ++job)
    EXPECT_EQ(request_as(1001, "PUT", stream(job, 0), describe(job, 1001)).status, 200);
  const HttpResponse refused = request_as(1001, "PUT", stream(4, 0), describe(4, 1001));
  EXPECT_EQ(refused.status, 507);
  EXPECT_THAT(refused.body, HasSubstr("user_steps"));
  EXPECT_EQ(request_as(1002, "PUT", stream(5, 0), describe(5, 1002)).status, 200);
  EXPECT_EQ(request_as(1002, "PUT", stream(1, 0), describe(1, 1002)).status, 403) << "it is under way";
}

// A key that was taken before its owner came, and left without an event.
TEST_F(BoundedDaemon, AKeyOfWhichNothingCameIsFreeAgain) {
  if (::getuid() != 0) GTEST_SKIP() << "needs two users";
  start();
  test::RingProgram program;
  program.ranks_of_node = {{0, 1}};
  const auto describe = [&](uid_t uid) {
    nlohmann::json description = program.description(0, 7);
    description["uid"] = uid;
    return description.dump();
  };
  const std::string all_lost = R"({"last_sequence":0,"lost_batches":0,"reason":"step_end"})";
  EXPECT_EQ(request_as(1001, "PUT", stream(7, 0), describe(1001)).status, 200);
  EXPECT_EQ(request_as(1002, "PUT", stream(7, 0), describe(1002)).status, 403);
  EXPECT_EQ(request_as(1001, "POST", stream(7, 0) + "/end", all_lost).status, 200);
  HttpResponse taken;
  for (int i = 0; i < 100 && taken.status != 200; ++i) {  // until it is over
    std::this_thread::sleep_for(50ms);
    taken = request_as(1002, "PUT", stream(7, 0), describe(1002));
  }
  EXPECT_EQ(taken.status, 200) << taken.body;
  EXPECT_EQ(request_as(1002, "POST", stream(7, 0) + "/batches/1", program.batches_of(0)[0]).status, 200);
  EXPECT_EQ(request_as(1001, "PUT", stream(7, 0), describe(1001)).status, 403);
  EXPECT_EQ(nlohmann::json::parse(request_as(1002, "GET", key(7)).body)["uid"], 1002);
}

TEST_F(BoundedDaemon, NodesAndUsersCannotForgeLinesOfTheLog) {
  start();
  nlohmann::json description = test::RingProgram().description(0, 7);
  description["nodes"] = {"n0", "n1\n2026-01-01T00:00:00.000 error forged"};
  EXPECT_EQ(request("PUT", stream(7, 0), description.dump()).status, 400);
  EXPECT_EQ(log().find("\n2026-01-01T00:00:00.000 error forged"), std::string::npos);
}

}  // namespace
}  // namespace lbf::bounds_test
