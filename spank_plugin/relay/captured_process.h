// CapturedProcess: one process with its rings: its records become events, its words and its end become
// control records.
//
// Place in the event's way: ring -> *CapturedProcess* (RingReader, ThreadMerge, RecordConverter) ->
// BatchBuilder. Implements docs/relay.md ("Threads", "Ends") and the control records of
// docs/formats/http-v1.md. Collector finds the rings and says when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/procedure_list.h"
#include "spank_plugin/relay/captured_ring.h"
#include "spank_plugin/relay/known_rings.h"
#include "spank_plugin/relay/pass.h"
#include "spank_plugin/relay/procedure_words.h"
#include "spank_plugin/relay/process_meter.h"
#include "spank_plugin/relay/processor_watch.h"
#include "spank_plugin/relay/record_converter.h"
#include "spank_plugin/relay/suspension.h"

namespace lbf::relay {

// The step goes on, or has ended: the latter is the last look.
enum class StepState : std::uint8_t { kRunning, kEnded };

class CapturedProcess {
 public:
  explicit CapturedProcess(std::int32_t pid);

  void add_ring(CapturedRing ring);
  // After open errors of the format: no more is read of RING.
  void close_ring(CapturedRing& ring, const Error& error, Pass& pass);

  // One look, in this order. Before its rings are read: whether it lives (what a dead process has written is
  // there already).
  void observe_life(StepState step, const Pass& pass);
  void read_status(Pass& pass);
  // Puts the ring that says when the process came out of MPI_Init first: that of a thread that starts just
  // now may be behind. False: none says so yet.
  bool find_first_ring();
  // It is one of the stream's ranks: writes its `process` record. REQUIRES: find_first_ring().
  void take(std::int32_t node_index, Pass& pass);
  void observe_cost(const PrimitiveCosts& primitives, const Pass& pass, RankCost& cost);
  // SHARES of what it waited for processors since the last call. REQUIRES: observe_cost() into COST before.
  void observe_delay(const DelayShares& shares, const RankCost& cost);
  void write_procedure_list(const protocol::ProcedureList& list, Pass& pass);
  // Takes the records, and writes what is due: statistics, keep-alives, the end. Rings of threads that have
  // ended are given back, and removed from FILES.
  void drain_rings(StepState step, KnownRings& files, Pass& pass);

  // It is not one of the stream's ranks.
  void leave_out() { ended_ = true; }

  std::int32_t pid() const { return pid_; }
  Rank rank() const { return rank_; }
  bool alive() const { return alive_; }
  bool taken() const { return taken_; }
  bool ended() const { return ended_; }
  // It called neither MPI_Finalize nor MPI_Abort. REQUIRES: ended().
  bool was_killed() const;
  // Its capture is off. One thread writes it for all.
  bool is_off() const;
  // Of records that wait for their turn.
  Bytes held_bytes() const;
  std::vector<CapturedRing>& rings() { return rings_; }
  const std::vector<CapturedRing>& rings() const { return rings_; }

 private:
  // Processor time that shows progress where no record does.
  struct Progress {
    bool known = false;  // the thread was in the program at read_ns
    std::uint64_t cpu_ns = 0;
    std::uint64_t read_ns = 0;
    std::uint64_t consumed_bytes = 0;  // of the ring, at read_ns
  };
  enum class Release : std::uint8_t { kSettled, kAll };
  enum class Drained : std::uint8_t { kAll, kSome };

  RelayEventSink sink(Pass& pass);
  Seconds tick_s(const Pass& pass) const { return rings_.front().tick_s(pass); }
  std::uint64_t drain(Pass& pass);
  // kSome: the pass has no more room.
  Drained drain_rest(Pass& pass);
  Result<void> drain_alone(CapturedRing& ring, ProcedureClock clock, Pass& pass);
  Result<void> drain_thread(CapturedRing& ring, ProcedureClock clock, Pass& pass);
  void take_procedure(const ring::Record& record, std::span<const std::uint64_t> values, ProcedureClock clock,
                      Pass& pass);
  std::uint64_t settled_until(const Pass& pass) const;
  void release(Release what, Pass& pass);
  void keep_alive(Pass& pass);
  void write_stats(Pass& pass);
  void end(std::string_view how, Pass& pass);
  void give_back_rings(KnownRings& files, const Pass& pass);
  // When it called MPI_Finalize, or now. By the clock of its rings.
  std::uint64_t end_ticks(const Pass& pass) const;
  Seconds elapsed_s(const Pass& pass) const;
  // Until the capture was off; 0: it is, and its rings do not say since when.
  Seconds watched_s(const Pass& pass) const;

  std::int32_t pid_;
  std::uint64_t start_time_clock_;
  std::vector<CapturedRing> rings_;
  RingTotals given_back_{};
  ring::ProcessState state_ = ring::ProcessState::kStarting;  // at the last look
  Rank rank_ = -1;
  bool taken_ = false;  // its `process` record was written
  bool ended_ = false;  // its `process_end` record was written, or it is left out
  bool alive_ = true;
  bool sealed_ = false;  // it is gone, and so its rings have all that they ever will
  std::uint64_t alive_check_ns_ = 0;

  RecordConverter converter_;
  bool from_its_begin_ = true;     // no earlier relay took records of it
  bool threaded_ = false;          // its records are merged
  std::uint32_t split_calls_ = 0;  // of threads, in a begin and an end

  std::uint64_t stats_ns_ = 0;
  bool stats_due_ = false;
  Progress progress_;
  Suspension suspension_;
  struct Delay {
    Seconds all_s = 0;
    Seconds others_s = 0;
    Seconds limited_s = 0;
  } delay_;  // ready to run without a processor
  ProcessMeter meter_;
  ProcedureWords procedures_;
  std::uint64_t procedure_call_ticks_256_ = 0;  // of a measured procedure, as the rings say
};

}  // namespace lbf::relay
