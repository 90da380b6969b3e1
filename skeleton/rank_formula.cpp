#include "skeleton/rank_formula.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace lbf::skeleton {
namespace {

Rank modulo(Rank value, Rank n) {
  return ((value % n) + n) % n;
}

Rank inside(Rank peer, Rank ranks) {
  return peer >= 0 && peer < ranks ? peer : -1;
}

// The factors of `ranks` that are the most alike: the smallest largest one, then the smallest second; the
// largest first.
Shape balanced(Rank ranks, int dims) {
  Shape best{ranks, 1, 1};
  for (Rank a = 1; a <= ranks / a; ++a) {
    if (ranks % a != 0) continue;
    if (dims == 2) {
      best = {ranks / a, a, 1};
      continue;
    }
    for (Rank b = a; b <= ranks / a / b; ++b) {
      if (ranks / a % b != 0) continue;
      const Shape shape{ranks / a / b, b, a};
      if (shape < best) best = shape;
    }
  }
  return best;
}

// Shapes of 2 dimensions are {n0, n1, 1}: the last coordinate is 0, and rank = x * n1 + y all the same.
std::array<Rank, 3> coordinates(const Standpoint& at) {
  const Shape& n = at.shape;
  return {at.rank / (n[1] * n[2]), at.rank / n[2] % n[1], at.rank % n[2]};
}

Rank grid_neighbour(const PeerFormula& formula, const Standpoint& at) {
  std::array<Rank, 3> place = coordinates(at);
  for (std::size_t i = 0; i < place.size(); ++i) {
    place[i] += formula.move[i];
    if (formula.periodic) place[i] = modulo(place[i], at.shape[i]);
    if (place[i] < 0 || place[i] >= at.shape[i]) return -1;
  }
  return (place[0] * at.shape[1] + place[1]) * at.shape[2] + place[2];
}

Rank power_of_two(Rank step) {
  return step < 31 ? Rank{1} << step : std::numeric_limits<Rank>::max() / 4;
}

std::string call(const char* name, int value) {
  return std::string(name) + "(" + std::to_string(value) + ")";
}

}  // namespace

std::optional<Shape> shape_of(const Geometry& geometry, Rank ranks) {
  Shape shape{1, 1, 1};
  switch (geometry.kind) {
    case Geometry::Kind::kNone:
      return shape;
    case Geometry::Kind::kBalanced:
      shape = balanced(ranks, geometry.dims);
      break;
    case Geometry::Kind::kBalancedUp:
      shape = balanced(ranks, geometry.dims);
      std::reverse(shape.begin(), shape.begin() + geometry.dims);
      break;
    case Geometry::Kind::kFixedColumns:
    case Geometry::Kind::kFixedRows:
      if (ranks % geometry.fixed != 0) return {};
      shape = geometry.kind == Geometry::Kind::kFixedRows ? Shape{geometry.fixed, ranks / geometry.fixed, 1}
                                                          : Shape{ranks / geometry.fixed, geometry.fixed, 1};
      break;
  }
  for (int dim = 0; dim < geometry.dims; ++dim) {
    if (shape[static_cast<std::size_t>(dim)] < 2) return {};
  }
  return shape;
}

std::string text_of(const Geometry& geometry) {
  const std::string dims = std::to_string(geometry.dims);
  switch (geometry.kind) {
    case Geometry::Kind::kNone:
      return "no grid";
    case Geometry::Kind::kBalanced:
      return "a grid of " + dims + " dimensions, as alike as can be, the longest first";
    case Geometry::Kind::kBalancedUp:
      return "a grid of " + dims + " dimensions, as alike as can be, the shortest first";
    case Geometry::Kind::kFixedColumns:
      return "a grid of " + std::to_string(geometry.fixed) + " columns";
    case Geometry::Kind::kFixedRows:
      return "a grid of " + std::to_string(geometry.fixed) + " rows";
  }
  return "";
}

bool holds(Guard guard, const Standpoint& at) {
  switch (guard) {
    case Guard::kAll:
      return true;
    case Guard::kFirst:
      return at.rank == 0;
    case Guard::kNotFirst:
      return at.rank != 0;
    case Guard::kLast:
      return at.rank == at.ranks - 1;
    case Guard::kNotLast:
      return at.rank != at.ranks - 1;
    case Guard::kEven:
      return at.rank % 2 == 0;
    case Guard::kOdd:
      return at.rank % 2 != 0;
  }
  return true;
}

