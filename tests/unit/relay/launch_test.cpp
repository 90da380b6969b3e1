// Which mpirun a process belongs to, and how the runs that mpirun starts become streams of their own.
#include "spank_plugin/relay/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "spank_plugin/relay/relay.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/relay/fake_lbfd.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay::launch_test {
namespace {

std::string environment(std::initializer_list<const char*> words) {
  std::string block;
  for (const char* word : words) block += std::string(word) + '\0';
  return block;
}

TEST(Launch, EveryMpirunHasItsNameOnEveryNode) {
  const Launch four =
      launch_of_environment(environment({"A=B", "PMIX_NAMESPACE=1682046977", "OMPI_COMM_WORLD_LOCAL_SIZE=2"}));
  EXPECT_EQ(four.run, "ompi4-25666");  // 1682046977 = 25666 * 65536 + 1
  EXPECT_FALSE(four.spawned);
  EXPECT_EQ(four.local_size, 2);
  const Launch child = launch_of_environment(environment({"PMIX_NAMESPACE=1682046978"}));
  EXPECT_EQ(child.run, four.run);
  EXPECT_TRUE(child.spawned);
  const Launch five =
      launch_of_environment(environment({"PMIX_NAMESPACE=prterun-node1-2236@1", "OMPI_COMM_WORLD_LOCAL_SIZE=3"}));
  EXPECT_EQ(five.run, "prterun-node1-2236");
  EXPECT_FALSE(five.spawned);
  EXPECT_EQ(five.local_size, 3);
  EXPECT_TRUE(launch_of_environment(environment({"PMIX_NAMESPACE=prterun-node1-2236@2"})).spawned);
}

// What MPICH 4.0.2's mpiexec starts under Slurm.
TEST(Launch, HydraIsNamedByItsProxy) {
  const std::string rank = environment({"PMI_SIZE=4", "PMI_FD=6", "MPI_LOCALNRANKS=2", "SLURM_STEP_ID=3"});
  const std::string proxy = environment({"/usr/bin/hydra_pmi_proxy", "--control-port", "node1:37783", "--rmk", "slurm",
                                         "--pgid", "0", "--proxy-id", "-1"});
  const Launch launch = launch_by_hydra(rank, proxy);
  EXPECT_EQ(launch.run, "hydra-node1:37783-3");
  EXPECT_FALSE(launch.spawned);
  EXPECT_EQ(launch.local_size, 2);
  // A later mpiexec of the job may have the port again, not the step.
  EXPECT_NE(launch_by_hydra(environment({"MPI_LOCALNRANKS=2", "SLURM_STEP_ID=4"}), proxy).run, launch.run);
  const Launch child =
      launch_by_hydra(rank, environment({"hydra_pmi_proxy", "--pgid", "1", "--control-port", "node1:37783"}));
  EXPECT_EQ(child.run, launch.run);
  EXPECT_TRUE(child.spawned);
  EXPECT_EQ(launch_by_hydra(environment({"MPI_LOCALNRANKS=2"}), proxy).run, "hydra-node1:37783-");

  EXPECT_EQ(launch_by_hydra(environment({"PMI_SIZE=4", "PMI_FD=6"}), proxy).run, "") << "srun --mpi=pmi2";
  EXPECT_EQ(launch_by_hydra(rank, environment({"/bin/sh", "hydra_pmi_proxy", "--control-port", "node1:37783"})).run,
            "");
  EXPECT_EQ(launch_by_hydra(rank, environment({"hydra_pmi_proxy", "--control-port"})).run, "");
  EXPECT_EQ(launch_by_hydra(rank, environment({"hydra_pmi_proxy", "--control-port", ""})).run, "");
  EXPECT_EQ(launch_by_hydra(rank, "").run, "");
  EXPECT_EQ(launch_of_environment(rank).run, "");
}

TEST(Launch, SettingsOfCollectivesAreThoseOfThreeLibraries) {
  EXPECT_THAT(mpi_settings_of_environment(environment(
                  {"PATH=/bin", "OMPI_MCA_coll=^han", "OMPI_MCA_coll_tuned_bcast_algorithm=6", "OMPI_MCA_btl=tcp",
                   "OMPI_MCA_collx=1", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial", "MPIR_CVAR_CH4_NETMOD=ofi",
                   "MPICH_COLL_SYNC=1", "MPICH_GPU_SUPPORT_ENABLED=1", "I_MPI_ADJUST_BCAST=1", "I_MPI_FABRICS=shm",
                   "XMPICH_COLL_SYNC=1", "MPICH_COLL_SYNC", "OMPI_MCA_coll_x="})),
              testing::ElementsAre("OMPI_MCA_coll=^han", "OMPI_MCA_coll_tuned_bcast_algorithm=6",
                                   "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial", "MPICH_COLL_SYNC=1",
                                   "I_MPI_ADJUST_BCAST=1", "OMPI_MCA_coll_x="));
  EXPECT_THAT(mpi_settings_of_environment(environment({("OMPI_MCA_coll=" + std::string(300, 'x')).c_str()})),
              testing::IsEmpty());
  std::string many;
  for (int i = 0; i < 100; ++i) many += "OMPI_MCA_coll_" + std::to_string(i) + "=1" + std::string(1, '\0');
  EXPECT_EQ(mpi_settings_of_environment(many).size(), 32U);
  EXPECT_THAT(mpi_settings_of_environment("OMPI_MCA_coll=tuned"), testing::ElementsAre("OMPI_MCA_coll=tuned")) << "cut";
}

TEST(Launch, SlurmsOwnTasksAndStrangeWordsBelongToNoMpirun) {
  EXPECT_EQ(launch_of_environment("").run, "");
  EXPECT_EQ(launch_of_environment(environment({"PMIX_NAMESPACE=slurm.pmix.12.0"})).run, "");
  EXPECT_EQ(launch_of_environment(environment({"PMIX_NAMESPACE="})).run, "");
  EXPECT_EQ(launch_of_environment(environment({"XPMIX_NAMESPACE=1"})).run, "");
  EXPECT_EQ(launch_of_environment(environment({("PMIX_NAMESPACE=" + std::string(300, 'x') + "@1").c_str()})).run, "");
  EXPECT_EQ(launch_of_environment("PMIX_NAMESPACE").run, "");  // cut
  EXPECT_EQ(launch_of_environment(environment({"PMIX_NAMESPACE=65537", "OMPI_COMM_WORLD_LOCAL_SIZE=-4"})).local_size,
            0);
}

TEST(Launch, RunsHaveNumbersThatSlurmNeverGives) {
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t number = step_number_of_run("ompi4-" + std::to_string(i));
    EXPECT_GE(number, kFirstRunNumber);
    EXPECT_LE(number, kLastRunNumber);
    numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), 2000U);
}

