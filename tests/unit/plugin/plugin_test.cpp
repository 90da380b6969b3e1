// lbf.so under a fake SPANK host: every hook in every context, every missing item, and a relay that is really
// started as another user. Whatever happens, a hook returns ESPANK_SUCCESS.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/unit/plugin/plugin_fixture.h"

extern "C" {
#include <slurm/slurm.h>
}

namespace lbf::plugin::plugin_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uid_t kNobody = 65534;

const char* const kHooks[] = {"init",      "init_post_opt", "local_user_init", "user_init", "task_init",
                              "task_exit", "exit"};

TEST_F(PluginTest, ExportsWhatSlurmLooksUpAndNothingElse) {
  void* handle = ::dlopen(LBF_PLUGIN_PATH, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  EXPECT_STREQ(static_cast<const char*>(::dlsym(handle, "plugin_name")), "lbf");
  EXPECT_STREQ(static_cast<const char*>(::dlsym(handle, "plugin_type")), "spank");
  EXPECT_EQ(*static_cast<const unsigned*>(::dlsym(handle, "plugin_version")), SLURM_VERSION_NUMBER);
  EXPECT_EQ(*static_cast<const unsigned*>(::dlsym(handle, "spank_plugin_version")), 1U);
  EXPECT_EQ(::dlsym(handle, "_ZN3lbf6plugin5stateEv"), nullptr);
  ::dlclose(handle);
}

TEST_F(PluginTest, OptionsAreRegisteredWhereUsersGiveThem) {
  for (const spank_context_t context : {S_CTX_LOCAL, S_CTX_ALLOCATOR, S_CTX_REMOTE}) {
    host().options.clear();
    start(context);
    ASSERT_EQ(host().options.size(), 5U);
    EXPECT_EQ(host().options["lbf-predict"].has_arg, 2);  // optional argument
    EXPECT_EQ(host().options["lbf-networks"].has_arg, 1);
    EXPECT_EQ(host().options["lbf-overhead"].has_arg, 1);
    EXPECT_EQ(host().options["lbf-procedures"].has_arg, 1);
    EXPECT_EQ(host().options["lbf-limits"].has_arg, 1);
  }
  host().options.clear();
  start(S_CTX_SLURMD);
  EXPECT_TRUE(host().options.empty());
}

TEST_F(PluginTest, EveryHookInEveryContextSucceedsWithoutAnyItem) {
  host().items.clear();
  host().environment.clear();
  for (const spank_context_t context :
       {S_CTX_ERROR, S_CTX_LOCAL, S_CTX_REMOTE, S_CTX_ALLOCATOR, S_CTX_SLURMD, S_CTX_JOB_SCRIPT}) {
    host().context = context;
    for (const bool on : {false, true}) {
      for (const char* hook : kHooks) {
        EXPECT_EQ(call_hook(hook, arguments(on ? std::vector<std::string>{"default=on"} : std::vector<std::string>{})),
                  ESPANK_SUCCESS)
            << hook;
      }
    }
  }
}

TEST_F(PluginTest, EveryMissingItemLeavesTheJobAlone) {
  const auto all = host().items;
  for (const auto& [item, value] : all) {
    host().items = all;
    host().items.erase(item);
    host().said.clear();
    host().environment.erase("LBF_CAPTURE_DIR");
    host().environment.erase("LD_PRELOAD");
    start(S_CTX_REMOTE);
    EXPECT_EQ(give_option("lbf-predict", nullptr, true), ESPANK_SUCCESS);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    const bool started = host().environment.contains("LBF_CAPTURE_DIR");
    EXPECT_EQ(started, host().environment.contains("LD_PRELOAD"));
    if (!started && item != S_JOB_STEPID) {
      EXPECT_THAT(host().said, Contains(HasSubstr("the job runs without prediction"))) << "item " << item;
    }
    EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
    EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  }
}

TEST_F(PluginTest, AnExceptionDoesNotEscape) {
  start(S_CTX_REMOTE);
  give_option("lbf-predict", nullptr, true);
  host().getenv_throws = true;
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre(HasSubstr("lbf: user_init: getenv broke")));
}

