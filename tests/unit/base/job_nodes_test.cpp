#include "base/job_nodes.h"

#include <gtest/gtest.h>

namespace lbf::job_nodes_test {
namespace {

using Nodes = std::vector<std::string>;

TEST(JobNodes, TheJobsListUnlessTheOtherHoldsItAndMore) {
  EXPECT_EQ(nodes_of_job({"n1", "n2"}, {"n2"}), (Nodes{"n1", "n2"}));
  EXPECT_EQ(nodes_of_job({"n1", "n2"}, {"n2", "n1"}), (Nodes{"n1", "n2"})) << "the same nodes: its order";
  EXPECT_EQ(nodes_of_job({"n2"}, {"n1", "n2"}), (Nodes{"n1", "n2"})) << "srun --external-launcher";
  EXPECT_EQ(nodes_of_job({"n1", "n2"}, {"n2", "n3", "n4"}), (Nodes{"n1", "n2"})) << "another job's";
  EXPECT_EQ(nodes_of_job({"n1"}, {}), Nodes{"n1"});
  EXPECT_EQ(nodes_of_job({}, {"n1"}), Nodes{"n1"});
}

}  // namespace
}  // namespace lbf::job_nodes_test