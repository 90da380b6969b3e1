#include "base/number.h"
#include "skeleton/rank_law.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace lbf::skeleton {
namespace {

double basis_of(RankLaw::Basis basis, int dim, const Standpoint& at) {
  const double p = at.ranks;
  const double length = at.shape[static_cast<std::size_t>(dim)];
  switch (basis) {
    case RankLaw::Basis::kOne:
      return 1;
    case RankLaw::Basis::kInverse:
      return 1 / p;
    case RankLaw::Basis::kLinear:
      return p;
    case RankLaw::Basis::kLog2:
      return doublings(at.ranks);
    case RankLaw::Basis::kInverseDim:
      return 1 / length;
    case RankLaw::Basis::kInverseRoot:
      return 1 / std::sqrt(p);
    case RankLaw::Basis::kInverseRoot23:
      return std::pow(p, -2.0 / 3);
    case RankLaw::Basis::kOneLess:
      return p - 1;
    case RankLaw::Basis::kDim:
      return length;
    case RankLaw::Basis::kInverseFace:
      return length / p;
    case RankLaw::Basis::kInverseSquare:
      return 1 / p / p;
    case RankLaw::Basis::kSquare:
      return p * p;
    case RankLaw::Basis::kLinearLog2:
      return p * doublings(at.ranks);
  }
  return 1;
}

struct BasisOf {
  RankLaw::Basis basis;
  int dim;
};

std::vector<BasisOf> bases(const Geometry& geometry) {
  using Basis = RankLaw::Basis;
  std::vector<BasisOf> all{{Basis::kOne, 0}, {Basis::kInverse, 0}, {Basis::kLinear, 0}, {Basis::kLog2, 0}};
  for (const Basis basis : {Basis::kInverseDim, Basis::kInverseFace, Basis::kDim}) {
    // Of two dimensions a face across one is the other's inverse length.
    if (basis == Basis::kInverseFace && geometry.dims < 3) continue;
    for (int dim = 0; dim < geometry.dims; ++dim) all.push_back({basis, dim});
  }
  for (const Basis basis : {Basis::kInverseRoot, Basis::kInverseRoot23, Basis::kOneLess,
                            Basis::kInverseSquare, Basis::kSquare, Basis::kLinearLog2})
    all.push_back({basis, 0});
  return all;
}

double step_factor(int per_step, const Standpoint& at) {
  return per_step == 0 ? 1 : std::ldexp(1.0, per_step * at.step);
}

// How far a law may be off at this sample.
double slack_of(const LawSample& sample, const LawTolerance& tolerance) {
  constexpr double kArithmetic = 1e-9;
  constexpr double kMostOfSmall = 0.02;
  return std::max(std::min(tolerance.absolute, kMostOfSmall * sample.value),
                  std::max(tolerance.relative, kArithmetic) * std::abs(sample.value));
}

// The factor that meets every sample within the tolerance; not a number: none does.
double common_factor(std::span<const LawSample> samples, const BasisOf& basis, int per_step,
                     const LawTolerance& tolerance) {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const LawSample& sample : samples) {
    const double g = basis_of(basis.basis, basis.dim, sample.at) * step_factor(per_step, sample.at);
    if (!(g > 0)) return std::numeric_limits<double>::quiet_NaN();
    const double slack = slack_of(sample, tolerance);
    low = std::max(low, (sample.value - slack) / g);
    high = std::min(high, (sample.value + slack) / g);
    sum += sample.value / g;
  }
  if (low > high) return std::numeric_limits<double>::quiet_NaN();
  return std::clamp(sum / static_cast<double>(samples.size()), low, high);
}

bool is_constant(std::span<const LawSample> samples, double value) {
  return std::all_of(samples.begin(), samples.end(), [&](const LawSample& s) { return s.value == value; });
}

std::size_t rank_counts(std::span<const LawSample> samples) {
  std::vector<Rank> counts;
  for (const LawSample& sample : samples) counts.push_back(sample.at.ranks);
  std::sort(counts.begin(), counts.end());
  return static_cast<std::size_t>(std::unique(counts.begin(), counts.end()) - counts.begin());
}

// offset + factor * basis by least squares, if it meets every sample.
std::optional<RankLaw> with_offset(std::span<const LawSample> samples, const BasisOf& basis,
                                   const LawTolerance& tolerance) {
  double n = 0, sg = 0, sv = 0, sgg = 0, sgv = 0;
  for (const LawSample& sample : samples) {
    const double g = basis_of(basis.basis, basis.dim, sample.at);
    n += 1, sg += g, sv += sample.value, sgg += g * g, sgv += g * sample.value;
  }
  const double below = n * sgg - sg * sg;
  if (!(below > 1e-12 * sgg)) return {};
  RankLaw law{basis.basis, basis.dim, (n * sgv - sg * sv) / below, 0, 0};
  law.offset = (sv - law.factor * sg) / n;
  for (const LawSample& sample : samples) {
    if (std::abs(evaluate(law, sample.at) - sample.value) > slack_of(sample, tolerance)) return {};
  }
  return law;
}

