// The flows of docs/formats/http-v1.md against a real lbfd: from the first PUT to the predictions.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "event/wire.h"
#include "predictor/daemon/http/refused_steps.h"
#include "predictor/engine/metric/predictor.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/intake/batches.h"

namespace lbf::test::http_flow_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using HttpFlow = DaemonTest;

TEST_F(HttpFlow, AStepFromItsFirstStreamToItsPredictions) {
  start();
  const RingProgram program;
  send_all(program, 7);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "complete") << step["why_partial"];
  EXPECT_EQ(step["why_partial"], "");
  EXPECT_EQ(step["cluster"], "c");
  EXPECT_EQ(step["job_name"], "ring");
  EXPECT_EQ(step["command"], json({"./ring", "x"}));
  EXPECT_EQ(step["command_cut"], false);
  EXPECT_TRUE(step["array_job"].is_null());
  EXPECT_TRUE(step["het_offset"].is_null());
  EXPECT_EQ(step["uid"], ::getuid());
  EXPECT_EQ(step["ranks"], 4);
  EXPECT_EQ(step["nodes"], json({"n0", "n1"}));
  EXPECT_EQ(step["node_of_rank"], json({0, 0, 1, 1}));
  EXPECT_EQ(step["network"], "lan");  // the only one
  EXPECT_EQ(step["start"], 1700000000.0);
  EXPECT_GT(step["end"].get<double>(), 1700000000.0);
  EXPECT_DOUBLE_EQ(step["measured_s"].get<double>(), 3.8);  // rank 3, last batch
  const int events = 4 * (4 * 40 * 3 + 1);
  EXPECT_EQ(step["events"], events);
  EXPECT_EQ(step["messages"], 4 * 4 * 40);
  EXPECT_NEAR(step["relay_cpu_s"].get<double>(), 0.02, 1e-9);
  EXPECT_NEAR(step["capture_s"].get<double>(), 0.004, 1e-9);
  ASSERT_EQ(step["calls"].size(), 1u);  // function 1; counted by the last stats of each rank
  EXPECT_EQ(step["calls"][0][1], 4 * 160);
  EXPECT_GT(step["bytes_stored"].get<int>(), 100);

  // The same events, fed to the replay core directly.
  engine::Target ran;
  ran.node_of_rank = {0, 0, 1, 1};
  ran.nodes = 2;
  ran.cores_per_node = 2;
  ran.placement = "block";
  ran.network = std::make_shared<const engine::Network>(engine::Network::load(path("networks.d/lan.toml")).value());
  auto predictor = std::move(engine::Predictor::make(4, engine::default_targets(ran, {ran.network})).value());
  CommunicatorTable communicators;
  BatchSink sink;
  sink.on_events = one_by_one([&](Rank rank, const Event& event) { return predictor->feed(rank, event); });
  for (std::uint32_t node : {0u, 1u}) {
    BatchDecoder decoder(communicators, 4);
    for (const std::string& batch : program.batches_of(node)) {
      ASSERT_TRUE(decoder.decode(bytes_of(batch), sink).ok());
    }
  }
  for (Rank rank = 0; rank < 4; ++rank) predictor->close(rank);
  EXPECT_TRUE(predictor->advance().ok());
  const auto expected = predictor->predictions();
  ASSERT_EQ(step["predictions"].size(), expected.size());
  ASSERT_GE(expected.size(), 3u);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const json& prediction = step["predictions"][i];
    EXPECT_DOUBLE_EQ(prediction["predicted_s"].get<double>(), expected[i].lbf_s);
    EXPECT_EQ(prediction["rank_finish_s"].get<std::vector<double>>(), expected[i].rank_finish_s);
    EXPECT_EQ(prediction["kind"], i == 0 ? "self" : "LBF");
    EXPECT_EQ(prediction["network"], "lan");
    EXPECT_FALSE(prediction["partial"].get<bool>());
    EXPECT_NEAR(prediction["speedup"].get<double>(), 3.8 / expected[i].lbf_s, 1e-9);
    EXPECT_NEAR(prediction["self_error_percent"].get<double>(), 100 * (expected[0].lbf_s - 3.8) / 3.8, 1e-9);
  }
  EXPECT_EQ(step["predictions"][0]["target"], "2 nodes, block");
  EXPECT_EQ(step["predictions"][0]["cores"], 2);
}

