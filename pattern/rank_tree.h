// One rank's operations as a tree of loops and statements.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "skeleton/operation.h"
#include "skeleton/spmd.h"

namespace lbf::pattern {

// What must agree for two operations to be executions of one statement.
struct Key {
  skeleton::OperationKind kind = skeleton::OperationKind::kEnd;
  std::uint8_t flags = 0;
  CollectiveOp op = CollectiveOp::kBarrier;
  std::int32_t tag = 0;
  std::uint32_t comm = 0;  // skeleton::CommVariables
  friend auto operator<=>(const Key&, const Key&) = default;
};

// Which of the rank's active requests a wait is for.
enum WaitForm : std::uint8_t {
  kWaitsForAll = 1,
  kWaitsForReceives = 2,  // all of them, and nothing else
  kWaitsForOthers = 4,    // all sends and collectives
  kWaitsForOldest = 8,
  kWaitsForNewest = 16,
  kWaitsForOldestReceive = 32,
  kWaitsForOldestOther = 64,
  kWaitsForPositions = 128,  // in the order in which they were started
};

struct Step {
  bool is_loop = false;
  // A loop.
  std::uint64_t count = 1;
  std::vector<Step> body;
  // A statement.
  Key key;
  Rank peer = kAnyRank;               // world rank
  Rank root = 0;                      // rank in the communicator
  Bytes bytes = 0;                    // the mean, where iterations differ
  std::vector<std::uint64_t> values;  // v-collectives; the mean
  std::uint8_t wait_forms = 0;        // WaitForm, those that hold
  std::vector<std::uint32_t> positions;
  double process_s = 0;        // before it
  double idle_s = 0;           // the mean
  std::vector<float> times_s;  // of a tree: process time before each execution
  std::uint32_t symbol = 0;    // alike: the same statement with the same peer and sizes

  std::size_t statements() const;
};
std::size_t statements_of(const std::vector<Step>& steps);

// The operations of a rank, each as a statement that was executed. Errors: what cannot be extrapolated (cancelled and
// freed requests).
Result<std::vector<Step>> executed_steps(const skeleton::ProgramTrace& trace, const skeleton::CommVariables& comms,
                                         Rank rank);

// Whether iterations of a loop have the same sizes, or are taken together whatever their sizes are.
enum class Sizes : std::uint8_t { kSame, kAny };

// How operations become a tree.
struct Folding {
  Sizes sizes = Sizes::kSame;
  // Loops with so many statements at most, all iterations counted, are written out: what one rank does again, another
  // one does with a message in between.
  std::size_t written_out = 0;
};
std::vector<Step> folded(const std::vector<Step>& executed, const Folding& folding);

}  // namespace lbf::pattern
