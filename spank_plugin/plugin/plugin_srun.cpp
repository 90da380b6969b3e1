// srun (local context): checks the options, and ends the step with one line from lbf-report.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "spank_plugin/plugin/job_comment.h"
#include "spank_plugin/plugin/plugin.h"
#include "spank_plugin/plugin/report_program.h"
#include "spank_plugin/plugin/step_description.h"

extern "C" {
#include <slurm/slurm.h>
}

namespace lbf::plugin::srun {
namespace {

constexpr long kReportTimeoutMs = 3000;

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
  decide(request_from_own_environment(), true);
  state().is_in_job = own_variable("SLURM_JOB_ID").has_value();
  // In a job sbatch or salloc has asked.
  if (state().options.networks || !state().is_in_job) refuse_unknown_networks();
  const StepConfig& step = *state().step;
  // The nodes read the same plugstack.conf as a rule: their first one need not say it again.
  if (!state().admin && !step.messages.empty()) ::setenv(kConfigToldVariable, "1", 1);
}

void local_user_init(SpankHandle spank) {
  PluginState& plugin = state();
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  const auto step = spank.item<std::uint32_t>(S_JOB_STEPID);
  // mpirun's own srun has nothing to report: its user sees mpirun's output.
  plugin.step_known = job && step && *step <= SLURM_MAX_NORMAL_STEP_ID && !is_launcher(spank.arguments());
  plugin.is_quiet = !slurm_prints_information();
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
  if (!plugin.step_known || plugin.is_quiet || !plugin.admin || !plugin.step || !plugin.step->predict) return;
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
  const auto lines = output_of_report(*plugin.admin, std::move(words), kReportTimeoutMs);
  if (!lines) return say("see lbf-report -j " + id);
  std::fputs(lines->c_str(), stderr);
  // A job of srun's own is over by now, and then no release changes its record.
  if (!plugin.admin->job_comment || !plugin.is_in_job || lines->empty()) return;
  const std::string why_not = set_job_comment(plugin.job_id, lines->substr(0, lines->find('\n')));
  if (!why_not.empty()) say("the job's comment could not be set: " + why_not);
}

}  // namespace lbf::plugin::srun