Rank doublings(Rank ranks) {
  Rank steps = 0;
  while ((std::int64_t{1} << steps) < ranks) ++steps;
  return steps;
}

Rank steps_of(StepRange range, Rank ranks) {
  switch (range) {
    case StepRange::kOnce:
      return 1;
    case StepRange::kDoubling:
    case StepRange::kHalving:
      return doublings(ranks);
    case StepRange::kTurns:
      return ranks - 1;
    case StepRange::kRanks:
      return ranks;
  }
  return 1;
}

Rank step_at(StepRange range, Rank ranks, Rank i) {
  switch (range) {
    case StepRange::kHalving:
      return doublings(ranks) - 1 - i;
    case StepRange::kTurns:
      return i + 1;
    default:
      return i;
  }
}

bool has_borders(PeerFormula::Kind kind) {
  using Kind = PeerFormula::Kind;
  return kind == Kind::kOffset || kind == Kind::kGrid || kind == Kind::kStepOffset ||
         kind == Kind::kTreeParent || kind == Kind::kBitParent;
}

Rank peer_of(const PeerFormula& f, const Standpoint& at) {
  using Kind = PeerFormula::Kind;
  const Rank r = at.rank;
  const Rank p = at.ranks;
  const auto other = [&](Rank peer) { return peer == r ? -1 : peer; };
  switch (f.kind) {
    case Kind::kRoot:
      return other(inside(f.value, p));
    case Kind::kLast:
      return other(p - 1);
    case Kind::kOffset:
      return inside(r + f.value, p);
    case Kind::kShift:
      return modulo(r + f.value, p);
    case Kind::kGrid:
      return grid_neighbour(f, at);
    case Kind::kTranspose:
      return at.shape[0] != at.shape[1] || at.shape[2] != 1
                 ? -1
                 : other(r % at.shape[1] * at.shape[1] + r / at.shape[1]);
    case Kind::kReverse:
      return other(p - 1 - r);
    case Kind::kHalf:
      return other(modulo(r + p / 2, p));
    case Kind::kPair:
      return inside(r ^ 1, p);
    case Kind::kTreeParent:
      return r == 0 ? -1 : (r - 1) / 2;
    case Kind::kTreeChild:
      return inside(2 * r + f.value, p);
    case Kind::kBitParent:
      return r == 0 ? -1 : r & (r - 1);
    case Kind::kStepXor:
      return inside(r ^ power_of_two(at.step), p);
    case Kind::kStepShift:
      return modulo(r + f.value * power_of_two(at.step), p);
    case Kind::kStepOffset:
      return inside(r + f.value * power_of_two(at.step), p);
    case Kind::kGrowChild:
      return r < power_of_two(at.step) ? inside(r + power_of_two(at.step), p) : -1;
    case Kind::kGrowParent:
      return r >= power_of_two(at.step) && r < 2 * power_of_two(at.step) ? r - power_of_two(at.step) : -1;
    case Kind::kMergeChild:
      return r % (2 * power_of_two(at.step)) == 0 ? inside(r + power_of_two(at.step), p) : -1;
    case Kind::kMergeParent:
      return r % (2 * power_of_two(at.step)) == power_of_two(at.step) ? r - power_of_two(at.step) : -1;
    case Kind::kTurnShift:
      return modulo(r + f.value * at.step, p);
    case Kind::kTurnXor:
      return inside(r ^ at.step, p);
    case Kind::kEach:
      return other(at.step);
  }
  return -1;
}

