// Rendezvous: what a message costs that waits for its receive (docs/engine.md, "Rendezvous").
//
// The sender announces it; the announcement travels as long as an empty message. Once it is there and the
// receive is posted, the receiver asks for the data. The network's table was measured with receives that were
// posted in time, so it contains all of that.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace lbf::engine {

struct Rendezvous {
  Seconds handshake_s;  // one way of the announcement
  Seconds rest_s;       // from the start until the message has arrived
  // `flight_s` of the message, `empty_flight_s` of one with 0 bytes, on the same path.
  Rendezvous(Seconds flight_s, Seconds empty_flight_s)
      : handshake_s(std::min(empty_flight_s, flight_s)), rest_s(flight_s - handshake_s) {}
  // When both sides are ready: the send since `sent_s`, the receive since `posted_s`.
  Seconds start_s(Seconds sent_s, Seconds posted_s) const { return std::max(sent_s + handshake_s, posted_s); }
  // When the sender may go on: the answer is back, and the last byte has left, a handshake before it arrives.
  Seconds sender_free_s(Seconds start_s, Seconds arrival_s) const {
    return std::max(start_s + handshake_s, arrival_s - handshake_s);
  }
};

}  // namespace lbf::engine
