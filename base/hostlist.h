// Lists of node names as Slurm writes them: "n[1-4,7],m08" (slurm.conf(5), topology.conf(5)).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf {

// "node[1-3,7],login": names that differ in their last number only are joined, numbers with leading zeros
// only where they have the same length. The order of the nodes is kept.
std::string hostlist(const std::vector<std::string>& nodes);

// The names in the order in which they are written; the width of the first number of a range is kept
// ("n[08-10]": n08, n09, n10). Several brackets in a name are taken from left to right ("r[0-1]n[1-2]": r0n1,
// r0n2, r1n1, r1n2). Commas, blanks, tabs and line ends separate names, as many as there are, also before the first and
// behind the last one. Errors (kInvalidInput) quote what is wrong, also that there is no name; more than `limit` names:
// kLimit, before they are made.
Result<std::vector<std::string>> expand_hostlist(std::string_view list, std::size_t limit);

}  // namespace lbf
