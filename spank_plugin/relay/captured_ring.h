// CapturedRing: the ring of one thread, with the relay's view of it. RingTotals: the counters of several
// rings together.
//
// Place in the event's way: ring -> RingReader -> *CapturedRing* -> CapturedProcess.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "spank_plugin/relay/cost_meter.h"
#include "spank_plugin/relay/pass.h"
#include "spank_plugin/relay/ring_reader.h"
#include "spank_plugin/relay/thread_records.h"

namespace lbf::relay {

struct CapturedRing {
  std::string file;
  std::uint64_t inode = 0;
  RingReader reader;
  std::uint64_t number = 0;
  RingStatus status{};
  bool broken = false;      // its format was violated: nothing is read any more
  bool ended = false;       // status.ended at the last pass: what was read since is all
  bool has_more = false;    // the last drain left records behind
  ThreadRecords records{};  // of a process with several threads: those that wait for their turn
  CostMeter meter{};
  std::uint64_t metered_ns = 0;  // CLOCK_MONOTONIC of the last look; 0: none yet

  // Clock of its records: ticks of the processor, or nanoseconds of CLOCK_MONOTONIC.
  Seconds tick_s(const Pass& pass) const { return has_ticks() ? pass.seconds_per_tick() : 1e-9; }
  std::uint64_t now_ticks(const Pass& pass) const { return has_ticks() ? pass.now().ticks : pass.now_ns(); }
  // What starting the capture of its thread cost, as far as a ring is believed.
  Seconds once_s() const;
  // Hands on the records that wait in it, about LIMIT_BYTES at most.
  Result<void> drain(Bytes limit_bytes, const RecordSink& sink, Pass& pass);

 private:
  bool has_ticks() const { return reader.identity().clock_source == 0; }
};

struct RingTotals {
  std::map<std::uint16_t, std::pair<std::uint64_t, Seconds>> calls;  // by function: how many, how long
  std::uint64_t failed_polls = 0;
  std::uint64_t lost_records = 0;
  std::uint64_t abandoned_calls = 0;
  Seconds unread_gap_s = 0;
  Seconds capture_s = 0;
  Seconds once_s = 0;
  std::uint32_t device_libraries = 0;

  void add(const CapturedRing& ring, const Pass& pass);
};

}  // namespace lbf::relay
