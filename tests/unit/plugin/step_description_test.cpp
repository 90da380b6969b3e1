// What the relay is given for a step: step.json, and what steps of one job tell each other for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/plugin/plugin_fixture.h"

extern "C" {
#include <slurm/slurm.h>
}

namespace lbf::plugin::step_description_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Of the step that the fake host describes.
class DescriptionTest : public PluginTest {
 protected:
  nlohmann::json described() {
    host().environment.erase("LBF_CAPTURE_DIR");
    host().environment.erase("LD_PRELOAD");
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    EXPECT_THAT(host().said, IsEmpty());
    auto step = nlohmann::json::parse(contents(rings() + "/step.json"), nullptr, false);
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    host().said.clear();
    EXPECT_TRUE(step.is_object());
    return step;
  }
  // As slurmstepd 22.05 has it for component 1 of a job whose components have 2 and 1 nodes.
  void be_het_component(const std::string& kind) {
    host().items[S_JOB_ID] = 51;
    host().items[S_JOB_NNODES] = 1;
    host().items[S_JOB_NODEID] = 0;
    host().items[S_JOB_TOTAL_TASK_COUNT] = 2;
    host().items[S_JOB_LOCAL_TO_GLOBAL_ID] = 0;
    host().items[S_JOB_ARRAY_TASK_ID] = NO_VAL;
    host().environment["SLURM_JOB_ID"] = "50";
    host().environment["SLURM_STEP_NODELIST"] = "node[1-3]";
    host().environment["SLURM_STEP_TASKS_PER_NODE"] = "1,2(x2)";
    host().environment["SLURM_" + kind + "_SIZE"] = "2";
    host().environment["SLURM_JOB_ID_" + kind + "_GROUP_0"] = "50";
    host().environment["SLURM_JOB_ID_" + kind + "_GROUP_1"] = "51";
    host().environment["SLURM_JOB_NODELIST_" + kind + "_GROUP_1"] = "node3";
  }
};

// `srun --external-launcher`, Open MPI 6's way to its daemons, gives them a SLURM_JOB_NODELIST of their own nodes.
TEST_F(DescriptionTest, TheJobsNodesAreTheWiderOfTwoLists) {
  host().environment["SLURM_JOB_NODELIST"] = "node2";
  host().environment["SLURM_NODELIST"] = "node[1-3]";
  EXPECT_EQ(described()["mpirun"]["nodes"], (nlohmann::json{"node1", "node2", "node3"}));
  host().environment["SLURM_JOB_NODELIST"] = "node[1-3]";
  host().environment["SLURM_NODELIST"] = "node2";  // a step's
  EXPECT_EQ(described()["mpirun"]["nodes"], (nlohmann::json{"node1", "node2", "node3"}));
  host().environment["SLURM_JOB_NODELIST"] = "node[1-2]";
  host().environment["SLURM_NODELIST"] = "node[2-5]";  // of another job: not all of this one's are in it
  EXPECT_EQ(described()["mpirun"]["nodes"], (nlohmann::json{"node1", "node2"}));
}

TEST_F(DescriptionTest, AnArraysTaskHasBothNumbers) {
  const auto step = described();
  EXPECT_EQ(step["array_job"], 40);
  EXPECT_EQ(step["array_task"], 5);
  EXPECT_FALSE(step.contains("het_job"));
}

// slurmstepd gives the job's own number as the array's where there is no array.
TEST_F(DescriptionTest, AJobThatIsNoArrayHasNeither) {
  host().items[S_JOB_ARRAY_ID] = 42;
  host().items[S_JOB_ARRAY_TASK_ID] = NO_VAL;
  const auto step = described();
  EXPECT_FALSE(step.contains("array_job"));
  EXPECT_FALSE(step.contains("array_task"));
}

// sbatch inside an array's task hands SLURM_ARRAY_* on to a job that is none; slurmstepd takes a step's items
// from there. The batch step knows better.
TEST_F(DescriptionTest, AJobSubmittedFromAnArraysTaskIsNoTask) {
  host().environment["SLURM_ARRAY_TASK_ID"] = "5";
  host().items[S_JOB_STEPID] = SLURM_BATCH_SCRIPT;
  host().items[S_JOB_ARRAY_ID] = 0;
  host().items[S_JOB_ARRAY_TASK_ID] = NO_VAL;
  start(S_CTX_REMOTE);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_EQ(host().environment["LBF_NOT_IN_ARRAY"], "42");
  host().items[S_JOB_STEPID] = 3;
  host().items[S_JOB_ARRAY_ID] = 40;
  host().items[S_JOB_ARRAY_TASK_ID] = 5;
  EXPECT_FALSE(described().contains("array_job"));
  host().environment["LBF_NOT_IN_ARRAY"] = "39";  // of the job outside
  EXPECT_EQ(described()["array_job"], 40);
}

