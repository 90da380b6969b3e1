// Synthetic traces: the events of well-known communication patterns, for `lbf-trace synth`, tests and
// benchmarks. Always the same for the same options.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "event/text_trace.h"

namespace lbf {

// ring: each rank sends 1024 bytes to the next one, then receives. stencil2d: 8192 bytes to and from the four
// neighbours of a torus. alltoall: 512 bytes to each other rank, as point-to-point messages. Both post the
// receives, start the sends, and complete all. allreduce: a collective of 1024 bytes.
inline constexpr std::array<std::string_view, 4> kSynthPatterns{"ring", "stencil2d", "alltoall", "allreduce"};
inline constexpr Rank kMinSynthRanks = 2;
inline constexpr Rank kMaxSynthRanks = 1 << 20;

// Events of one iteration, all ranks; 0: no such pattern.
std::uint64_t synth_events_per_iteration(std::string_view pattern, Rank ranks);

// Hands the events of all ranks to `sink`, iteration by iteration; each rank exits after the last. Errors: an
// unknown pattern, ranks out of range, those of the sink.
Result<void> synthesize(std::string_view pattern, Rank ranks, std::uint64_t iterations, const EventSink& sink);

}  // namespace lbf
