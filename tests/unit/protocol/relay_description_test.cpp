// RelayDescription: what plugin and lbf-run write, and the descriptions that the relay makes of it.
#include "protocol/relay_description.h"

#include <gtest/gtest.h>

namespace lbf::relay_description_test {
namespace {

using namespace protocol;
using nlohmann::json;

StepDescription job() {
  StepDescription step;
  step.cluster = "c";
  step.job = 7;
  step.restart = 0;
  step.user = "ann";
  step.uid = 1000;
  step.gid = 100;
  step.overhead_limit_percent = 2.0;
  step.limits[cost::Limit::kStepCpu] = 2.5;
  step.limits[cost::Limit::kStepTrace] = 100;
  return step;
}

StepDescription program() {
  StepDescription step = job();
  step.step = 0;
  step.nodes = {"n1", "n2"};
  step.node_index = 1;
  step.node = "n2";
  step.tasks = 3;
  step.tasks_per_node = {2, 1};
  step.task_ids = {2};
  step.cpus_on_node = 4;
  step.start_realtime_ns = 5;
  step.command = {"./app", "x\xff"};
  step.command_cut = true;
  step.networks = {"a"};
  step.submit_host = "login";
  return step;
}

TEST(RelayDescription, HasItsBytes) {
  EXPECT_EQ(
      encode(program()),
      R"({"cluster":"c","command":["./app","x)"
      "\xef\xbf\xbd"
      R"("],"command_cut":true,"cpus_on_node":4,"gid":100,"job":7,"limits":{"step_cpu_percent":2.5,"step_trace_limit_mb":100},)"
      R"("networks":["a"],"node":"n2","node_index":1,"nodes":["n1","n2"],"overhead_limit_percent":2.0,"restart":0,)"
      R"("start_realtime_ns":5,"step":0,"submit_host":"login","task_ids":[2],"tasks":3,"tasks_per_node":[2,1],"uid":1000,"user":"ann"})");
  EXPECT_EQ(encode(RelayDescription{job(), NodesOfJob{{"n1", "n2"}, 0, 8}, true}),
            R"({"cluster":"c","gid":100,"job":7,"limits":{"step_cpu_percent":2.5,"step_trace_limit_mb":100},)"
            R"("mpirun":{"cpus_on_node":8,"node_index":0,"nodes":["n1","n2"]},"networks":[],"on_demand":true,)"
            R"("overhead_limit_percent":2.0,"restart":0,"uid":1000,"user":"ann"})");
}

TEST(RelayDescription, LbfdReadsWhatIsWritten) {
  const auto back = decode_step_description(encode(program()));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(encode(*back), encode(program()));
  EXPECT_EQ(back->node, "n2");
  EXPECT_EQ(back->gid, gid_t{100});
  EXPECT_EQ(back->overhead_limit_percent, 2.0);
}

TEST(RelayDescription, TheStepsOwnStreamIsWithoutMpirun) {
  const auto streams = decode_relay_description(encode(RelayDescription{program(), NodesOfJob{{"n2"}, 0, 0}, false}));
  ASSERT_TRUE(streams.ok());
  EXPECT_EQ(streams->own, encode(program()));
  EXPECT_FALSE(streams->on_demand);
  EXPECT_EQ(streams->runs["launcher"], "mpirun");
  EXPECT_EQ(streams->runs["nodes"], json({"n2"}));
  for (const char* key :
       {"step", "tasks", "tasks_per_node", "task_ids", "command", "command_cut", "node", "start_realtime_ns"})
    EXPECT_FALSE(streams->runs.contains(key)) << key;
  EXPECT_EQ(streams->runs["user"], "ann");
}

TEST(RelayDescription, ARunIsTheJobsWithItsOwnRanks) {
  json written = json::parse(encode(RelayDescription{job(), NodesOfJob{{"n1", "n2"}, 1, 8}, false}));
  written["key_of_tomorrow"] = 1;
  const auto streams = decode_relay_description(written.dump());
  ASSERT_TRUE(streams.ok());
  EXPECT_EQ(streams->own, "") << "a batch script is no program";
  StepDescription run;
  run.step = 0xE0000001;
  run.run = "prterun-n1-5";
  run.tasks = 2;
  run.task_ids = {1};
  run.start_realtime_ns = 9;
  run.command = {"./app"};
  const auto description = decode_step_description(describe_run(streams->runs, run));
  ASSERT_TRUE(description.ok()) << description.error().message;
  EXPECT_EQ(description->step, 0xE0000001u);
  EXPECT_EQ(description->launcher, "mpirun");
  EXPECT_EQ(description->run, "prterun-n1-5");
  EXPECT_EQ(description->nodes.size(), 2u);
  EXPECT_EQ(description->node_index, 1u);
  EXPECT_EQ(description->tasks, 2);
  EXPECT_EQ(description->user, "ann");
  EXPECT_EQ(description->raw["key_of_tomorrow"], 1) << "lbfd gets what the relay does not know";
}

TEST(RelayDescription, RefusesWhatIsNone) {
  for (const char* text : {"", "[]", "{}", R"({"mpirun":1})", R"({"job":1})"})
    EXPECT_FALSE(decode_relay_description(text).ok()) << text;
  EXPECT_TRUE(decode_relay_description(R"({"step":0,"on_demand":true})")->own == R"({"step":0})");
  EXPECT_FALSE(decode_relay_description(R"({"step":0,"on_demand":true})")->on_demand) << "there is nobody to wait for";
  EXPECT_TRUE(decode_relay_description(R"({"step":0,"on_demand":true,"mpirun":{}})")->on_demand);
  EXPECT_FALSE(decode_relay_description(R"({"step":0,"on_demand":1,"mpirun":{}})")->on_demand);
}

}  // namespace
}  // namespace lbf::relay_description_test
