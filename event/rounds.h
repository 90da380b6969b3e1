// Rounds: a stretch of one rank's events in which it does the same again and again: what comes back, once, and the
// times of every event.
//
// Place in the event's way: wire -> *Rounds* or Event -> match. The wire format needs nothing new for it: where each
// event of a section is "the shape that came next last time", the shapes make a cycle
// (docs/adr/0017-repeated-collectives.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace lbf {

struct Rounds {
  struct Times {
    std::uint64_t process_ns;  // below 2^56, both
    std::uint64_t call_ns;
    std::uint64_t request;  // Event::request; of a wait for several the first one
  };
  // One round's events, but for times and requests. Of a wait for several requests: `values` are the differences from
  // one to the next, the first one 0.
  std::span<const Event> events;
  std::span<const Times> times;  // [round][event], two rounds or more; the last one may be cut off

  // The event as it was, but for the requests that a wait is for.
  static void set(Event& event, const Times& times) {
    event.process_s = Duration::of_ns(static_cast<Nanoseconds>(times.process_ns));
    event.call_s = Duration::of_ns(static_cast<Nanoseconds>(times.call_ns));
    event.request = static_cast<std::uint32_t>(times.request);
  }
  static bool waits_for_several(const Event& event) { return event.kind == EventKind::kWait && !event.values.empty(); }
  // Those requests, into ALL.
  static void list_requests(const Event& wait, const Times& times, std::vector<std::uint64_t>& all) {
    all.clear();
    std::uint64_t request = times.request;
    for (const std::uint64_t difference : wait.values) all.push_back(request += difference);
  }
};

// Takes rounds of one rank, valid until the call returns. false: nothing was taken, they are wanted as events. An error
// stops the reader, which passes it on.
using RoundsSink = std::function<Result<bool>(Rank rank, const Rounds& rounds)>;

}  // namespace lbf
