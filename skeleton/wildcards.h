// Which wildcard receives a skeleton can keep.
#pragma once

#include <cstdint>

#include "skeleton/operation.h"

namespace lbf::skeleton {

struct WildcardCount {
  std::uint64_t all = 0;
  std::uint64_t fixed = 0;
};

// Takes the wildcards off the receives that the skeleton replays with the match that happened. MPI_ANY_TAG
// alone is kept: the order of one sender's messages is fixed. MPI_ANY_SOURCE is kept on a rank and
// communicator where (a) every receive that could take the same messages is posted alike, so that none is
// taken from another receive, and (b) the rank never sends to one of the ranks that it received from: what it
// sends might depend on whose message came (a master's answers), which the trace does not tell.
WildcardCount fix_wildcards(ProgramTrace& trace);

}  // namespace lbf::skeleton
