// Applications with a number of ranks, as events, for the tests of scalable skeletons.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/skeleton/event_program.h"

namespace lbf::skeleton_test {

struct ScalableApplication {
  std::string name;
  EventProgram (*make)(Rank ranks);
  std::vector<Rank> counts;  // recorded
  std::vector<Rank> others;  // where the formulas must hold
};
inline void PrintTo(const ScalableApplication& application, std::ostream* out) {
  *out << application.name;
}
// Stencils of 1, 2, 3 dimensions with borders and around, rings, trees, pairs, collectives on rows, an
// all-to-all of messages, a master with its workers.
const std::vector<ScalableApplication>& scalable_applications();

EventProgram ring(Rank ranks);
// `bytes_of`: of each message, by rank count.
EventProgram ring_of(Rank ranks, Bytes bytes, int iterations, Seconds work);

}  // namespace lbf::skeleton_test