std::vector<PeerFormula> peer_formulas(const Geometry& geometry, StepRange range,
                                       std::span<const int> offsets, std::span<const int> roots) {
  using Kind = PeerFormula::Kind;
  std::vector<PeerFormula> all;
  const auto add = [&](Kind kind, int value = 0) { all.push_back({kind, value, {0, 0, 0}, false}); };
  if (range == StepRange::kDoubling || range == StepRange::kHalving) {
    for (const Kind kind :
         {Kind::kStepXor, Kind::kGrowChild, Kind::kGrowParent, Kind::kMergeChild, Kind::kMergeParent})
      add(kind);
    for (const int sign : {1, -1}) {
      add(Kind::kStepShift, sign);
      add(Kind::kStepOffset, sign);
    }
    return all;
  }
  if (range == StepRange::kTurns || range == StepRange::kRanks) {
    if (range == StepRange::kTurns) {
      add(Kind::kTurnShift, 1);
      add(Kind::kTurnShift, -1);
      add(Kind::kTurnXor);
    }
    add(Kind::kEach);
    return all;
  }
  for (const bool periodic : {false, true}) {
    for (int move = 0; geometry.dims > 0 && move < 27; ++move) {
      const std::array<std::int8_t, 3> moves{static_cast<std::int8_t>(move / 9 - 1),
                                             static_cast<std::int8_t>(move / 3 % 3 - 1),
                                             static_cast<std::int8_t>(move % 3 - 1)};
      if (geometry.dims == 2 && moves[2] != 0) continue;
      if (moves == std::array<std::int8_t, 3>{0, 0, 0}) continue;
      all.push_back({Kind::kGrid, 0, moves, periodic});
    }
  }
  if (geometry.dims == 2) add(Kind::kTranspose);
  for (const int offset : offsets) {
    add(Kind::kOffset, offset);
    add(Kind::kShift, offset);
  }
  for (const int root : roots) add(Kind::kRoot, root);
  for (const Kind kind : {Kind::kLast, Kind::kPair, Kind::kReverse, Kind::kHalf, Kind::kTreeParent})
    add(kind);
  add(Kind::kTreeChild, 1);
  add(Kind::kTreeChild, 2);
  add(Kind::kBitParent);
  return all;
}

std::int64_t evaluate(const NumberFormula& formula, const Standpoint& at, Rank peer) {
  switch (formula.kind) {
    case NumberFormula::Kind::kConstant:
      return formula.value;
    case NumberFormula::Kind::kRank:
      return at.rank + formula.value;
    case NumberFormula::Kind::kPeer:
      return peer + formula.value;
    case NumberFormula::Kind::kStep:
      return at.step + formula.value;
    case NumberFormula::Kind::kLast:
      return at.ranks - 1;
  }
  return 0;
}

Rank color_of(const CommFormula& formula, const Standpoint& at) {
  switch (formula.kind) {
    case CommFormula::Kind::kAll:
      return 0;
    case CommFormula::Kind::kDivide:
      return at.rank / formula.value;
    case CommFormula::Kind::kModulo:
      return at.rank % formula.value;
    case CommFormula::Kind::kHalves:
      return at.rank / ((at.ranks + 1) / 2);
    case CommFormula::Kind::kSubgrid: {
      const std::array<Rank, 3> place = coordinates(at);
      Rank color = 0;
      for (std::size_t dim = 0; dim < place.size(); ++dim) {
        if ((formula.kept & 1u << dim) == 0) color = color * at.shape[dim] + place[dim];
      }
      return color;
    }
  }
  return 0;
}

std::vector<CommFormula> comm_formulas(const Geometry& geometry, Rank fewest_ranks) {
  using Kind = CommFormula::Kind;
  std::vector<CommFormula> all{{Kind::kAll, 0, 0}};
  if (geometry.dims > 0) {
    for (unsigned kept = 1; kept + 1 < 1u << geometry.dims; ++kept) all.push_back({Kind::kSubgrid, 0, kept});
  }
  all.push_back({Kind::kHalves, 0, 0});
  for (Rank value = 2; value <= fewest_ranks; ++value) {
    all.push_back({Kind::kModulo, value, 0});
    all.push_back({Kind::kDivide, value, 0});
  }
  return all;
}

std::string c_text(Guard guard) {
  switch (guard) {
    case Guard::kAll:
      return "";
    case Guard::kFirst:
      return "rank == 0";
    case Guard::kNotFirst:
      return "rank != 0";
    case Guard::kLast:
      return "rank == ranks - 1";
    case Guard::kNotLast:
      return "rank != ranks - 1";
    case Guard::kEven:
      return "rank % 2 == 0";
    case Guard::kOdd:
      return "rank % 2 != 0";
  }
  return "";
}