TEST_F(DescriptionTest, TheBatchStepOfAnArraysTaskSaysNothing) {
  host().environment["SLURM_ARRAY_TASK_ID"] = "5";
  host().items[S_JOB_STEPID] = SLURM_BATCH_SCRIPT;
  start(S_CTX_REMOTE);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_FALSE(host().environment.contains("LBF_NOT_IN_ARRAY"));
}

TEST_F(DescriptionTest, AComponentOfAHeterogeneousJobHasItsOwnNodes) {
  const auto before = host().environment;
  for (const char* kind : {"HET", "PACK"}) {
    host().environment = before;
    be_het_component(kind);
    const auto step = described();
    EXPECT_EQ(step["job"], 51);
    EXPECT_EQ(step["het_job"], 50);
    EXPECT_EQ(step["het_offset"], 1);
    EXPECT_EQ(step["nodes"], (nlohmann::json{"node3"})) << kind;
    EXPECT_EQ(step["node"], "node3");
    EXPECT_FALSE(step.contains("tasks_per_node")) << "those of the whole step add up to another number";
    host().environment[std::string("SLURM_TASKS_PER_NODE_") + kind + "_GROUP_1"] = "2";
    EXPECT_EQ(described()["tasks_per_node"], (nlohmann::json{2}));
    // Inherited from the job that submitted this one.
    host().items[S_JOB_ID] = 60;
    EXPECT_FALSE(described().contains("het_job"));
  }
}

// `srun a : b`: what slurmstepd of the second component, two tasks on one node, has of a step of five tasks.
class WholeStepTest : public DescriptionTest {
 protected:
  WholeStepTest() {
    be_het_component("HET");
    host().environment["SLURM_STEP_NUM_TASKS"] = "5";
    host().environment["SLURM_JOB_NODELIST_HET_GROUP_0"] = "node[1-2]";
    be_node("node3");
  }
  ~WholeStepTest() override { ::unsetenv("SLURMD_NODENAME"); }
  static void be_node(const char* name) { ::setenv("SLURMD_NODENAME", name, 1); }
  void expect_third_node(const nlohmann::json& step) {
    EXPECT_EQ(step["nodes"], (nlohmann::json{"node1", "node2", "node3"}));
    EXPECT_EQ(step["node_index"], 2);
    EXPECT_EQ(step["node"], "node3");
    EXPECT_EQ(step["tasks"], 5);
    EXPECT_EQ(step["tasks_per_node"], (nlohmann::json{1, 2, 2}));
    EXPECT_EQ(step["task_ids"], (nlohmann::json{3, 4}));
  }
  void expect_no_prediction() {
    host().environment.erase("LBF_CAPTURE_DIR");
    host().environment.erase("LD_PRELOAD");
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    EXPECT_THAT(host().said, ElementsAre(HasSubstr("which of the step's nodes this is")));
    EXPECT_FALSE(host().environment.contains("LD_PRELOAD"));
    host().said.clear();
  }
};

TEST_F(WholeStepTest, AProgramOverSeveralComponentsIsAStepOfTheFirst) {
  const auto step = described();
  expect_third_node(step);
  EXPECT_EQ(step["job"], 50);
  EXPECT_EQ(step["het_job"], 50);
  EXPECT_EQ(step["het_offset"], 0);
}

TEST_F(WholeStepTest, TheFirstNeedNotBeTheJobsFirst) {
  host().environment["SLURM_HET_SIZE"] = "3";
  host().environment["SLURM_JOB_ID_HET_GROUP_2"] = "52";
  host().environment["SLURM_JOB_NODELIST_HET_GROUP_0"] = "node9";
  host().environment["SLURM_JOB_NODELIST_HET_GROUP_1"] = "node[1-2]";
  host().environment["SLURM_JOB_NODELIST_HET_GROUP_2"] = "node3";
  host().items[S_JOB_ID] = 52;
  const auto step = described();
  expect_third_node(step);
  EXPECT_EQ(step["job"], 51);
  EXPECT_EQ(step["het_job"], 50);
  EXPECT_EQ(step["het_offset"], 1);
}