// A process with an environment of its own, as mpirun starts it; it does nothing.
class Child {
 public:
  explicit Child(std::vector<std::string> variables, std::string seconds = "600") {
    // Before the fork: behind it, beside the relay's threads, no memory may be asked for.
    std::vector<char*> envp;
    for (std::string& variable : variables) envp.push_back(variable.data());
    envp.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      char name[] = "/bin/sleep";
      char* argv[] = {name, seconds.data(), nullptr};
      ::execve(name, argv, envp.data());
      ::_exit(127);
    }
    // Until exec its environment is this test's.
    for (int i = 0; i < 500 && launch_of_process(pid_).run.empty(); ++i) ::usleep(10'000);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class RunsTest : public testing::Test {
 protected:
  RunsTest() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    end_read_.reset(fds[0]);
    end_write_.reset(fds[1]);
    options_.ring_dir = rings_.path();
    options_.end_fd = end_read_.get();
    options_.deliver_timeout_s = 5;
    // A batch script: no step of its own.
    options_.step_description =
        R"({"cluster":"c","job":7,"mpirun":{"nodes":["n1","n2"],"node_index":1,"cpus_on_node":4}})";
    request_ = [this](std::string_view method, std::string_view target, std::string_view body,
                      std::string_view) -> Result<HttpResponse> {
      const std::lock_guard lock(mutex_);
      if (method == "PUT") descriptions_[std::string(target)] = nlohmann::json::parse(body);
      return lbfd_.handle(method, target, body);
    };
    relay_ = std::thread([this] {
      auto result = run_relay(options_, request_, stop_);
      EXPECT_TRUE(result.ok());
      if (result) outcome_ = result->outcome;
      if (result) nothing_ = result->nothing;
    });
  }
  ~RunsTest() override { end(); }
  void end() {
    end_write_.reset();
    if (relay_.joinable()) relay_.join();
  }
  // The ring of a process that has come out of MPI_Init, sent once, and ended. It does not say how it was
  // started.
  std::unique_ptr<RingFile> ring(const Child& child, Rank rank, std::int32_t world_size) {
    return ring(child.pid(), rank, world_size);
  }
  std::unique_ptr<RingFile> ring(pid_t pid, Rank rank, std::int32_t world_size, const std::string& launch = "") {
    auto file = std::make_unique<RingFile>(staging_.path(), pid, pid);
    for (std::size_t i = 0; i < launch.size(); ++i) file->put(offsetof(ring::Header, launch) + i, launch[i]);
    file->put(offsetof(ring::Header, rank), rank);
    file->put(offsetof(ring::Header, world_size), world_size);
    EXPECT_TRUE(file->append(RingFile::record(EventKind::kSend, 2000, 2050)));
    EXPECT_TRUE(file->append(RingFile::record(EventKind::kExit, 3000, 3000)));
    file->set_state(ring::ProcessState::kFinalized);
    std::filesystem::rename(file->path, rings_.path() + "/" + file->name);
    return file;
  }
  std::string target(const std::string& run) const {
    return "/v1/steps/c/7/" + std::to_string(step_number_of_run(run)) + "/0/streams/1";
  }
  std::size_t streams() {
    const std::lock_guard lock(mutex_);
    return descriptions_.size();
  }
  bool ended(const std::string& run) {
    for (int i = 0; i < 500; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (lbfd_.ends.contains(target(run))) return true;
      }
      ::usleep(10'000);
    }
    return false;
  }

