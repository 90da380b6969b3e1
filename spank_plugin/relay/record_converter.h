// RecordConverter: the records of one process become Events with process times.
//
// Place in the event's way: ring -> RingReader -> *RecordConverter* -> batches. Implements the rules of
// spank_plugin/capture/ring.h: the process time before a record is enter - (leave of the record before) -
// what the kRecordAdjust records between them take away; blocked time becomes a kBlocked event before it, sleep between
// two looks for a message one of its own (docs/adr/0002-process-time-by-tsc.md); of preempted time what other programs
// took becomes a kPreempted event before it; the rest, and waiting time, is dropped.
// Sums are exact: what keep-alive events gave the process in advance is taken from the gaps that follow. Of calls that
// threads make side by side each has the time that passed since the one before it in the sequence ended.
//
// A record on a communicator whose definition never came (docs/capture.md, "Communicators") becomes a kGap
// event of one event with its times: lbfd refuses what it cannot know, and the other ranks of the node with
// it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "event/event.h"
#include "spank_plugin/capture/ring.h"

namespace lbf::relay {

using RelayEventSink = std::function<void(const Event& event)>;

class RecordConverter {
 public:
  RecordConverter() = default;
  // Time starts at START_TICKS (the return of MPI_Init). WORLD_SIZE bounds the ranks in the records.
  // FROM_ITS_BEGIN: no earlier relay took records (and definitions) of this process.
  RecordConverter(std::uint64_t start_ticks, Rank world_size, bool from_its_begin = true)
      : last_leave_ticks_(start_ticks),
        world_size_(world_size),
        definitions_known_(from_its_begin),
        all_procedures_named_(!from_its_begin) {}

  // Errors: kInvalidInput, a record that capture never writes (a rank outside the world, broken values);
  // nothing of it reaches the sink.
  Result<void> convert(const ring::Record& record, std::span<const std::uint64_t> values, Seconds seconds_per_tick,
                       const RelayEventSink& sink);

  // The definition in RECORD, which `convert` will get later, without time: for records of other threads that
  // come before it. Does nothing where the communicator is defined, or RECORD is no sound definition.
  void define_ahead(const ring::Record& record, std::span<const std::uint64_t> values, const RelayEventSink& sink);

  // From the next record on, of the time in which a thread was ready to run and did not run: the share that others than
  // the job took. 0 until the first call.
  void set_others_share(double share) { others_share_ = share; }

  // The process's procedure ID has a name in the stream: its kProcedure records become events. Others become process
  // time like any other.
  void name_procedure(std::uint32_t id);

  // A kKeepAlive event that gives the process `process_s` seconds of processor time before the record that
  // ends this gap is written. The gaps that follow are shortened by as much.
  void keep_alive(Seconds process_s, const RelayEventSink& sink);

  // A kKeepAlive event with the time of the window that is open which is in none of its events (preempted, or in calls
  // without a record: failed polls), as far as the records until now say it, and no such event has said it before. So
  // what has been measured of a window is known before it closes; its close, or the run's end, has the rest.
  void report_unrecorded_time(Seconds seconds_per_tick, const RelayEventSink& sink);

  // Ends the process, which will not say so itself: it was killed or aborted, or its capture had ended before it. What
  // its open window has of time in no event it has until its last record. Where
  // no window is open the time from the last one's close to END_TICKS goes into an empty one, so that the events say
  // how long the process ran, and all that it did in between is said to be unknown.
  void close(std::uint64_t end_ticks, Seconds seconds_per_tick, const RelayEventSink& sink);

  bool exited() const { return exited_; }
  // Between two windows.
  bool is_counting() const { return closed_; }
  std::uint64_t last_leave_ticks() const { return last_leave_ticks_; }
  bool is_defined(std::uint32_t comm) const {
    return comm == 0 || !definitions_known_ || (comm < defined_.size() && defined_[comm]);
  }
  // Events that became gaps, see above.
  std::uint64_t events_without_communicator() const { return events_without_communicator_; }

