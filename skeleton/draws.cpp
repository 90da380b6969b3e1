#include "skeleton/draws.h"

namespace lbf::skeleton {
namespace {

class Walk {
 public:
  Walk(const Signature& signature, const ScaledSignature& scaled)
      : scaled_(scaled), turn_(signature.exchanges.size() + scaled.detached.size(), 0), draws_(turn_.size()) {}

  std::vector<Draws> run() {
    execute(scaled_.elements, 1);
    return std::move(draws_);
  }

 private:
  // `times`: what one execution counts for.
  void execute(const Elements& elements, double times) {
    for (const Element& element : elements) {
      if (!element.is_loop) {
        const ScaledExchange& symbol = scaled_.symbols[element.value];
        std::uint32_t& turn = turn_[symbol.exchange];
        turn = (turn + kDrawStep) % kEighths;
        draws_[symbol.exchange].executions += times;
        draws_[symbol.exchange].weight[turn] += times / symbol.divisor;
        continue;
      }
      // After eight iterations of any body all turns are where they were.
      const Elements& body = scaled_.bodies[element.value];
      const std::uint64_t rounds = element.count / kEighths;
      for (std::uint32_t i = 0; rounds > 0 && i < kEighths; ++i) execute(body, times * static_cast<double>(rounds));
      for (std::uint64_t i = rounds * kEighths; i < element.count; ++i) execute(body, times);
    }
  }

  const ScaledSignature& scaled_;
  std::vector<std::uint32_t> turn_;  // by exchange
  std::vector<Draws> draws_;
};

}  // namespace

std::vector<double> Draws::unbiased(std::vector<double> shape) const {
  double all = 0;
  double drawn = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    all += weight[i];
    drawn += weight[i] * shape[i];
  }
  if (executions < kEighths || drawn <= 0) return {};
  for (double& each : shape) each *= all / drawn;
  return shape;
}

std::vector<Draws> draws_of(const Signature& signature, const ScaledSignature& scaled) {
  return Walk(signature, scaled).run();
}

}  // namespace lbf::skeleton
