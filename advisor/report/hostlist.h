// Node names as Slurm writes a list of them.
#pragma once

#include <string>
#include <vector>

namespace lbf::report {

// "node[1-3,7],login": names that differ in their last number only are joined, numbers with leading zeros
// only where they have the same length. The order of the nodes is kept.
std::string hostlist(const std::vector<std::string>& nodes);

}  // namespace lbf::report
