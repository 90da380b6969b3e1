// What the user wants less of, and within which limit.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace lbf::advisor {

enum class Goal : std::uint8_t { kTime, kNodeHours };

struct Objective {
  Goal goal = Goal::kTime;
  double node_hours_limit = std::numeric_limits<double>::infinity();  // candidates that need more do not count
  Seconds deadline_s = std::numeric_limits<double>::infinity();       // ... that take longer

  bool allows(Seconds time_s, double node_hours) const {
    return time_s <= deadline_s && node_hours <= node_hours_limit;
  }
  double value(Seconds time_s, double node_hours) const { return goal == Goal::kTime ? time_s : node_hours; }
  // "time", "node-hours", "time within 2 node-hours", "node-hours within 60 s"
  std::string text() const;
};

struct Outcome {
  Seconds time_s = 0;
  double node_hours = 0;
};

// Which outcomes no other one beats in both time and node-hours; of equal ones the first.
std::vector<bool> pareto_front(std::span<const Outcome> outcomes);

}  // namespace lbf::advisor