TEST_F(PluginTest, WrongPlugstackArgumentsTurnItOffWithOneLineForWhoAsked) {
  start(S_CTX_LOCAL, {"overhead_limit=x"});
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, IsEmpty());  // who did not ask is not bothered: srun's log is the user's screen
  EXPECT_THAT(host().logged, IsEmpty());
  start(S_CTX_REMOTE, {"overhead_limit=x"});
  EXPECT_THAT(host().logged, ElementsAre(HasSubstr("overhead_limit=x")));
  start(S_CTX_LOCAL, {"overhead_limit=x"});
  give_option("lbf-predict", nullptr);
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre(HasSubstr("overhead_limit=x")));
  EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_EQ(host().said.size(), 1U);
  EXPECT_STREQ(::getenv("LBF_CONFIG_TOLD"), "1");  // so that the nodes do not say it again
  ::unsetenv("LBF_CONFIG_TOLD");
}

TEST_F(PluginTest, FailingRegistrationIsLoggedOnly) {
  host().register_fails = true;
  start(S_CTX_LOCAL);
  EXPECT_EQ(host().logged.size(), 5U);
  EXPECT_THAT(host().said, IsEmpty());
}

TEST_F(PluginTest, WrongOptionValuesNeverFailTheCommand) {
  start(S_CTX_LOCAL);
  EXPECT_EQ(give_option("lbf-predict", nullptr), ESPANK_SUCCESS);
  EXPECT_EQ(give_option("lbf-overhead", "x"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said,
              ElementsAre("lbf: --lbf-overhead=x: that is no number; give a percentage, 0 to 100; the job runs without "
                          "prediction"));
}

TEST_F(PluginTest, SallocAndSbatchPassTheOptionsOn) {
  start(S_CTX_ALLOCATOR);
  give_option("lbf-predict", nullptr);
  give_option("lbf-networks", "a,b");
  give_option("lbf-limits", "spool_limit_mb=5");
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_STREQ(::getenv("LBF_PREDICT"), "on");
  EXPECT_STREQ(::getenv("LBF_NETWORKS"), "a,b");
  EXPECT_STREQ(::getenv("LBF_LIMITS"), "spool_limit_mb=5");
  EXPECT_EQ(::getenv("LBF_OVERHEAD"), nullptr);
}

// sbatch inside a job inherited what the outer job's options had set.
TEST_F(PluginTest, AJobThatAJobSubmitsHasNoneOfItsOptions) {
  const auto submit = [&](std::vector<std::pair<const char*, const char*>> options) {
    start(S_CTX_ALLOCATOR);
    for (const auto& [name, value] : options) give_option(name, value);
    EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  };
  ::setenv("LBF_OVERHEAD", "1", 1);  // the user's own
  submit({{"lbf-predict", nullptr}, {"lbf-overhead", "0.5"}, {"lbf-networks", "a"}});
  EXPECT_STREQ(::getenv("LBF_OVERHEAD"), "0.5");
  ::setenv("LBF_NETWORKS", "b", 1);  // in the script
  submit({});
  EXPECT_EQ(::getenv("LBF_PREDICT"), nullptr);
  EXPECT_STREQ(::getenv("LBF_OVERHEAD"), "1");
  EXPECT_STREQ(::getenv("LBF_NETWORKS"), "b") << "the user's own, too";
  EXPECT_EQ(::getenv("LBF_OPTION_PREDICT"), nullptr);
  submit({{"lbf-predict", "off"}});
  EXPECT_STREQ(::getenv("LBF_PREDICT"), "off");
  for (const char* name : {"LBF_OPTION_PREDICT", "LBF_USER_OVERHEAD", "LBF_OPTION_OVERHEAD"}) ::unsetenv(name);
}

// A script under lbf-run submits a job, which runs when lbf-run may be gone.
TEST_F(PluginTest, ABatchJobLeavesLbfRun) {
  const std::vector<std::pair<const char*, const char*>> of_lbf_run = {{"LBF_PREDICT", "off"},
                                                                       {"LBF_RUN_USER_PREDICT", "on"},
                                                                       {"LBF_RUN_RING_DIR", "/dev/shm"},
                                                                       {"LBF_CAPTURE_DIR", "/dev/shm/lbf-run-1-a"},
                                                                       {"LBF_TOKEN", "t"},
                                                                       {"SLURM_TASK_PROLOG", "/l/lbf-task-prolog"},
                                                                       {"SLURM_TASK_EPILOG", "/l/lbf-task-epilog"},
                                                                       {"LBF_RUN_USER_TASK_EPILOG", "/mine"},
                                                                       {"LD_PRELOAD", "/l/liblbf_capture.so:/u.so"}};
  char* const own_name = program_invocation_short_name;
  char sbatch[] = "sbatch";
  for (char* const name : {own_name, sbatch}) {
    for (const auto& [variable, value] : of_lbf_run) ::setenv(variable, value, 1);
    program_invocation_short_name = name;
    start(S_CTX_ALLOCATOR);
    EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
    program_invocation_short_name = own_name;
    const bool left = name == sbatch;
    EXPECT_STREQ(::getenv("LBF_PREDICT"), left ? "on" : "off") << "salloc's command is lbf-run's";
    EXPECT_STREQ(::getenv("SLURM_TASK_EPILOG"), left ? "/mine" : "/l/lbf-task-epilog");
    EXPECT_STREQ(::getenv("LD_PRELOAD"), left ? "/u.so" : "/l/liblbf_capture.so:/u.so");
    for (const char* variable : {"LBF_CAPTURE_DIR", "LBF_TOKEN", "SLURM_TASK_PROLOG", "LBF_RUN_RING_DIR"})
      EXPECT_EQ(::getenv(variable) == nullptr, left) << variable;
  }
  for (const auto& [variable, value] : of_lbf_run) ::unsetenv(variable);
}

TEST_F(PluginTest, TheBatchStepPassesTheOptionsOnAndIsReadyForMpirun) {
  host().environment["SLURM_JOB_NODELIST"] = "node[1-3]";
  host().environment["SLURM_CPUS_ON_NODE"] = "6";
  for (const std::uint32_t step : {SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP}) {
    host().items[S_JOB_STEPID] = step;
    host().items.erase(S_JOB_TOTAL_TASK_COUNT);  // a script has none
    host().items.erase(S_JOB_LOCAL_TASK_COUNT);
    host().environment.erase("LD_PRELOAD");
    start(S_CTX_REMOTE);
    give_option("lbf-predict", "", true);  // so Slurm hands on an option without a value
    give_option("lbf-overhead", "1", true);
    give_option("lbf-limits", "relay_cpu_limit=0.5", true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    EXPECT_THAT(host().said, IsEmpty());
    EXPECT_EQ(host().environment["LBF_PREDICT"], "on");
    EXPECT_EQ(host().environment["LBF_OPTION_PREDICT"], "on") << "so that a job inside it does not inherit it";
    EXPECT_EQ(host().environment["LBF_OVERHEAD"], "1");
    EXPECT_FALSE(host().environment.contains("LBF_CAPTURE_RANKS")) << "mpirun knows how many";
    EXPECT_EQ(host().environment["LBF_LIMITS"], "relay_cpu_limit=0.5");
    EXPECT_EQ(host().environment["LD_PRELOAD"], capture_);
    const auto json = nlohmann::json::parse(contents(rings() + "/step.json"));
    EXPECT_FALSE(json.contains("step")) << "a script is no program";
    EXPECT_EQ(json["mpirun"]["nodes"], (nlohmann::json{"node1", "node2", "node3"}));
    EXPECT_EQ(json["mpirun"]["node_index"], 1);
    EXPECT_EQ(json["mpirun"]["cpus_on_node"], 6);
    EXPECT_EQ(json["job"], 42);
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
    EXPECT_EQ(contents(rings() + "/end.txt"), "e");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  }
  host().environment.erase("LD_PRELOAD");
  host().environment.erase("LBF_CAPTURE_DIR");
  host().items[S_JOB_STEPID] = SLURM_EXTERN_CONT;
  start(S_CTX_REMOTE, {"default=on"});
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_FALSE(host().environment.contains("LD_PRELOAD"));
}

TEST_F(PluginTest, ABatchScriptEndsWithALineWhereMpirunStartedPrograms) {
  host().items[S_JOB_STEPID] = SLURM_BATCH_SCRIPT;
  const auto said_with = [&](const char* answer) {
    write_relay(answer);
    host().said.clear();
    start(S_CTX_REMOTE);
    give_option("lbf-predict", "", true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    return host().said;
  };
  host().environment["SLURM_JOB_NODELIST"] = "node[1-3]";
  EXPECT_THAT(said_with("R"), ElementsAre("lbf: programs of mpirun: lbf-report -j 40_5"));
  EXPECT_THAT(said_with("D"), IsEmpty());
  host().items.erase(S_JOB_ARRAY_TASK_ID);
  EXPECT_THAT(said_with("R"), ElementsAre("lbf: programs of mpirun: lbf-report -j 42"));
}

TEST_F(PluginTest, ABatchStepWithoutPredictionIsUntouched) {
  host().items[S_JOB_STEPID] = SLURM_BATCH_SCRIPT;
  start(S_CTX_REMOTE);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_FALSE(host().environment.contains("LD_PRELOAD"));
  EXPECT_TRUE(std::filesystem::is_empty(ring_dir_));
}

TEST_F(PluginTest, MpirunsDaemonsAreNoProgramOfTheStep) {
  for (const char* daemon : {"orted", "/opt/mpi/bin/prted", "/usr/bin/hydra_pmi_proxy"}) {
    host().arguments = {daemon, "-mca", "ess", "slurm"};
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    EXPECT_FALSE(nlohmann::json::parse(contents(rings() + "/step.json")).contains("step")) << daemon;
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  }
}

TEST_F(PluginTest, HowOftenAJobWasRequeued) {
  const auto restart_of_step = [this] {
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    const auto json = nlohmann::json::parse(contents(rings() + "/step.json"));
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    return json["restart"].get<int>();
  };
  // The batch step knows it and tells its sruns, in whose steps SPANK's item is 0.
  host().items[S_JOB_STEPID] = SLURM_BATCH_SCRIPT;
  host().items[S_SLURM_RESTART_COUNT] = 2;
  EXPECT_EQ(restart_of_step(), 2);
  host().items[S_JOB_STEPID] = 0;
  host().items[S_SLURM_RESTART_COUNT] = 0;
  EXPECT_EQ(restart_of_step(), 2);
  // A job that was submitted from inside that one has its variables.
  host().items[S_JOB_ID] = 43;
  host().items[S_JOB_STEPID] = SLURM_BATCH_SCRIPT;
  host().environment["SLURM_RESTART_COUNT"] = "2";
  (void)restart_of_step();
  host().items[S_JOB_STEPID] = 0;
  EXPECT_EQ(restart_of_step(), 0);
  // srun --export=NONE: Slurm's own variables only.
  host().environment.erase("LBF_RESTART_COUNT");
  EXPECT_EQ(restart_of_step(), 2);
}

TEST_F(PluginTest, WhatTheRelayFoundInsteadOfAProgramIsSaidAtTheScriptsEnd) {
  for (const std::uint32_t step : {SLURM_BATCH_SCRIPT, std::uint32_t{3}}) {
    host().items[S_JOB_STEPID] = step;
    host().environment["LBF_PREDICT"] = "1";
    host().said.clear();
    write_relay("Dapp has libmpi.so.40 loaded");
    start(S_CTX_REMOTE);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    if (step == 3) {
      EXPECT_THAT(host().said, IsEmpty()) << "a step's report has it as a note";
    } else {
      EXPECT_THAT(host().said, ElementsAre("lbf: nothing of this job is predicted: app has libmpi.so.40 loaded"));
    }
    host().environment.erase("LD_PRELOAD");
    host().environment.erase("LBF_CAPTURE_DIR");
  }
}

TEST_F(PluginTest, AStepWithoutPredictionIsUntouched) {
  const auto before = host().environment;
  start(S_CTX_REMOTE);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_EQ(host().environment, before);
  EXPECT_TRUE(std::filesystem::is_empty(ring_dir_));
}

TEST_F(PluginTest, AnInnerStepDoesNotInheritTheOuterStepsCapture) {
  host().environment["LBF_CAPTURE_DIR"] = "/dev/shm/lbf-outer";
  host().environment["LBF_CAPTURE_GRANT"] = "1";
  host().environment["LBF_CAPTURE_PROCEDURES"] = "f";
  host().environment["LD_PRELOAD"] = capture_ + ":/users.so";
  start(S_CTX_REMOTE);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_FALSE(host().environment.contains("LBF_CAPTURE_GRANT"));
  EXPECT_FALSE(host().environment.contains("LBF_CAPTURE_PROCEDURES"));
  EXPECT_FALSE(host().environment.contains("LBF_CAPTURE_DIR"));
  EXPECT_EQ(host().environment["LD_PRELOAD"], "/users.so");
}

TEST_F(PluginTest, TheStepRunsWithCaptureAndARelay) {
  host().environment["LD_PRELOAD"] = "/users.so";
  host().environment["LBF_PREDICT"] = "1";  // from sbatch or salloc
  host().environment["LBF_PROCEDURES"] = "heat::relax,pack";
  start(S_CTX_REMOTE, {"ring_bytes=65536", "networks=a"});
  // slurmstepd has descriptors without close-on-exec: none may reach the relay.
  const int leaked = ::fcntl(STDERR_FILENO, F_DUPFD, 100);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  ASSERT_THAT(host().said, IsEmpty());
  EXPECT_EQ(host().environment["LD_PRELOAD"], capture_ + ":/users.so");
  EXPECT_EQ(host().environment["LBF_CAPTURE_RING_BYTES"], "65536");
  EXPECT_EQ(host().environment["LBF_CAPTURE_RANKS"], "2");
  EXPECT_EQ(host().environment["LBF_CAPTURE_GRANT"], "13333") << "a tenth of 2 % of 2 s, at 300 ns a call";
  EXPECT_EQ(host().environment["LBF_CAPTURE_PROCEDURES"], "heat::relax,pack");
  EXPECT_EQ(std::stod(host().environment["LBF_CAPTURE_PROCEDURES_LIMIT"]), 0.01) << "half of 2 %";
  struct stat status {};
  ASSERT_EQ(::stat(rings().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  const auto step = nlohmann::json::parse(contents(rings() + "/step.json"));
  EXPECT_EQ(step["job"], 42);
  EXPECT_EQ(step["step"], 3);
  EXPECT_EQ(step["restart"], 1);
  EXPECT_EQ(step["nodes"], (nlohmann::json{"node1", "node2"}));
  EXPECT_EQ(step["node"], "node2");
  EXPECT_EQ(step["tasks_per_node"], (nlohmann::json{2, 2}));
  EXPECT_EQ(step["task_ids"], (nlohmann::json{2, 3}));
  EXPECT_EQ(step["command"], (nlohmann::json{"./app", "x"}));
  EXPECT_EQ(step["networks"], (nlohmann::json{"a"}));
  EXPECT_EQ(step["array_task"], 5);
  EXPECT_EQ(step["cluster"], "test");

  wait_for("pid.txt");
  EXPECT_THAT(wait_for("arguments.txt"), HasSubstr("--server\nunix:/run/lbf/lbfd.sock\n"));
  const std::string environment = wait_for("env.txt");
  EXPECT_THAT(environment, Not(HasSubstr("LD_PRELOAD")));
  EXPECT_THAT(environment, Not(HasSubstr("HOME=")));
  const std::string descriptors = "\n" + wait_for("fds.txt");
  EXPECT_THAT(descriptors, HasSubstr("\n3\n"));  // the socket
  EXPECT_THAT(descriptors, Not(HasSubstr("\n" + std::to_string(leaked) + "\n")));
  const pid_t relay = std::stoi(wait_for("pid.txt"));
  EXPECT_EQ(::getsid(relay), relay);  // a session of its own
  EXPECT_EQ(::waitpid(relay, nullptr, WNOHANG), -1) << "the relay must be no child of slurmstepd";

  ::close(leaked);

  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(contents(rings() + "/end.txt"), "") << "one of two tasks still runs";
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(contents(rings() + "/end.txt"), "e");
  EXPECT_THAT(host().said, IsEmpty());  // delivered: nothing to say
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
}

// job_container/tmpfs gives the task a /dev/shm of its own between the two hooks.
TEST_F(PluginTest, ATaskWithFoldersOfItsOwnFindsTheRingsBehindTheRelay) {
  host().environment["LBF_PREDICT"] = "1";
  start(S_CTX_REMOTE);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  const std::string dir = rings();
  const std::string relay = std::to_string(std::stoi(wait_for("pid.txt")));
  EXPECT_EQ(call_hook("task_init"), ESPANK_SUCCESS);
  EXPECT_EQ(rings(), dir) << "it sees them";
  if (::geteuid() == 0) {
    const pid_t task = ::fork();
    if (task == 0) {
      if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("tmpfs", ring_dir_.c_str(), "tmpfs", 0, nullptr) != 0) {
        ::_exit(0);  // not here
      }
      call_hook("task_init");
      ::_exit(rings() == "/proc/" + relay + "/root" + dir ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(task, &status, 0), task);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
}

TEST_F(PluginTest, TheUsersLimitsReachTheRelayAndTheDescription) {
  host().environment["LBF_PREDICT"] = "1";
  host().environment["LBF_LIMITS"] =
      "overhead_limit=0.5,relay_cpu_limit=0.2,relay_memory_limit_mb=99,network_limit_kBps=100,spool_limit_mb=3,"
      "step_cpu_percent=2.5,step_trace_limit_mb=100";
  start(S_CTX_REMOTE, {"network_limit_kBps=5000", "spool_limit_mb=8"});
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, IsEmpty()) << "srun said what is above the site's";
  const auto step = nlohmann::json::parse(contents(rings() + "/step.json"));
  EXPECT_EQ(step["overhead_limit_percent"], 0.5);
  EXPECT_EQ(step["limits"], (nlohmann::json{{"step_cpu_percent", 2.5}, {"step_trace_limit_mb", 100}}));
  EXPECT_TRUE(step["limits"]["step_trace_limit_mb"].is_number_integer());
  EXPECT_THAT(wait_for("arguments.txt"), HasSubstr("--cpu-limit-percent\n0.2\n--memory-limit-mb\n32\n"
                                                   "--network-limit-kBps\n100\n--spool-limit-mb\n3\n"));
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
}

// A static program: the loader preloads nothing. The first node says so, of a program of the user's own.
TEST_F(PluginTest, AStaticProgramIsNamed) {
  const std::string program = dir_ + "/static";
  {
    Elf64_Ehdr head{};
    std::copy_n(ELFMAG, SELFMAG, head.e_ident);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_type = ET_EXEC;
    head.e_phoff = sizeof(head);
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 1;
    Elf64_Phdr part{};
    part.p_type = PT_LOAD;
    std::ofstream out(program, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&head), sizeof(head));
    out.write(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  host().environment["LBF_PREDICT"] = "1";
  for (const auto& [node, command, lines] :
       {std::tuple(0, program, 1U), std::tuple(1, program, 0U), std::tuple(0, std::string("/bin/sh"), 0U)}) {
    host().said.clear();
    host().environment.erase("LBF_CAPTURE_DIR");
    host().environment.erase("LD_PRELOAD");
    host().items[S_JOB_NODEID] = node;
    host().arguments = {command};
    start(S_CTX_REMOTE);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    EXPECT_EQ(host().said.size(), lines) << command << " on node " << node;
    if (lines > 0 && !host().said.empty()) {
      EXPECT_THAT(host().said.front(), HasSubstr(program + " is linked statically"));
    }
    EXPECT_FALSE(rings().empty()) << "the step is described all the same";
    for (int task = 0; task < 2; ++task) EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  }
}

TEST_F(PluginTest, WhatBecameOfTheEventsIsSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"S", "node2: lbfd was not reached; the events wait in /s and are delivered later"},
      {"Slbfd refused: busy", "node2: lbfd refused: busy; the events wait in /s"},
      {"L", "node2: events were lost: lbfd was not reached; the prediction is partial"},
      {"Llbfd refused:\\033[2J x", "node2: events were lost: lbfd refused:?[2J x; the prediction is partial"},
      {"", "the relay was killed"}};
  for (const auto& [answer, text] : cases) {
    write_relay(answer);
    host().said.clear();
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    wait_for("pid.txt");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);  // the tasks never started: exit ends the relay as well
    EXPECT_THAT(host().said, ElementsAre(HasSubstr(text)));
  }
}

// What the relay is told at the end of a step whose two tasks ended with STATUS.
class TaskEndsTest : public PluginTest {
 protected:
  std::string told_after(int status) {
    std::ofstream(relay_)
        << "#!/bin/sh\necho $$ >\"$2/pid.txt\"\ndd bs=4096 count=1 <&3 >\"$2/end.txt\" 2>/dev/null\nprintf D >&3\n";
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    wait_for("pid.txt");
    host().items[S_TASK_EXIT_STATUS] = status;
    for (const int pid : {501, 502}) {
      host().items[S_TASK_PID] = pid;
      EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
    }
    std::string told = contents(rings() + "/end.txt");
    std::filesystem::remove_all(rings());
    return told;
  }
};

TEST_F(TaskEndsTest, SlurmIsAskedWhereItMayHaveEndedTheTasks) {
  host().submit_times[42] = 1;
  host().items[S_JOB_NODEID] = 0;
  EXPECT_EQ(told_after(7 << 8), "task 501 1792\ntask 502 1792\ne");
  EXPECT_EQ(told_after(SIGSEGV), "task 501 11\ntask 502 11\ne");
  EXPECT_TRUE(host().asked.empty()) << "the program ended by itself";
  EXPECT_EQ(told_after(SIGKILL), "task 501 9\ntask 502 9\ne") << "kill -9: job and step go on";
  host().step_states[3] = JOB_TIMEOUT;
  EXPECT_EQ(told_after(SIGTERM), "task 501 15\ntask 502 15\nkilled its time limit\ne");
  host().job_states[42] = JOB_TIMEOUT | JOB_COMPLETING;
  EXPECT_EQ(told_after(SIGTERM), "task 501 15\ntask 502 15\nkilled its job's time limit\ne");
  host().job_states[42] = JOB_CANCELLED | JOB_COMPLETING;
  EXPECT_EQ(told_after((128 + SIGTERM) << 8), "task 501 36608\ntask 502 36608\nkilled scancel or Ctrl-C\ne");
  host().asked.clear();
  host().items[S_JOB_NODEID] = 1;
  EXPECT_EQ(told_after(SIGTERM), "task 501 15\ntask 502 15\ne");
  EXPECT_TRUE(host().asked.empty()) << "the first node asks for all";
}

TEST_F(TaskEndsTest, OfTasksThatEndedWellNothingIsTold) {
  write_relay("D");
  start(S_CTX_REMOTE);
  give_option("lbf-predict", nullptr, true);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  wait_for("pid.txt");
  host().items[S_TASK_EXIT_STATUS] = 0;
  host().items[S_TASK_PID] = 501;
  for (int task = 0; task < 2; ++task) EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(contents(rings() + "/end.txt"), "e");
}

TEST_F(PluginTest, ARelayThatHangsHoldsTheStepForABoundedTimeOnly) {
  std::ofstream(relay_) << "#!/bin/sh\necho $$ >\"$2/pid.txt\"\nexec sleep 30\n";
  start(S_CTX_REMOTE, {"relay_wait_s=0.2"});
  give_option("lbf-predict", nullptr, true);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  const pid_t relay = std::stoi(wait_for("pid.txt"));
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre(HasSubstr("not finished yet")));
  EXPECT_EQ(::kill(relay, SIGKILL), 0);
}

TEST_F(PluginTest, WithoutRelayOrCaptureTheJobRunsAndTheUserIsTold) {
  for (const std::string& gone : {relay_, capture_}) {
    std::filesystem::rename(gone, gone + ".away");
    host().said.clear();
    start(S_CTX_REMOTE);
    give_option("lbf-predict", nullptr, true);
    EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
    EXPECT_THAT(host().said, ElementsAre(testing::AllOf(HasSubstr(gone), HasSubstr("runs without prediction"))));
    EXPECT_FALSE(host().environment.contains("LD_PRELOAD"));
    std::filesystem::rename(gone + ".away", gone);
  }
  // Not a program at all: exec fails, the ring directory is taken away again.
  std::ofstream(relay_) << "\x7f"
                           "nonsense";
  host().said.clear();
  start(S_CTX_REMOTE);
  give_option("lbf-predict", nullptr, true);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre(HasSubstr("exec")));
  EXPECT_TRUE(std::filesystem::is_empty(ring_dir_));
}

TEST_F(PluginTest, NoRingDirectoryMeansNoPrediction) {
  host().said.clear();
  start(S_CTX_REMOTE, {"ring_dir=" + dir_ + "/absent"});
  give_option("lbf-predict", nullptr, true);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre(HasSubstr("cannot make ring directory")));
}

