// The units that cross module borders. Every other quantity carries its unit in its name
// (`_ns`, `_s`, `_bytes`, `_percent`).
#pragma once

#include <cstdint>

namespace lbf {

using Rank = std::int32_t;  // a rank of MPI_COMM_WORLD unless the name says otherwise
inline constexpr Rank kAnyRank = -1;
inline constexpr Rank kMaxRanks = 1 << 24;  // of a trace
inline constexpr std::int32_t kAnyTag = -1;

using Bytes = std::uint64_t;
using Nanoseconds = std::int64_t;
using Seconds = double;  // the replay's time: one double holds 100 days at 2 ns

inline constexpr Seconds kNeverS = 1e300;  // "not known yet": later than every time that can occur

// The nearest double: 300,000,000 ns are what "0.3" reads as.
constexpr Seconds seconds_from_ns(Nanoseconds ns) {
  return static_cast<Seconds>(ns) / 1e9;
}

}  // namespace lbf
