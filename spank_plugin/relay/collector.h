// Collector: finds the rings of a step on this node, drains them, and turns them into events and control
// records.
//
// Place in the event's way: ring -> *Collector* (RingReader, RecordConverter) -> BatchBuilder. Implements
// docs/relay.md ("Which processes are taken", "Threads") and the control records of docs/formats/http-v1.md.
// It has no clock and no network of its own: the caller passes the time in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/cost_control.h"
#include "spank_plugin/relay/cost_meter.h"
#include "spank_plugin/relay/procedure_list.h"
#include "spank_plugin/relay/process_probe.h"
#include "spank_plugin/relay/record_converter.h"
#include "spank_plugin/relay/ring_directory.h"
#include "spank_plugin/relay/ring_reader.h"
#include "spank_plugin/relay/run_finder.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

struct CollectorOptions {
  std::string ring_dir;
  std::int32_t tasks = 0;       // of the step: only processes of a world of this size are taken
  std::int32_t node_index = 0;  // in the step
  // Which processes with a ring here are this collector's; empty: all. Asked once for each.
  std::function<Membership(std::int32_t pid)> membership{};
  std::shared_ptr<RingDirectory> directory{};  // shared with other collectors; empty: opened from ring_dir
  // What stands in for the capture's own measurements (cost_meter.h).
  PrimitiveCosts primitives{cost::kDefaultRecordedCallS / 2, cost::kDefaultCountedCallS,
                            cost::kDefaultRecordedCallS / 2};
};

struct PassResult {
  std::uint64_t bytes = 0;       // drained from all rings
  double fullest = 0;  // the share of a ring that was used, of the fullest one
};

class Collector {
 public:
  // Errors: kIo, the ring directory cannot be opened.
  static Result<Collector> make(CollectorOptions options);

  // One look at everything: new rings, records, ends of processes, keep-alives, statistics. REQUIRES:
  // rate.ready().
  PassResult pass(ClockReading now, const TickRate& rate, BatchBuilder& out);

  // The step has ended: takes what is left in the rings, and ends every process that has not ended itself.
  void finish(ClockReading now, const TickRate& rate, BatchBuilder& out);

  // The cost of what was taken, ended processes included, as of the last pass() or finish().
  const std::map<Rank, RankCost>& costs() const { return costs_; }
  // The sound rings of the processes that are under way.
  std::vector<RingUse> ring_uses();
  // ORDERS[i] into the control word of ring_uses()[i]. REQUIRES: no pass() since ring_uses().
  void give_orders(std::span<const RingOrder> orders, ClockReading now, BatchBuilder& out);

  // From now on in the rings of all processes, also of those that come; the first time a record says so in the stream.
  // A list that is not newer than the one before changes nothing.
  void give_procedure_list(std::shared_ptr<const ProcedureList> list);
  std::uint64_t procedure_list_generation() const { return list_ ? list_->generation : 0; }

  std::size_t processes_taken() const { return taken_; }
  std::size_t processes_left_out() const { return left_out_; }
  // Some process has several rings.
  bool has_threads() const {
    return std::any_of(processes_.begin(), processes_.end(), [](const auto& p) { return p.second.rings.size() > 1; });
  }
  // None is under way, and none is just beginning.
  bool idle() const { return processes_.empty() && !rescan_; }

 private:
  // What a record of one of several threads is of its call. kFirst: it takes effect when the call begins, others follow.
  // kBegin, kEnd: of a blocking call, which was one record.
  enum class HeldPart : std::uint8_t { kWhole, kFirst, kBegin, kEnd };
  // A record of a process with several threads, until its turn.
  struct HeldRecord {
    ring::Record record;
    // When it took effect, never below the one before it in its ring; of an adjust record: that of the record
    // it belongs to.
    std::uint64_t order = 0;
    std::size_t values_begin = 0;
    std::size_t values_count = 0;
    // Of what bears the same time, written by several threads: a window's close comes first, the end of the capture last.
    std::uint8_t turn = 1;
    HeldPart part = HeldPart::kWhole;
  };
  struct Ring {
    std::string file;
    std::uint64_t inode = 0;
    RingReader reader;
    RingStatus status;
    bool broken = false;
    bool ended = false;  // status.ended at the last pass: what was read since is all
    std::vector<HeldRecord> held{};
    std::vector<std::uint64_t> held_values{};
    std::uint64_t last_order = 0;
    // Of several threads: the call of whose records more may follow a kFirst (0: none such), and when it was entered.
    std::uint16_t call_function = 0;
    std::uint64_t call_enter = 0;
    std::size_t undated = 0;  // adjust records at the end of `held` whose own record has not come
    bool has_more = false;    // the last drain left records behind
    std::uint64_t number = 0;
    CostMeter meter{};
    std::uint64_t metered_ns = 0;  // CLOCK_MONOTONIC of the last look; 0: none yet
  };
  // What rings say at their ends.
  struct Totals {
    std::map<std::uint16_t, std::pair<std::uint64_t, Seconds>> calls;
    std::uint64_t failed_polls = 0;
    std::uint64_t lost_records = 0;
    std::uint64_t abandoned_calls = 0;
    Seconds unread_gap_s = 0;
    Seconds capture_s = 0;
    Seconds once_s = 0;