 private:
  // Ticks as whole nanoseconds. What rounding takes or gives is kept for the next time, so that sums are exact.
  class Rounding {
   public:
    Duration take(std::uint64_t ticks, Seconds seconds_per_tick);

   private:
    std::uint64_t rest_ = std::uint64_t{1} << 47;  // of a nanosecond, times 2^48; half of one: to the nearest
  };

  // kBlocked events before EVENT, of BLOCKED ticks off the processor since the record before.
  void add_blocked(std::uint64_t blocked, const Event& event, Seconds seconds_per_tick, const RelayEventSink& sink);
  // A kPreempted event of GAP ticks before a call, and what the call before ended later.
  void add_preempted(std::uint64_t gap, std::uint64_t delayed_end, Seconds seconds_per_tick,
                     const RelayEventSink& sink);
  struct VainLooks {
    std::uint64_t count = 0;
    std::uint64_t between = 0;  // ticks
    std::uint64_t cpu = 0;      // ticks, by those that were timed
  };
  // The looks before a record of FUNCTION, where they were no waiting; their ticks are part of WAITING.
  VainLooks take_vain_looks(std::uint16_t function, std::uint64_t waiting);
  Result<void> check_definition(const ring::Record& record, std::span<const std::uint64_t> values) const;
  void note_definition(std::uint32_t comm);
  Result<void> take_procedure(const ring::Record& record, std::span<const std::uint64_t> values,
                              Seconds seconds_per_tick, Event& event);
  // Parts of a gap: parallel regions, waits for a device. How many ticks of it; the next record has the rest.
  static Result<std::uint64_t> check_regions(const ring::Record& record, std::span<const std::uint64_t> values);
  static Result<std::uint64_t> check_device_waits(const ring::Record& record, std::span<const std::uint64_t> values);
  // false: EVENT has no time, and is none.
  bool begin_part(Event& event);
  void set_region_values(const ring::Regions& regions, Event& event);
  void set_device_values(const ring::DeviceWaits& waits, Event& event);

  std::uint64_t last_leave_ticks_ = 0;
  std::uint64_t preempted_ticks_ = 0;    // since the last record
  std::uint64_t waiting_ticks_ = 0;      // the same
  std::uint64_t delayed_end_ticks_ = 0;  // of calls since the last record, for want of a processor
  double others_share_ = 0;
  std::uint64_t unrecorded_ticks_ = 0;  // preempted and waiting, in no event, since the window opened, and not told yet
  std::uint64_t blocked_ticks_ = 0;
  std::uint64_t look_sleep_ticks_ = 0;  // of the latter
  std::uint64_t look_sleeps_ = 0;
  ring::Looks looks_;                   // since the last record
  std::uint64_t timed_vain_looks_ = 0;  // of all that were no waiting: who waits alone on a processor looks faster
  std::uint64_t timed_vain_cpu_ = 0;
  Rounding process_rounding_;
  Rounding call_rounding_;
  Rounding off_rounding_;
  Rounding preempted_rounding_;
  Rounding delayed_rounding_;
  Duration credit_;  // given by keep-alives, not yet taken from a gap
  Rank world_size_ = 0;
  bool exited_ = false;
  bool closed_ = false;       // see is_counting()
  bool off_ = false;          // ... and no other one comes
  std::uint64_t window_ = 1;  // the last one's number
  bool definitions_known_ = true;
  std::vector<bool> defined_;  // by the process's own number of the communicator
  std::uint64_t events_without_communicator_ = 0;
  bool all_procedures_named_ = false;  // an earlier relay's stream has the names
  std::vector<bool> named_procedures_;
  std::array<std::uint64_t, kProcedureValues> procedure_values_{};
  bool has_parts_ = false;  // in its gaps; of a gap's time nobody knows before its end what is in them
  std::array<std::uint64_t, kRegionValues> region_values_{};
  std::array<std::uint64_t, kDeviceValues> device_values_{};
};

}  // namespace lbf::relay
