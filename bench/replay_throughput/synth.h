// Synthetic traces (event/synth.h), made in memory as the store holds them: one stream of batches per 8 ranks
// (a node), cut as relays cut them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace lbf::bench {

struct StoredTrace {
  Rank ranks = 0;
  std::uint64_t events = 0;
  std::vector<std::vector<std::string>> streams;  // of batches
  std::uint64_t stored_bytes = 0;
};

// PATTERN: "ring", "stencil2d" or "alltoall" (linear, as point-to-point messages). About `events` events in
// whole iterations, at least one. An empty trace for an unknown pattern.
StoredTrace make_trace(std::string_view pattern, Rank ranks, std::uint64_t events);

}  // namespace lbf::bench