TEST_F(HttpFlow, EveryBatchExactlyOnceAndInOrder) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  const auto batches = program.batches_of(0);
  EXPECT_EQ(request("POST", stream(7, 0) + "/batches/1", batches[0]).status, 404);  // before its PUT
  put(program, 7, 0);
  post(7, 0, 1, batches[0]);
  post(7, 0, 2, batches[1]);
  const json again = json_request("POST", stream(7, 0) + "/batches/1", batches[0]);
  EXPECT_EQ(again["next_sequence"], 3);
  const json above = json_request("POST", stream(7, 0) + "/batches/4", batches[3], 409);
  EXPECT_EQ(above["next_sequence"], 3);
  EXPECT_EQ(json_request("PUT", stream(7, 0), program.description(0, 7).dump())["next_sequence"], 3);
  post(7, 0, 3, batches[2]);
  const json early = json_request("POST", stream(7, 0) + "/end", R"({"last_sequence":4,"lost_batches":0})", 409);
  EXPECT_EQ(early["next_sequence"], 4);
  post(7, 0, 4, batches[3]);
  end(7, 0, 4);
  end(7, 0, 4);
  EXPECT_EQ(json_request("POST", stream(7, 0) + "/batches/4", batches[3])["next_sequence"], 5);
  EXPECT_EQ(request("POST", stream(7, 0) + "/batches/5", batches[3]).status, 409);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "complete") << step["why_partial"];
  EXPECT_EQ(step["messages"], 2 * 160);
  std::string all;
  for (const std::string& batch : batches) all += batch;
  EXPECT_EQ(request("GET", key(7) + "/trace").body, all);
}

TEST_F(HttpFlow, BadBatchesAreRefusedAndNothingIsStored) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  const auto batches = program.batches_of(0);
  put(program, 7, 0);
  std::string corrupt = batches[0];
  corrupt[corrupt.size() / 2] = static_cast<char>(corrupt[corrupt.size() / 2] ^ 1);
  std::string version = batches[0];
  version[8] = 9;
  for (const std::string& bad : {corrupt, version, batches[0].substr(0, batches[0].size() - 1), batches[0] + "x",
                                 std::string(), std::string("not a batch"), batches[1]}) {
    const json answer = json_request("POST", stream(7, 0) + "/batches/1", bad, 400);
    EXPECT_EQ(answer["code"], "invalid_input");
    EXPECT_EQ(std::filesystem::file_size(path("state/traces/c/7.0.0/stream-0.lbfw")), 0u);
  }
  std::uint64_t sequence = 0;
  for (const std::string& batch : batches) post(7, 0, ++sequence, batch);
  end(7, 0, sequence);
  EXPECT_EQ(wait_until_final(7)["state"], "complete");
}

TEST_F(HttpFlow, PredictionsOfARunningStepAreThereAtAnyTime) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  const auto batches = program.batches_of(0);
  put(program, 7, 0);
  post(7, 0, 1, batches[0]);
  post(7, 0, 2, batches[1]);
  const json running = wait_for(7, [](const json& step) {
    return !step["predictions"].empty() && step["predictions"][0]["predicted_s"].get<double>() > 0;
  });
  EXPECT_EQ(running["state"], "running");
  EXPECT_TRUE(running["end"].is_null());
  EXPECT_TRUE(running["predictions"][0]["partial"].get<bool>());
  EXPECT_GT(running["predictions"][0]["measured_at_progress_s"].get<double>(), 0);
  EXPECT_EQ(json_request("GET", "/v1/health")["steps_running"], 1);
  const json brief = json_request("GET", key(7) + "?brief=1");
  EXPECT_FALSE(brief.contains("predictions"));
  EXPECT_FALSE(brief.contains("calls"));
  post(7, 0, 3, batches[2]);
  post(7, 0, 4, batches[3]);
  end(7, 0, 4);
  EXPECT_GT(wait_until_final(7)["predictions"][0]["predicted_s"].get<double>(),
            running["predictions"][0]["predicted_s"].get<double>());
}

