// Flights: what SharedReplay knows of the messages that are under way on its target.
//
// A message has a flight from the first op that names it to the last one, in the target's time: so a target
// costs 4 bytes for each message that was matched and 64 for each that is under way, however far the events
// are ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/paged_array.h"
#include "base/units.h"
#include "predictor/engine/match/op_store.h"

namespace lbf::engine {

// A cache line.
struct Flight {
  std::uint32_t generation = 0;     // of the message
  std::uint32_t uses = 0;           // ops that name it, executed here
  ProcessIndex receiver = kNobody;  // waits for the arrival
  ProcessIndex sender = kNobody;    // waits until its buffer is free
  std::uint32_t next_free = 0;
  bool sent = false;
  bool posted = false;
  Seconds first_delay_s = 0;  // kOpFirst: how much later than ready it leaves
  Seconds sent_s = 0;
  Seconds start_s = 0;  // rendezvous: both sides are ready
  Seconds arrival_s = kNeverS;
  Seconds sender_free_s = kNeverS;
};
static_assert(sizeof(Flight) == 64);

class Flights {
 public:
  // Messages below `slots` can be asked for.
  void grow_to(std::size_t slots) { place_.grow_to(slots); }
  // The message's flight, a new one if it has none. Valid until the next call.
  [[gnu::always_inline]] Flight& of(MessageIndex index, const Message& message) {
    std::uint32_t& place = place_[index];
    if (place == kNone) [[unlikely]]
      return begin(place, message);
    Flight& flight = flights_[place];
    // Not if the slot's message before was withdrawn: nobody told.
    if (flight.generation != message.generation) [[unlikely]] {
      flight = Flight{};
      flight.generation = message.generation;
    }
    return flight;
  }
  // REQUIRES: it has one.
  Flight& operator[](MessageIndex index) { return flights_[place_[index]]; }
  // An op that names the message was executed. REQUIRES: it has a flight.
  [[gnu::always_inline]] void use(MessageIndex index, const Message& message) {
    std::uint32_t& place = place_[index];
    Flight& flight = flights_[place];
    if (++flight.uses != message.expected) return;
    flight.next_free = free_;
    free_ = place;
    place = kNone;
  }
  void prefetch(MessageIndex index) const { place_.prefetch(index); }
  Bytes bytes_of(std::size_t slots) const {
    return std::max(slots, place_.size()) * sizeof(std::uint32_t) + flights_.size() * sizeof(Flight);
  }
  // How many there ever were at a time.
  std::size_t most() const { return flights_.size() == 0 ? 0 : flights_.size() - 1; }

 private:
  static constexpr std::uint32_t kNone = 0;

  Flight& begin(std::uint32_t& place, const Message& message) {
    if (flights_.size() == 0) flights_.emplace_back();  // nobody's
    place = free_;
    if (place == kNone) {
      place = static_cast<std::uint32_t>(flights_.size());
      flights_.emplace_back();
    } else {
      free_ = flights_[place].next_free;
      flights_[place] = Flight{};
    }
    flights_[place].generation = message.generation;
    return flights_[place];
  }

  PagedArray<std::uint32_t> place_;  // by message slot, in flights_; kNone: it has none
  PagedArray<Flight> flights_;
  std::uint32_t free_ = kNone;
};

}  // namespace lbf::engine
