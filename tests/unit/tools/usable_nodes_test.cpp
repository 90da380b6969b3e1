// How many nodes a step's partition has for a job: asked only where a report would advise more than ran.
#include "tools/report/usable_nodes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lbf::usable_nodes_test {
namespace {

class FakeSlurm : public advisor::ClusterSource {
 public:
  Result<advisor::Cluster> read() override {
    ++asked;
    if (!answers) return Error{ErrorCode::kUnavailable, "no slurmctld"};
    return advisor::parse_cluster(
        R"({"lbf_cluster": 1, "name": "c",
            "node": [{"name": "n[1-4]", "sockets": 1, "cores_per_socket": 2},
                     {"name": "n[5-6]", "sockets": 1, "cores_per_socket": 2, "up": false}],
            "partition": [{"name": "all", "nodes": "n[1-6]"}, {"name": "few", "nodes": "n[1-4]", "max_nodes": 3},
                          {"name": "down", "nodes": "n1", "up": false}]})",
        "slurm");
  }
  int asked = 0;
  bool answers = true;
};

// 2 nodes ran in 10 s; FASTER_NODES would take half.
report::Step step_on(std::string partition, std::uint32_t faster_nodes) {
  auto steps = report::parse_steps(
      R"({"steps":[{"cluster":"c","job":1,"step":0,"state":"complete","ranks":8,"measured_s":10,"network":"x",)"
      R"("predictions":[{"kind":"self","target":"self","nodes":2,"network":"x","predicted_s":10,"self_error_percent":0},)"
      R"({"kind":"LBF","target":"t","nodes":)" +
      std::to_string(faster_nodes) + R"(,"network":"x","predicted_s":5}]}]})");
  EXPECT_TRUE(steps.ok()) << steps.error().message;
  report::Step step = steps->front();
  step.partition = std::move(partition);
  return step;
}

TEST(UsableNodes, AreThoseOfThePartitionThatTakeJobs) {
  FakeSlurm slurm;
  std::vector<report::Step> steps{step_on("all", 8), step_on("few", 8), step_on("down", 8), step_on("gone", 8)};
  tools::find_usable_nodes(steps, slurm);
  EXPECT_EQ(steps[0].usable_nodes, 4u) << "two are down";
  EXPECT_EQ(steps[1].usable_nodes, 3u) << "of one job";
  EXPECT_EQ(steps[2].usable_nodes, 0u);
  EXPECT_EQ(steps[3].usable_nodes, std::nullopt);
  EXPECT_EQ(slurm.asked, 1);
}

TEST(UsableNodes, AreAskedForOnlyWhereTheyMatter) {
  FakeSlurm slurm;
  std::vector<report::Step> steps{step_on("all", 1), step_on("", 8)};  // fewer nodes than ran; lbf-run
  tools::find_usable_nodes(steps, slurm);
  EXPECT_EQ(slurm.asked, 0);
  EXPECT_EQ(steps[0].usable_nodes, std::nullopt);
}

TEST(UsableNodes, StayUnknownWithoutThisClustersSlurm) {
  FakeSlurm slurm;
  std::vector<report::Step> steps{step_on("all", 8)};
  steps[0].cluster = "other";
  tools::find_usable_nodes(steps, slurm);
  EXPECT_EQ(steps[0].usable_nodes, std::nullopt);
  slurm.answers = false;
  steps[0].cluster = "c";
  tools::find_usable_nodes(steps, slurm);
  EXPECT_EQ(steps[0].usable_nodes, std::nullopt);
}

}  // namespace
}  // namespace lbf::usable_nodes_test
