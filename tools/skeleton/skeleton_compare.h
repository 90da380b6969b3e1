// lbf-skeleton compare: the shares of time in computation and in each MPI call, of an application and of its
// skeletons (Sodhi, Subhlok & Xu, Sec. 5.2, Fig. 2).
#pragma once

#include <string>
#include <vector>

#include "tools/skeleton/launch.h"

namespace lbf::tools {

struct CompareOptions {
  std::string trace;                // of the application
  std::vector<std::string> others;  // skeletons (captured here), or traces of them
  std::string server;
  RunNodes nodes;
  std::string launcher = "srun";
  std::string distribution = "block";
  double limit_s = 600;
  double least_percent = 1;  // calls below it in every program are one row
  std::string compiler;
  bool json = false;
};

int skeleton_compare(const CompareOptions& options);

}  // namespace lbf::tools
