#include "pattern/formula.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace lbf::pattern {
namespace {

constexpr std::uint32_t kMostHalo = 4;
constexpr std::uint32_t kMostMargin = 2;
constexpr std::size_t kMostUnits = 24;
// Beyond it numbers are no local extents.
constexpr std::uint64_t kMostPoints = 1 << 24;

// The largest first.
std::vector<std::uint64_t> divisors_of(std::uint64_t number, std::size_t most) {
  std::vector<std::uint64_t> small;
  std::vector<std::uint64_t> large;
  constexpr std::uint64_t kMostTried = 1 << 16;
  for (std::uint64_t divisor = 1; divisor <= number / divisor && divisor <= kMostTried; ++divisor) {
    if (number % divisor != 0) continue;
    small.push_back(divisor);
    if (divisor != number / divisor) large.push_back(number / divisor);
  }
  large.insert(large.end(), small.rbegin(), small.rend());
  if (large.size() > most) large.resize(most);
  return large;
}

std::uint64_t doubled(std::uint64_t value, int doublings, std::uint32_t step) {
  if (doublings == 0 || step == 0 || step > 62) return value;
  return doublings > 0 ? value << step : value >> step;
}

}  // namespace

std::int32_t block_of(std::int32_t points, std::int32_t size, std::int32_t place, bool is_balanced) {
  if (!is_balanced) return points / size + (place < points % size ? 1 : 0);
  const std::int64_t wide = points;
  return static_cast<std::int32_t>((place + 1) * wide / size - place * wide / size);
}

double Formula::value_of(const Basis& basis, const Grids& grids, GridRule rule, Rank ranks) {
  if (basis.kind == Basis::Kind::kRanks) return ranks;
  if (basis.kind == Basis::Kind::kLogRanks) return std::log2(ranks);
  const Grid* grid = grids.find(rule, ranks);
  double product = basis.kind == Basis::Kind::kNothing ? 0 : 1;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    for (std::uint8_t e = 0; e < basis.exponents[d]; ++e) product /= grid != nullptr ? grid->size[d] : 1;
  }
  return product;
}

// The simplest first.
std::vector<Formula::Basis> Formula::bases(GridRule rule, std::uint8_t largest_exponent) {
  std::vector<Basis> all;
  const std::size_t dimensions = rule == GridRule::kLine ? 1 : kDimensions;
  std::array<std::uint8_t, kDimensions> e{};
  for (e[0] = 0; e[0] <= largest_exponent; ++e[0]) {
    for (e[1] = 0; e[1] <= (dimensions > 1 ? largest_exponent : 0); ++e[1]) {
      for (e[2] = 0; e[2] <= (dimensions > 2 ? largest_exponent : 0); ++e[2]) all.push_back({Basis::Kind::kSizes, e});
    }
  }
  const auto degree = [](const Basis& basis) { return basis.exponents[0] + basis.exponents[1] + basis.exponents[2]; };
  std::stable_sort(all.begin(), all.end(), [&](const Basis& a, const Basis& b) { return degree(a) < degree(b); });
  if (rule == GridRule::kLine) all.insert(all.end(), {{Basis::Kind::kRanks, {}}, {Basis::Kind::kLogRanks, {}}});
  return all;
}

std::int64_t Formula::extent(const Grid& grid, const Coordinates& at, std::size_t dimension) const {
  const std::int32_t size = grid.size[dimension];
  const std::int32_t place = at[dimension];
  const std::int64_t ends = (place == 0 ? 1 : 0) + (place == size - 1 ? 1 : 0);
  return block_of(points_[dimension], size, place, is_balanced_) + std::int64_t{halo_} - ends * margin_;
}

std::uint64_t Formula::of_place(const Grids& grids, Rank ranks, Rank me) const {
  switch (kind_) {
    case Kind::kConstant:
      return constant_;
    case Kind::kTerms: {
      double value = 0;
      for (const Term& term : terms_) value += term.factor * value_of(term.of, grids, rule_, ranks);
      return value > 0 ? static_cast<std::uint64_t>(std::llround(value)) : 0;
    }
    case Kind::kExtents: {
      const Grid* grid = grids.find(rule_, ranks);
      if (grid == nullptr) return 0;
      const Coordinates at = grid->at(me);
      std::uint64_t value = unit_;
      for (std::size_t d = 0; d < kDimensions; ++d) {
        if (points_[d] > 0) value *= static_cast<std::uint64_t>(std::max<std::int64_t>(0, extent(*grid, at, d)));
      }
      return value;
    }
    case Kind::kPower:
      break;
  }
  return static_cast<std::uint64_t>(std::llround(power_.at(ranks)));
}

std::uint64_t Formula::at(const Grids& grids, Rank ranks, Rank me, std::uint32_t step) const {
  return doubled(of_place(grids, ranks, me), doublings_, step);
}