    void add(const Ring& ring, Seconds tick_s);
  };
  struct Process {
    std::int32_t pid = 0;
    std::uint64_t start_time_clock = 0;
    std::vector<Ring> rings;
    Rank rank = -1;
    bool taken = false;  // its `process` record was written
    bool ended = false;  // its `process_end` record was written
    RecordConverter converter;
    bool from_its_begin = true;  // no earlier relay took records of it
    bool threaded = false;       // its records are merged
    std::uint32_t split_calls = 0;  // of threads, in a begin and an end
    std::uint64_t taken_ns = 0;
    std::uint64_t alive_check_ns = 0;
    std::uint64_t stats_ns = 0;
    bool stats_due = false;
    // Keep-alive: processor time at `cpu_read_ns`, when the thread was in the program (if known) and
    // `cpu_at_bytes` of its ring had been consumed.
    bool cpu_known = false;
    // Suspended: seen stopped at the last look; how long, as far as the looks tell; of that, what the next records
    // may still hold as blocked time.
    bool stopped = false;
    std::optional<std::string> freezer_file{};  // once it was looked for
    Seconds stopped_s = 0;
    Seconds stopped_credit_s = 0;
    std::uint64_t cpu_ns = 0;
    std::uint64_t cpu_read_ns = 0;
    std::uint64_t cpu_at_bytes = 0;
    std::map<std::uint32_t, std::string> procedures{};  // by its own number, as named in the stream
    std::size_t procedure_remarks = 0;
    Totals left{};                     // of rings that were given back
    std::uint64_t call_ticks_256 = 0;  // of a measured procedure, as the rings say
    std::optional<std::uint64_t> first_total_cpu_ns{};  // of the whole process, when it was taken
    std::optional<std::uint64_t> first_delay_ns{};      // likewise
    Seconds first_once_s = 0;                           // what its rings said then
  };

  explicit Collector(CollectorOptions options) : options_(std::move(options)) {}
  void scan(ClockReading now, BatchBuilder& out);
  void look_at(Process& process, ClockReading now, Seconds seconds_per_tick, bool last_time,
               BatchBuilder& out, PassResult& result);
  bool take(Process& process, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out);
  std::uint64_t drain(Process& process, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out,
                      PassResult& result);
  Result<void> drain_ring(Ring& ring, const RecordSink& sink, PassResult& result) const;
  // PASS_BEGIN: by the clock of the records.
  void hold_of_thread(Process& process, Ring& ring, const ring::Record& record, std::span<const std::uint64_t> values,
                      std::uint64_t pass_begin) const;
  void hold_in_parts(Process& process, Ring& ring, const ring::Record& record, std::span<const std::uint64_t> values) const;
  void hold_first(Ring& ring, const ring::Record& record, std::span<const std::uint64_t> values) const;
  void hold(Ring& ring, const ring::Record& record, std::span<const std::uint64_t> values,
            HeldPart part = HeldPart::kWhole) const;
  void release(Process& process, ClockReading now, Seconds seconds_per_tick, bool everything,
               BatchBuilder& out);
  static bool is_stopped(Process& process, const ProcessStat& stat);
  void observe_stop(Process& process, bool stopped, Seconds since_last_look_s);
  void add_event(Process& process, const Event& event, ClockReading now, BatchBuilder& out);
  // ring.h, kRecordProcedure: becomes a control record. CALL_S: what a call of a measured procedure costs; 0: not known.
  void say_procedure(Process& process, const ring::Record& record, std::span<const std::uint64_t> values, Seconds call_s,
                     Seconds tick_s, ClockReading now, BatchBuilder& out);
  void write_procedure_list(Process& process, ClockReading now, BatchBuilder& out);
  void keep_alive(Process& process, ClockReading now, BatchBuilder& out);
  void write_stats(Process& process, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out);
  void end(Process& process, const char* how, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out);
  void close_ring(Process& process, Ring& ring, const Error& error, ClockReading now, BatchBuilder& out);
  // STOPPED_S: for how long that note says a rank was stopped.
  void note(const std::string& text, ClockReading now, BatchBuilder& out, Seconds stopped_s = 0);
  void meter(Process& process, ClockReading now, Seconds seconds_per_tick);
  template <typename Use>
  void for_each_ring(const Use& use);
  // When it called MPI_Finalize; NOW if it has not. By the clock of its rings.
  std::uint64_t end_ticks(const Process& process, ClockReading now) const;
  Seconds elapsed_s(const Process& process, ClockReading now, Seconds seconds_per_tick) const;
  static Seconds once_of(const RingStatus& status);
  // One thread writes it for all.
  static bool is_off(const Process& process);
  Seconds watched_s(const Process& process, ClockReading now, Seconds seconds_per_tick) const;
  void forget(Process& process);
  // Rings of threads that have ended, once all that they hold was handed on.
  void give_back(Process& process, Seconds seconds_per_tick);
  void remove_file(const Ring& ring);

  void leave_out(std::int32_t pid, const std::string& what, const std::string& why, ClockReading now,
                 BatchBuilder& out);

  CollectorOptions options_;
  std::map<std::int32_t, Process> processes_;  // by pid
  std::map<std::string, std::uint64_t> known_files_;  // with their inodes
  std::set<Rank> ranks_taken_;
  std::uint64_t scanned_generation_ = 0;
  bool rescan_ = true;  // a ring was not ready
  std::size_t taken_ = 0;
  std::size_t left_out_ = 0;
  std::size_t notes_ = 0;
  std::shared_ptr<const ProcedureList> list_;
  std::uint64_t list_said_ = 0;  // generation that the stream has

  std::map<Rank, RankCost> costs_;
  std::uint64_t rings_seen_ = 0;

  std::vector<std::pair<const Ring*, const HeldRecord*>> merged_;  // of one release
};

}  // namespace lbf::relay
