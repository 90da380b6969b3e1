// Activity: what share of its time a program spends computing and in each MPI call (Sodhi, Subhlok & Xu,
// Sec. 5.2, Fig. 2), for the application and its skeletons alike.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "skeleton/operation.h"

namespace lbf::skeleton {

// Sums over all ranks.
struct Activities {
  struct Call {
    Seconds seconds = 0;
    std::uint64_t count = 0;
  };
  Seconds computation_s = 0;
  Seconds idle_s = 0;                 // off the processor, and in MPI calls that have no model
  std::map<std::string, Call> calls;  // by call_name

  Seconds total_s() const;
};
Activities activities_of(const ProgramTrace& trace);

// One line of Fig. 2: the share of the whole time, in percent, of each program.
struct ActivityRow {
  std::string name;             // "computation", "idle", or an MPI call
  std::vector<double> percent;  // by program
};
// Computation, idle time where there is any, then the calls, the first program's largest first; calls that
// are below `least_percent` in every program are one row, "other calls". REQUIRES: at least one program.
std::vector<ActivityRow> compare_activities(const std::vector<Activities>& programs, double least_percent);

}  // namespace lbf::skeleton
