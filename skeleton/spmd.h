// An exchange as one SPMD program: ranks that do alike are one group, and what differs between them is an
// expression of the rank, or a table where there is none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "skeleton/signature.h"

namespace lbf::skeleton {

// A number on each rank of a group, as a function of x, the rank in the communicator, and n, its size.
struct Expression {
  enum class Kind : std::uint8_t { kConstant, kOffset, kOffsetModulo, kXor, kTable };
  Kind kind = Kind::kConstant;
  std::int64_t value = 0;           // constant; x + value; (x + value) mod n, 0 <= value < n; x ^ value
  std::vector<std::int64_t> table;  // kTable: by rank of the group
};

struct Place {
  std::int64_t x = 0;
  std::int64_t n = 1;
};
// The simplest expression for `values` at `places`. REQUIRES: as many of them, at least one.
Expression fit(std::span<const Place> places, std::span<const std::int64_t> values);
std::int64_t evaluate(const Expression& expression, std::size_t index, const Place& place);

// Communicators that no rank is in two of are one variable of the program: each rank's own one.
struct CommVariables {
  std::vector<std::uint32_t> variable;            // by communicator; 0: the world
  std::vector<std::vector<std::uint32_t>> comms;  // by variable
};
CommVariables comm_variables(const std::vector<std::vector<Rank>>& comms);

struct SpmdOperation {
  Operation operation;                            // of the group's first rank; comm is a CommVariables number
  Expression peer, tag, root, bytes;              // peer: rank in the communicator
  std::vector<std::uint32_t> slots;               // kWait
  std::vector<std::vector<std::uint64_t>> sizes;  // v-collectives: by rank of the group
  std::vector<double> computation_s;              // mean, by rank of the group
  std::vector<double> shape;   // quantile means over mean of all the group's ranks; empty: hardly differs
  std::vector<double> idle_s;  // mean, by rank of the group
};

struct RankGroup {
  std::vector<Rank> ranks;
  std::vector<SpmdOperation> operations;
};

// The ranks of each group do the same operations on the same communicator variables and slots.
std::vector<RankGroup> group_ranks(const Signature& signature, const CommVariables& variables,
                                   const Exchange& exchange);

inline constexpr int kShapeParts = 8;
inline constexpr double kShapeDifference = 0.1;  // a shape within 1 +- this is left out

// As in "0-3", "0,4,8" or "7 ranks: 0-2,5,...".
std::string text_of(std::span<const Rank> ranks);

}  // namespace lbf::skeleton
