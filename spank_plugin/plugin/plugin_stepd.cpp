// slurmstepd (remote context): prepares the tasks' environment, starts the relay and ends it.
//
// Implements docs/plugin.md ("On a compute node"). Runs in slurmstepd, as root in task_exit and exit, with
// the user's effective ids in user_init, as the user in task_init.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/io_error.h"
#include "base/scoped_fd.h"
#include "base/static_program.h"
#include "cost/first_grant.h"
#include "cost/procedure_limit.h"
#include "spank_plugin/plugin/job_options.h"
#include "spank_plugin/plugin/plugin.h"
#include "spank_plugin/plugin/step_description.h"
#include "spank_plugin/plugin/step_killer.h"

extern "C" {
#include <slurm/slurm.h>
}

namespace lbf::plugin::stepd {
namespace {

constexpr Seconds kAbandonWaitS = 3;
constexpr const char* kNoPrediction = "; the job runs without prediction";

bool write_file(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// A directory that nobody else can have made or can enter, with the step's description in it. The effective
// ids are the user's: /dev/shm is everybody's, and mkdtemp follows no link and takes no existing name.
Result<std::string> make_ring_dir(const AdminConfig& admin, uid_t uid, std::uint32_t job, std::uint32_t step,
                                  const std::string& description) {
  std::string dir = admin.ring_dir + "/lbf-" + std::to_string(uid) + "-" + std::to_string(job) + "-" +
                    std::to_string(step) + "-XXXXXX";
  const auto cannot = [&dir](const char* what) { return io_error(std::string("cannot ") + what + " " + dir); };
  if (::mkdtemp(dir.data()) == nullptr) return cannot("make ring directory");
  const std::string file = dir + "/step.json";
  const ScopedFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd || !write_file(fd.get(), description)) {
    const Error error = cannot("write the step description in");
    ::unlink(file.c_str());
    ::rmdir(dir.c_str());
    return error;
  }
  return dir;
}

void remove_ring_dir(const std::string& dir) {
  ::unlink((dir + "/step.json").c_str());
  ::rmdir(dir.c_str());
}

// The batch script, and the shell that salloc may start: what their sruns should do is passed on in the
// environment (docs/formats/environment.md).
void inherit_options(const SpankHandle& spank) {
  pass_options(state().options,
               {[&](const std::string& name) { return spank.environment(name.c_str()); },
                [&](const std::string& name, const std::string& value) { spank.set_environment(name.c_str(), value); },
                [&](const std::string& name) { spank.unset_environment(name.c_str()); }});
}

// The batch step knows whether its job is a task of an array; its sruns only have the environment, which may
// be that of the task that submitted this job.
void disown_array(const SpankHandle& spank) {
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  const auto task = spank.item<std::uint32_t>(S_JOB_ARRAY_TASK_ID);
  if (!job || (task && *task != NO_VAL) || !spank.environment("SLURM_ARRAY_TASK_ID")) return;
  spank.set_environment(kNotInArrayVariable, std::to_string(*job));
}

// It also knows how often its job was requeued; SPANK does not tell its sruns.
void pass_restart_count(const SpankHandle& spank) {
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  const auto restarts = spank.item<std::uint32_t>(S_SLURM_RESTART_COUNT);
  if (!job || !restarts) return;
  if (*restarts == 0 && !spank.environment("SLURM_RESTART_COUNT")) return;
  spank.set_environment(kRestartVariable, std::to_string(*job) + ":" + std::to_string(*restarts));
}

// So that the programs of mpirun on all nodes, and the script's sruns, are of one job. An interactive step has it from
// its srun. REQUIRES: slurmstepd has its root rights: Slurm 26.05's ends, and the job with it, where slurmctld is asked
// without them ("fatal: auth_g_create: pthread_rwlock_rdlock()").
void pass_submit_time(const SpankHandle& spank, std::uint32_t step_id) {
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  if (!job) return;
  const Environment environment = [&spank](const std::string& name) { return spank.environment(name.c_str()); };
  const std::uint32_t whole = whole_job(environment, *job);
  if (step_id != SLURM_BATCH_SCRIPT && known_submit(environment, whole)) return;
  spank.set_environment(kSubmitVariable, ask_submit(whole).text());
}

bool is_script(std::optional<std::uint32_t> step_id) {
  return step_id && (*step_id == SLURM_BATCH_SCRIPT || *step_id == SLURM_INTERACTIVE_STEP);
}

UserRequest request_of_job(const SpankHandle& spank) {
  return {spank.environment("LBF_PREDICT"), spank.environment("LBF_NETWORKS"), spank.environment("LBF_OVERHEAD"),
          spank.environment("LBF_PROCEDURES"), spank.environment("LBF_LIMITS")};
}

// A step inside a step (srun started by a task or by a batch script), or a job submitted from one, inherits the outer
// step's capture: it is not meant for it.
void clear_capture(const SpankHandle& spank, const AdminConfig& admin) {
  if (!spank.environment("LBF_CAPTURE_DIR")) return;
  spank.unset_environment("LBF_CAPTURE_DIR");
  spank.unset_environment("LBF_CAPTURE_RING_BYTES");
  spank.unset_environment("LBF_CAPTURE_RANKS");
  spank.unset_environment("LBF_CAPTURE_GRANT");
  spank.unset_environment("LBF_CAPTURE_PROCEDURES");
  spank.unset_environment("LBF_CAPTURE_PROCEDURES_LIMIT");
  if (const auto preload = spank.environment("LD_PRELOAD")) {
    const std::string kept = preload_without(admin.capture, *preload);
    if (kept.empty()) {
      spank.unset_environment("LD_PRELOAD");
    } else {
      spank.set_environment("LD_PRELOAD", kept);
    }
  }
}

UserIdentity user_of(const SpankHandle& spank, uid_t uid) {
  UserIdentity user;
  user.uid = uid;
  user.gid = spank.item<gid_t>(S_JOB_GID).value_or(::getegid());
  user.supplementary_gids = spank.supplementary_gids();
  return user;
}

struct Launched {
  std::string ring_dir;
  UserIdentity user;
};
// What the cleaning up after a relay that died needs.
Launched& launched() {
  static Launched instance;
  return instance;
}

Result<void> start(const SpankHandle& spank, const AdminConfig& admin, const StepConfig& step, StepKind kind) {
  const auto uid = spank.item<uid_t>(S_JOB_UID);
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  const auto step_id = spank.item<std::uint32_t>(S_JOB_STEPID);
  auto local_tasks = spank.item<std::uint32_t>(S_JOB_LOCAL_TASK_COUNT);
  if (!local_tasks && kind == StepKind::kLauncher) local_tasks = 1;  // the script
  if (!uid || !job || !step_id || !local_tasks) {
    return Error{ErrorCode::kNotFound, "Slurm does not tell the step's user and tasks"};
  }
  if (::geteuid() != *uid) {
    return Error{ErrorCode::kInternal, "user_init was not called as the job's user"};
  }
  if (::faccessat(AT_FDCWD, admin.relay.c_str(), X_OK, AT_EACCESS) != 0) {
    return Error{ErrorCode::kNotFound, "cannot run " + admin.relay + ": " + std::strerror(errno)};
  }
  // ld.so would complain in every process of the job.
  if (::faccessat(AT_FDCWD, admin.capture.c_str(), R_OK, AT_EACCESS) != 0) {
    return Error{ErrorCode::kNotFound, "cannot read " + admin.capture + ": " + std::strerror(errno)};
  }
  auto description = describe_step(spank, step, kind);
  if (!description) return description.error();
  auto dir = make_ring_dir(admin, *uid, *job, *step_id, description->json);
  if (!dir) return dir.error();
  const UserIdentity user = user_of(spank, *uid);
  std::vector<std::string> words{"--ring-dir",
                                 *dir,
                                 "--server",
                                 admin.lbfd,
                                 "--step-file",
                                 *dir + "/step.json",
                                 "--spool-dir",
                                 admin.spool_dir,
                                 "--deliver-timeout-s",
                                 std::to_string(admin.relay_wait_s / 2)};
  const std::vector<std::string> limits = cost::relay_arguments(step.limits);
  words.insert(words.end(), limits.begin(), limits.end());
  auto relay = RelayProcess::start(admin.relay, words, user);
  if (!relay) {
    remove_ring_dir(*dir);
    return relay.error();
  }
  launched() = {*dir, user};
  const std::string preload = preload_with(admin.capture, spank.environment("LD_PRELOAD").value_or(""));
  if (!spank.set_environment("LBF_CAPTURE_DIR", *dir) ||
      !spank.set_environment("LBF_CAPTURE_RING_BYTES", std::to_string(admin.ring_bytes)) ||
      !spank.set_environment("LBF_CAPTURE_GRANT",
                             std::to_string(cost::first_grant(step.overhead_limit_percent() / 100))) ||
      (kind == StepKind::kProgram && !spank.set_environment("LBF_CAPTURE_RANKS", std::to_string(*local_tasks))) ||
      (!step.procedures.empty() &&
       (!spank.set_environment("LBF_CAPTURE_PROCEDURES", step.procedures) ||
        !spank.set_environment("LBF_CAPTURE_PROCEDURES_LIMIT",
                               std::to_string(cost::procedure_limit(step.overhead_limit_percent() / 100))))) ||
      !spank.set_environment("LD_PRELOAD", preload)) {
    spank.unset_environment("LBF_CAPTURE_DIR");
    relay->signal_end();
    return Error{ErrorCode::kInternal, "Slurm does not take the tasks' environment"};
  }
  state().relay = std::move(*relay);
  state().node = description->node;
  state().tasks_left = *local_tasks;
  state().job_id = *job;
  state().step_id = *step_id;
  state().is_first_node = spank.item<std::uint32_t>(S_JOB_NODEID).value_or(0) == 0;
  return {};
}

std::string job_for_report(const SpankHandle& spank) {
  const auto array = spank.item<std::uint32_t>(S_JOB_ARRAY_ID);
  const auto task = spank.item<std::uint32_t>(S_JOB_ARRAY_TASK_ID);
  if (array && task && *array != 0 && *task != NO_VAL) return std::to_string(*array) + "_" + std::to_string(*task);
  return std::to_string(spank.item<std::uint32_t>(S_JOB_ID).value_or(0));
}

// One node asks for all. Slurm ends the tasks of all nodes, and a rank that ends by itself is no reason to ask.
void find_killer(PluginState& plugin) {
  const auto& ends = plugin.task_ends.status_of_pid;
  const bool may_be =
      std::any_of(ends.begin(), ends.end(), [](const auto& end) { return may_be_killed_by_slurm(end.second); });
  if (plugin.is_first_node && may_be) plugin.task_ends.killed_by = ask_killer(plugin.job_id, plugin.step_id);
}

// The tasks are gone: lets the relay deliver, and tells the user what became of it.
void finish() {
  PluginState& plugin = state();
  if (!plugin.relay || !plugin.admin) return;
  RelayProcess relay = std::move(*plugin.relay);
  plugin.relay.reset();
  find_killer(plugin);
  relay.signal_end(protocol::encode(plugin.task_ends));
  const std::string& node = plugin.node;
  const RelayOutcome outcome = relay.wait(plugin.admin->relay_wait_s);
  const std::string why = ": " + (relay.why().empty() ? "lbfd was not reached" : relay.why());
  switch (outcome) {
    case RelayOutcome::kDelivered:
      if (plugin.script && !relay.why().empty()) say("nothing of this job is predicted: " + relay.why());
      break;
    case RelayOutcome::kDeliveredRuns:
      if (!plugin.job_of_runs.empty()) say("programs of mpirun: lbf-report -j " + plugin.job_of_runs);
      break;
    case RelayOutcome::kSpooled:
      say(node + why + "; the events wait in " + plugin.admin->spool_dir + " and are delivered later");
      break;
    case RelayOutcome::kLost:
      say(node + ": events were lost" + why + "; the prediction is partial");
      break;
    case RelayOutcome::kStillBusy:
      say(node + ": the relay is not finished yet; the prediction comes later");
      break;
    case RelayOutcome::kDied: {
      say(node + ": the relay was killed; the prediction is partial");
      const Launched& what = launched();
      // Ends the stream at lbfd and removes the rings, as the user. Waited for: with proctrack/cgroup it is
      // killed with what is left of the step.
      auto cleaner = RelayProcess::start(plugin.admin->relay,
                                         {"--abandon", what.ring_dir, "--server", plugin.admin->lbfd}, what.user);
      if (cleaner) {
        (void)cleaner->wait(std::min(plugin.admin->relay_wait_s, kAbandonWaitS));
      } else {
        log_for_admin(cleaner.error().message);
      }
      break;
    }
  }
}

// srun has found the program in PATH and hands on where. The effective ids are the user's.
void warn_of_static(const std::vector<std::string>& command) {
  if (command.empty()) return;
  const Result<bool> is_static = is_static_program(command.front());
  if (!is_static || !*is_static) return;
  say(command.front() +
      " is linked statically: nothing can be loaded into it, so nothing of it is seen, and its procedures "
      "cannot be measured; link it dynamically");
}

}  // namespace

void init_post_opt(SpankHandle spank) {
  const auto step_id = spank.item<std::uint32_t>(S_JOB_STEPID);
  if (!is_script(step_id) || !decide(request_of_job(spank), false).predict || !state().admin) return;
  pass_submit_time(spank, *step_id);
}

void user_init(SpankHandle spank) {
  const auto step_id = spank.item<std::uint32_t>(S_JOB_STEPID);
  const bool script = is_script(step_id);
  state().script = script;
  if (script) {
    inherit_options(spank);
    if (*step_id == SLURM_BATCH_SCRIPT) {
      disown_array(spank);
      pass_restart_count(spank);
    }
  }
  if (!script && (!step_id || *step_id > SLURM_MAX_NORMAL_STEP_ID)) return;
  // srun, sbatch or salloc have said what is wrong with the user's values; what is wrong on this node only,
  // the first node says.
  const bool first_node = spank.item<std::uint32_t>(S_JOB_NODEID).value_or(0) == 0;
  const bool told = spank.environment(kConfigToldVariable).has_value();
  const StepConfig& step = decide(request_of_job(spank), first_node && !told && !state().admin);
  const AdminConfig admin = state().admin.value_or(default_config());
  clear_capture(spank, admin);
  if (!step.predict || !state().admin) return;
  // In a script mpirun may start programs on this node without any step.
  const std::vector<std::string> command = spank.arguments();
  const bool launcher = script || is_launcher(command);
  if (first_node && !launcher) warn_of_static(command);
  auto started = start(spank, admin, step, launcher ? StepKind::kLauncher : StepKind::kProgram);
  if (!started) say(started.error().message + kNoPrediction);
  // Ranks have the rings of the batch script, or of their launcher's step (Hydra's with srun --external-launcher); an
  // interactive job's salloc tells of them itself.
  const bool tells = *step_id == SLURM_BATCH_SCRIPT || (launcher && !script && first_node);
  state().job_of_runs = tells ? job_for_report(spank) : std::string();
}

// In the task's process, as the user, where the task will be: job_container/tmpfs has given it a /dev/shm of its own
// since user_init. The relay's root folder has the rings.
void task_init(SpankHandle spank) {
  const std::string& dir = launched().ring_dir;
  if (!state().relay || ::access(dir.c_str(), X_OK) == 0) return;
  const std::string there = "/proc/" + std::to_string(state().relay->pid()) + "/root" + dir;
  if (::access(there.c_str(), X_OK) == 0) spank.set_environment("LBF_CAPTURE_DIR", there);
}

void task_exit(SpankHandle spank) {
  PluginState& plugin = state();
  if (!plugin.relay || plugin.tasks_left == 0) return;
  const auto pid = spank.item<pid_t>(S_TASK_PID);
  const auto status = spank.item<int>(S_TASK_EXIT_STATUS);
  if (pid && status && *status != 0) plugin.task_ends.status_of_pid[*pid] = *status;
  // The last one: slurmstepd has not yet killed what is left of the step, and srun still waits.
  if (--plugin.tasks_left == 0) finish();
}

void exit() {
  finish();
}

}  // namespace lbf::plugin::stepd