// Empty: they are one law up to kMostCompared ranks.
std::string difference(const RankLaw& a, const RankLaw& b, const Geometry& geometry) {
  constexpr double kAlike = 0.02;
  for (Rank ranks = 2; ranks <= kMostCompared; ++ranks) {
    const std::optional<Shape> shape = shape_of(geometry, ranks);
    if (!shape) continue;
    const Standpoint at{0, ranks, *shape, 0};
    const double x = evaluate(a, at);
    const double y = evaluate(b, at);
    if (std::abs(x - y) <= kAlike * std::max(x, y)) continue;
    return c_text(a) + " (taken) and also " + c_text(b) + ", which differ at " + std::to_string(ranks) +
           " ranks";
  }
  return {};
}

}  // namespace

double evaluate(const RankLaw& law, const Standpoint& at) {
  return law.offset + law.factor * basis_of(law.basis, law.dim, at) * step_factor(law.per_step, at);
}

std::optional<RankLaw> fit_law(std::span<const LawSample> samples, const Geometry& geometry,
                               const LawTolerance& tolerance, std::string* doubt) {
  if (samples.empty() || is_constant(samples, samples[0].value)) {
    return RankLaw{RankLaw::Basis::kOne, 0, samples.empty() ? 0 : samples[0].value, 0, 0};
  }
  const bool steps = std::any_of(samples.begin(), samples.end(),
                                 [&](const LawSample& s) { return s.at.step != samples[0].at.step; });
  const std::vector<BasisOf> all = bases(geometry);
  for (const LawTolerance& allowed : {LawTolerance{}, tolerance}) {
    std::optional<RankLaw> first;
    for (const int per_step : {0, 1, -1}) {
      if (per_step != 0 && (!steps || first)) continue;
      for (const BasisOf& basis : all) {
        const double factor = common_factor(samples, basis, per_step, allowed);
        if (std::isnan(factor)) continue;
        const RankLaw law{basis.basis, basis.dim, factor, 0, per_step};
        if (!first) {
          first = law;
        } else if (doubt != nullptr && doubt->empty()) {
          *doubt = difference(*first, law, geometry);
        }
      }
    }
    if (first) return first;
    if (rank_counts(samples) < 3) continue;
    for (const BasisOf& basis : all) {
      if (const std::optional<RankLaw> law = with_offset(samples, basis, allowed)) return law;
    }
  }
  return {};
}

RankLaw nearest_law(std::span<const LawSample> samples, const Geometry& geometry, double& off) {
  constexpr double kAlike = 0.01;  // a law that is less than this better is not better
  std::vector<BasisOf> usual{{RankLaw::Basis::kOne, 0},         {RankLaw::Basis::kInverse, 0},
                             {RankLaw::Basis::kLinear, 0},      {RankLaw::Basis::kLog2, 0},
                             {RankLaw::Basis::kInverseRoot, 0}, {RankLaw::Basis::kInverseRoot23, 0}};
  for (int dim = 0; dim < geometry.dims; ++dim) usual.push_back({RankLaw::Basis::kInverseDim, dim});
  RankLaw best;
  off = std::numeric_limits<double>::infinity();
  for (const BasisOf& basis : usual) {
    // The factor in the middle of those that the samples ask for: the least relative distance.
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    for (const LawSample& sample : samples) {
      const double wanted = sample.value / basis_of(basis.basis, basis.dim, sample.at);
      low = std::min(low, wanted);
      high = std::max(high, wanted);
    }
    if (!(high > 0)) {
      off = 0;
      return {};
    }
    const double distance = (high - low) / (high + low);
    if (distance + kAlike < off || (distance < off && off > 1)) {
      off = distance;
      best = {basis.basis, basis.dim, (low + high) / 2, 0, 0};
    }
  }
  return best;
}

std::string c_text(const RankLaw& law, double scale) {
  const std::string dim = "shape[" + std::to_string(law.dim) + "]";
  const std::string factor = format_number(law.factor * scale, "%.9g");
  std::string text;
  switch (law.basis) {
    case RankLaw::Basis::kOne:
      text = factor;
      break;
    case RankLaw::Basis::kInverse:
      text = factor + " / ranks";
      break;
    case RankLaw::Basis::kLinear:
      text = factor + " * ranks";
      break;
    case RankLaw::Basis::kLog2:
      text = factor + " * doublings()";
      break;
    case RankLaw::Basis::kInverseDim:
      text = factor + " / " + dim;
      break;
    case RankLaw::Basis::kInverseRoot:
      text = factor + " / root(2)";
      break;
    case RankLaw::Basis::kInverseRoot23:
      text = factor + " / root(3) / root(3)";
      break;
    case RankLaw::Basis::kOneLess:
      text = factor + " * (ranks - 1)";
      break;
    case RankLaw::Basis::kDim:
      text = factor + " * " + dim;
      break;
    case RankLaw::Basis::kInverseFace:
      text = factor + " * " + dim + " / ranks";
      break;
    case RankLaw::Basis::kInverseSquare:
      text = factor + " / ranks / ranks";
      break;
    case RankLaw::Basis::kSquare:
      text = factor + " * ranks * ranks";
      break;
    case RankLaw::Basis::kLinearLog2:
      text = factor + " * ranks * doublings()";
      break;
  }
  if (law.per_step > 0) text += " * (1 << step)";
  if (law.per_step < 0) text += " / (1 << step)";
  return law.offset == 0 ? text : format_number(law.offset * scale, "%.9g") + " + " + text;
}

}  // namespace lbf::skeleton
