// What the whole run takes, from the capture windows of it (extrapolation.h has the statistics).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "predictor/engine/metric/predictor.h"
#include "predictor/engine/replay/replay.h"

namespace lbf::engine {

// The windows as one replay predicted them for its target `k`.
struct PredictedWindows {
  const Replay& replay;
  std::size_t k = 0;
  Rank ranks = 0;
  const std::vector<std::uint64_t>& numbers;  // of the windows (Matcher::windows)
};

// Each rank's time that nobody saw is taken to be as what was seen of all; the program takes as long as the rank
// that takes longest.
void extrapolate_windows(const PredictedWindows& of, const CaptureCost& cost, Prediction& prediction);

}  // namespace lbf::engine
