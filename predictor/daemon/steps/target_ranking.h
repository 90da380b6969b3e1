// The order in which a step's targets are worked down while budgets last (docs/lbfd.md, "Budgets").
#pragma once

#include <string>
#include <vector>

#include "predictor/engine/replay/target.h"

namespace lbf::daemon {

// The configuration that ran stays first, and with other threads comes last. Then targets on networks that the user
// asked for before others; among these the nearer ones first: those that change less of network, number of nodes and
// placement; of these the network that ran, whose targets flags of srun can ask for; then those whose number of nodes
// is nearer in ratio; else in the order given. REQUIRES: targets.front() is the configuration that ran.
std::vector<engine::Target> ranked_targets(std::vector<engine::Target> targets,
                                           const std::vector<std::string>& asked_networks);

}  // namespace lbf::daemon
