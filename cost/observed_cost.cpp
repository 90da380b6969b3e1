#include "cost/observed_cost.h"

namespace lbf::cost {

ObservedCost observed_cost(std::span<const PrimitiveUse> primitives) {
  ObservedCost cost;
  for (const PrimitiveUse& use : primitives) {
    const auto executions = static_cast<double>(use.executions);
    const Seconds once_s = use.sampled > 0 ? use.sampled_s / static_cast<double>(use.sampled) : use.ideal_s;
    cost.direct_s += executions * once_s;
    cost.ideal_s += executions * use.ideal_s;
  }
  return cost;
}

}  // namespace lbf::cost
