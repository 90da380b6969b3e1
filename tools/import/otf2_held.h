// Events of a rank that wait for what its archive says later: a receive's channel is in the record of its end. No file
// but the import needs it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "event/event.h"
#include "tools/import/otf2_definitions.h"

namespace lbf::tools::otf2 {

struct Held {
  Event event;  // without its values
  std::vector<std::uint64_t> values;
  const Communicator* comm = nullptr;  // whose number the event has; nullptr: none
  std::uint64_t position = 0;          // of its record in its location
  bool waits = false;
  // Of a collective: the bytes that this rank tells of, and its number on the communicator once the rank is there.
  std::uint64_t part = 0;
  std::uint64_t number = 0;
  bool arrived = false;
};

// By numbers that stay.
class HeldEvents {
 public:
  std::uint64_t push(Held held) {
    events_.push_back(std::move(held));
    return first_ + events_.size() - 1;
  }
  // REQUIRES: it is still here.
  Held& at(std::uint64_t number) { return events_[static_cast<std::size_t>(number - first_)]; }
  bool has(std::uint64_t number) const { return number >= first_ && number < end(); }
  std::uint64_t first() const { return first_; }
  std::uint64_t end() const { return first_ + events_.size(); }
  std::size_t size() const { return events_.size(); }
  void pop() {
    events_.pop_front();
    ++first_;
  }

 private:
  std::deque<Held> events_;
  std::uint64_t first_ = 0;
};

}  // namespace lbf::tools::otf2
