// Flags, host files, and words for ranks.
#include "advisor/advice/how.h"

#include <gtest/gtest.h>

#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::how_test {
namespace {

Candidate candidate(const std::string& placement, std::vector<std::uint32_t> node_of_rank, std::uint32_t nodes) {
  Candidate made;
  made.target.placement = placement;
  made.target.node_of_rank = std::move(node_of_rank);
  made.target.nodes = nodes;
  made.target.cores_per_node = 2;
  made.target.network = test::slow_network();
  for (std::uint32_t node = 0; node < nodes; ++node) made.node_names.push_back("n" + std::to_string(node + 1));
  return made;
}

TEST(SrunFlags, Distributions) {
  EXPECT_EQ(srun_flags(candidate("block", {0, 0}, 1), "./h"), "-N1 -n2");
  EXPECT_EQ(srun_flags(candidate("block", {0, 0, 1, 1}, 2), "./h"), "-N2 -n4 --distribution=block --ntasks-per-node=2");
  EXPECT_EQ(srun_flags(candidate("plane=2", {0, 0, 1}, 2), "./h"),
            "-N2 -n3 --distribution=plane=2 --ntasks-per-node=2");
  EXPECT_EQ(srun_flags(candidate("block", {0, 0, 0, 1}, 2), "./h"), "-N2 -n4 --distribution=block")
      << "no node has three processors";
  Candidate planes = candidate("plane=4", {0, 0, 0, 0, 1, 1, 1, 1, 0, 0}, 2);
  planes.target.cores_per_node = 8;
  EXPECT_EQ(srun_flags(planes, "./h"), "-N2 -n10 --distribution=plane=4 --ntasks-per-node=6") << "6 and 4";
}

TEST(SrunFlags, NodesThatDiffer) {
  Candidate one = candidate("block", {0, 0, 1, 1}, 2);
  one.set.by_name = true;
  one.target.cores_of_node = {4, 2};
  one.target.speed_of_node = {1, 1};
  EXPECT_EQ(srun_flags(one, "./h"), "-N2 -n4 --distribution=block --ntasks-per-node=2 --nodelist=n[1-2]");
  EXPECT_EQ(host_file_of(one), "");
  one.target.node_of_rank = {0, 0, 0, 1};
  EXPECT_TRUE(one.needs_host_file());
  EXPECT_FALSE(one.is_map());
  EXPECT_EQ(srun_flags(one, "./h"), "-N2 -n4 --distribution=arbitrary --nodelist=./h")
      << "--ntasks-per-node=3 would want three processors of the smaller node, too";
  EXPECT_EQ(host_file_of(one), "n1\nn1\nn1\nn2\n");
  EXPECT_EQ(describe_briefly(one), "2 nodes, block");
  EXPECT_EQ(srun_flags_of_what_ran(one), "-N2 -n4");
  one.target.cores_of_node = {4, 4};
  EXPECT_EQ(srun_flags(one, "./h"), "-N2 -n4 --distribution=block --ntasks-per-node=3 --nodelist=n[1-2]")
      << "what differs is not their processors";
}

TEST(SrunFlags, OvercommitOnNodesThatDiffer) {
  Candidate one = candidate("cyclic", {0, 1, 0, 1, 0, 0, 0, 1}, 2);
  one.overcommits = true;
  one.target.cores_of_node = {4, 2};
  one.target.speed_of_node = {1, 1};
  EXPECT_EQ(srun_flags(one, "./h"), "-N2 -n8 --distribution=arbitrary --nodelist=./h --overcommit --cpus-per-task=2")
      << "no node has more than its processors";
  one.target.cores_of_node = {4, 1};
  EXPECT_EQ(srun_flags(one, "./h"), "-N2 -n8 --distribution=arbitrary --nodelist=./h --overcommit");
}

TEST(SrunFlags, WhereAndWithWhat) {
  Candidate one = candidate("cyclic", {0, 1}, 2);
  one.set.partition = "long";
  one.set.constraint = "ib";
  EXPECT_EQ(srun_flags(one, "./h"),
            "--partition=long -N2 -n2 --distribution=cyclic --ntasks-per-node=1 --constraint=ib");
  one.set.constraint = "";
  one.set.by_name = true;
  EXPECT_EQ(srun_flags(one, "./h"),
            "--partition=long -N2 -n2 --distribution=cyclic --ntasks-per-node=1 --nodelist=n[1-2]");
  Candidate crowded = candidate("block", {0, 0, 0, 1, 1}, 2);
  crowded.overcommits = true;
  EXPECT_EQ(srun_flags(crowded, "./h"), "-N2 -n5 --distribution=block --overcommit --cpus-per-task=2");
}

TEST(SrunFlags, ThreadsOfEachRank) {
  Candidate one = candidate("block", {0, 0, 1, 1}, 2);
  one.target.cores_per_node = 8;
  one.target.threads = 4;
  EXPECT_EQ(srun_flags(one, "./h"),
            "-N2 -n4 --distribution=block --ntasks-per-node=2 --cpus-per-task=4 --export=ALL,OMP_NUM_THREADS=4");
  EXPECT_EQ(describe_briefly(one), "2 nodes, block, 4 threads");
  one.overcommits = true;
  one.target.threads = 1;
  EXPECT_EQ(srun_flags(one, "./h"),
            "-N2 -n4 --distribution=block --overcommit --cpus-per-task=8 --export=ALL,OMP_NUM_THREADS=1");
}

TEST(SrunFlags, ComputedMappings) {
  const Candidate map = candidate("map", {0, 1, 1, 0}, 2);
  EXPECT_EQ(srun_flags(map, "./hosts"), "-N2 -n4 --distribution=arbitrary --nodelist=./hosts");
  EXPECT_EQ(host_file_of(map), "n1\nn2\nn2\nn1\n");
  EXPECT_EQ(host_file_of(candidate("block", {0, 1}, 2)), "");
}

TEST(Describe, Candidates) {
  Candidate one = candidate("map", {0, 1}, 2);
  EXPECT_EQ(describe_briefly(one), "2 nodes, computed mapping");
  one.set.partition = "long";
  EXPECT_EQ(describe(one), "2 nodes of long, computed mapping, slow");
  EXPECT_EQ(describe_briefly(candidate("block", {0}, 1)), "1 node");
}

TEST(Ranges, AsPeopleWriteThem) {
  EXPECT_EQ(ranges({0, 1, 2, 5, 7, 8}, 9), "0-2,5,7-8");
  EXPECT_EQ(ranges({0, 2, 4, 6}, 2), "0,2,...");
  EXPECT_EQ(ranges({}, 2), "");
}

}  // namespace
}  // namespace lbf::advisor::how_test