// lbf-skeleton run and predict: a skeleton on node sets, now; and what that says of the application (Sodhi,
// Subhlok & Xu, Sec. 5.3).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "tools/skeleton/launch.h"

namespace lbf::tools {

struct RunOptions {
  std::string skeleton;         // a source (.c) or a program
  std::vector<RunNodes> nodes;  // empty: wherever the launcher likes
  int repeat = 3;
  std::string launcher = "srun";
  std::string distribution = "block";
  Seconds limit_s = 600;  // of one run
  std::string compiler;
  bool reference = false;     // these runs are where the trace was recorded
  Seconds application_s = 0;  // of the application there; 0: as the skeleton says
  bool json = false;
};

// The runs on one node set.
struct NodeTimes {
  RunNodes nodes;
  std::vector<Seconds> times_s;
  std::string why_failed;  // not empty: what a run there failed with; the times are those before it
};
// `repeat` times each, in turn, so that what changes meanwhile changes for all; a set that fails is left
// alone. A first run that is not counted measures `rate` where it is not known.
std::vector<NodeTimes> run_in_turn(const std::string& program, Rank ranks, const Launcher& launcher,
                                   const std::vector<RunNodes>& nodes, int repeat, std::optional<double>& rate);

// Exit statuses: 1 also where one of the node sets failed.
int skeleton_run(const RunOptions& options);
int skeleton_predict(const RunOptions& options);

}  // namespace lbf::tools
