// Rounds handed on as events, for tests and fuzzers that compare both.
#pragma once

#include <vector>

#include "event/event_sink.h"
#include "event/rounds.h"

namespace lbf {

inline Result<void> hand_on_as_events(Rank rank, const Rounds& rounds, const EventBlockSink& sink) {
  std::vector<std::uint64_t> requests;
  for (std::size_t i = 0; i < rounds.times.size(); ++i) {
    Event event = rounds.events[i % rounds.events.size()];
    Rounds::set(event, rounds.times[i]);
    if (Rounds::waits_for_several(event)) {
      Rounds::list_requests(event, rounds.times[i], requests);
      event.request = 0;
      event.values = requests;
    }
    if (Result<void> taken = sink(rank, {&event, 1}); !taken) return taken;
  }
  return {};
}

}  // namespace lbf
