// SpankHandle: Slurm's plugin interface in C++, non-owning and valid for one hook call.
#pragma once

extern "C" {
#include <slurm/spank.h>
}

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lbf::plugin {

class SpankHandle {
 public:
  explicit SpankHandle(spank_t spank) : spank_(spank) {}

  spank_t get() const { return spank_; }

  // An item of one value; nothing when Slurm does not have it here.
  template <typename T>
  std::optional<T> item(spank_item_t item) const {
    T value{};
    if (spank_get_item(spank_, item, &value) != ESPANK_SUCCESS) return std::nullopt;
    return value;
  }
  std::vector<std::string> arguments() const;     // S_JOB_ARGV
  std::vector<gid_t> supplementary_gids() const;  // S_JOB_SUPPLEMENTARY_GIDS
  std::optional<std::uint32_t> global_task_id(std::uint32_t local) const;

  // The job's environment (remote context only).
  std::optional<std::string> environment(const char* name) const;
  bool set_environment(const char* name, const std::string& value) const;
  void unset_environment(const char* name) const;

 private:
  spank_t spank_;
};

// One line for the user (stderr of srun, sbatch, salloc; through slurmstepd: of srun or the batch job), with
// "lbf: " in front.
void say(const std::string& message);
// Whether srun prints more than errors: not with -Q. Slurm tells no plugin, but its log's level is a symbol of its
// library; where that has another name the answer is yes. REQUIRES: srun has read its options.
bool slurm_prints_information();
// One line for the administrator's log only.
void log_for_admin(const std::string& message);

}  // namespace lbf::plugin
