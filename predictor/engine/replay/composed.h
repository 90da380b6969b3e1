// Composed: a time on a target and what the longest path to it is made of.
//
// A replay is written once for both kinds of clock (dedicated_replay.h): Seconds, and this one, which keeps of each
// maximum the larger side whole. So a time is known as a function of each parameter of the target: with the terms that
// the parameter scales it is c + factor * terms, as long as the path stays the same (docs/engine.md, "Sensitivity").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace lbf::engine {

enum class Term : std::uint8_t {
  // By processor speed:
  kWork,
  kLocal,          // copies and reductions of collectives
  kOverhead,       // protocol processing of messages (send_cpu, recv_cpu)
  kOtherPrograms,  // they had the processor
  // Flights:
  kLatencyInside,   // an empty message, inside a node ...
  kLatencyBetween,  // ... and between nodes
  kBytesInside,     // what a longer one takes more
  kBytesBetween,
  // As they were:
  kFirstContact,
  kBlocked,      // and devices, and sleep between looks
  kNotCaptured,  // between capture windows
};
inline constexpr std::size_t kTerms = 11;

struct Composed {
  Seconds value = 0;  // the same bits as in a replay of Seconds; the sum of the terms but for rounding
  std::array<Seconds, kTerms> terms{};
  std::uint32_t note = 0;  // the last one of its path (path_notes.h). Of a sum: that of its first side

  Seconds of(Term term) const { return terms[static_cast<std::size_t>(term)]; }
  explicit operator Seconds() const { return value; }
  Composed& operator+=(const Composed& other) {
    value += other.value;
    for (std::size_t i = 0; i < kTerms; ++i) terms[i] += other.terms[i];
    return *this;
  }
  Composed& operator-=(const Composed& other) {
    value -= other.value;
    for (std::size_t i = 0; i < kTerms; ++i) terms[i] -= other.terms[i];
    return *this;
  }
  friend Composed operator+(Composed a, const Composed& b) { return a += b; }
  friend Composed operator-(Composed a, const Composed& b) { return a -= b; }
  friend bool operator<(const Composed& a, const Composed& b) { return a.value < b.value; }
};

// What a replay asks of its clocks, beside +, -, < and max.
inline Seconds value_of(Seconds clock) {
  return clock;
}
inline Seconds value_of(const Composed& clock) {
  return clock.value;
}
// `seconds` of `term` pass.
inline void add(Seconds& clock, Term /*term*/, Seconds seconds) {
  clock += seconds;
}
inline void add(Composed& clock, Term term, Seconds seconds) {
  clock.value += seconds;
  clock.terms[static_cast<std::size_t>(term)] += seconds;
}

}  // namespace lbf::engine
