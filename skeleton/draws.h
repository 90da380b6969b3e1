// Which eighths of a distribution a skeleton draws, so that what it computes in all is what it should.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "skeleton/scale.h"
#include "skeleton/signature.h"

namespace lbf::skeleton {

inline constexpr std::uint32_t kEighths = 8;
inline constexpr std::uint32_t kDrawStep = 5;  // each draw takes the eighth that lies so far on; the first one this

// How much of the computation before an operation falls into each eighth: 1 / divisor of each execution.
struct Draws {
  double executions = 0;
  std::array<double, kEighths> weight{};

  // A distribution in eighths (their means over the mean) -> the same scaled such that the draws have the
  // mean 1. Empty, which is the mean each time, where not every eighth is drawn.
  std::vector<double> unbiased(std::vector<double> shape) const;
};

// By exchange: see ScaledSignature::exchange_of.
std::vector<Draws> draws_of(const Signature& signature, const ScaledSignature& scaled);

}  // namespace lbf::skeleton
