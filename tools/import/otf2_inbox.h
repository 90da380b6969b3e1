// Messages to one rank that no record receives: which of them the requests without a recorded end took. No file but the
// import needs it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "tools/import/otf2_definitions.h"

namespace lbf::tools::otf2 {

struct Message {
  const Communicator* comm = nullptr;
  Rank source = 0;
  std::int32_t tag = 0;
  Bytes bytes = 0;
  Nanoseconds sent_ns = 0;

  bool is_on_channel_of(const Message& other) const {
    return comm == other.comm && source == other.source && tag == other.tag;
  }
};

// Memory: what is in flight.
class Inbox {
 public:
  // In the order of their times.
  void send(const Message& message) { on_the_way_.push_back(message); }
  // A record of the rank receives it, at `sent_ns`. In the order of the rank's times, perhaps before its send was read.
  void receive(const Message& message) { received_.push_back(message); }
  // The messages that COUNT receives took, which ended at UNTIL_NS; none: not known at NOW_NS. Where fewer were sent by
  // then, the clocks are off, and the next ones count. Errors: too few, or they may be several different ones; without
  // the place.
  Result<std::vector<Message>> take(std::size_t count, Nanoseconds until_ns, Nanoseconds now_ns);
  // All receives without a record that ended until then have their messages.
  void settle(Nanoseconds until_ns);

  // What a clock set by one collective may be off: so much later take() needs the sends.
  static constexpr Nanoseconds kClockError = 1'000'000;
  static constexpr Nanoseconds kMostClockError = 100'000'000;  // where the system kept ranks in every collective

 private:
  std::size_t sent_until(Nanoseconds ns) const;

  std::deque<Message> on_the_way_;
  std::deque<Message> received_;  // whose message is not taken from those yet
};

}  // namespace lbf::tools::otf2
