// What the libraries' decision rules have in common: first-match tables, and bytes where rules count
// elements.
//
// Place in the event's way: match (inside collective_rules_*.cpp).
#pragma once

#include <cstdint>
#include <span>

#include "predictor/engine/match/collective_rules.h"

namespace lbf::engine::collective {

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr std::uint32_t kAnyRanks = ~std::uint32_t{0};
inline constexpr Bytes kAnyBytes = ~Bytes{0};

// Chosen when the communicator and the message are smaller than these; the first rule that fits counts.
struct Rule {
  std::uint32_t below_ranks;
  Bytes below_bytes;
  Algorithm algorithm;
};

// REQUIRES: a last rule that fits everything.
inline Algorithm first_that_fits(std::span<const Rule> rules, std::uint32_t ranks, Bytes bytes) {
  for (const Rule& rule : rules) {
    if (ranks >= rule.below_ranks && rule.below_ranks != kAnyRanks) continue;
    if (bytes < rule.below_bytes || rule.below_bytes == kAnyBytes) return rule.algorithm;
  }
  return rules.back().algorithm;
}

// Some rules count elements where the trace has bytes: `fits` says whether a vector of that many elements is
// long enough. Decided for the likely element; `unsure` is set when a 4-byte element would decide otherwise.
template <typename Fits>
bool long_enough(Bytes bytes, Fits fits, bool& unsure) {
  const Bytes likely = likely_element_bytes(bytes);
  const bool answer = fits(bytes / likely);
  if (likely == 8 && fits(bytes / 4) != answer) unsure = true;
  return answer;
}

// kHan or kSmp where the library collects on the nodes first: never exact, because targets may have other
// nodes than the run. Else nothing but `unsure`: it might, the layout is not known.
Choice by_nodes(const CollectiveCall& call);

// The families' parts of choose() and choose_intra() (collective_rules.h).
Choice choose_intra_openmpi(MpiLibrary library, CollectiveOp op, std::uint32_t ranks, Bytes bytes, Bytes element_bytes,
                            bool commutative);
Choice choose_openmpi(const CollectiveCall& call);
Choice choose_intra_mpich(CollectiveOp op, std::uint32_t ranks, Bytes bytes, bool commutative);
Choice choose_mpich(const CollectiveCall& call);

}  // namespace lbf::engine::collective
