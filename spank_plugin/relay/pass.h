// Pass: one look at all rings of a stream. It says when the look is, how long a tick of the rings is, and
// where events, control records and notes go.
#pragma once

#include <cstdint>
#include <string>

#include "event/event.h"
#include "protocol/control_records.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

struct PassResult {
  std::uint64_t bytes = 0;  // drained from all rings
  double fullest = 0;       // the used share of the fullest ring
};

class Pass {
 public:
  // REQUIRES: rate.ready(). NOTES counts the notes of the stream.
  Pass(ClockReading now, const TickRate& rate, BatchBuilder& out, std::size_t& notes)
      : now_(now), seconds_per_tick_(rate.seconds_per_tick()), out_(out), notes_(notes) {}

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

  PassResult result;

 private:
  ClockReading now_;
  Seconds seconds_per_tick_;
  BatchBuilder& out_;
  std::size_t& notes_;
};

}  // namespace lbf::relay
