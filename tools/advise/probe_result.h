// What the probes of lbf-advise --probe measured and decided.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace lbf::tools {

struct ProbeRow {
  std::optional<std::size_t> candidate;  // index of Ranking::ranked; none: what runs now
  std::string where;                     // in words
  std::vector<Seconds> times_s;          // of the skeleton
  Seconds application_s = 0;             // K times their geometric mean
  std::string why_failed;                // not empty: a run there failed, or the budget was over
};

struct ProbeResult {
  std::uint64_t factor = 0;  // K
  double budget_node_s = 0;
  double spent_node_s = 0;
  std::vector<ProbeRow> rows;  // the fastest first; those that were not measured last
  std::string decision;        // one sentence without full stop
};

}  // namespace lbf::tools
