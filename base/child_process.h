// Another program, run to its end: what it said, within a bound of time and size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf {

struct ChildOutput {
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // of each of the two; more is not kept

  std::string out;
  std::string err;
  int exit_status = -1;  // -1: it did not exit by itself
  int signal = 0;        // that ended it; 0: none
  bool timed_out = false;

  bool succeeded() const { return exit_status == 0 && !timed_out; }
};

inline constexpr Seconds kChildGraceS = 5;

// Runs `words` (the first one is looked up in PATH where it has no '/') with empty standard input, and waits. After
// `patience_s` (0: never) timed_out is set and it is asked to end (SIGTERM), because srun and mpirun have programs of
// their own to end; what is there kChildGraceS later is killed. What it started itself is not waited for then.
// `environment`: "NAME=value" each; nullopt: the caller's. Errors: kUnavailable: it cannot be run; kIo: no pipe.
// REQUIRES: !words.empty().
Result<ChildOutput> run_child(const std::vector<std::string>& words, Seconds patience_s,
                              const std::optional<std::vector<std::string>>& environment = std::nullopt);

// The last line that is not blank: what a program said before it gave up.
std::string last_line(std::string text);

}  // namespace lbf