TEST_F(HttpFlow, RanksAreWhereTheirRelaysSayTheyAre) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 2}, {1, 3}};
  send_all(program, 7);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "complete") << step["why_partial"];
  EXPECT_EQ(step["node_of_rank"], json({0, 1, 0, 1}));
  EXPECT_EQ(step["predictions"][0]["placement"], "cyclic");
}

TEST_F(HttpFlow, AKilledRankMakesThePredictionPartial) {
  start();
  RingProgram program;
  program.killed_rank = 2;
  send_all(program, 7);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("ended without MPI_Finalize: rank 2"));
  ASSERT_FALSE(step["predictions"].empty());
  EXPECT_TRUE(step["predictions"][0]["partial"].get<bool>());
}

// A rank that called exit(7) was "killed", as was one that its job's time limit ended.
TEST_F(HttpFlow, HowARankEndedIsSaid) {
  start();
  std::uint32_t job = 20;
  const auto why_after = [&](std::vector<json> records) {
    RingProgram program;
    program.ranks_of_node = {{0, 1, 2, 3}};
    program.killed_rank = 2;
    program.more_records = std::move(records);
    send_all(program, ++job);
    return wait_until_final(job)["why_partial"].get<std::string>();
  };
  const json exit_7{{"type", "task_exit"}, {"rank", 2}, {"exit_code", 7}};
  const json terminated{{"type", "task_exit"}, {"rank", 2}, {"signal", 15}};
  const json crashed{{"type", "task_exit"}, {"rank", 2}, {"signal", 11}};
  const json limit{{"type", "step_killed"}, {"by", "its job's time limit"}};
  EXPECT_THAT(why_after({exit_7}), HasSubstr("ended without MPI_Finalize (exit 7): rank 2"));
  EXPECT_THAT(why_after({terminated}), HasSubstr("killed by signal 15 (SIGTERM) before MPI_Finalize: rank 2"));
  EXPECT_THAT(why_after({limit}), HasSubstr("killed by its job's time limit before MPI_Finalize: rank 2"));
  EXPECT_THAT(why_after({terminated, limit}), HasSubstr("killed by its job's time limit before MPI_Finalize: rank 2"));
  EXPECT_THAT(why_after({crashed, limit}), HasSubstr("killed by signal 11 (SIGSEGV) before MPI_Finalize: rank 2"));
  EXPECT_THAT(why_after({exit_7, limit}), HasSubstr("ended without MPI_Finalize (exit 7): rank 2"));
  // Of ranks that came to their end it says nothing.
  RingProgram whole;
  whole.more_records = {limit};
  send_all(whole, 7);
  EXPECT_EQ(wait_until_final(7)["state"], "complete");
}

TEST_F(HttpFlow, LostBatchesMakeThePredictionPartial) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  const auto batches = program.batches_of(0);
  put(program, 7, 0);
  post(7, 0, 1, batches[0]);
  json_request("POST", stream(7, 0) + "/end",
               R"({"last_sequence":4,"lost_batches":3,"reason":"step_end","why":"lbfd refused: too much"})");
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("n0 lost 3 batches: lbfd refused: too much"));
  put(program, 8, 0);
  json_request("POST", stream(8, 0) + "/end", R"({"last_sequence":0,"lost_batches":1,"reason":"relay_killed"})");
  EXPECT_THAT(wait_until_final(8)["why_partial"].get<std::string>(), HasSubstr("the relay of node n0 was killed"));
}

// Of such a step no row says why there is none.
TEST_F(HttpFlow, ARefusedStepIsNamedToItsUser) {
  start();
  RingProgram program;
  const json description = program.description(0, 8);
  const auto refused = [&] { return json_request("GET", "/v1/refused?job=7")["refused"]; };
  EXPECT_EQ(refused(), json::array());
  EXPECT_EQ(request("PUT", stream(7, 0), description.dump()).status, 400);
  ASSERT_EQ(refused().size(), 1U);
  EXPECT_EQ(refused()[0]["job"], 7);
  EXPECT_EQ(refused()[0]["step"], 0);
  EXPECT_THAT(refused()[0]["why"].get<std::string>(), HasSubstr("is about another step"));
  put(program, 7, 0);
  EXPECT_EQ(refused(), json::array()) << "a later try was taken";
}

