#include "cost/window_grid.h"

#include <cassert>

namespace lbf::cost {
namespace {

// splitmix64 (Steele, Lea & Flood, OOPSLA 2014): every bit of the result depends on every bit of `x`.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Nanoseconds WindowGrid::opening_ns(std::int64_t cell) const {
  const std::uint64_t hash = mix(seed_ ^ mix(static_cast<std::uint64_t>(cell)));
  const double share = static_cast<double>(hash >> 11) * 0x1p-53;  // in [0, 1)
  const auto offset = static_cast<Nanoseconds>(share * static_cast<double>(cell_ns_));
  return cell * cell_ns_ + offset;
}

Nanoseconds WindowGrid::next_opening_ns(Nanoseconds now_ns, unsigned thinning) const {
  assert(thinning <= kMostThinning && now_ns >= 0);
  const std::int64_t step = std::int64_t{1} << thinning;
  std::int64_t cell = now_ns / cell_ns_ / step * step;
  while (opening_ns(cell) <= now_ns) cell += step;  // at most twice: openings of later cells are later
  return opening_ns(cell);
}

}  // namespace lbf::cost
