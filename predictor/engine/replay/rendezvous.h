// Rendezvous: what a message costs that waits for its receive (docs/engine.md, "Rendezvous").
//
// The sender announces it; the announcement travels as long as an empty message. Once it is there and the
// receive is posted, the receiver asks for the data. The network's table was measured with receives that were
// posted in time, so it contains all of that.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace lbf::engine {

// `Clock`: of the replay (composed.h).
template <typename Clock>
struct RendezvousOf {
  Clock handshake_s;  // one way of the announcement
  Clock rest_s;       // from the start until the message has arrived
  // `flight_s` of the message, `empty_flight_s` of one with 0 bytes, on the same path.
  RendezvousOf(const Clock& flight_s, const Clock& empty_flight_s)
      : handshake_s(std::min(empty_flight_s, flight_s)), rest_s(flight_s - handshake_s) {}
  // When both sides are ready: the send since `sent_s`, the receive since `posted_s`.
  Clock start_s(const Clock& sent_s, const Clock& posted_s) const {
    using std::max;
    return max(sent_s + handshake_s, posted_s);
  }
  // When the sender may go on: the answer is back, and the last byte has left, a handshake before it arrives.
  Clock sender_free_s(const Clock& start_s, const Clock& arrival_s) const {
    using std::max;
    return max(start_s + handshake_s, arrival_s - handshake_s);
  }
};

using Rendezvous = RendezvousOf<Seconds>;

}  // namespace lbf::engine
