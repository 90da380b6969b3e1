// The plugin's state between hooks, and the hooks of each Slurm context (one file per context).
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "protocol/task_ends.h"
#include "spank_plugin/plugin/config.h"
#include "spank_plugin/plugin/job_submit.h"
#include "spank_plugin/plugin/relay_process.h"
#include "spank_plugin/plugin/spank_handle.h"

namespace lbf::plugin {

// One per process (srun, sbatch, salloc, slurmstepd): SPANK hands hooks no pointer of our own, so this is
// where one hook leaves what the next one needs.
struct PluginState {
  std::optional<AdminConfig> admin;  // empty: plugstack.conf is wrong, the plugin is off
  std::string admin_error;
  UserRequest options;  // as given on the command line, or forwarded by Slurm
  std::optional<StepConfig> step;

  // srun, slurmstepd
  std::uint32_t job_id = 0;
  std::uint32_t step_id = 0;

  // srun
  bool step_known = false;
  std::time_t begun_s = 0;
  bool is_quiet = false;            // srun -Q: errors only
  bool is_in_job = false;           // of sbatch's or salloc's: the job goes on when srun ends
  std::optional<JobSubmit> submit;  // of the step's job; the components of a heterogeneous job share it

  // sbatch, salloc
  bool outer_left = false;  // once: a heterogeneous job's components come one after the other
  std::string outer_job;    // in which salloc was started

  // slurmstepd
  std::optional<RelayProcess> relay;
  std::string node;
  std::string job_of_runs;  // whose runs of mpirun this step tells of, as lbf-report -j takes it; empty: of none
  std::uint32_t tasks_left = 0;
  bool script = false;  // a batch script or salloc's shell: no stream of its own could say that nothing was taken
  bool is_first_node = false;
  protocol::TaskEnds task_ends;
};

PluginState& state();

// All contexts: plugstack.conf's arguments, and the options.
void init(SpankHandle spank, std::span<char* const> arguments);
// LBF_PREDICT, LBF_NETWORKS, LBF_OVERHEAD, LBF_PROCEDURES, LBF_LIMITS of this process.
UserRequest request_from_own_environment();
// Set by srun when it told the user that plugstack.conf is wrong (docs/formats/environment.md).
inline constexpr const char* kConfigToldVariable = "LBF_CONFIG_TOLD";
// resolve(), with the messages said to the user when TELL; remembered in state().step.
const StepConfig& decide(const UserRequest& environment, bool tell);
// Asks lbfd, for a second at most, whether it has the networks that the user of this command named. One that lbfd does
// not have is said, and nothing is predicted; an lbfd that does not answer refuses nothing. REQUIRES: decide().
void refuse_unknown_networks();

namespace srun {
void init_post_opt();
void local_user_init(SpankHandle spank);
void exit();
}  // namespace srun

namespace allocator {
void init_post_opt();
void exit();
}  // namespace allocator

namespace stepd {
void init_post_opt(SpankHandle spank);
void user_init(SpankHandle spank);
void task_init(SpankHandle spank);
void task_exit(SpankHandle spank);
void exit();
}  // namespace stepd

}  // namespace lbf::plugin
