// See step_killer.h.
#include "spank_plugin/plugin/step_killer.h"

#include <sys/wait.h>

#include <csignal>
#include <span>

#include "spank_plugin/plugin/slurm_load_job.h"

namespace lbf::plugin {
namespace {

using StepAnswer = std::unique_ptr<job_step_info_response_msg_t, decltype(&slurm_free_job_step_info_response_msg)>;

// As load_job_with(): later releases may take a step's id.
template <class Load>
int load_steps_with(Load load, job_step_info_response_msg_t** answer, std::uint32_t job, std::uint32_t step) {
  if constexpr (std::is_invocable_v<Load, time_t, std::uint32_t, std::uint32_t, job_step_info_response_msg_t**,
                                    std::uint16_t>) {
    return load(0, job, step, answer, SHOW_ALL);
  } else {
    slurm_step_id_t id{};
    id.job_id = job;
    id.step_id = step;
    id.step_het_comp = NO_VAL;
    if constexpr (std::is_invocable_v<Load, slurm_step_id_t*, job_step_info_response_msg_t**, std::uint16_t>) {
      return load(&id, answer, SHOW_ALL);
    } else {
      return load(id, answer, SHOW_ALL);
    }
  }
}

std::string killer_of_job(std::uint32_t state) {
  switch (state & JOB_STATE_BASE) {
    case JOB_TIMEOUT:
      return "its job's time limit";
    case JOB_CANCELLED:
      return "scancel or Ctrl-C";
    case JOB_PREEMPTED:
      return "preemption of its job";
    case JOB_DEADLINE:
      return "its job's deadline";
    case JOB_NODE_FAIL:
      return "the failure of a node";
    default:
      return {};
  }
}

std::string killer_of_step(std::uint32_t state) {
  switch (state & JOB_STATE_BASE) {
    case JOB_TIMEOUT:
      return "its time limit";
    case JOB_CANCELLED:
      return "scancel, Ctrl-C or srun (another task failed)";
    default:
      return {};
  }
}

}  // namespace

bool may_be_killed_by_slurm(int status) {
  const auto is_slurms = [](int signal) { return signal == SIGTERM || signal == SIGKILL; };
  if (WIFSIGNALED(status)) return is_slurms(WTERMSIG(status));
  constexpr int kShellsOffset = 128;
  return WIFEXITED(status) && is_slurms(WEXITSTATUS(status) - kShellsOffset);
}

std::string ask_killer(std::uint32_t job, std::uint32_t step) {
  const JobAnswer jobs = load_job(job);
  if (!jobs) return {};
  for (const auto& one : std::span(jobs->job_array, jobs->record_count)) {
    if (one.job_id != job) continue;
    if (std::string by = killer_of_job(one.job_state); !by.empty()) return by;
  }
  job_step_info_response_msg_t* answer = nullptr;
  if (load_steps_with(&slurm_get_job_steps, &answer, job, step) != SLURM_SUCCESS) return {};
  const StepAnswer steps(answer, &slurm_free_job_step_info_response_msg);
  for (const auto& one : std::span(steps->job_steps, steps->job_step_count)) {
    if (one.step_id.step_id == step) return killer_of_step(one.state);
  }
  return {};
}

}  // namespace lbf::plugin