// srun sorts the nodes of all components by name; tasks are numbered component by component.
TEST_F(WholeStepTest, ComponentsWhoseNodesLieBetweenEachOther) {
  host().environment["SLURM_JOB_NODELIST_HET_GROUP_0"] = "node[1,3]";
  host().environment["SLURM_JOB_NODELIST_HET_GROUP_1"] = "node2";
  be_node("node2");
  const auto step = described();
  EXPECT_EQ(step["node_index"], 1);
  EXPECT_EQ(step["task_ids"], (nlohmann::json{3, 4}));
}

TEST_F(WholeStepTest, ComponentsWithinAnOrdinaryJob) {
  for (const char* name : {"SLURM_HET_SIZE", "SLURM_JOB_ID_HET_GROUP_0", "SLURM_JOB_ID_HET_GROUP_1",
                           "SLURM_JOB_NODELIST_HET_GROUP_0", "SLURM_JOB_NODELIST_HET_GROUP_1"}) {
    host().environment.erase(name);
  }
  host().items[S_JOB_ID] = 50;
  const auto step = described();
  expect_third_node(step);
  EXPECT_EQ(step["job"], 50);
  EXPECT_FALSE(step.contains("het_job"));
  host().environment["SLURM_STEP_TASKS_PER_NODE"] = "1,1,3";  // not this component's two
  expect_no_prediction();
}

TEST_F(WholeStepTest, WhoCannotTellWhichNodeHeIsSaysSo) {
  host().environment["SLURM_STEP_NODELIST"] = "node[1,3,3]";
  expect_no_prediction();
  host().environment["SLURM_STEP_NODELIST"] = "node[1-3]";
  host().environment["SLURM_JOB_NODELIST_HET_GROUP_0"] = "node[1,3]";  // node3 is of both
  expect_no_prediction();
  host().environment["SLURM_JOB_NODELIST_HET_GROUP_0"] = "node[1-2]";
  be_node("elsewhere");
  expect_no_prediction();
}

TEST_F(DescriptionTest, NodesThatAreNotKnownMeanNoPrediction) {
  be_het_component("HET");
  host().environment.erase("SLURM_JOB_NODELIST_HET_GROUP_1");
  start(S_CTX_REMOTE);
  give_option("lbf-predict", nullptr, true);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre(HasSubstr("the step's nodes")));
  EXPECT_FALSE(host().environment.contains("LD_PRELOAD"));
}

TEST_F(DescriptionTest, ProcessorsAreTheStepsAndNotTheJobs) {
  host().environment["SLURM_CPUS_ON_NODE"] = "16";  // the job's
  host().environment["SLURM_JOB_CPUS_PER_NODE"] = "16(x2)";
  EXPECT_EQ(described()["cpus_on_node"], 8);
  host().items.erase(S_JOB_NCPUS);
  EXPECT_FALSE(described().contains("cpus_on_node"));
}

TEST_F(DescriptionTest, ThreadsAreThoseOfOpenMpElseThoseOfTheTasksProcessors) {
  EXPECT_FALSE(described().contains("threads_per_task"));
  host().items[S_STEP_CPUS_PER_TASK] = 1;
  EXPECT_FALSE(described().contains("threads_per_task")) << "srun's default";
  host().items[S_STEP_CPUS_PER_TASK] = 4;
  EXPECT_EQ(described()["threads_per_task"], 4);
  host().environment["OMP_NUM_THREADS"] = "2,3";
  EXPECT_EQ(described()["threads_per_task"], 2);
  host().environment["OMP_NUM_THREADS"] = "many";
  EXPECT_EQ(described()["threads_per_task"], 4);
}

TEST_F(DescriptionTest, ArgumentsStayWordsAndTooManyAreSaidToBeCut) {
  host().arguments = {"./my app", "-x", "a b", ""};
  auto step = described();
  EXPECT_EQ(step["command"], (nlohmann::json{"./my app", "-x", "a b", ""}));
  EXPECT_FALSE(step.contains("command_cut"));
  host().arguments.assign(300, "x");
  step = described();
  EXPECT_EQ(step["command"].size(), 256U);
  EXPECT_EQ(step["command_cut"], true);
  host().arguments = {"./app", std::string(2000, 'y')};
  step = described();
  EXPECT_EQ(step["command"][1].get<std::string>().size(), 1024U);
  EXPECT_EQ(step["command_cut"], true);
}

}  // namespace
}  // namespace lbf::plugin::step_description_test