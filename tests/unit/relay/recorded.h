// What a RecordConverter made of records, for its tests.
#pragma once

#include <vector>

#include "event/event.h"
#include "spank_plugin/capture/ring.h"
#include "spank_plugin/relay/record_converter.h"

namespace lbf::relay {

inline constexpr Seconds kNs = 1e-9;

struct Recorded {
  std::vector<Event> events;
  RelayEventSink sink() {
    return [this](const Event& event) { events.push_back(event); };
  }
  Seconds process_s() const {
    Seconds sum = 0;
    for (const Event& event : events) sum += event.process_s;
    return sum;
  }
};

inline ring::Record adjust(std::uint64_t preempted, std::uint64_t blocked, std::uint64_t waiting) {
  return ring::record_of(ring::Adjustment{preempted, blocked, waiting});
}

}  // namespace lbf::relay