TEST_F(PluginTest, AnEnvironmentThatSlurmRefusesMeansNoPrediction) {
  host().setenv_fails = true;
  start(S_CTX_REMOTE);
  give_option("lbf-predict", nullptr, true);
  EXPECT_EQ(call_hook("user_init"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre(HasSubstr("environment")));
  EXPECT_FALSE(host().environment.contains("LD_PRELOAD"));
}

// As in slurmstepd: root's real ids, the user's effective ones in user_init.
TEST_F(PluginTest, TheRelayIsTheUserForGood) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  host().items[S_JOB_UID] = kNobody;
  host().items[S_JOB_GID] = kNobody;
  host().supplementary_gids = {kNobody, 12345};
  start(S_CTX_REMOTE);
  give_option("lbf-predict", nullptr, true);
  ASSERT_EQ(::setegid(kNobody), 0);
  ASSERT_EQ(::seteuid(kNobody), 0);
  const int outcome = call_hook("user_init");
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(::setegid(0), 0);
  EXPECT_EQ(outcome, ESPANK_SUCCESS);
  ASSERT_THAT(host().said, IsEmpty());
  struct stat status {};
  ASSERT_EQ(::stat(rings().c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, kNobody);
  wait_for("pid.txt");
  const std::string proc = wait_for("status.txt");
  EXPECT_THAT(proc, HasSubstr("Uid:\t65534\t65534\t65534\t65534\n"));
  EXPECT_THAT(proc, HasSubstr("Gid:\t65534\t65534\t65534\t65534\n"));
  EXPECT_THAT(proc, HasSubstr("Groups:\t12345 65534 \n"));
  EXPECT_THAT(proc, HasSubstr("CapPrm:\t0000000000000000\n"));
  EXPECT_THAT(proc, HasSubstr("CapEff:\t0000000000000000\n"));
  EXPECT_THAT(proc, HasSubstr("NoNewPrivs:\t1\n"));
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("task_exit"), ESPANK_SUCCESS);
  EXPECT_EQ(contents(rings() + "/end.txt"), "e");
}

