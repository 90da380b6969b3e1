// PowerLaw: an amount as a power of the number of ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/units.h"

namespace lbf::pattern {

struct PowerLaw {
  double factor = 0;
  double exponent = 0;

  double at(Rank ranks) const { return factor * std::pow(ranks, exponent); }
};

// Which ones a fit may have.
struct Exponents {
  double of_one = 0;  // where only one rank count has an amount above 0
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

// The line through the logarithms of the means at each rank count.
class PowerLawFit {
 public:
  void add(Rank ranks, double amount) {
    auto& [sum, count] = amounts_[ranks];
    sum += amount;
    count += 1;
  }

  // 0 where no amount is above 0.
  PowerLaw law(const Exponents& exponents = {}) const {
    double n = 0;
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
    for (const auto& [ranks, amount] : amounts_) {
      if (!(amount.first > 0)) continue;
      const double log_ranks = std::log(ranks);
      const double log_mean = std::log(amount.first / amount.second);
      n += 1;
      x += log_ranks;
      y += log_mean;
      xx += log_ranks * log_ranks;
      xy += log_ranks * log_mean;
    }
    if (n == 0) return {};
    constexpr double kSingular = 1e-9;
    const double spread = n * xx - x * x;
    const double exponent =
        spread > kSingular ? std::clamp((n * xy - x * y) / spread, exponents.least, exponents.most) : exponents.of_one;
    return {std::exp((y - exponent * x) / n), exponent};
  }

 private:
  std::map<Rank, std::pair<double, double>> amounts_;  // sum, count
};

}  // namespace lbf::pattern
