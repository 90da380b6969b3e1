// ReplayObserver: sees the replay of one target as TSE Fig. 5 shows it: a row after each event that arrives
// and after each event that is reported.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lbf::engine {

// An event that arrived and is not reported (TSE Sec. 2.1).
struct ObservedEvent {
  enum class State : std::uint8_t { kQueued, kCurrent, kPending };
  Rank rank = 0;
  std::uint64_t number = 0;  // 1 = the rank's first event
  State state = State::kQueued;
  bool end_recv = false;
  Seconds earliest_s = kNeverS;  // Earliest Event Time; kNeverS (the table's infinity) while pending or queued
  Seconds remaining_process_s = 0;
  Seconds wait_s = 0;  // endRecv: Wait Time; negative while pending: group time that passed meanwhile
};

struct ObservedRow {
  enum class Cause : std::uint8_t { kInitial, kArrival, kReport };
  Cause cause = Cause::kInitial;
  Rank rank = kAnyRank;               // whose event arrived or was reported ...
  std::uint64_t number = 0;           // ... and which
  std::vector<Seconds> group_time_s;  // by node
  std::vector<ObservedEvent> events;  // by rank, then number
  std::vector<char> exited;           // by rank
};

class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;
  virtual void on_row(const ObservedRow& row) = 0;
};

}  // namespace lbf::engine
