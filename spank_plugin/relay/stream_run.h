// StreamRun: one stream from its registration to its end: the processes of the step itself, or of one mpirun.
//
// Place in the event's way: ring -> *StreamRun* (Collector, BatchBuilder, Sender) -> lbfd. In the cost system: it has
// the capture of its processes regulated (CostControl), and reports what that costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cost/held_up.h"
#include "protocol/task_ends.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/collector.h"
#include "spank_plugin/relay/cost_control.h"
#include "spank_plugin/relay/relay.h"
#include "spank_plugin/relay/sender.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

class StreamRun {
 public:
  // PRIMITIVES: measured on this node.
  StreamRun(const RelayOptions& options, const StepIdentity& identity, std::string description,
            const PrimitiveCosts& primitives, Collector collector, const RequestFunction& request);

  // One look at its rings. The share that was used of the fullest one.
  double pass(ClockReading now, const TickRate& rate);
  // Some process of it has several rings.
  bool has_threads() const { return collector_.has_threads(); }
  // Its processes have all ended (or none was seen yet). REQUIRES: pass() before.
  bool idle() const { return collector_.idle(); }

  // How the capture of its processes is; kOpen where nothing is regulated.
  cost::CaptureState capture_state() const;
  // CLOCK_MONOTONIC at which pass() is wanted again, if not before.
  std::uint64_t wake_ns() const;

  // Processor time that went into this stream alone: its passes, its sender.
  Seconds own_cpu_s() const { return pass_cpu_s_ + sender_.cpu_s(); }
  // Its part of the rest of the relay's processor time.
  void add_common_cpu(Seconds cpu_s) { common_cpu_s_ += cpu_s; }

  // A process was taken.
  bool has_begun() const { return collector_.processes_taken() > 0; }
  // For people, into the stream.
  void note(const std::string& text);
  // What is left in the rings; then the stream's end, until DEADLINE (CLOCK_MONOTONIC). REQUIRES: no other
  // call any more but own_cpu_s(); the two may be on different threads. What is drained waits until the sender has
  // room; after the deadline it is dropped and counted.
  // ENDS: of the step's tasks.
  void drain_rest(ClockReading now, const TickRate& rate, std::uint64_t deadline_ns, const protocol::TaskEnds& ends);
  RelayResult finish(const std::string& reason, std::uint64_t deadline_ns);

 private:
  void regulate(ClockReading now, const TickRate& rate);
  void note_drained(Bytes bytes);
  void write_cost(std::uint64_t now_ns);
  void write_task_ends(const protocol::TaskEnds& ends, std::uint64_t now_ns);
  Bytes room_bytes() const;
  bool wait_for_room(std::uint64_t deadline_ns);
  Nanoseconds grid_ns(std::uint64_t monotonic_ns) const {
    return static_cast<Nanoseconds>(monotonic_ns) + realtime_offset_ns_;
  }
  Seconds cpu_s() const { return own_cpu_s() + common_cpu_s_; }
  // Of that, what came before its first process was taken: spent once, whatever the regulator does.
  Seconds once_cpu_s() const { return begun_ ? once_cpu_s_ : cpu_s(); }
  Seconds running_cpu_s() const { return cpu_s() - once_cpu_s(); }

  StepIdentity identity_;
  PrimitiveCosts primitives_;
  Collector collector_;
  Bytes memory_bytes_ = 0;  // the limit
  Sender sender_;
  BatchBuilder builder_;
  std::optional<CostControl> control_;
  // CLOCK_REALTIME - CLOCK_MONOTONIC at the begin: both are slewed alike, and a clock that is set in the middle of a
  // run does not disturb the windows.
  Nanoseconds realtime_offset_ns_ = 0;
  Seconds pass_cpu_s_ = 0;
  Seconds common_cpu_s_ = 0;
  bool begun_ = false;   // a process was taken
  bool at_rest_ = true;  // no process is there
  Seconds once_cpu_s_ = 0;
  bool history_told_ = false;
  std::uint64_t decided_ns_ = 0;
  std::uint64_t cost_written_ns_ = 0;
  std::uint64_t calls_written_ = 0;
  Seconds held_s_ = 0;  // time of the ranks, since the first decision
  cost::HeldUp held_up_;
  // While calls are counted: passes so far; what the last window left has been worked off, and what comes since.
  std::uint32_t counting_passes_ = 0;
  bool worked_off_ = false;
  Bytes counting_bytes_ = 0;
  bool was_pressed_ = false;
  bool pressed_noted_ = false;
  Seconds pressed_s_ = 0;
  bool dropped_ = false;  // events of the last look
};

}  // namespace lbf::relay
