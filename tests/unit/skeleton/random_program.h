// Random programs with loops, nested: messages blocking and not, receives posted an iteration ahead, probes,
// wildcards, collectives blocking and not, sub-communicators made for good and in loops. They always end.
#pragma once

#include <cstdint>

#include "tests/unit/skeleton/event_program.h"

namespace lbf::skeleton_test {

struct RandomProgramOptions {
  Rank ranks = 0;  // 0: 2 to 8
  int most_iterations = 12;
  double work_s = 1e-5;  // largest computation between calls
};
EventProgram random_program(std::uint64_t seed, const RandomProgramOptions& options = {});

}  // namespace lbf::skeleton_test
