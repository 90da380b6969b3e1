// Signature -> scaled signature: the program that the skeleton executes (Sodhi, Subhlok & Xu, Sec. 4.3), and
// the shortest good skeleton (Sec. 4.5).
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "skeleton/signature.h"

namespace lbf::skeleton {

// A symbol of a scaled signature: an exchange with its parameters (computation, idle time, bytes) divided.
struct ScaledExchange {
  std::uint32_t exchange = 0;  // see ScaledSignature::exchange_of
  double divisor = 1;          // 1: whole; otherwise above 1, of six digits

  std::uint64_t of(std::uint64_t bytes) const {
    return divisor > 1 ? static_cast<std::uint64_t>(static_cast<double>(bytes) / divisor) : bytes;
  }
  auto operator<=>(const ScaledExchange&) const = default;
};

struct ScaledSignature {
  std::uint64_t factor = 1;             // K
  std::vector<Exchange> detached;       // see detached.h
  std::vector<ScaledExchange> symbols;  // by symbol, all different
  LoopBodies bodies;
  Elements elements;
  // What K did, in exchanges of the application:
  std::uint64_t in_loops = 0;  // in iterations of which each K-th stays
  std::uint64_t grouped = 0;   // in groups of K equal ones
  std::uint64_t divided = 0;   // the rest, scaled down in parameters
  double divided_s = 0;        // application time of the rest (mean over ranks)

  // Exchanges are numbered: those of the signature, then the detached ones.
  const Exchange& exchange_of(const Signature& signature, std::uint32_t number) const {
    const std::size_t own = signature.exchanges.size();
    return number < own ? signature.exchanges[number] : detached[number - own];
  }
};

// Sec. 4.3, steps 1 to 3. Loops are divided from the outside: of n iterations n / K stay whole. The remainder
// is put together with that of all other loops of the same body: of K iterations one stays whole, with its
// order (a step of a simulation that never takes K steps between two rebuilds of its lists). What is left is
// executed with its own loops divided in the same way. Of K equal exchanges in what is left then one stays
// whole. The paper divides the parameters of each of the rest by K, so that all of their latencies stay; here
// the rest is taken in groups of up to K that differ in sizes and tags alone, and one of each group is
// executed: the longest, divided such that a K-th of the group's time is left. An exchange that begins or
// ends with a request under way (Exchange::is_closed) cannot be left out by itself. In a loop it stays as it
// is. In the rest it is detached first (detached.h), together with all that are tied to it (ties.h). Where
// loops are tied to the rest: do they hold most of the group's exchanges, then the rest stays attached, too,
// and all of it is divided by K; else the loops are taken apart and are rest. REQUIRES: factor >= 1.
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
