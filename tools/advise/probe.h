// lbf-advise --probe: replay short-lists placements, a performance skeleton measures them now, and the
// measurement decides (Sodhi, Subhlok & Xu, Sec. 1: "candidate node sets [are] identified ... and the final
// choice is made by comparing the execution time of the application skeleton on each node set").
#pragma once

#include <string>

#include "base/result.h"
#include "tools/advise/advise_session.h"
#include "tools/advise/probe_result.h"

namespace lbf::tools {

// Node-seconds that the site lets one command spend on probes: probe_node_seconds in /etc/lbf/advise.toml
// (LBF_ADVISE_CONFIG names another file); where there is no such file or key, kProbeDefaultNodeS. Errors:
// kInvalidInput: not such a file.
inline constexpr double kProbeDefaultNodeS = 600;
Result<double> probe_limit_node_s();

struct ProbeOptions {
  std::string trace;  // as the user named it
  std::string server;
  std::string launcher = "srun";
  std::string compiler = "mpicc";
  double budget_node_s = kProbeDefaultNodeS;
};

// Builds a skeleton, runs it on the best candidates of `result` and where the program runs now, and puts what
// it finds into result.probe, and the decision into result.advice. A probe that is not possible within the
// budget leaves the advice as it is and says why. Errors: no skeleton can be built, no compiler, no folder
// for it here.
Result<void> probe(AdviseResult& result, const advisor::Objective& objective, const ProbeOptions& options);

// What lbf-advise prints of it: lines for people.
std::string probe_text(const ProbeResult& probe);

}  // namespace lbf::tools