bool Formula::holds(std::span<const FormulaSample> samples, const Grids& grids) const {
  return std::all_of(samples.begin(), samples.end(), [&](const FormulaSample& sample) {
    return at(grids, sample.ranks, sample.me, sample.step) == sample.value;
  });
}

bool Formula::fit_term(Samples samples, const Grids& grids, GridRule rule, const Basis& basis, Formula& formula) {
  const FormulaSample& last = samples.back();
  std::set<double> rows;
  for (const FormulaSample& sample : samples) {
    if (grids.find(rule, sample.ranks) == nullptr) return false;
    rows.insert(value_of(basis, grids, rule, sample.ranks));
  }
  if (rows.size() < 2) return false;
  Formula tried;
  tried.kind_ = Kind::kTerms;
  tried.rule_ = rule;
  tried.terms_[0] = {basis, static_cast<double>(last.value) / value_of(basis, grids, rule, last.ranks)};
  if (!tried.holds(samples, grids)) return false;
  formula = tried;
  return true;
}

// Two terms. More rank counts than terms tell them.
bool Formula::fit_terms(Samples samples, const Grids& grids, GridRule rule, Formula& formula) {
  std::map<Rank, std::uint64_t> values;
  for (const FormulaSample& sample : samples) {
    if (grids.find(rule, sample.ranks) == nullptr) return false;
    const auto [known, is_new] = values.emplace(sample.ranks, sample.value);
    if (!is_new && known->second != sample.value) return false;
  }
  const auto& [first_ranks, first_value] = *values.begin();
  const auto& [last_ranks, last_value] = *values.rbegin();
  const std::vector<Basis> all = bases(rule, 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      std::set<std::pair<double, double>> rows;
      for (const auto& [ranks, value] : values)
        rows.insert({value_of(all[i], grids, rule, ranks), value_of(all[j], grids, rule, ranks)});
      if (rows.size() < 3) continue;
      const double a1 = value_of(all[i], grids, rule, first_ranks);
      const double b1 = value_of(all[j], grids, rule, first_ranks);
      const double a2 = value_of(all[i], grids, rule, last_ranks);
      const double b2 = value_of(all[j], grids, rule, last_ranks);
      const double determinant = a1 * b2 - a2 * b1;
      if (std::fabs(determinant) < 1e-12) continue;
      const double v1 = static_cast<double>(first_value);
      const double v2 = static_cast<double>(last_value);
      Formula tried;
      tried.kind_ = Kind::kTerms;
      tried.rule_ = rule;
      tried.terms_ = {Term{all[i], (v1 * b2 - v2 * b1) / determinant}, Term{all[j], (a1 * v2 - a2 * v1) / determinant}};
      if (!tried.holds(samples, grids)) continue;
      formula = tried;
      return true;
    }
  }
  return false;
}

// Of one or two dimensions.
bool Formula::fit_extents(Samples samples, const Grids& grids, GridRule rule, std::span<const std::size_t> dimensions,
                          Formula& formula) {
  std::uint64_t common = 0;
  std::set<Coordinates> sizes;
  for (const FormulaSample& sample : samples) {
    const Grid* grid = grids.find(rule, sample.ranks);
    if (grid == nullptr || sample.value == 0) return false;
    common = std::gcd(common, sample.value);
    sizes.insert(grid->size);
  }
  if (sizes.size() < 2) return false;
  const FormulaSample& first = samples.front();
  const Grid& grid = *grids.find(rule, first.ranks);
  Formula tried;
  tried.kind_ = Kind::kExtents;
  tried.rule_ = rule;
  // Points of the whole dimension, when the first sample's extent is this one; even blocks first, then one more, one
  // less.
  const auto try_points = [&](std::size_t dimension, std::uint64_t wanted, const auto& next) {
    if (wanted > kMostPoints) return false;
    const std::int32_t size = grid.size[dimension];
    const Coordinates at = grid.at(first.me);
    tried.points_[dimension] = 0;
    const std::int64_t block = static_cast<std::int64_t>(wanted) - tried.extent(grid, at, dimension);
    const std::int64_t middle = block * size;
    if (block <= 0) return false;
    for (std::int64_t off = 0; off < 2 * size; ++off) {
      const std::int64_t points = middle + (off % 2 == 0 ? off / 2 : -(off + 1) / 2);
      if (points < size || points > std::numeric_limits<std::int32_t>::max()) continue;
      tried.points_[dimension] = static_cast<std::int32_t>(points);
      if (tried.extent(grid, at, dimension) == static_cast<std::int64_t>(wanted) && next()) return true;
    }
    tried.points_[dimension] = 0;
    return false;
  };
  bool is_square = false;  // as many points in both dimensions
  const auto found = [&] {
    if (is_square && tried.points_[dimensions.front()] != tried.points_[dimensions.back()]) return false;
    return tried.holds(samples, grids);
  };
  const auto try_blocks = [&](std::uint64_t product) {
    if (dimensions.size() == 1) return try_points(dimensions[0], product, found);
    for (const std::uint64_t factor : divisors_of(product, ~std::size_t{0})) {
      const auto second = [&] { return try_points(dimensions[1], product / factor, found); };
      if (try_points(dimensions[0], factor, second)) return true;
    }
    return false;
  };
  std::vector<std::uint64_t> units = divisors_of(common, kMostUnits);
  // Numbers of 8 and 4 bytes first.
  for (const std::uint64_t bytes : {4, 8}) {
    if (common % bytes == 0) units.insert(units.begin(), bytes);
  }
  const auto try_units = [&] {
    for (const std::uint64_t unit : units) {
      tried.unit_ = unit;
      for (const bool balanced : {false, true}) {
        tried.is_balanced_ = balanced;
        tried.points_ = {};
        if (try_blocks(first.value / unit)) return true;
      }
    }
    return false;
  };
  for (tried.margin_ = 0; tried.margin_ <= kMostMargin; ++tried.margin_) {
    for (const bool square : {true, false}) {
      is_square = square;
      const std::uint32_t most_halo = tried.margin_ == 0 ? kMostHalo : 0;
      for (tried.halo_ = 0; tried.halo_ <= most_halo; ++tried.halo_) {
        if (!try_units()) continue;
        formula = tried;
        return true;
      }
      if (dimensions.size() == 1) break;
    }
  }
  return false;
}