TEST(RefusedSteps, KeepsAFewOfEachUser) {
  daemon::RefusedSteps refused;
  const auto key = [](std::uint32_t step) { return daemon::StepKey{"c", 7, step, 0, 0}; };
  for (std::uint32_t step = 0; step < 100; ++step) refused.add(1, key(step), "full");
  refused.add(2, key(0), "full");
  EXPECT_EQ(refused.of(1, 7).size(), daemon::RefusedSteps::kMostOfUser);
  EXPECT_EQ(refused.of(1, 7).back().key.step, 99U);
  ASSERT_EQ(refused.of(2, 7).size(), 1U);
  EXPECT_EQ(refused.of(std::nullopt, 7).size(), daemon::RefusedSteps::kMostOfUser + 1);
  EXPECT_TRUE(refused.of(1, 8).empty());
  for (uid_t user = 10; user < 3000; ++user) refused.add(user, key(0), "full");
  EXPECT_EQ(refused.of(std::nullopt, 7).size(), daemon::RefusedSteps::kMost);
}

// Cut in the middle of a character the reason could not be stored: the answer was 500.
TEST_F(HttpFlow, ALongReasonIsCutBetweenTwoCharacters) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  for (const std::size_t before : {197u, 198u, 199u, 200u}) {
    const auto job = static_cast<std::uint32_t>(before);
    put(program, job, 0);
    const std::string reason = std::string(before, 'x') + "\xE2\x82\xAC and more";  // the euro sign
    json_request("POST", stream(job, 0) + "/end", json{{"last_sequence", 0}, {"reason", reason}}.dump());
    wait_until_final(job);
  }
}

// As after a spool that was full from the start: what ran there nobody can say.
TEST_F(HttpFlow, AStepThatLostEverythingDoesNotSayThatNothingRan) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  put(program, 7, 0);
  json_request("POST", stream(7, 0) + "/end", R"({"last_sequence":0,"lost_batches":2,"reason":"step_end"})");
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("n0 lost 2 batches"));
  EXPECT_THAT(step["notes"].dump(), testing::Not(HasSubstr("MPI_Init")));
}

// `srun --lbf-predict hostname`, or a program that is not found.
TEST_F(HttpFlow, AStepWithoutMpiIsNotComplete) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  put(program, 7, 0);
  end(7, 0, 0);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_TRUE(step["predictions"].empty());
  EXPECT_TRUE(step["measured_s"].is_null());
  EXPECT_EQ(step["why_partial"], "no MPI program was seen (no process came out of MPI_Init)");
}

// mpirun inside a job: its daemon is the step's one task, the program's processes are not Slurm's.
TEST_F(HttpFlow, ProcessesThatTheRelayLeftOutMakeTheStepPartial) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0}};
  put(program, 7, 0);
  BatchEncoder encoder;
  encoder.add_control(json{{"type", "relay"}, {"node_index", 0}, {"processes_left_out", 2}}.dump());
  post(7, 0, 1, encoder.finish(0, 1));
  end(7, 0, 1);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("2 processes of node n0 left out"));
  EXPECT_THAT(step["notes"].dump(), testing::Not(HasSubstr("MPI_Init")));
}

TEST_F(HttpFlow, TwoProgramsThatAreBothRankZeroAreNoticed) {
  start();
  RingProgram program;  // srun -n2 of a program that does not find PMIx: two worlds of one rank
  put(program, 7, 0);
  put(program, 7, 1);
  RingProgram alone;
  alone.ranks_of_node = {{0}};
  alone.batches = 1;
  post(7, 0, 1, alone.batches_of(0)[0]);
  alone.ranks_of_node = {{}, {0}};
  post(7, 1, 1, alone.batches_of(1)[0]);
  end(7, 0, 1);
  end(7, 1, 1);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("rank 0 of 1"));
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("--mpi=pmix"));
  EXPECT_THAT(step["why_partial"].get<std::string>(), testing::Not(HasSubstr("call themselves")));
}

