// What lbf-skeleton's commands say on stderr, and the words that they take for times.
#pragma once

#include <string>

#include "base/units.h"
#include "tools/support/message.h"

namespace lbf::tools {

inline constexpr Messages kSkeletonMessages{"lbf-skeleton"};

// "%.4g".
std::string short_number(double value);
// "5s", "500ms", "2m" or "5": seconds; not positive: not understood.
Seconds parse_duration(const std::string& text);

}  // namespace lbf::tools
