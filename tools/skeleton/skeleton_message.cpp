#include "tools/skeleton/skeleton_message.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace lbf::tools {

std::string short_number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

Seconds parse_duration(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || !std::isfinite(value) || value <= 0) return 0;
  if (unit.empty() || unit == "s") return value;
  if (unit == "ms") return value * 1e-3;
  if (unit == "m" || unit == "min") return value * 60;
  return 0;
}

}  // namespace lbf::tools