// mpirun -n 2 in each of two tasks.
TEST_F(HttpFlow, TwoWorldsOfTheStepsSizeAreNoticed) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0}, {1}};
  put(program, 7, 0);
  put(program, 7, 1);
  RingProgram world;
  world.ranks_of_node = {{0, 1}};
  world.batches = 1;
  post(7, 0, 1, world.batches_of(0)[0]);
  world.ranks_of_node = {{}, {0, 1}};
  post(7, 1, 1, world.batches_of(1)[0]);
  end(7, 0, 1);
  end(7, 1, 1);
  EXPECT_THAT(wait_until_final(7)["why_partial"].get<std::string>(),
              HasSubstr("two processes call themselves rank 0, one on node 0 and one on node 1"));
}

TEST_F(HttpFlow, UnknownNetworksAreNoted) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  json description = program.description(0, 7);
  description["networks"] = {"zero", "warp"};
  json_request("PUT", stream(7, 0), description.dump());
  std::uint64_t sequence = 0;
  for (const std::string& batch : program.batches_of(0)) post(7, 0, ++sequence, batch);
  end(7, 0, sequence);
  const json step = wait_until_final(7);
  EXPECT_THAT(step["notes"].dump(), HasSubstr("'warp' is not known"));
  bool zero = false;
  for (const json& prediction : step["predictions"]) {
    if (prediction["network"] == "zero") {
      zero = true;
      EXPECT_THAT(prediction["kind"].get<std::string>(), HasSubstr("NF"));
    }
  }
  EXPECT_TRUE(zero);
}

TEST_F(HttpFlow, ListsAndFilters) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  for (const std::uint32_t job : {11u, 12u}) send_all(program, job);
  wait_until_final(11);
  wait_until_final(12);
  put(program, 13, 0);  // under way
  const auto count = [&](const std::string& query) { return json_request("GET", "/v1/steps" + query)["steps"].size(); };
  EXPECT_EQ(count(""), 3u);
  EXPECT_EQ(count("?job=12"), 1u);
  EXPECT_EQ(count("?job=12&step=1"), 0u);
  EXPECT_EQ(count("?cluster=other"), 0u);
  EXPECT_EQ(count("?user=" + std::to_string(::getuid())), 3u);
  EXPECT_EQ(count("?since=1699999999&until=1700000001"), 3u);
  EXPECT_EQ(count("?until=1600000000"), 0u);
  EXPECT_EQ(count("?since=99999999999"), 1u);  // the running one
  EXPECT_EQ(count("?limit=1"), 1u);
  for (const char* bad : {"?job=x", "?limit=-1", "?since=yesterday", "?colour=blue", "?job=%zz"}) {
    EXPECT_EQ(request("GET", std::string("/v1/steps") + bad).status, 400) << bad;
  }
  EXPECT_EQ(request("GET", key(99)).status, 404);
}

// `job=N` is what `sacct -j N` is: that job, every task of that array, every component of that heterogeneous
// job.
TEST_F(HttpFlow, ArraysAndHeterogeneousJobsAreSelectedAsSacctDoes) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  program.batches = 1;
  const auto run = [&](std::uint32_t job, const json& ids, bool finish) {
    json description = program.description(0, job);
    description.update(ids);
    json_request("PUT", stream(job, 0), description.dump());
    post(job, 0, 1, program.batches_of(0)[0]);
    if (!finish) return;
    end(job, 0, 1);
    wait_until_final(job);
  };
  run(21, {{"array_job", 20}, {"array_task", 1}}, true);
  run(20, {{"array_job", 20}, {"array_task", 2}}, true);  // the last task has the array's number
  run(22, {{"array_job", 20}, {"array_task", 3}}, false);
  run(30, {{"het_job", 30}, {"het_offset", 0}}, true);
  run(31, {{"het_job", 30}, {"het_offset", 1}}, true);
  const auto jobs = [&](const std::string& query) {
    std::vector<int> found;
    const json answer = json_request("GET", "/v1/steps?" + query);
    for (const json& step : answer["steps"]) found.push_back(step["job"]);
    std::sort(found.begin(), found.end());
    return found;
  };
  using Jobs = std::vector<int>;
  for (const bool restarted : {false, true}) {  // running steps from memory, all from database and traces
    EXPECT_EQ(jobs("job=20"), (Jobs{20, 21, 22}));
    EXPECT_EQ(jobs("job=20&array_task=2"), (Jobs{20}));
    EXPECT_EQ(jobs("job=20&array_task=3"), (Jobs{22}));
    EXPECT_EQ(jobs("job=20&array_task=4"), (Jobs{}));
    EXPECT_EQ(jobs("job=21"), (Jobs{21}));
    EXPECT_EQ(jobs("job=20&step=1"), (Jobs{}));
    EXPECT_EQ(jobs("job=30"), (Jobs{30, 31}));
    EXPECT_EQ(jobs("job=30&het_offset=0"), (Jobs{30}));
    EXPECT_EQ(jobs("job=31"), (Jobs{31}));
    const json task = json_request("GET", key(20));  // a key is one step, never a group
    EXPECT_EQ(task["job"], 20);
    EXPECT_EQ(task["array_job"], 20);
    EXPECT_EQ(task["array_task"], 2);
    EXPECT_TRUE(task["het_job"].is_null());
    if (restarted) break;
    stop(SIGTERM);
    start();
  }
  EXPECT_EQ(request("GET", "/v1/steps?array_task=x").status, 400);
}

