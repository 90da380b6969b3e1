// Pass: one look at all rings of a stream. It says when the look is, how long a tick of the rings is, and
// where events, control records and notes go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/units.h"
#include "event/event.h"
#include "protocol/control_records.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

// What a pass may take: that much of it as there is room for where it goes.
struct PassRoom {
  Bytes bytes = std::numeric_limits<Bytes>::max();
  // Whether there is some left. At the end of a step it waits for it.
  std::function<bool()> left{};
};

// Of one ring in a pass, so that no rank starves the others.
inline constexpr Bytes kMostRingBytesPerPass = Bytes{2} << 20;
inline constexpr Bytes kLeastRingBytesPerPass = Bytes{64} << 10;

struct PassResult {
  std::uint64_t bytes = 0;  // drained from all rings
  double fullest = 0;       // the used share of the fullest ring
};

class Pass {
 public:
  // REQUIRES: rate.ready(). NOTES counts the notes of the stream.
  Pass(ClockReading now, const TickRate& rate, BatchBuilder& out, std::size_t& notes, PassRoom room)
      : now_(now), seconds_per_tick_(rate.seconds_per_tick()), out_(out), notes_(notes), room_(std::move(room)) {}

  ClockReading now() const { return now_; }
  std::uint64_t now_ns() const { return now_.monotonic_ns; }
  Seconds seconds_per_tick() const { return seconds_per_tick_; }

  void add(Rank rank, const Event& event) { out_.add(rank, event, now_.monotonic_ns); }
  // RECORD: one of those of protocol/control_records.h.
  template <typename Record>
  void add_control(const Record& record) {
    out_.add_control(protocol::encode(record), now_.monotonic_ns);
  }
  // STOPPED_S: for how long a rank was stopped, where the note says so.
  void note(const std::string& text, Seconds stopped_s = 0) {
    constexpr std::size_t kMaxNotes = 100;  // a hostile directory must not fill the trace with notes
    if (++notes_ <= kMaxNotes) add_control(protocol::NoteRecord{text, stopped_s});
  }
  BatchBuilder& out() { return out_; }

  // RINGS are drained. HELD: records that wait for their turn.
  void share_room(std::size_t rings, Bytes held) {
    const Bytes share = room_.bytes / std::max<std::size_t>(rings, 1);
    ring_bytes_ = std::clamp(share, kLeastRingBytesPerPass, kMostRingBytesPerPass);
    // A ring is drained that holds almost its part, and a call of a thread may be held as two.
    most_held_bytes_ = 4 * ring_bytes_ * rings;
    held_bytes = held;
  }
  Bytes ring_bytes() const { return ring_bytes_; }
  bool has_room() const { return !room_.left || room_.left(); }
  // More records wait for their turn than rings and records of a usual size make.
  bool holds_too_much() const { return held_bytes > most_held_bytes_; }

  PassResult result;
  Bytes held_bytes = 0;  // at this moment

 private:
  ClockReading now_;
  Seconds seconds_per_tick_;
  BatchBuilder& out_;
  std::size_t& notes_;
  PassRoom room_;
  Bytes ring_bytes_ = kMostRingBytesPerPass;
  Bytes most_held_bytes_ = std::numeric_limits<Bytes>::max();
};

}  // namespace lbf::relay