std::string c_text(const PeerFormula& f) {
  using Kind = PeerFormula::Kind;
  const std::string sign = f.value < 0 ? "-" : "";
  switch (f.kind) {
    case Kind::kRoot:
      return call("other", f.value);
    case Kind::kLast:
      return "other(ranks - 1)";
    case Kind::kOffset:
      return call("offset", f.value);
    case Kind::kShift:
      return call("shift", f.value);
    case Kind::kGrid:
      return std::string(f.periodic ? "around(" : "neighbour(") + std::to_string(f.move[0]) + ", " +
             std::to_string(f.move[1]) + ", " + std::to_string(f.move[2]) + ")";
    case Kind::kTranspose:
      return "transposed()";
    case Kind::kReverse:
      return "other(ranks - 1 - rank)";
    case Kind::kHalf:
      return "other((rank + ranks / 2) % ranks)";
    case Kind::kPair:
      return "inside(rank ^ 1)";
    case Kind::kTreeParent:
      return "rank == 0 ? -1 : (rank - 1) / 2";
    case Kind::kTreeChild:
      return "inside(2 * rank + " + std::to_string(f.value) + ")";
    case Kind::kBitParent:
      return "rank == 0 ? -1 : rank & (rank - 1)";
    case Kind::kStepXor:
      return "inside(rank ^ (1 << step))";
    case Kind::kStepShift:
      return "shift(" + sign + "(1 << step))";
    case Kind::kStepOffset:
      return "offset(" + sign + "(1 << step))";
    case Kind::kGrowChild:
      return "rank < (1 << step) ? offset(1 << step) : -1";
    case Kind::kGrowParent:
      return "rank >= (1 << step) && rank < (2 << step) ? rank - (1 << step) : -1";
    case Kind::kMergeChild:
      return "rank % (2 << step) == 0 ? offset(1 << step) : -1";
    case Kind::kMergeParent:
      return "rank % (2 << step) == (1 << step) ? rank - (1 << step) : -1";
    case Kind::kTurnShift:
      return "shift(" + sign + "step)";
    case Kind::kTurnXor:
      return "inside(rank ^ step)";
    case Kind::kEach:
      return "other(step)";
  }
  return "-1";
}

std::string c_text(const NumberFormula& formula) {
  const std::string value = formula.value == 0  ? ""
                            : formula.value < 0 ? " - " + std::to_string(-formula.value)
                                                : " + " + std::to_string(formula.value);
  switch (formula.kind) {
    case NumberFormula::Kind::kConstant:
      return std::to_string(formula.value);
    case NumberFormula::Kind::kRank:
      return "rank" + value;
    case NumberFormula::Kind::kPeer:
      return "peer" + value;
    case NumberFormula::Kind::kStep:
      return "step" + value;
    case NumberFormula::Kind::kLast:
      return "last";  // of the communicator
  }
  return "0";
}

std::string c_text(const CommFormula& formula) {
  switch (formula.kind) {
    case CommFormula::Kind::kAll:
      return "0";
    case CommFormula::Kind::kDivide:
      return "rank / " + std::to_string(formula.value);
    case CommFormula::Kind::kModulo:
      return "rank % " + std::to_string(formula.value);
    case CommFormula::Kind::kHalves:
      return "rank / ((ranks + 1) / 2)";
    case CommFormula::Kind::kSubgrid:
      return "outside(" + std::to_string(formula.kept) + ")";
  }
  return "0";
}

std::vector<CCondition> conditions_of(const Geometry& geometry) {
  std::vector<CCondition> all{{"ranks >= 2", "at least 2 ranks"}};
  if (geometry.kind == Geometry::Kind::kFixedColumns || geometry.kind == Geometry::Kind::kFixedRows) {
    const std::string fixed = std::to_string(geometry.fixed);
    all.push_back({"ranks % " + fixed + " == 0", "a multiple of " + fixed});
  }
  for (int dim = 0; dim < geometry.dims; ++dim) {
    all.push_back({"shape[" + std::to_string(dim) + "] >= 2",
                   "ranks that make " + text_of(geometry) + ", each at least 2 long"});
  }
  return all;
}

}  // namespace lbf::skeleton
