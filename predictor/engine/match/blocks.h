// Blocks: the first capture windows, cut into parts whose scatter stands for that of windows where these are few.
//
// Place in the event's way: match (says where a rank's blocks end) -> replay (WindowClocks) -> metric/extrapolation.
// How long a window will be is not known when it opens. So blocks grow with it: eight of the shortest, eight more of
// the same length, then eight of each twice as long as the eight before. Whatever the window's length in the end,
// what came before the longest ones makes eight blocks of just their length (joined).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace lbf::engine::blocks {

inline constexpr std::uint64_t kShortestNs = 10'000;
inline constexpr std::uint64_t kNeverNs = ~std::uint64_t{0};
inline constexpr std::uint32_t kPerLength = 8;
inline constexpr std::uint32_t kMostOfAWindow = 512;  // the last one ends 10^12 years after the first
// Only the first windows of a trace are cut: later ones are enough by themselves.
inline constexpr std::uint32_t kCutWindows = 4;
// Where time goes that is in a window, but nobody knows in which of its blocks.
inline constexpr std::uint32_t kOfNoBlock = kCutWindows * kMostOfAWindow;

// In units of kShortestNs; of block `number` of a window, from 0.
constexpr double length(std::uint32_t number) {
  const std::uint32_t doublings = number / kPerLength > 1 ? number / kPerLength - 1 : 0;
  double units = 1;
  for (std::uint32_t i = 0; i < doublings; ++i) units *= 2;
  return units;
}

// Where block `number` ends that begins at `begin_ns`.
constexpr std::uint64_t end_ns(std::uint64_t begin_ns, std::uint32_t number) {
  const double ns = static_cast<double>(begin_ns) + static_cast<double>(kShortestNs) * length(number);
  return ns < 0x1p63 ? begin_ns + kShortestNs * static_cast<std::uint64_t>(length(number)) : kNeverNs - 1;
}

// Blocks number 0, 1, ... of one window, which ended with the last of them: joined to such as are as long as the
// longest; empty ones are left out. `Stretch` has measured_s and predicted_s.
template <typename Stretch>
std::vector<Stretch> joined(std::span<const Stretch> of_window) {
  std::size_t count = of_window.size();
  while (count > 0 && !(of_window[count - 1].measured_s > 0)) --count;
  std::vector<Stretch> out;
  if (count == 0) return out;
  const double longest = length(static_cast<std::uint32_t>(count - 1));
  Stretch sum;
  double units = 0;
  for (std::size_t number = 0; number < count; ++number) {
    sum.measured_s += of_window[number].measured_s;
    sum.predicted_s += of_window[number].predicted_s;
    units += length(static_cast<std::uint32_t>(number));
    if (units < longest && number + 1 < count) continue;
    if (sum.measured_s > 0) out.push_back(sum);
    sum = Stretch{};
    units = 0;
  }
  return out;
}

// Of block `number` of window `window` (index < kCutWindows) among all blocks of a trace.
constexpr std::uint32_t index_of(std::uint32_t window, std::uint32_t number) {
  return window * kMostOfAWindow + std::min(number, kMostOfAWindow - 1);
}

}  // namespace lbf::engine::blocks
