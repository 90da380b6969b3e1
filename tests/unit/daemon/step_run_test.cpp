// StepRun without a daemon: placements' names, and that the order of streams does not matter.
#include "predictor/daemon/steps/step_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "event/mpi_function_table.h"
#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/steps/step_procedures.h"
#include "predictor/daemon/steps/step_totals.h"
#include "predictor/engine/network/topology_file.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/intake/batches.h"

namespace lbf::step_run_test {
namespace {

TEST(PlacementName, FindsTheNameWhereThereIsOne) {
  EXPECT_EQ(daemon::placement_name({0, 0, 1, 1}, 2), "block");
  EXPECT_EQ(daemon::placement_name({0, 1, 0, 1}, 2), "cyclic");
  EXPECT_EQ(daemon::placement_name({0, 0, 1, 1, 0, 0, 1, 1}, 2), "plane=2");
  EXPECT_EQ(daemon::placement_name({0, 1, 1, 0}, 2), "map=0,1,1,0");
  EXPECT_EQ(daemon::placement_name({0, 0, 0}, 1), "block");
}

class StepRunTest : public testing::Test {
 protected:
  // Stores the program's batches in the order of `streams`, working in between, to the end.
  std::shared_ptr<const daemon::StepView> run(const test::RingProgram& program,
                                              const std::vector<std::uint32_t>& streams, const std::string& name,
                                              daemon::StepRunOptions options = {}) {
    const auto describe = [&](std::uint32_t node) {
      return protocol::decode_step_description(program.description(node, 7).dump()).value();
    };
    auto trace =
        std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/" + name, describe(0), 1)).value();
    for (std::uint32_t node = 0; node < program.ranks_of_node.size(); ++node) {
      EXPECT_TRUE(trace->register_stream(describe(node)).ok());
    }
    auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
    EXPECT_TRUE(catalog.ok());
    daemon::StepRun step(trace, *catalog, options);
    std::vector<std::uint64_t> next(program.ranks_of_node.size(), 1);
    for (const std::uint32_t node : streams) {
      const auto batches = program.batches_of(node);
      EXPECT_TRUE(trace->append(node, next[node], test::bytes_of(batches[next[node] - 1])).ok());
      ++next[node];
      while (step.work() == daemon::StepRun::Progress::kMore) {
      }
    }
    for (std::uint32_t node = 0; node < next.size(); ++node) {
      daemon::StepRun::Progress progress = daemon::StepRun::Progress::kMore;
      while (progress == daemon::StepRun::Progress::kMore) progress = step.work();
      EXPECT_EQ(progress, daemon::StepRun::Progress::kIdle);
      EXPECT_TRUE(trace->end_stream(node, {next[node] - 1, 0, "step_end"}).ok());
    }
    daemon::StepRun::Progress progress = daemon::StepRun::Progress::kMore;
    while (progress == daemon::StepRun::Progress::kMore) progress = step.work();
    EXPECT_EQ(progress, daemon::StepRun::Progress::kFinished);
    return step.view();
  }