TEST_F(HttpFlow, ArgumentsWithBlanksStayWords) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  json description = program.description(0, 7);
  description["command"] = {"./my app", "-t", "two words", "", "it's \"x\""};
  json_request("PUT", stream(7, 0), description.dump());
  end(7, 0, 0);
  EXPECT_EQ(wait_until_final(7)["command"], description["command"]);
  stop(SIGTERM);
  start();  // from the database
  EXPECT_EQ(json_request("GET", key(7))["command"], description["command"]);
}

// 64 k ranks with a dozen targets are megabytes for each step of a list.
TEST_F(HttpFlow, ListsLeaveOutWhatEachRankDid) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  send_all(program, 7);
  ASSERT_FALSE(wait_until_final(7)["predictions"].empty());
  put(program, 8, 0);
  post(8, 0, 1, program.batches_of(0)[0]);
  wait_for(8, [](const json& step) { return !step["predictions"].empty(); });
  for (const int job : {7, 8}) {  // from the database, from memory
    const std::string list = "/v1/steps?job=" + std::to_string(job);
    const json step = json_request("GET", list)["steps"][0];
    ASSERT_FALSE(step["predictions"].empty());
    for (const json& prediction : step["predictions"]) {
      EXPECT_FALSE(prediction.contains("rank_finish_s"));
      EXPECT_TRUE(prediction.contains("predicted_s"));
    }
    const json full = json_request("GET", list + "&detail=1")["steps"][0];
    EXPECT_EQ(full["predictions"][0]["rank_finish_s"].size(), 2u);
    EXPECT_EQ(json_request("GET", key(static_cast<std::uint32_t>(job)))["predictions"][0]["rank_finish_s"].size(), 2u);
    EXPECT_FALSE(json_request("GET", list + "&detail=0")["steps"][0]["predictions"][0].contains("rank_finish_s"));
  }
}

TEST_F(HttpFlow, RowsSayWhatListsSay) {
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  send_all(program, 7);
  ASSERT_FALSE(wait_until_final(7)["predictions"].empty());
  put(program, 8, 0);
  post(8, 0, 1, program.batches_of(0)[0]);
  wait_for(8, [](const json& step) { return !step["predictions"].empty(); });
  const std::string keys = "&rows=job,state,nodes,node_count,start,end,predictions.target,predictions.predicted_s";
  for (const char* detail : {"", "&summary=1"}) {
    // The running one is as it was asked for: its times may have moved on meanwhile, its targets not.
    const json steps = json_request("GET", std::string("/v1/steps?since=0") + detail)["steps"];
    const json answer = json_request("GET", std::string("/v1/steps?since=0") + detail + keys);
    EXPECT_EQ(answer["keys"], (json{"job", "state", "nodes", "node_count", "start", "end"}));
    EXPECT_EQ(answer["prediction_keys"], (json{"target", "predicted_s"}));
    ASSERT_EQ(answer["rows"].size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      const json& row = answer["rows"][i];
      const json& step = steps[i];
      EXPECT_EQ(row[0], step["job"]);
      EXPECT_EQ(row[1], step["state"]);
      EXPECT_EQ(row[2], step["nodes"]);
      EXPECT_EQ(row[3], step["nodes"].size());
      EXPECT_EQ(row[4], step["start"]);
      EXPECT_EQ(row[5], step.value("end", json()));
      ASSERT_EQ(row[6].size(), step["predictions"].size());
      for (std::size_t t = 0; t < row[6].size(); ++t) {
        EXPECT_EQ(row[6][t][0], step["predictions"][t]["target"]);
        if (step["state"] == "complete") {
          EXPECT_EQ(row[6][t][1], step["predictions"][t]["predicted_s"]);
        }
      }
    }
  }
  EXPECT_EQ(request("GET", "/v1/steps?rows=job,colour").status, 400);
  EXPECT_EQ(request("GET", "/v1/steps?rows=").status, 400);
}

