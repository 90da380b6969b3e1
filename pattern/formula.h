// Formula: a whole number that a run has (bytes of a message, iterations of a loop), as a function of the number of
// ranks and of the rank's place in a process grid.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "pattern/grid.h"
#include "pattern/power_law.h"

namespace lbf::pattern {

struct FormulaSample {
  Rank ranks = 1;
  Rank me = 0;
  std::uint64_t value = 0;
  std::uint32_t step = 0;  // of the loop that goes on from step to step
};

class Formula {
 public:
  Formula() = default;  // 0

  // Where to look first: dimensions of a grid that a number is likely to depend on, all of them.
  struct Likely {
    GridRule rule = GridRule::kLine;
    std::array<bool, kDimensions> dimensions{};
  };
  // The simplest one that has every sample exactly; where there is none, the power law of the means over the ranks of a
  // run, which is_exact() tells. REQUIRES: a sample; their rank counts were added to GRIDS.
  static Formula fit(std::span<const FormulaSample> samples, const Grids& grids, const Likely& likely);

  std::uint64_t at(const Grids& grids, Rank ranks, Rank me, std::uint32_t step = 0) const;
  bool is_exact() const { return kind_ != Kind::kPower; }
  bool is_constant() const { return kind_ == Kind::kConstant && doublings_ == 0; }

 private:
  enum class Kind : std::uint8_t {
    kConstant,
    kTerms,    // factor * product of 1/size of some dimensions, and another such term
    kExtents,  // unit * product of (local extent + halo - margin at each end of the grid) of some dimensions
    kPower,
  };
  // What a term is a multiple of: 1 over the sizes of dimensions, each with an exponent; ranks; log2 of ranks.
  struct Basis {
    enum class Kind : std::uint8_t { kNothing, kSizes, kRanks, kLogRanks };
    Kind kind = Kind::kNothing;
    std::array<std::uint8_t, kDimensions> exponents{};
  };
  struct Term {
    Basis of;
    double factor = 0;
  };

  static double value_of(const Basis& basis, const Grids& grids, GridRule rule, Rank ranks);
  static std::vector<Basis> bases(GridRule rule, std::uint8_t largest_exponent);
  using Samples = std::span<const FormulaSample>;
  static bool fit_term(Samples samples, const Grids& grids, GridRule rule, const Basis& basis, Formula& formula);
  static bool fit_terms(Samples samples, const Grids& grids, GridRule rule, Formula& formula);
  static bool fit_extents(Samples samples, const Grids& grids, GridRule rule, std::span<const std::size_t> dimensions,
                          Formula& formula);
  static bool fit_likely(Samples samples, const Grids& grids, const Likely& likely, Formula& formula);
  static bool fit_any(Samples samples, const Grids& grids, GridRule rule, std::size_t terms, Formula& formula);
  static Formula fit_power(Samples samples);
  bool holds(Samples samples, const Grids& grids) const;
  std::int64_t extent(const Grid& grid, const Coordinates& at, std::size_t dimension) const;
  std::uint64_t of_place(const Grids& grids, Rank ranks, Rank me) const;

  Kind kind_ = Kind::kConstant;
  GridRule rule_ = GridRule::kLine;
  std::int8_t doublings_ = 0;  // at each step: 1 or -1
  std::uint64_t constant_ = 0;
  std::array<Term, 2> terms_{};
  // kExtents
  std::uint64_t unit_ = 1;
  std::uint32_t halo_ = 0;
  std::uint32_t margin_ = 0;
  Coordinates points_{};  // of the whole grid; 0: the dimension has no part in it
  bool is_balanced_ = false;
  PowerLaw power_;
};

// Points of the block at PLACE of POINTS in SIZE blocks: the first ones have one more, or (balanced) those that
// floor((place + 1) points / size) - floor(place points / size) gives.
std::int32_t block_of(std::int32_t points, std::int32_t size, std::int32_t place, bool is_balanced);

}  // namespace lbf::pattern