  test::TemporaryDirectory directory_;
};

// The first run of every user: "2 nodes would take 1.57 s on zero, give or take 24 %".
TEST_F(StepRunTest, WithoutADescribedNetworkSeveralNodesAreABoundAndRanges) {
  std::filesystem::copy(LBF_NOMINAL_DIR, directory_.path() + "/nominal");
  daemon::StepView view = *run(test::RingProgram(), {0, 0, 0, 0, 1, 1, 1, 1}, "one");
  for (db::PredictionRecord& one : view.predictions) one.self_error_percent = 1;  // the ring has no waits in its calls
  EXPECT_THAT(view.record.notes, testing::Contains("from public figures, not measured here: nominal-1gbe, "
                                                   "nominal-25gbe, nominal-hdr"));
  const nlohmann::json said = daemon::step_json(view, daemon::StepDetail::kFull).at("predictions");
  std::map<std::string, int> on_several;
  for (const nlohmann::json& one : said) {
    const std::string network = one.at("network");
    SCOPED_TRACE(one.at("target").get<std::string>() + ", " + network);
    if (one.at("nodes") == 1) {
      EXPECT_EQ(network, "zero");
      continue;
    }
    ++on_several[network];
    EXPECT_EQ(one.at("trust"), network == "zero" ? "at_best" : "range");
    EXPECT_EQ(one.at("interval_high_s").is_null(), network == "zero");
    EXPECT_LT(one.at("interval_low_s"), one.at("predicted_s"));
    EXPECT_NE(one.at("why_no_number"), "");
    EXPECT_NE(one.at("remedy"), "");
  }
  EXPECT_EQ(on_several.size(), 4u);
  EXPECT_THAT(said.at(0).at("remedy"), testing::HasSubstr("lbf-calibrate --name"));
}

TEST_F(StepRunTest, TheOrderOfStreamsDoesNotMatter) {
  const test::RingProgram program;
  const auto one = run(program, {0, 0, 0, 0, 1, 1, 1, 1}, "one");
  const auto two = run(program, {1, 1, 0, 1, 0, 0, 1, 0}, "two");
  EXPECT_EQ(one->record.state, db::StepState::kComplete) << one->record.why_partial;
  ASSERT_EQ(one->predictions.size(), two->predictions.size());
  ASSERT_FALSE(one->predictions.empty());
  for (std::size_t i = 0; i < one->predictions.size(); ++i) {
    EXPECT_EQ(one->predictions[i].rank_finish_s, two->predictions[i].rank_finish_s);
  }
}

// What is counted of a batch that is read as rounds, and as events.
TEST(StepTotals, RoundsCountAsTheirEvents) {
  const std::string batch = test::RingProgram().batches_of(0).front();
  const auto counted = [&](bool in_rounds) {
    daemon::StepRemarks remarks;
    daemon::StepTotals totals(4, remarks);
    totals.begin();
    daemon::ProgramProfile profile;
    daemon::StepProcedures procedures;
    profile.take_process(0, {.executable = "/x/ring", .build_id = "b"});
    for (const Rank rank : {0, 1}) EXPECT_TRUE(procedures.define(rank, 1, "f").ok());
    std::size_t rounds_seen = 0;
    BatchSink sink;
    sink.on_events = [&](Rank rank, std::span<const Event> events) -> Result<void> {
      daemon::ProgramScope scope;
      profile.take_events(events, scope);
      procedures.take_events(rank, events);
      EXPECT_TRUE(totals.take_events(0, rank, events));
      return {};
    };
    if (in_rounds) {
      sink.on_rounds = [&](Rank rank, const Rounds& rounds) -> Result<bool> {
        EXPECT_TRUE(totals.is_plain(rank, rounds));
        profile.take_rounds(rounds);
        procedures.take_rounds(rank, rounds);
        totals.take_rounds(0, rank, rounds);
        rounds_seen += rounds.times.size();
        return true;
      };
    }
    CommunicatorTable communicators;
    BatchDecoder decoder(communicators, 4);
    EXPECT_TRUE(decoder.decode(test::bytes_of(batch), sink).ok());
    EXPECT_EQ(rounds_seen > 0, in_rounds);
    EXPECT_TRUE(totals.close(0));
    const auto run = profile.run({}, 4, 1.0, {});
    std::vector<Event> calls{event_of_kind(EventKind::kProcedure)};
    const std::vector<std::uint64_t> values{1, 100, 100, 5};
    calls.front().values = values;
    procedures.take_events(0, calls);
    return std::tuple(totals.mean_work_s(), profile.process_s(), profile.recorded_s(), run->sent_bytes,
                      procedures.records().front().calls_per_s);
  };
  EXPECT_EQ(counted(true), counted(false));
  EXPECT_GT(std::get<0>(counted(true)), 0);
}

// With more than 57,344 communicators alive calls were left out of the picture, and nothing said so.
TEST_F(StepRunTest, CallsOnCommunicatorsThatTheCaptureDoesNotKnowAreNoted) {
  const test::RingProgram program;
  const auto description = protocol::decode_step_description(program.description(0, 7).dump()).value();
  const auto trace =
      std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/one", description, 1)).value();
  const auto notes_after = [&](const char* function) {
    daemon::StepRemarks remarks;
    daemon::StepTotals totals(4, remarks);
    totals.begin();
    Event call;
    call.kind = EventKind::kUnmodelled;
    call.function = mpi_function(std::string_view(function))->id;
    EXPECT_TRUE(totals.take_events(0, 0, {&call, 1}));
    db::StepRecord record;
    std::vector<std::string> notes;
    totals.describe(*trace, record, notes);
    return notes;
  };
  const auto names_it = testing::Contains(testing::StartsWith("1 messages and collectives unmodelled: "));
  EXPECT_THAT(notes_after("MPI_Allreduce"), names_it);
  EXPECT_THAT(notes_after("MPI_Isend"), names_it);
  EXPECT_THAT(notes_after("MPI_Wait"), testing::Not(names_it)) << "of a generalized request";
}

const std::vector<std::uint32_t> kInTurns = {0, 1, 0, 1, 0, 1, 0, 1};

// All ranks send before they receive. Remote messages of 1000 bytes wait for their receive on "strict": on 4
// nodes all of them, and the ring is closed; on 2 nodes ranks 0 and 2 send within their node and go on.
TEST_F(StepRunTest, ATargetOnWhichTheProgramWouldNotEndIsNotAdvised) {
  std::ofstream(directory_.path() + "/default.toml")
      << "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 50.0]]\n";
  std::ofstream(directory_.path() + "/strict.toml")
      << "name = \"strict\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1.0]]\neager_limit_bytes = 999\n"
         "[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0]]\n";
  test::RingProgram program;
  program.all_send_first = true;
  const auto view = run(program, kInTurns, "stuck");
  EXPECT_EQ(view->record.state, db::StepState::kComplete) << view->record.why_partial;
  int stuck = 0;
  for (const db::PredictionRecord& prediction : view->predictions) {
    const bool expected = prediction.network == "strict" && prediction.nodes == 4;
    stuck += expected ? 1 : 0;
    EXPECT_EQ(!prediction.why_stuck.empty(), expected) << prediction.target << ' ' << prediction.network;
    EXPECT_EQ(prediction.speedup.has_value(), !expected) << prediction.target << ' ' << prediction.network;
    EXPECT_EQ(prediction.partial, expected);
    EXPECT_TRUE(prediction.self_error_percent.has_value());
  }
  EXPECT_EQ(stuck, 1);
  EXPECT_THAT(view->record.notes,
              testing::Contains(testing::StartsWith("on 1 of " + std::to_string(view->predictions.size()) +
                                                    " targets the program would not end: cyclic wait: ")));
  const nlohmann::json json = daemon::step_json(*view, daemon::StepDetail::kFull);
  for (const nlohmann::json& prediction : json["predictions"]) {
    EXPECT_EQ(prediction["predicted_s"].is_null(), prediction["why_stuck"] != "") << prediction;
  }
}

// 2 ranks on each of 2 nodes: two of a domain get 12 GB/s together, one alone gets 10.
TEST_F(StepRunTest, MemoryDemandComesFromEarlierRunsOrIsSaidToBeUnknown) {
  std::ofstream(directory_.path() + "/default.toml")
      << "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 0.0]]\n"
         "[memory]\nbandwidth_MBps = [[1, 10000.0], [2, 12000.0]]\n";
  const test::RingProgram program;
  const auto sparse = [](const daemon::StepView& view) {
    return *std::ranges::find_if(view.predictions,
                                 [](const auto& one) { return one.nodes == 4 && one.network == "own"; });
  };
  const auto unknown = run(program, kInTurns, "unknown");
  EXPECT_EQ(unknown->record.ranks_per_domain, 2u);
  EXPECT_EQ(unknown->record.memory_demand_MBps, 0);
  EXPECT_EQ(unknown->predictions.front().memory_percent, 0);
  EXPECT_NEAR(sparse(*unknown).memory_percent, 40, 1e-9);
  EXPECT_THAT(unknown->record.notes, testing::Contains(testing::HasSubstr("may be off by up to 40 %")));

  daemon::StepRunOptions options;
  options.work_by_density = {{1, 6}, {2, 10}};
  const auto known = run(program, kInTurns, "known", options);
  EXPECT_NEAR(known->record.memory_demand_MBps, 10000, 1e-6);
  EXPECT_EQ(sparse(*known).memory_percent, 0);
  EXPECT_THAT(known->record.notes,
              testing::Contains(testing::HasSubstr("demands 10 GB/s, by earlier runs with 1 and 2 ranks per domain")));
  EXPECT_LT(sparse(*known).predicted_s, 0.99 * sparse(*unknown).predicted_s);
  EXPECT_GE(sparse(*known).predicted_s, 0.59 * sparse(*unknown).predicted_s);
}

// 4 ranks on 2 nodes. A message between nodes takes 1 ms below one switch, 3 ms over two levels and 5 ms
// where nobody knows; inside a node none.
TEST_F(StepRunTest, HopsOfTheRunsNodesAndOfTheTopologysChoice) {
  std::ofstream network(directory_.path() + "/default.toml");
  network << "name = \"own\"\n";
  for (const char* path : {"self-node\"\ntable = [[0, 0.0]]", "hop:1\"\ntable = [[0, 1000.0]]",
                           "hop:2\"\ntable = [[0, 3000.0]]", "remote\"\ntable = [[0, 5000.0]]"}) {
    network << "[[path]]\nlocality = \"" << path << "\n";
  }
  network.close();
  const test::RingProgram program;
  const auto with = [&](const char* topology, const std::string& name) {
    daemon::StepRunOptions options;
    if (topology != nullptr) {
      options.topology =
          std::make_shared<const engine::TopologyFile>(*engine::TopologyFile::parse(topology, "topology.conf"));
    }
    return run(program, kInTurns, name, options);
  };
  const auto time_on = [](const daemon::StepView& view, std::uint32_t nodes) {
    const auto found = std::find_if(view.predictions.begin(), view.predictions.end(), [&](const auto& prediction) {
      return prediction.nodes == nodes && prediction.network == "own";
    });
    EXPECT_NE(found, view.predictions.end());
    return found == view.predictions.end() ? 0 : found->predicted_s;
  };
  // The run's nodes are on one switch, on two, or on none that is known. For 4 nodes Slurm would take the
  // leaf with 4.
  const auto near = with("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=m[0-3]\nSwitchName=t Switches=a,b\n", "near");
  const auto far = with("SwitchName=a Nodes=n0,m0\nSwitchName=b Nodes=n1,m1\nSwitchName=t Switches=a,b\n", "far");
  const auto none = with(nullptr, "none");
  const auto other = with("SwitchName=a Nodes=m[0-3]\n", "other");
  const auto small = with("SwitchName=a Nodes=n[0-1]\n", "small");
  const auto twice = with("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=m[0-3],n1\n", "twice");
  const auto broken = with("SwitchName=a Switches=b\n", "broken");
  EXPECT_LT(time_on(*near, 2), time_on(*far, 2));
  EXPECT_LT(time_on(*far, 2), time_on(*none, 2));
  EXPECT_LT(time_on(*near, 4), time_on(*far, 4));
  EXPECT_EQ(time_on(*other, 2), time_on(*none, 2));
  EXPECT_EQ(time_on(*broken, 2), time_on(*none, 2));
  EXPECT_EQ(time_on(*twice, 2), time_on(*near, 2));
  EXPECT_EQ(time_on(*small, 2), time_on(*near, 2));
  EXPECT_EQ(time_on(*small, 4), time_on(*none, 4));
  const nlohmann::json where = daemon::step_json(*near, daemon::StepDetail::kFull)["predictions"][0]["topology"];
  EXPECT_EQ(where, (nlohmann::json{{"file", "topology.conf"}, {"nodes", {"n0", "n1"}}}));
  EXPECT_FALSE(daemon::step_json(*none, daemon::StepDetail::kFull)["predictions"][0].contains("topology"));
  const auto note = [](const char* text) { return testing::Contains(testing::StartsWith(text)); };
  EXPECT_THAT(other->record.notes,
              note("node n0 is not in topology.conf: all nodes are taken to be equally far apart"));
  EXPECT_THAT(small->record.notes, note("topology.conf connects no 4 nodes: "));
  EXPECT_THAT(twice->record.notes, note("n1 on several switches in topology.conf: the first one counts"));
  EXPECT_THAT(broken->record.notes, note("topology.conf:1: switch 'a' has the child 'b', which no line defines"));
  EXPECT_THAT(near->record.notes, testing::Not(testing::Contains(testing::HasSubstr("equally far apart"))));
}

// A rank that is killed when no message is under way leaves predictions that lack nothing but its end.
TEST_F(StepRunTest, APartIsComparedWithTheMeasuredTimeOfThatPart) {
  test::RingProgram program;
  program.killed_rank = 1;
  const auto view = run(program, kInTurns, "killed");
  EXPECT_EQ(view->record.state, db::StepState::kPartial);
  ASSERT_FALSE(view->predictions.empty());
  for (const db::PredictionRecord& prediction : view->predictions) {
    ASSERT_TRUE(prediction.speedup);
    EXPECT_DOUBLE_EQ(*prediction.speedup, prediction.measured_at_progress_s / prediction.predicted_s);
    EXPECT_NE(prediction.measured_at_progress_s, *view->record.measured_s);
    EXPECT_EQ(prediction.why_stuck, "") << "the rank was killed; the target holds nothing up";
  }
  const db::PredictionRecord& self = view->predictions.front();
  EXPECT_NEAR(*self.self_error_percent, 100 * (self.predicted_s / self.measured_at_progress_s - 1), 1e-9);
}

// A job of 4 nodes; mpirun placed ranks on the second and the fourth of them only.
TEST_F(StepRunTest, APlacementOfMpirunsNeedsNoStreamOfIdleNodes) {
  const test::RingProgram program;
  const auto describe = [&](std::uint32_t node) {
    nlohmann::json json = program.description(node, 7);
    json["nodes"] = {"a", "b", "c", "d"};
    json["node_index"] = node == 0 ? 1 : 3;
    json["launcher"] = "mpirun";
    json.erase("tasks_per_node");
    return protocol::decode_step_description(json.dump()).value();
  };
  auto trace =
      std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/mpirun", describe(0), 1)).value();
  auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
  ASSERT_TRUE(catalog.ok());
  daemon::StepRun step(trace, *catalog, {});
  ASSERT_TRUE(trace->register_stream(describe(0)).ok());
  EXPECT_FALSE(trace->all_registered());
  ASSERT_TRUE(trace->end_stream(1, {0, 0, "step_end"}).ok());
  EXPECT_FALSE(trace->all_ended()) << "two ranks are missing";
  ASSERT_TRUE(trace->register_stream(describe(1)).ok());
  EXPECT_TRUE(trace->all_registered());
  ASSERT_TRUE(trace->end_stream(3, {0, 0, "step_end"}).ok());
  EXPECT_TRUE(trace->all_ended());
  while (step.work() == daemon::StepRun::Progress::kMore) {
  }
  const auto view = step.view();
  EXPECT_EQ(view->record.nodes, (std::vector<std::string>{"b", "d"}));
  EXPECT_EQ(view->record.node_of_rank, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  EXPECT_THAT(view->record.notes, testing::Not(testing::Contains(testing::HasSubstr("not every node said"))));
}

// What a suspended job stood still is in the measured time, and in nothing that predictions are compared with.
TEST_F(StepRunTest, APredictionIsComparedWithTheTimeThatASuspendedJobRan) {
  test::RingProgram program;
  const auto whole = run(program, kInTurns, "whole");
  program.more_records = {{{"type", "note"}, {"text", "rank 0 was stopped"}, {"stopped_s", 1.5}},
                          {{"type", "note"}, {"text", "rank 1 was stopped"}, {"stopped_s", 2.5}},
                          {{"type", "note"}, {"text", "rank 2 was stopped"}, {"stopped_s", -1}}};
  const auto suspended = run(program, kInTurns, "suspended");
  EXPECT_EQ(suspended->record.state, db::StepState::kComplete) << suspended->record.why_partial;
  EXPECT_EQ(suspended->record.longest_stop_s, 2.5);
  EXPECT_EQ(suspended->record.measured_s, whole->record.measured_s);
  ASSERT_FALSE(suspended->predictions.empty());
  const Seconds ran_s = *whole->record.measured_s - 2.5;
  for (const db::PredictionRecord& prediction : suspended->predictions) {
    ASSERT_TRUE(prediction.speedup);
    EXPECT_DOUBLE_EQ(*prediction.speedup, ran_s / prediction.predicted_s);
  }
  const db::PredictionRecord& self = suspended->predictions.front();
  EXPECT_NEAR(*self.self_error_percent, 100 * (self.predicted_s / ran_s - 1), 1e-9);

  // Of a part of the run the events' time counts, which is without the stop.
  program.killed_rank = 3;
  const auto part = run(program, kInTurns, "part");
  program.more_records.clear();
  const auto same_part = run(program, kInTurns, "same_part");
  ASSERT_TRUE(part->predictions.front().speedup);
  EXPECT_EQ(part->predictions.front().speedup, same_part->predictions.front().speedup);
}

// A program with a library of a device, and no call that waits for it: how long it waited is not known, and said.
TEST_F(StepRunTest, ALibraryOfADeviceIsSaid) {
  test::RingProgram program;
  const auto without = run(program, kInTurns, "without");
  EXPECT_EQ(without->record.devices, "");
  program.more_stats = {{{"devices", {"CUDA"}}}, {{"devices", {"ABACUS", "HIP"}}}};
  const auto with = run(program, kInTurns, "with");
  EXPECT_EQ(with->record.devices, "CUDA,HIP");
  EXPECT_EQ(with->record.device_s, 0);
  EXPECT_THAT(with->record.notes, testing::Contains(testing::HasSubstr("how long ranks waited is not known")));
}

// Other programs are in the configuration that ran, and in no other one: the measured time with and without them.
TEST_F(StepRunTest, OtherTargetsAreComparedWithTheTimeWithoutOtherPrograms) {
  test::RingProgram program;
  const auto alone = run(program, kInTurns, "alone");
  const Seconds measured_s = *alone->record.measured_s;
  program.more_stats = {
      {{"delayed_s", 0.5 * measured_s}, {"others_s", 0.25 * measured_s}},
      {{"delayed_s", 0.75 * measured_s}, {"others_s", 0.5 * measured_s}, {"limited_s", 0.125 * measured_s}}};
  program.more_records = {{{"type", "processors"}, {"passed_s", 8.0}, {"stolen_s", 0.5}, {"softirq_s", 1.0}},
                          {{"type", "processors"}, {"passed_s", 0.0}, {"stolen_s", 7.0}}};
  const auto disturbed = run(program, kInTurns, "disturbed");
  EXPECT_EQ(disturbed->record.measured_s, measured_s);
  EXPECT_DOUBLE_EQ(disturbed->record.delayed_s, 0.75 * measured_s);
  EXPECT_DOUBLE_EQ(disturbed->record.others_s, 0.5 * measured_s);
  EXPECT_DOUBLE_EQ(disturbed->record.limited_s, 0.125 * measured_s);
  EXPECT_DOUBLE_EQ(disturbed->record.stolen_percent, 6.25);
  EXPECT_DOUBLE_EQ(disturbed->record.softirq_percent, 12.5);
  EXPECT_TRUE(disturbed->record.is_disturbed);
  EXPECT_FALSE(alone->record.is_disturbed);
  ASSERT_GT(disturbed->predictions.size(), 1U);
  for (const db::PredictionRecord& prediction : disturbed->predictions) {
    const Seconds reference_s = prediction.is_self() ? measured_s : 0.375 * measured_s;
    ASSERT_TRUE(prediction.speedup);
    EXPECT_DOUBLE_EQ(*prediction.speedup, reference_s / prediction.predicted_s) << prediction.target;
  }
  EXPECT_EQ(disturbed->predictions.front().self_error_percent, alone->predictions.front().self_error_percent);
}

// A rank of 2 threads on each of 2 nodes of 2 processors: one node was said to take exactly as long. It has one for
// each.
TEST_F(StepRunTest, RegionsHaveAsManyThreadsAsFillTheNodes) {
  test::RingProgram program;
  program.ranks_of_node = {{0}, {1}};
  program.more_work = 0;
  program.threads = 2;
  program.threads_given = 2;
  const std::vector<std::uint32_t> in_turns = {0, 1, 0, 1, 0, 1, 0, 1};
  const auto view = run(program, in_turns, "hybrid");
  const auto of = [](const daemon::StepView& step, std::size_t at) {
    const db::PredictionRecord& one = step.predictions[at];
    return fmt::format("{} {}: {}, {:.0f}", one.kind, one.nodes, one.target, 1e3 * one.predicted_s);
  };
  EXPECT_EQ(view->record.threads, 2U);
  ASSERT_EQ(view->predictions.size(), 2U);
  EXPECT_EQ(of(*view, 0), "self 2: 2 nodes, block, 2 threads, 160");
  EXPECT_EQ(of(*view, 1), "LBF 1: 1 node, block, 1 thread, 320");
  EXPECT_THAT(view->record.notes, testing::Contains(testing::HasSubstr("parallel regions took 0.32 s")));

  program.threads = 1;
  program.threads_given = 1;
  const auto half = run(program, in_turns, "half");
  ASSERT_EQ(half->predictions.size(), 3U);
  EXPECT_EQ(of(*half, 2), "LBF 2: 2 nodes, block, 2 threads, 80");
  program.threads = 0;
  const auto serial = run(program, in_turns, "serial");
  ASSERT_EQ(serial->predictions.size(), 2U) << "without regions the threads change nothing";
  EXPECT_EQ(serial->predictions.back().target, "1 node, block");
  program.threads = 1;
  program.threads_given = 4;
  EXPECT_THAT(run(program, in_turns, "given")->record.notes,
              testing::Contains(testing::HasSubstr("1 thread (each rank was given 4)")));
}

TEST_F(StepRunTest, WhatTheRelaysCountedIsNoted) {
  test::RingProgram program;
  program.more_stats = {{{"abandoned_calls", 1}}, {{"abandoned_calls", 0}, {"events_without_communicator", 2}}};
  const auto view = run(program, kInTurns, "counts");
  EXPECT_THAT(view->record.notes, testing::Contains(testing::StartsWith("1 MPI call was left by longjmp")));
  EXPECT_THAT(view->record.notes,
              testing::Contains(testing::StartsWith("2 events were on a communicator whose definition was lost")));
  EXPECT_THAT(run(test::RingProgram(), kInTurns, "none")->record.notes,
              testing::Not(testing::Contains(testing::HasSubstr("longjmp"))));
}

TEST_F(StepRunTest, ALibraryWithoutRulesOfItsOwnIsNoted) {
  const auto is_about_rules = testing::StartsWith("the rules of \"FG-MPI 3\" for collectives are not known here");
  test::RingProgram program;
  EXPECT_THAT(run(program, kInTurns, "known")->record.notes, testing::Not(testing::Contains(is_about_rules)));
  program.library = "FG-MPI 3";
  EXPECT_THAT(run(program, kInTurns, "unknown")->record.notes, testing::Contains(is_about_rules));
}

TEST_F(StepRunTest, SettingsOfCollectivesAreNoted) {
  test::RingProgram program;
  program.mpi_settings = {"OMPI_MCA_coll=^tuned"};
  EXPECT_THAT(
      run(program, kInTurns, "settings")->record.notes,
      testing::Contains("the run's environment sets OMPI_MCA_coll=^tuned: not modelled, all collectives count as "
                        "approximated"));
}

Seconds sum_of_path(const db::StepRecord& step) {
  Seconds sum = 0;
  for (const auto& part : {step.path_work_s, step.path_copies_s, step.path_overhead_s, step.path_latency_inside_s,
                           step.path_latency_between_s, step.path_bytes_inside_s, step.path_bytes_between_s,
                           step.path_kept_s, step.path_unseen_s})
    sum += part.value_or(-1000);
  return sum;
}

// A token goes round 4 ranks on 2 nodes: in each of 160 rounds two hops inside a node and two between. Rank r works
// 1 + r ms in a round, before it waits for the token: the others' is hidden, but for the first round's.
TEST_F(StepRunTest, OfACompleteStepIsKnownWhatItsLongestPathIsMadeOf) {
  std::ofstream(directory_.path() + "/default.toml")
      << "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 5000.0], [1000, 7000.0]]\n"
         "[[path]]\nlocality = \"self-node\"\ntable = [[0, 1000.0]]\n";
  test::RingProgram program;
  const auto view = run(program, kInTurns, "path");
  const db::StepRecord& step = view->record;
  ASSERT_EQ(step.state, db::StepState::kComplete) << step.why_partial;
  EXPECT_NEAR(sum_of_path(step), view->predictions.at(0).predicted_s, 1e-9) << "each rank had a processor";
  EXPECT_NEAR(*step.path_latency_between_s, 160 * 2 * 0.005, 1e-9);
  EXPECT_NEAR(*step.path_bytes_between_s, 160 * 2 * 0.002, 1e-9);
  EXPECT_NEAR(*step.path_latency_inside_s, (160 * 2 - 1) * 0.001, 1e-9)
      << "rank 1 first works as long as rank 0 and its hop";
  EXPECT_NEAR(*step.path_rank_work_s, 160 * 0.0025, 1e-9);
  EXPECT_GE(*step.path_work_s, 160 * 0.001 - 1e-9) << "rank 0's";
  EXPECT_EQ(step.path_unseen_s, 0);

  program.killed_rank = 2;
  const auto partial = run(program, kInTurns, "partial");
  EXPECT_EQ(partial->record.state, db::StepState::kPartial);
  EXPECT_FALSE(partial->record.path_work_s);
}

// 4 ranks on a node of 2 processors, links that are shared: the path is that of ranks with a processor each, without
// contention.
TEST_F(StepRunTest, WhatRanksShareIsNotInTheirPath) {
  std::ofstream(directory_.path() + "/default.toml")
      << "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1000.0]]\n[contention]\nmodel = \"nic\"\n"
         "bandwidth_MBps = 1.0\n";
  test::RingProgram program;
  program.ranks_of_node = {{1, 2, 3, 4}, {0}};
  program.all_send_first = true;
  const auto view = run(program, kInTurns, "shared");
  ASSERT_EQ(view->record.state, db::StepState::kComplete) << view->record.why_partial;
  EXPECT_LT(sum_of_path(view->record), 0.9 * view->predictions.at(0).predicted_s);
  EXPECT_GE(*view->record.path_work_s, 160 * 0.005 - 1e-9) << "rank 4's";
}

// With a tiny limit a stream that is ahead waits on disk, and everything still comes out.
TEST_F(StepRunTest, AStreamThatIsAheadWaitsForTheOthers) {
  daemon::StepRunOptions options;
  options.events_in_flight_limit = 1;
  const test::RingProgram program;
  const auto limited = run(program, {0, 0, 0, 0, 1, 1, 1, 1}, "limited", options);
  const auto free = run(program, {0, 0, 0, 0, 1, 1, 1, 1}, "free");
  EXPECT_EQ(limited->record.state, db::StepState::kComplete) << limited->record.why_partial;
  EXPECT_EQ(limited->record.events, free->record.events);
  EXPECT_EQ(limited->predictions.at(0).predicted_s, free->predictions.at(0).predicted_s);
}

}  // namespace
}  // namespace lbf::step_run_test