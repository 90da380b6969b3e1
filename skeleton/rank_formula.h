// Formulas of the rank and the number of ranks: what a scalable skeleton has where another one has peers,
// tags, roots and communicators (docs/skeletons.md, "Scalable skeletons"; beyond Sodhi, Subhlok & Xu).
// Quantities have laws (rank_law.h).
//
// Each formula is evaluated here, to be tried on the recorded runs, and written as C for the skeleton. Both
// say the same: c_text() calls functions of scalable_prelude.h that are these ones in C.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace lbf::skeleton {

// How ranks lie in a grid, row-major as in MPI_Cart_create (the last coordinate runs fastest).
struct Geometry {
  enum class Kind : std::uint8_t {
    kNone,
    kBalanced,      // the most alike factors of the rank count, the largest first, as MPI_Dims_create
    kBalancedUp,    // the same, the smallest first
    kFixedColumns,  // 2 dimensions, the last one `fixed` long
    kFixedRows,     // 2 dimensions, the first one `fixed` long
  };
  Kind kind = Kind::kNone;
  int dims = 0;  // 0, 2, 3
  Rank fixed = 0;
  bool operator==(const Geometry&) const = default;
};
using Shape = std::array<Rank, 3>;  // lengths; those that a geometry does not have are 1

// Empty: there is no such grid of so many ranks (a dimension would be shorter than 2). Without a geometry
// every length is 1.
std::optional<Shape> shape_of(const Geometry& geometry, Rank ranks);
std::string text_of(const Geometry& geometry);

// Where a rank stands: everything that a formula depends on.
struct Standpoint {
  Rank rank = 0;
  Rank ranks = 1;
  Shape shape{1, 1, 1};
  Rank step = 0;  // of the block around (StepRange)
};

// Which ranks take part at all.
enum class Guard : std::uint8_t { kAll, kFirst, kNotFirst, kLast, kNotLast, kEven, kOdd };
inline constexpr int kGuards = 7;
bool holds(Guard guard, const Standpoint& at);

// The smallest s with 2^s >= ranks.
Rank doublings(Rank ranks);

// A block of operations is executed once for each step.
enum class StepRange : std::uint8_t {
  kOnce,
  kDoubling,  // 0, 1, ..., up to the last s with 2^s < ranks
  kHalving,   // the same, backwards
  kTurns,     // 1, ..., ranks - 1
  kRanks,     // 0, ..., ranks - 1
};
inline constexpr std::array kStepRanges{StepRange::kDoubling, StepRange::kHalving, StepRange::kTurns,
                                        StepRange::kRanks};
Rank steps_of(StepRange range, Rank ranks);
// The i-th step. REQUIRES: 0 <= i < steps_of.
Rank step_at(StepRange range, Rank ranks, Rank i);

struct PeerFormula {
  enum class Kind : std::uint8_t {
    kRoot,        // rank `value`, for the others
    kLast,        // the last rank, for the others
    kOffset,      // rank + value, where there is one
    kShift,       // (rank + value) mod ranks
    kGrid,        // the neighbour at `move`, where there is one, or around
    kTranspose,   // of a square grid of 2 dimensions; none on the diagonal
    kReverse,     // ranks - 1 - rank; none in the middle
    kHalf,        // (rank + ranks / 2) mod ranks
    kPair,        // rank ^ 1, where there is one
    kTreeParent,  // of a binary tree: (rank - 1) / 2
    kTreeChild,   // of a binary tree: 2 rank + value, where there is one
    kBitParent,   // rank without its lowest bit that is set
    // Of a block's step s; the first ones with 2^s:
    kStepXor,      // rank ^ 2^s, where there is one
    kStepShift,    // (rank +- 2^s) mod ranks; value: +1 or -1
    kStepOffset,   // rank +- 2^s, where there is one; value: +1 or -1
    kGrowChild,    // rank + 2^s for ranks below 2^s, where there is one
    kGrowParent,   // rank - 2^s for ranks from 2^s below 2^(s+1)
    kMergeChild,   // rank + 2^s for multiples of 2^(s+1), where there is one
    kMergeParent,  // rank - 2^s for odd multiples of 2^s
    kTurnShift,    // (rank +- s) mod ranks; value: +1 or -1
    kTurnXor,      // rank ^ s, where there is one
    kEach,         // s itself, if it is another rank
  };
  Kind kind = Kind::kRoot;
  int value = 0;
  std::array<std::int8_t, 3> move{0, 0, 0};
  bool periodic = false;
};
// Whether a rank without such a peer stands at a border and otherwise does as the others do (it computes what
// they compute); else it has another part.
bool has_borders(PeerFormula::Kind kind);
// -1: there is none.
Rank peer_of(const PeerFormula& formula, const Standpoint& at);
// All that come into question, the simplest first. `offsets`: values that kOffset and kShift may have,
// `roots` those of kRoot.
std::vector<PeerFormula> peer_formulas(const Geometry& geometry, StepRange range,
                                       std::span<const int> offsets, std::span<const int> roots);

// A number of each rank: a tag or a root.
struct NumberFormula {
  enum class Kind : std::uint8_t { kConstant, kRank, kPeer, kStep, kLast };  // plus value
  Kind kind = Kind::kConstant;
  std::int64_t value = 0;
};
std::int64_t evaluate(const NumberFormula& formula, const Standpoint& at, Rank peer);

// Which ranks share a communicator, in the order of their ranks.
struct CommFormula {
  enum class Kind : std::uint8_t {
    kAll,
    kDivide,   // those with the same rank / value
    kModulo,   // those with the same rank % value
    kHalves,   // those with the same rank / ((ranks + 1) / 2)
    kSubgrid,  // those that differ only in the dimensions of `kept` (bits), as MPI_Cart_sub
  };
  Kind kind = Kind::kAll;
  Rank value = 0;
  unsigned kept = 0;
};
Rank color_of(const CommFormula& formula, const Standpoint& at);
std::vector<CommFormula> comm_formulas(const Geometry& geometry, Rank fewest_ranks);

// C, of functions and variables of the skeleton.
std::string c_text(Guard guard);  // empty: all
std::string c_text(const PeerFormula& formula);
std::string c_text(const NumberFormula& formula);
std::string c_text(const CommFormula& formula);
// "the rank count must be ..." -> a condition in C; empty: any count will do.
struct CCondition {
  std::string condition;
  std::string text;
};
std::vector<CCondition> conditions_of(const Geometry& geometry);

}  // namespace lbf::skeleton
