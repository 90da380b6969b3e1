// ScalableProgram -> C/MPI program that runs with any rank count for which its formulas hold.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "skeleton/scalable_program.h"

namespace lbf::skeleton {

// As c_program. Loops are divided by `factor`, the remainder executed with its own loops divided likewise and
// what is outside loops with bytes and computation divided; equal operations outside loops are not grouped.
// The program refuses rank counts for which check_ranks does, and those at which not every message has both
// its ends. REQUIRES: 1 <= factor <= 2147483647.
std::string scalable_c_program(const ScalableProgram& program, std::uint64_t factor,
                               const std::string& source);

}  // namespace lbf::skeleton