TEST_F(PluginTest, SrunEndsWithTheReportsLine) {
  const std::string output = dir_ + "/report.txt";
  write_report("echo \"$@\" \"$LBF_SERVER\" >" + output);
  start(S_CTX_LOCAL);
  give_option("lbf-predict", nullptr);
  EXPECT_EQ(call_hook("init_post_opt"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("local_user_init"), ESPANK_SUCCESS);
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  // Nothing that ended before: it would be another job's of this number.
  EXPECT_THAT(contents(output), testing::MatchesRegex("--brief -j 42.3 -S now-6.seconds unix:/run/lbf/lbfd.sock\n"));
  EXPECT_THAT(host().said, IsEmpty());
}

TEST_F(PluginTest, WithoutAReportSrunSaysWhereToLook) {
  start(S_CTX_LOCAL);
  give_option("lbf-predict", nullptr);
  call_hook("init_post_opt");
  call_hook("local_user_init");
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre("lbf: see lbf-report -j 42.3"));
  // Nor is anything said about a step that was not predicted.
  host().said.clear();
  start(S_CTX_LOCAL);
  call_hook("init_post_opt");
  call_hook("local_user_init");
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, IsEmpty());
}

TEST_F(PluginTest, AReportThatHangsIsKilled) {
  write_report("exec sleep 60");
  start(S_CTX_LOCAL);
  give_option("lbf-predict", nullptr);
  call_hook("init_post_opt");
  call_hook("local_user_init");
  EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
  EXPECT_THAT(host().said, ElementsAre("lbf: see lbf-report -j 42.3"));
}

