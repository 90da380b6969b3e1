// srun (local context): checks the options, and ends the step with one line from lbf-report.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "spank_plugin/plugin/plugin.h"
#include "spank_plugin/plugin/step_description.h"

extern "C" {
#include <slurm/slurm.h>
}

extern char** environ;

namespace lbf::plugin::srun {
namespace {

constexpr long kReportTimeoutMs = 3000;
constexpr long kLongestPollMs = 10;

// Runs PROGRAM with its output on our stderr. False: not there, failed, or not finished in time.
bool run_report(const std::string& program, std::vector<std::string> words, const std::string& server) {
  words.insert(words.begin(), program);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  if (::getenv("LBF_SERVER") == nullptr) variables.push_back("LBF_SERVER=" + server);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&files) != 0) return false;
  if (::posix_spawnattr_init(&attributes) != 0) {
    ::posix_spawn_file_actions_destroy(&files);
    return false;
  }
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  // Where it cannot answer, the user gets our one line instead of its own.
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);  // srun blocks signals in its threads
  ::sigfillset(&signals);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int code = ::posix_spawn(&child, program.c_str(), &files, &attributes, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (code != 0) return false;
  long pause_ms = 1;
  for (long waited_ms = 0;; waited_ms += pause_ms, pause_ms = std::min(pause_ms * 2, kLongestPollMs)) {
    int status = 0;
    const pid_t got = ::waitpid(child, &status, WNOHANG);
    if (got == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (got < 0 && errno != EINTR) return false;
    if (waited_ms >= kReportTimeoutMs) {
      ::kill(child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return false;
    }
    const timespec pause{0, pause_ms * 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

std::optional<std::string> own_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// What lbf-report -j takes for this step alone. The task that has its array's number needs its other name: `-j 12`
// means all of array 12. The components of a heterogeneous job number their steps together, and a program over several
// is the first one's step, whichever of them srun tells us: the number of the whole job and the step's say which it is.
std::string report_id(std::uint32_t job, std::uint32_t step) {
  std::string id = std::to_string(job);
  const std::string task = own_variable("SLURM_ARRAY_TASK_ID").value_or("");
  if (!task.empty() && own_variable("SLURM_ARRAY_JOB_ID") == id) {
    id += "_" + task;
  } else {
    id = std::to_string(whole_job(own_variable, job));
  }
  return id + "." + std::to_string(step);
}

}  // namespace

void init_post_opt() {
  const StepConfig step = decide(request_from_own_environment(), true);
  // The nodes read the same plugstack.conf as a rule: their first one need not say it again.
  if (!state().admin && !step.messages.empty()) ::setenv(kConfigToldVariable, "1", 1);
}

void local_user_init(SpankHandle spank) {
  PluginState& plugin = state();
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  const auto step = spank.item<std::uint32_t>(S_JOB_STEPID);
  // mpirun's own srun has nothing to report: its user sees mpirun's output.
  plugin.step_known = job && step && *step <= SLURM_MAX_NORMAL_STEP_ID && !is_launcher(spank.arguments());
  plugin.job_id = job.value_or(0);
  plugin.step_id = step.value_or(0);
  plugin.begun_s = std::time(nullptr);
  if (!job || !plugin.admin || !plugin.step || !plugin.step->predict) return;
  if (!plugin.submit) {
    const std::uint32_t whole = whole_job(own_variable, *job);
    const auto known = known_submit(own_variable, whole);
    plugin.submit = known ? *known : ask_submit(whole);
  }
  // srun makes the tasks' environment of its own after this hook.
  ::setenv(kSubmitVariable, plugin.submit->text().c_str(), 1);
}

void exit() {
  const PluginState& plugin = state();
  if (!plugin.step_known || !plugin.admin || !plugin.step || !plugin.step->predict) return;
  const std::string id = report_id(plugin.job_id, plugin.step_id);
  std::vector<std::string> words{"--brief", "-j", id};
  // Not an earlier job's step of the same number, which lbfd may know while it has nothing of this one.
  if (plugin.submit && plugin.submit->submit_s > 0) {
    words.push_back("--submit=" + std::to_string(plugin.submit->submit_s));
  } else {
    constexpr std::time_t kClocksDifferS = 60;
    const std::time_t ago_s = std::max<std::time_t>(std::time(nullptr) - plugin.begun_s, 0) + kClocksDifferS;
    words.insert(words.end(), {"-S", "now-" + std::to_string(ago_s) + "seconds"});
  }
  if (!run_report(plugin.admin->report, std::move(words), plugin.admin->lbfd)) {
    say("see lbf-report -j " + id);
  }
}

}  // namespace lbf::plugin::srun
