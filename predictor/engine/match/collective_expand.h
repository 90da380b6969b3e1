// Between expand_collective (collective.cpp) and the expansions of the libraries' calls.
//
// Place in the event's way: match (inside collective*.cpp).
#pragma once

#include <span>
#include <vector>

#include "predictor/engine/match/collective.h"
#include "predictor/engine/match/collective_algorithms.h"
#include "predictor/engine/match/collective_arithmetic.h"
#include "predictor/engine/match/collective_rules.h"

namespace lbf::engine::collective {

using Values = std::span<const std::uint64_t>;
inline constexpr Rank kMpiRoot = kRootIsMe;

// REQUIRES of all: a call whose arguments were checked, and that has something to do.

// The call's own part of the layered algorithm; choose() said kHan or kSmp.
void expand_by_nodes(const CollectiveCall& call, std::vector<CollectiveStep>& out);
// A call inside a part of the communicator, whose ranks there are `members`, as if it were a communicator of
// its own: nothing where there is nothing to do.
void expand_inside(const CollectiveCall& call, std::span<const std::uint32_t> members,
                   std::vector<CollectiveStep>& out);
// `members`: as GroupSteps'.
void expand_mpich(const CollectiveCall& call, Algorithm algorithm, std::span<const std::uint32_t> members,
                  std::vector<CollectiveStep>& out);

// On an intercommunicator, in Open MPI.
void expand_inter_openmpi(const CollectiveCall& call, Algorithm algorithm, std::vector<CollectiveStep>& out);

// kCommCreate. Whether these are the library's own messages; else the closest.
bool expand_creation(const CollectiveCall& call, std::vector<CollectiveStep>& out);

// In the order of the neighbours, sends first; a message to oneself is a copy in memory.
void expand_neighbours(const CollectiveCall& call, GroupSteps& steps);
// On an intracommunicator, a collective that Open MPI's blocking calls and MPICH make alike from ALGORITHM.
void expand_alike(const CollectiveCall& call, Algorithm algorithm, GroupSteps& steps);

}  // namespace lbf::engine::collective