// `lbf-report -j 42` is all of array 42: the task that has the array's number is asked for by its other name.
TEST_F(PluginTest, TheReportsLineIsAboutThisStepAlone) {
  const auto said_with = [&](const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    host().said.clear();
    start(S_CTX_LOCAL);
    give_option("lbf-predict", nullptr);
    call_hook("init_post_opt");
    call_hook("local_user_init");
    EXPECT_EQ(call_hook("exit"), ESPANK_SUCCESS);
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
    return host().said.empty() ? std::string() : host().said.back();
  };
  EXPECT_EQ(said_with({{"SLURM_ARRAY_JOB_ID", "42"}, {"SLURM_ARRAY_TASK_ID", "7"}}), "lbf: see lbf-report -j 42_7.3");
  EXPECT_EQ(said_with({{"SLURM_ARRAY_JOB_ID", "40"}, {"SLURM_ARRAY_TASK_ID", "7"}}), "lbf: see lbf-report -j 42.3");
  EXPECT_EQ(said_with({{"SLURM_JOB_ID_HET_GROUP_0", "42"}}), "lbf: see lbf-report -j 42.3");
  EXPECT_EQ(said_with({{"SLURM_JOB_ID_HET_GROUP_0", "40"}, {"SLURM_JOB_ID_HET_GROUP_1", "42"}}),
            "lbf: see lbf-report -j 40.3");
  EXPECT_EQ(said_with({{"SLURM_JOB_ID_PACK_GROUP_0", "41"}}), "lbf: see lbf-report -j 42.3");
}

}  // namespace
}  // namespace lbf::plugin::plugin_test