// Who had the processors while ranks waited for one.
#include "spank_plugin/relay/processor_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "spank_plugin/relay/cgroup.h"
#include "spank_plugin/relay/freezer.h"
#include "tests/support/temporary_directory.h"

namespace lbf::relay::processor_watch_test {
namespace {

// user nice system idle iowait irq softirq steal guest guest_nice
constexpr const char* kStat =
    "cpu  3000 20 400 9000 50 1 60 70 0 0\n"
    "cpu0 1000 10 200 3000 20 1 30 40 5 0\n"
    "cpu1 100 0 10 5000 30 0 20 30 0 0\n"
    "cpu10 7 0 0 0 0 0 0 0 0 0\n"
    "intr 5 0\nctxt 1\n";

TEST(ProcessorTimes, OfTheProcessorsOnWhichRanksMayRun) {
  const ProcessorTimes one = processor_times_in(kStat, {true, false}, 0.01);
  EXPECT_EQ(one.processors, 1U);
  EXPECT_DOUBLE_EQ(one.busy_s, 12.41);
  EXPECT_DOUBLE_EQ(one.stolen_s, 0.4);
  EXPECT_DOUBLE_EQ(one.softirq_s, 0.3);
  const ProcessorTimes both = processor_times_in(kStat, {true, true}, 0.01);
  EXPECT_EQ(both.processors, 2U);
  EXPECT_DOUBLE_EQ(both.busy_s, 12.41 + 1.3);
  EXPECT_EQ(processor_times_in(kStat, {}, 0.01).processors, 0U);
  EXPECT_EQ(processor_times_in("cpu0\ncpux 1\ncpu0 a b", {true}, 0.01).busy_s, 0);
}

// Two ranks on two processors beside two spinning programs: each one runs for half of the time.
TEST(DelayShares, OfRanksThatHaveAProcessorEachIsAllOfOthers) {
  const DelayShares shares = shares_of({2.0, 0, 1.0, 1.0});
  EXPECT_DOUBLE_EQ(shares.others, 1);
  EXPECT_DOUBLE_EQ(shares.limited, 0);
}

// Four ranks on two processors, nobody else: they wait for each other.
TEST(DelayShares, OfRanksThatShareProcessorsAmongThemselvesIsTheirOwn) {
  EXPECT_DOUBLE_EQ(shares_of({2.0, 0, 2.0, 2.0}).not_the_jobs(), 0);
}

// ... and beside two spinning programs, where each of the six runs for a third of the time: the job ran 4/3 s instead
// of 2 s, and its ranks waited for 8/3 s.
TEST(DelayShares, OfBothIsWhatTheJobWouldHaveRun) {
  const DelayShares shares = shares_of({2.0, 0, 4.0 / 3, 8.0 / 3});
  EXPECT_NEAR(shares.others * 8 / 3, 2.0 / 3, 1e-12);
}

// A CPU limit of half a processor for one rank: nobody else ran.
TEST(DelayShares, OfACpuLimitIsNoOtherProgram) {
  const DelayShares shares = shares_of({0.5, 0.5, 0.5, 0.5});
  EXPECT_DOUBLE_EQ(shares.limited, 1);
  EXPECT_DOUBLE_EQ(shares.others, 0);
}

TEST(DelayShares, OfNoDelayAreNone) {
  EXPECT_DOUBLE_EQ(shares_of({2.0, 1.0, 0, 0}).not_the_jobs(), 0);
}

TEST(ProcessorWatch, LooksAtTheProcessorsOfItsRanksNowAndThen) {
  const std::int32_t self = ::getpid();
  ProcessorWatch watch;
  watch.look(1'000'000'000, {}, {});
  EXPECT_DOUBLE_EQ(watch.shares().others, 0) << "no ranks yet";
  watch.look(2'000'000'000, {&self, 1}, {});
  EXPECT_DOUBLE_EQ(watch.shares().others, 1) << "one rank has a processor of its own";
  watch.look(2'100'000'000, {&self, 1}, {});
  EXPECT_FALSE(watch.record(3)) << "too early";
  watch.look(3'000'000'000, {&self, 1}, {});
  const auto record = watch.record(3);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->node_index, 3U);
  EXPECT_GE(record->processors, 1U);
  EXPECT_DOUBLE_EQ(record->passed_s, static_cast<double>(record->processors));
  EXPECT_DOUBLE_EQ(watch.shares().others, 0) << "the rank did not wait";
}

TEST(Cgroup, OfTheCpuControllerIsThatOfEitherVersion) {
  const auto first = cgroup_folder_in("cpu", "4:cpu,cpuacct:/slurm/job_5\n0::/user.slice\n",
                                      "32 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  ASSERT_TRUE(first);
  EXPECT_EQ(cpu_stat_files(*first), (std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct/slurm/job_5/cpu.stat",
                                                              "/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.stat",
                                                              "/sys/fs/cgroup/cpu,cpuacct/cpu.stat"}));
  const auto second = cgroup_folder_in("cpu", "0::/a/job_5\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  ASSERT_TRUE(second);
  EXPECT_EQ(cpu_stat_files(*second).front(), "/sys/fs/cgroup/a/job_5/cpu.stat");
  const auto root = cgroup_folder_in("cpu", "0::/\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  ASSERT_TRUE(root);
  EXPECT_EQ(cpu_stat_files(*root), (std::vector<std::string>{"/sys/fs/cgroup/cpu.stat"}));
}

// cgroup/v2 of Slurm's releases: job_N up to 25.11, and in 26.05 with CgroupJobIdPaths=yes; else 26.05 names the job by
// its SLUID. slurmstepd's scope has the node's name where a host has several slurmds. Nothing here reads the names.
TEST(Cgroup, OfEveryLayoutOfSlurms) {
  const test::TemporaryDirectory directory;
  const std::string mounts = "30 23 0:26 / " + directory.path() + " rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
  for (const std::string job :
       {"/system.slice/slurmstepd.scope/job_5", "/system.slice/node1_slurmstepd.scope/sDKJB74GMCVM00",
        "/site.slice/slurmstepd.scope/sDKJB74GMCVM00", "/docker/4c0f/system.slice/node1_slurmstepd.scope/job_5"}) {
    const std::string task = job + "/step_0/user/task_0";
    std::filesystem::create_directories(directory.path() + task);
    std::ofstream(directory.path() + job + "/cpu.stat") << "usage_usec 9\nthrottled_usec 1500000\n";
    std::ofstream(directory.path() + task + "/cgroup.events") << "populated 1\nfrozen 1\n";
    for (const std::string& of : {task, job + "/step_0/user/task_special", job + "/step_batch/user/task_0",
                                  job + "/step_extern/user/task_special", job + "/step_0+1/user/task_0"}) {
      const auto folder = cgroup_folder_in("cpu", "0::" + of + "\n", mounts);
      ASSERT_TRUE(folder) << of;
      Seconds throttled_s = 0;
      for (const std::string& file : cpu_stat_files(*folder))
        throttled_s = std::max(throttled_s, throttled_in(read_whole(file)));
      EXPECT_DOUBLE_EQ(throttled_s, 1.5) << of;
    }
    EXPECT_TRUE(is_frozen(freezer_file_in("0::" + task + "\n", mounts))) << task;
  }
}

TEST(Cgroup, SaysForHowLongItWasThrottled) {
  EXPECT_DOUBLE_EQ(throttled_in("usage_usec 7\nnr_periods 3\nthrottled_usec 2500000\n"), 2.5);
  EXPECT_DOUBLE_EQ(throttled_in("nr_periods 3\nnr_throttled 2\nthrottled_time 2500000000\n"), 2.5);
  EXPECT_DOUBLE_EQ(throttled_in("throttled_usec\n\nthrottled_usec x\n"), 0);
}

}  // namespace
}  // namespace lbf::relay::processor_watch_test
