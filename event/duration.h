// Duration: a time of an event, in whole nanoseconds from the relay to the matcher, as on the wire.
//
// It is read and set in seconds where a caller computes in them, and in nanoseconds (`ns`) where times are moved or
// added up. 292 years fit.
#pragma once

#include <limits>

#include "base/units.h"

namespace lbf {

class Duration {
 public:
  constexpr Duration() = default;
  // The nearest nanosecond. What is no number becomes negative, what is too long the longest: readers refuse both.
  constexpr Duration(Seconds seconds) : ns_(nearest(seconds)) {}
  static constexpr Duration of_ns(Nanoseconds ns) {
    Duration made;
    made.ns_ = ns;
    return made;
  }

  constexpr Nanoseconds ns() const { return ns_; }
  constexpr operator Seconds() const { return seconds_from_ns(ns_); }
  constexpr Duration& operator+=(Duration more) {
    ns_ += more.ns_;
    return *this;
  }
  constexpr Duration& operator-=(Duration less) {
    ns_ -= less.ns_;
    return *this;
  }

 private:
  static constexpr Nanoseconds nearest(Seconds seconds) {
    constexpr Seconds kLongestNs = 9.2e18;
    const Seconds ns = seconds * 1e9;
    if (!(ns >= -kLongestNs)) return std::numeric_limits<Nanoseconds>::min();
    if (ns > kLongestNs) return std::numeric_limits<Nanoseconds>::max();
    return static_cast<Nanoseconds>(ns < 0 ? ns - 0.5 : ns + 0.5);
  }

  Nanoseconds ns_ = 0;
};

// The whole nanoseconds of `pending_s`, which keeps the rest: so that what is rounded does not add up.
constexpr Duration take_whole_ns(Seconds& pending_s) {
  const Duration taken(pending_s > 0 ? pending_s : 0);
  pending_s -= taken;
  return taken;
}

}  // namespace lbf