TEST_F(HttpFlow, UsersSeeAndWriteTheirOwnStepsOnly) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can be several users";
  start();
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  send_all(program, 7);
  wait_until_final(7);
  constexpr uid_t kOther = 65533;
  constexpr uid_t kOperator = 4242;
  for (const std::string& target : {key(7), key(7) + "/trace"}) {
    const HttpResponse refused = request_as(kOther, "GET", target);
    EXPECT_EQ(refused.status, 403) << target;
    EXPECT_THAT(refused.body, HasSubstr("belongs to user"));
    EXPECT_EQ(request_as(kOperator, "GET", target).status, 200) << target;
  }
  EXPECT_EQ(request_as(kOther, "POST", stream(7, 0) + "/end", R"({"last_sequence":4})").status, 403);
  EXPECT_EQ(request_as(kOther, "POST", stream(7, 0) + "/batches/5", "x").status, 403);
  EXPECT_EQ(request_as(kOther, "PUT", stream(7, 0), program.description(0, 7).dump()).status, 403);
  EXPECT_EQ(json::parse(request_as(kOther, "GET", "/v1/steps").body)["steps"].size(), 0u);
  EXPECT_EQ(request_as(kOther, "GET", "/v1/steps?all=1").status, 403);
  EXPECT_EQ(request_as(kOther, "GET", "/v1/steps?user=root").status, 403);
  EXPECT_EQ(request_as(kOther, "GET", "/v1/accuracy?all=1").status, 403);
  EXPECT_EQ(request_as(kOther, "GET", "/v1/accuracy?user=root").status, 403);
  EXPECT_EQ(request_as(kOther, "GET", key(7) + "/accuracy").status, 403);
  EXPECT_EQ(request_as(kOther, "GET", "/v1/accuracy?nonsense=1").status, 400);
  const json own = json::parse(request_as(kOther, "GET", "/v1/accuracy").body, nullptr, false);
  EXPECT_EQ(own["all"]["outcomes"], 0);
  EXPECT_TRUE(own["all"]["median_percent"].is_null());
  EXPECT_EQ(json::parse(request_as(kOperator, "GET", "/v1/steps?all=1").body)["steps"].size(), 1u);
  // Nobody registers a step in another user's name.
  json description = program.description(0, 8);
  description["uid"] = 1000;
  EXPECT_EQ(request_as(kOther, "PUT", stream(8, 0), description.dump()).status, 403);
  description.erase("uid");
  EXPECT_EQ(request_as(kOther, "PUT", stream(8, 0), description.dump()).status, 200);
  EXPECT_EQ(json::parse(request_as(kOther, "GET", key(8)).body)["uid"], kOther);
  EXPECT_EQ(request_as(1000, "GET", key(8)).status, 403);
}

TEST_F(HttpFlow, ASilentStreamIsEndedAndTakenUpAgainWhenItsRelayReturns) {
  write_config("stream_timeout_s = 2\n");
  start();
  const RingProgram program;
  const auto first = program.batches_of(0);
  const auto second = program.batches_of(1);
  put(program, 7, 0);
  put(program, 7, 1);
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) post(7, 0, sequence, first[sequence - 1]);
  end(7, 0, 4);
  post(7, 1, 1, second[0]);
  json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("node n1 fell silent"));
  for (std::uint64_t sequence = 2; sequence <= 4; ++sequence) post(7, 1, sequence, second[sequence - 1]);
  end(7, 1, 4);
  step = wait_for(7, [](const json& now) { return now["state"] == "complete"; });
  EXPECT_EQ(step["messages"], 640);
}

