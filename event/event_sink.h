// Who takes events: one at a time, or in blocks of one rank.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "base/result.h"
#include "event/event.h"

namespace lbf {

// What a reader of a trace hands on: events of one rank in that rank's order, ranks interleaved as they
// arrive. An error stops the reader, which passes it on.
using EventSink = std::function<Result<void>(Rank rank, const Event& event)>;

// Some events of one rank, in its order. They and what they point to are valid until the call returns.
using EventBlockSink = std::function<Result<void>(Rank rank, std::span<const Event> events)>;

// A block sink that hands each event to `sink`.
template <typename Sink>
EventBlockSink one_by_one(Sink sink) {
  return [sink = std::move(sink)](Rank rank, std::span<const Event> events) -> Result<void> {
    for (const Event& event : events) {
      if (Result<void> taken = sink(rank, event); !taken) return taken;
    }
    return {};
  };
}

}  // namespace lbf