// By all of the dimensions.
bool Formula::fit_likely(Samples samples, const Grids& grids, const Likely& likely, Formula& formula) {
  Basis basis{Basis::Kind::kSizes, {}};
  std::vector<std::size_t> dimensions;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (!likely.dimensions[d]) continue;
    basis.exponents[d] = 1;
    dimensions.push_back(d);
  }
  if (dimensions.empty() || dimensions.size() > 2) return false;
  return fit_term(samples, grids, likely.rule, basis, formula) ||
         fit_extents(samples, grids, likely.rule, dimensions, formula);
}

bool Formula::fit_any(Samples samples, const Grids& grids, GridRule rule, std::size_t terms, Formula& formula) {
  if (terms == 2) {
    if (fit_terms(samples, grids, rule, formula)) return true;
    for (std::size_t a = 0; a < kDimensions; ++a) {
      for (std::size_t b = a + 1; b < kDimensions; ++b) {
        if (fit_extents(samples, grids, rule, std::array{a, b}, formula)) return true;
      }
    }
    return false;
  }
  constexpr std::uint8_t kLargestExponent = 2;
  for (const Basis& basis : bases(rule, kLargestExponent)) {
    if (fit_term(samples, grids, rule, basis, formula)) return true;
  }
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (fit_extents(samples, grids, rule, std::array{d}, formula)) return true;
  }
  return false;
}

Formula Formula::fit_power(Samples samples) {
  PowerLawFit fit;
  for (const FormulaSample& sample : samples) fit.add(sample.ranks, static_cast<double>(sample.value));
  Formula formula;
  formula.kind_ = Kind::kPower;
  formula.power_ = fit.law();
  return formula;
}

Formula Formula::fit(std::span<const FormulaSample> samples, const Grids& grids, const Likely& likely) {
  std::vector<GridRule> rules{likely.rule};
  for (std::size_t number = 0; number < kGridRules; ++number) {
    if (static_cast<GridRule>(number) != likely.rule) rules.push_back(static_cast<GridRule>(number));
  }
  const bool has_steps =
      std::any_of(samples.begin(), samples.end(), [](const auto& sample) { return sample.step > 0; });
  for (const int doublings : {0, 1, -1}) {
    if (doublings != 0 && !has_steps) break;
    // What the first step had.
    std::vector<FormulaSample> at_first(samples.begin(), samples.end());
    for (FormulaSample& sample : at_first) {
      sample.value = doubled(sample.value, -doublings, sample.step);
      sample.step = 0;
    }
    Formula formula;
    formula.constant_ = at_first.front().value;
    bool is_found = formula.holds(at_first, grids) || fit_likely(at_first, grids, likely, formula);
    for (const std::size_t terms : {1, 2}) {
      for (const GridRule rule : rules) is_found = is_found || fit_any(at_first, grids, rule, terms, formula);
    }
    if (!is_found) continue;
    formula.doublings_ = static_cast<std::int8_t>(doublings);
    if (formula.holds(samples, grids)) return formula;
  }
  return fit_power(samples);
}

}  // namespace lbf::pattern
