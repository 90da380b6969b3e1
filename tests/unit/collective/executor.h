// Runs the step lists of all ranks against each other: eager sends, receives that wait, and what depends on
// whom.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "predictor/engine/match/collective.h"

namespace lbf {

inline constexpr std::size_t kMaxMembers = 1024;
using Members = std::bitset<kMaxMembers>;

// Members 0 .. size-1; intercommunicator: then the remote group's.
struct Outcome {
  std::string problem;         // "" when everything went well: no deadlock, all messages received, same bytes
  std::vector<Members> knows;  // by member: whose contribution has reached it (its own is always there)
  Bytes bytes = 0;             // of all messages
  std::uint64_t messages = 0;
  std::uint64_t most_steps = 0;  // of one rank
  bool approximated = false;
};

// `calls`: one per member. `group_size`: members of the first group (intracommunicator: all).
Outcome run(const std::vector<engine::CollectiveCall>& calls, std::uint32_t group_size);

}  // namespace lbf
