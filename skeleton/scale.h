// Signature -> scaled signature: the program that the skeleton executes (Sodhi, Subhlok & Xu, Sec. 4.3), and
// the shortest good skeleton (Sec. 4.5).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "skeleton/signature.h"

namespace lbf::skeleton {

// Symbols of a scaled signature: 2 * exchange, and 2 * exchange + 1 where its parameters (computation, bytes)
// are divided by K.
constexpr std::uint32_t scaled_symbol(std::uint32_t exchange, bool divided) {
  return 2 * exchange + (divided ? 1 : 0);
}
constexpr std::uint32_t exchange_of(std::uint32_t symbol) {
  return symbol / 2;
}
constexpr bool is_divided(std::uint32_t symbol) {
  return symbol % 2 != 0;
}

struct ScaledSignature {
  std::uint64_t factor = 1;  // K
  LoopBodies bodies;
  Elements elements;
  // What K did, in exchanges of the application:
  std::uint64_t in_loops = 0;  // in iterations that were divided by K
  std::uint64_t grouped = 0;   // in groups of K equal ones
  std::uint64_t divided = 0;   // the rest, scaled down in parameters
  double divided_s = 0;        // application time of the rest (mean over ranks)
};

// Sec. 4.3, steps 1 to 3. Loops are divided from the outside: of n iterations n / K stay whole; the remainder
// is executed with its own loops divided in the same way. Of K equal exchanges in what is left one stays
// whole; only such are left out that neither begin nor end with a request under way (Exchange::is_closed),
// the others are all divided in parameters. REQUIRES: factor >= 1.
ScaledSignature scale(const Signature& signature, std::uint64_t factor);

// The dominant sequence of execution events (Sec. 4.5): the loops, taken as deep as they hold nearly all of
// what is around them, that together make up kDominantShare of the application's time.
struct DominantSequence {
  struct Part {
    std::uint32_t body = 0;  // index in Signature::bodies
    double share = 0;        // of the application's time
    double seconds = 0;      // of one iteration
  };
  std::vector<Part> parts;  // the largest first; empty: the application has no dominant loop
  double share = 0;
  double shortest_good_s = 0;  // one whole iteration of each part; without parts the whole application
};
inline constexpr double kDominantShare = 0.6;
inline constexpr double kInnerShare = 0.9;
DominantSequence dominant_sequence(const Signature& signature);

}  // namespace lbf::skeleton
