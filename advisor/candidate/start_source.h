// When Slurm would start a job that it does not get: its own estimate, from `srun --test-only`.
//
// srun is asked, not libslurm: it reads the flags that the user will type, with what the site's plugins and
// variables (SLURM_ACCOUNT, SLURM_QOS, SLURM_RESERVATION ...) make of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::advisor {

struct StartAnswer {
  std::optional<double> at_s;  // seconds since the epoch
  std::string why_not;         // without it: Slurm's words
};

class StartSource {
 public:
  virtual ~StartSource() = default;
  // `flags` of srun, one word each. A job that Slurm would not take is an answer, too. Errors (kUnavailable):
  // Slurm cannot be asked at all.
  virtual Result<StartAnswer> ask(const std::vector<std::string>& flags) = 0;
};

// `srun`: the program; asked with `flags` and --test-only, for at most `patience_s` each time.
std::unique_ptr<StartSource> srun_start_source(std::string srun = "srun", Seconds patience_s = 30);

// What srun said (22.05: "srun: Job 7 to start at 2026-11-22T04:00:00 using 4 processors on nodes n[1-2] in
// partition p"; 26.05 has an " a" behind the time; federations "... on cluster c using ..."). Times as
// SLURM_TIME_FORMAT=%s or as Slurm's standard, local time.
StartAnswer parse_start(std::string_view srun_stderr);

// The environment that srun is asked with: without what a surrounding job set (Slurm's variables but those
// that a user sets for srun), with times in seconds. `environment`: "NAME=value" each.
std::vector<std::string> start_environment(const std::vector<std::string>& environment);

}  // namespace lbf::advisor
