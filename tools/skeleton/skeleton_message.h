// What lbf-skeleton's commands say on stderr, and the words that they take for times.
#pragma once

#include <string>

#include "base/units.h"

namespace lbf::tools {

inline constexpr int kSkeletonFailure = 1;
inline constexpr int kSkeletonUsage = 2;

// "lbf-skeleton: error: ...": one line, whatever words of others are in it. Returns `status`.
int skeleton_fail(int status, const std::string& what);
void skeleton_warn(const std::string& what);

// "%.4g".
std::string short_number(double value);
// "5s", "500ms", "2m" or "5": seconds; not positive: not understood.
Seconds parse_duration(const std::string& text);

}  // namespace lbf::tools
