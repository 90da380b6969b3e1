// Laws: quantities (bytes, iterations, times) as functions of the number of ranks, fitted to runs at two or
// more rank counts (docs/skeletons.md, "Scalable skeletons"; beyond Sodhi, Subhlok & Xu).
//
// As with the formulas of rank_formula.h, evaluate() and c_text() say the same.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "skeleton/rank_formula.h"

namespace lbf::skeleton {

// A quantity as a function of the number of ranks (and of a doubling block's step): offset + factor * basis.
struct RankLaw {
  enum class Basis : std::uint8_t {
    kOne,
    kInverse,        // 1 / p
    kLinear,         // p
    kLog2,           // the smallest s with 2^s >= p
    kInverseDim,     // 1 / length of dimension `dim`
    kInverseRoot,    // 1 / sqrt p
    kInverseRoot23,  // 1 / p^(2/3): a face of a cube's part
    kOneLess,        // p - 1
    kDim,            // length of dimension `dim`
    kInverseFace,    // dimension `dim`'s length over p: a face across it
    kInverseSquare,  // 1 / p^2
    kSquare,         // p^2
    kLinearLog2,     // p times kLog2
  };
  Basis basis = Basis::kOne;
  int dim = 0;
  double factor = 0;
  double offset = 0;
  int per_step = 0;  // times 2^(per_step * s): -1, 0, 1
};
double evaluate(const RankLaw& law, const Standpoint& at);

// A measured value, of `at.ranks` ranks (and step).
struct LawSample {
  Standpoint at;
  double value = 0;
};
// How much a law may be off its samples: all of `absolute` and `relative` * value; and then rounding.
struct LawTolerance {
  double absolute = 0;
  double relative = 0;
};
// The first law that meets all samples: exactly, else within the tolerance. From three rank counts on also
// those with an offset. Empty: none does. Where another one meets them as well and differs at a rank count up
// to kMostCompared, `doubt` (if it is given) names both. REQUIRES: samples of at least two rank counts.
inline constexpr Rank kMostCompared = 64;
std::optional<RankLaw> fit_law(std::span<const LawSample> samples, const Geometry& geometry,
                               const LawTolerance& tolerance, std::string* doubt = nullptr);
// For times, which are never exact: the law without an offset that is the least off; how far (relative) is
// stored in `off`. REQUIRES: as above.
RankLaw nearest_law(std::span<const LawSample> samples, const Geometry& geometry, double& off);

// C, of functions and variables of the skeleton. `scale`: of the value, as 1e6 for microseconds.
std::string c_text(const RankLaw& law, double scale = 1);

}  // namespace lbf::skeleton