// As a suspended job's: and lbfd is killed while they come back, when the database still says partial.
TEST_F(HttpFlow, SilentStreamsComeBackAfterARestartToo) {
  write_config("stream_timeout_s = 2\n");
  start();
  const RingProgram program;
  const std::vector<std::string> batches[] = {program.batches_of(0), program.batches_of(1)};
  for (const std::uint32_t node : {0U, 1U}) {
    put(program, 7, node);
    post(7, node, 1, batches[node][0]);
  }
  EXPECT_EQ(wait_until_final(7)["state"], "partial");
  stop(SIGKILL);
  start();
  post(7, 0, 2, batches[0][1]);
  stop(SIGKILL);
  start();
  for (const std::uint32_t node : {1U, 0U}) {
    for (std::uint64_t sequence = node == 0 ? 3 : 2; sequence <= 4; ++sequence)
      post(7, node, sequence, batches[node][sequence - 1]);
    end(7, node, 4);
  }
  const json step = wait_for(7, [](const json& now) { return now["state"] == "complete"; });
  EXPECT_EQ(step["messages"], 640);
}

TEST_F(HttpFlow, WhatComesAfterRetentionChangesNothing) {
  start();
  const RingProgram program;
  send_all(program, 7);
  const json before = wait_until_final(7);
  stop(SIGTERM);
  std::filesystem::remove_all(path("state/traces/c/7.0.0"));
  start();
  const HttpResponse late = request("PUT", stream(7, 0), program.description(0, 7).dump());
  EXPECT_EQ(late.status, 400) << late.body;
  EXPECT_THAT(late.body, HasSubstr("retention"));
  EXPECT_EQ(json_request("GET", key(7))["predictions"], before["predictions"]);
}

TEST_F(HttpFlow, RanksOfAUserHaveALimit) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kOther = 65533;
  write_config("stream_start_timeout_s = 600\n");  // nothing is built of them
  start();
  json description = {{"job", 1},      {"step", 0},          {"node_index", 0}, {"tasks", protocol::kMaxStepTasks},
                      {"uid", kOther}, {"nodes", {"a", "b"}}};
  int taken = 0;
  HttpResponse last;
  for (std::uint32_t job = 1; job <= 6; ++job) {
    description["job"] = job;
    last = request_as(kOther, "PUT", stream(job, 0), description.dump());
    taken += last.status == 200;
  }
  EXPECT_EQ(taken, 4);
  EXPECT_THAT(last.body, HasSubstr("ranks under way"));
}

TEST_F(HttpFlow, ANodeThatNeverReportsEndsTheStepPartial) {
  write_config("stream_timeout_s = 2\nstream_start_timeout_s = 0.2\n");
  start();
  const RingProgram program;
  put(program, 7, 0);
  post(7, 0, 1, program.batches_of(0)[0]);
  json_request("POST", stream(7, 0) + "/end", R"({"last_sequence":1})");
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "partial");
  EXPECT_THAT(step["why_partial"].get<std::string>(), HasSubstr("node n1 never sent anything"));
}

TEST_F(HttpFlow, DescriptionsMustFitTheRequest) {
  start();
  RingProgram program;
  const auto status = [&](const char* change_key, const json& value) {
    json description = program.description(0, 7);
    description[change_key] = value;
    return request("PUT", stream(7, 0), description.dump()).status;
  };
  EXPECT_EQ(status("job", 8), 400);
  EXPECT_EQ(status("cluster", "d"), 400);
  EXPECT_EQ(status("node_index", 1), 400);
  EXPECT_EQ(status("nodes", "n0"), 400);
  EXPECT_EQ(request("PUT", stream(7, 0), "{").status, 400);
  EXPECT_EQ(request("PUT", "/v1/steps/..%2f..%2fetc/7/0/0/streams/0", program.description(0, 7).dump()).status, 400);
  EXPECT_EQ(request("PUT", "/v1/steps/c/7/0/0/streams/70000", program.description(0, 7).dump()).status, 400);
  EXPECT_EQ(status("restart", 0), 200);
}

}  // namespace
}  // namespace lbf::test::http_flow_test