// StreamRun: one stream from its registration to its end: the processes of the step itself, or of one mpirun.
//
// Place in the event's way: ring -> *StreamRun* (Collector, BatchBuilder, Sender) -> lbfd.
#pragma once

#include <cstdint>
#include <string>

#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/collector.h"
#include "spank_plugin/relay/relay.h"
#include "spank_plugin/relay/sender.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

class StreamRun {
 public:
  StreamRun(const RelayOptions& options, const StepIdentity& identity, std::string description,
            Collector collector, const RequestFunction& request);

  // One look at its rings. True: a ring was more than a quarter full.
  bool pass(ClockReading now, const TickRate& rate);
  // Its processes have all ended (or none was seen yet). REQUIRES: pass() before.
  bool idle() const { return collector_.idle(); }

  // What is left in the rings; then the stream's end, until DEADLINE (CLOCK_MONOTONIC). REQUIRES: no other
  // call any more; the two may be on different threads.
  void drain_rest(ClockReading now, const TickRate& rate);
  RelayResult finish(const std::string& reason, std::uint64_t deadline_ns);

 private:
  StepIdentity identity_;
  Collector collector_;
  Sender sender_;
  BatchBuilder builder_;
  Seconds cpu_before_s_;  // the relay's, when this stream began
};

}  // namespace lbf::relay
