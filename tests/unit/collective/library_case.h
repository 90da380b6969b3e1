// Collectives as collective_monitor.c calls them, and what lbf expects each rank to send for them: for the
// tests that compare with a running MPI library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/engine/match/collective.h"

namespace lbf {

// collective_monitor.c has the same numbers.
enum CaseFlags { kNonblocking = 1, kNotCommutative = 2, kInPlace = 4, kInter = 8, kAlike = 16, kCart = 32 };

// An intercommunicator has the even world ranks against the odd ones, the root among the even ones.
// kAlike: the counts of vector operations are all `bytes`. kCart: a periodic grid of two rows, where
// direction d of neighbor_alltoallv sends d + 1 times `bytes`. kCommCreate: `root` is the CommCreation.
struct LibraryCase {
  CollectiveOp op;
  Bytes bytes;
  std::uint32_t root = 0;
  int flags = 0;
};

struct SentMessage {
  std::uint32_t to = 0;  // world rank
  Bytes bytes = 0;
  bool operator==(const SentMessage&) const = default;
};

// What `world_rank` of `ranks` sends, in order. An expansion that fails is a failure of the test. `layout`:
// of the world, as CollectiveCall::layout.
std::vector<SentMessage> expected_messages(const LibraryCase& c, std::uint32_t world_rank, std::uint32_t ranks,
                                           engine::MpiLibrary library, const engine::NodeLayout* layout = nullptr);

// The argument of collective_monitor.
std::string argument_of(const LibraryCase& c);

}  // namespace lbf
