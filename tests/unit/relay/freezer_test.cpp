// Where the kernel says that a cgroup is frozen: the lines are those of real machines.
#include "spank_plugin/relay/freezer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace lbf::relay::freezer_test {
namespace {

constexpr const char* kVersion1Mounts =
    "24 29 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
    "32 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
    "36 25 0:32 / /sys/fs/cgroup/freezer rw,nosuid shared:14 master:2 - cgroup cgroup rw,freezer\n"
    "40 25 0:36 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(Freezer, OfVersion1) {
  EXPECT_EQ(
      freezer_file_in("12:cpu,cpuacct:/\n7:freezer:/slurm/uid_1000/job_5/step_0\n0::/user.slice\n", kVersion1Mounts),
      "/sys/fs/cgroup/freezer/slurm/uid_1000/job_5/step_0/freezer.state");
}

TEST(Freezer, OfVersion2) {
  EXPECT_EQ(
      freezer_file_in(
          "0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0\n",
          "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"),
      "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_5/step_0/user/task_0/cgroup.events");
}

// A container, or a node of the test cluster, sees a part of the tree, mounted over the whole.
TEST(Freezer, BelowTheRootOfItsMount) {
  const std::string mounts = std::string(kVersion1Mounts) +
                             "90 36 0:32 /lbf-cluster/node1 /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
  EXPECT_EQ(freezer_file_in("7:freezer:/lbf-cluster/node1/job_5\n", mounts),
            "/sys/fs/cgroup/freezer/job_5/freezer.state");
  EXPECT_EQ(freezer_file_in("7:freezer:/lbf-cluster/node1\n", mounts), "/sys/fs/cgroup/freezer/freezer.state");
  EXPECT_EQ(freezer_file_in("7:freezer:/lbf-cluster/node10/job_5\n", mounts),
            "/sys/fs/cgroup/freezer/lbf-cluster/node10/job_5/freezer.state")
      << "not in that part";
}

TEST(Freezer, ThereMayBeNone) {
  EXPECT_EQ(freezer_file_in("", kVersion1Mounts), "");
  EXPECT_EQ(freezer_file_in("nonsense\n:\n7:cpu:/\n", kVersion1Mounts), "");
  EXPECT_EQ(freezer_file_in("7:freezer:/job_5\n", ""), "");
  EXPECT_EQ(freezer_file_in("7:freezer:/job_5\n", "36 25 0:32 / /sys\n\n- - - -\n36 25 0:32 / /x rw -\n"), "");
  EXPECT_EQ(freezer_file_of(0), "");
}

TEST(Freezer, SaysWhetherItIsFrozen) {
  const std::string path = testing::TempDir() + "freezer." + std::to_string(::getpid());
  const auto says = [&](const char* content) {
    std::ofstream(path) << content;
    return is_frozen(path);
  };
  EXPECT_TRUE(says("FROZEN\n"));
  EXPECT_FALSE(says("THAWED\n"));
  EXPECT_FALSE(says("FREEZING\n")) << "some still run";
  EXPECT_TRUE(says("populated 1\nfrozen 1\n"));
  EXPECT_FALSE(says("populated 1\nfrozen 0\n"));
  EXPECT_FALSE(says(""));
  ::unlink(path.c_str());
  EXPECT_FALSE(is_frozen(path));
  EXPECT_FALSE(is_frozen(""));
}

}  // namespace
}  // namespace lbf::relay::freezer_test