  test::TemporaryDirectory rings_;
  test::TemporaryDirectory staging_;
  ScopedFd end_read_;
  ScopedFd end_write_;
  RelayOptions options_;
  std::mutex mutex_;
  FakeLbfd lbfd_;
  std::map<std::string, nlohmann::json> descriptions_;
  RequestFunction request_;
  std::atomic<bool> stop_{false};
  Outcome outcome_ = Outcome::kUnderWay;
  std::string nothing_;
  std::thread relay_;
};

TEST_F(RunsTest, EachMpirunIsAStreamOfItsOwnThatEndsWithItsRanks) {
  const Child a2({"PMIX_NAMESPACE=65537", "OMPI_COMM_WORLD_LOCAL_SIZE=2"});
  const Child a3({"PMIX_NAMESPACE=65537", "OMPI_COMM_WORLD_LOCAL_SIZE=2"});
  const Child b0({"PMIX_NAMESPACE=131073", "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
  const auto ring_a2 = ring(a2, 2, 4);
  ::usleep(300'000);
  EXPECT_EQ(streams(), 0U) << "the other rank of this node is still in MPI_Init";
  const auto ring_b0 = ring(b0, 0, 2);
  ASSERT_TRUE(ended("ompi4-2")) << "one run is over while another one begins";
  const auto ring_a3 = ring(a3, 3, 4);
  ASSERT_TRUE(ended("ompi4-1")) << "the script goes on";
  end();
  EXPECT_EQ(outcome_, Outcome::kDelivered);
  ASSERT_EQ(descriptions_.size(), 2U);
  const nlohmann::json& a = descriptions_[target("ompi4-1")];
  EXPECT_EQ(a["tasks"], 4);
  EXPECT_EQ(a["task_ids"], (nlohmann::json{2, 3}));
  EXPECT_EQ(a["nodes"], (nlohmann::json{"n1", "n2"}));
  EXPECT_EQ(a["node_index"], 1);
  EXPECT_EQ(a["cpus_on_node"], 4);
  EXPECT_EQ(a["launcher"], "mpirun");
  EXPECT_EQ(a["command"], (nlohmann::json{"/bin/sleep", "600"}));
  EXPECT_FALSE(a.contains("mpirun"));
  EXPECT_EQ(descriptions_[target("ompi4-2")]["tasks"], 2);
  EXPECT_EQ(lbfd_.decode(target("ompi4-1")).events.size(), 4U);
  const auto b = lbfd_.decode(target("ompi4-2"));
  EXPECT_EQ(b.events.size(), 2U);
  EXPECT_EQ(b.controls.back()["processes_left_out"], 0) << "the other run's processes are not its own";
}

// mpirun -n 1 ./a : -n 1 ./b
TEST_F(RunsTest, OfSeveralProgramsTheLowestRanksIsTheCommand) {
  const Child second({"PMIX_NAMESPACE=65537", "OMPI_COMM_WORLD_LOCAL_SIZE=2"}, "601");
  const Child first({"PMIX_NAMESPACE=65537", "OMPI_COMM_WORLD_LOCAL_SIZE=2"}, "602");
  const auto ring_1 = ring(second, 1, 2);
  ::usleep(50'000);
  const auto ring_0 = ring(first, 0, 2);
  ASSERT_TRUE(ended("ompi4-1"));
  end();
  EXPECT_EQ(descriptions_[target("ompi4-1")]["command"], (nlohmann::json{"/bin/sleep", "602"}));
}

TEST_F(RunsTest, SpawnedProcessesAreLeftOutAndCounted) {
  const Child parent({"PMIX_NAMESPACE=65537", "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
  const Child spawned({"PMIX_NAMESPACE=65538", "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
  const auto spawned_ring = ring(spawned, 0, 2);
  ::usleep(100'000);
  const auto parent_ring = ring(parent, 1, 2);
  ASSERT_TRUE(ended("ompi4-1"));
  end();
  const auto decoded = lbfd_.decode(target("ompi4-1"));
  EXPECT_EQ(decoded.events.size(), 2U) << "the parent's alone";
  EXPECT_EQ(decoded.controls.back()["processes_left_out"], 1);
}

// A process that overwrites its environment (setproctitle) was taken for none of mpirun's, and silently not captured.
TEST_F(RunsTest, TheRingSaysWhichLaunchWhateverTheProcessDoesToItsEnvironment) {
  const auto mine = ring(::getpid(), 0, 2, environment({"PMIX_NAMESPACE=65537", "OMPI_COMM_WORLD_LOCAL_SIZE=1"}));
  ASSERT_TRUE(ended("ompi4-1"));
  end();
  EXPECT_EQ(lbfd_.decode(target("ompi4-1")).events.size(), 2U);
}

TEST_F(RunsTest, AProcessWithoutALauncherIsNamedAsSuch) {
  const auto mine = ring(::getpid(), 0, 1);
  ::usleep(200'000);
  end();
  EXPECT_EQ(lbfd_.requests, 0);
  EXPECT_THAT(nothing_, testing::HasSubstr("without mpirun or srun"));
}

TEST_F(RunsTest, AScriptWithoutMpiSendsNothing) {
  ::usleep(200'000);
  end();
  EXPECT_EQ(outcome_, Outcome::kDelivered);
  EXPECT_EQ(lbfd_.requests, 0);
}

}  // namespace
}  // namespace lbf::relay::launch_test