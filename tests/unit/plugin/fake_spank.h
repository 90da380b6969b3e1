// A fake SPANK host: loads lbf.so as Slurm does and gives it spank_* functions whose answers the test
// decides.
#pragma once

extern "C" {
#include <slurm/spank.h>
}

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lbf::plugin {

struct FakeHost {
  spank_context_t context = S_CTX_REMOTE;
  std::map<spank_item_t, long long> items;  // missing: ESPANK_NOT_AVAIL
  std::vector<std::string> arguments{"./app", "x"};
  std::vector<gid_t> supplementary_gids;
  std::map<std::string, std::string> environment;   // the job's
  std::vector<std::string> said;                    // slurm_spank_log
  std::vector<std::string> logged;                  // slurm_info, slurm_error
  std::map<std::string, spank_option> options;      // by name; the strings are not kept
  std::map<std::uint32_t, std::string> comments;    // of jobs, as slurmctld has them
  int update_error = 0;                             // what it says to a change of one
  std::map<std::uint32_t, long long> submit_times;  // what slurmctld knows of jobs
  std::map<std::uint32_t, std::string> partitions;
  std::map<std::uint32_t, std::uint32_t> job_states;
  std::map<std::uint32_t, std::uint32_t> step_states;  // by step
  std::map<std::uint32_t, int> asked;                  // how often it was asked for each
  int log_level = 3;                                   // LOG_LEVEL_INFO; one below with srun -Q
  bool register_fails = false;
  bool setenv_fails = false;
  bool getenv_throws = false;  // something that a hook does not expect

  static FakeHost& get();
};

// A hook of lbf.so by its name, "user_init"; fails the test when the plugin does not export it.
int call_hook(const char* name, std::vector<std::string> arguments = {});
// What Slurm does with an option on the command line, or forwarded to slurmstepd.
int give_option(const std::string& name, const char* value, bool remote = false);

}  // namespace lbf::plugin
