#include "cost/predicted_cost.h"

#include <algorithm>

namespace lbf::cost {

double predicted_share(std::span<const PrimitiveForecast> primitives) {
  double share = 0;
  for (const PrimitiveForecast& primitive : primitives) share += primitive.executions_per_s * primitive.once_s;
  return share;
}

double corrected(double expected, double seen, unsigned runs, unsigned most) {
  return expected + (seen - expected) / static_cast<double>(std::min(runs, most));
}

}  // namespace lbf::cost
