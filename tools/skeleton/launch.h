// Starts skeletons: compiled with the site's mpicc, run by srun or mpirun on given nodes, and what they
// print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

// Where a skeleton runs: named nodes, or any `count` nodes, or (neither) wherever the launcher likes.
struct RunNodes {
  std::string list;  // "node[1-4]", as Slurm writes it
  std::uint32_t count = 0;

  std::string text() const;  // "node[1-4]", "any 4 nodes", "any nodes"
};

// One run of a skeleton, as it says itself.
struct SkeletonRun {
  Seconds seconds = 0;  // of the slowest rank, from barrier to end
  double rate = 0;      // units of work per second of processor time
};

struct Launcher {
  std::vector<std::string> command{"srun"};  // srun, mpirun or mpiexec, and options
  std::string distribution = "block";        // srun only
  Seconds limit_s = 0;                       // of one run; 0: none

  bool is_srun() const;
  // srun is told to end all ranks when one fails. Errors: kInvalidInput: empty, or another program.
  static Result<Launcher> parse(const std::string& text);
  // What to put before the program. Errors: kInvalidInput: the list of nodes cannot be read.
  Result<std::vector<std::string>> words(Rank ranks, const RunNodes& nodes) const;
};

// Runs `words` with `program` behind them; `rate`: LBF_SKELETON_RATE. Errors, one line with what the launcher
// or the skeleton said first: kUnavailable: no such launcher, a node that cannot be had, an exit status;
// kLimit: `limit_s` was over and the run was ended.
Result<SkeletonRun> run_skeleton(const std::vector<std::string>& words, const std::string& program,
                                 std::optional<double> rate, Seconds limit_s);

// Compiles `source` into `program`. Errors: kUnavailable: no such compiler here; kInvalidInput: it failed,
// with its first words.
Result<void> compile_skeleton(const std::string& compiler, const std::string& source, const std::string& program);

// The program of `skeleton`: itself, or where it is a source the program beside it (without ".c"), compiled
// where it is not there or older. Errors: those of compile_skeleton; kNotFound.
Result<std::string> program_of(const std::string& skeleton, const std::string& compiler);

}  // namespace lbf::tools
