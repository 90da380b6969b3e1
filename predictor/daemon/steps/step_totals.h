// StepTotals: what a step's ranks and relays say of the run itself: how they ended, their calls and times, what was
// lost, what the capture cost.
//
// Place in the event's way: events and control records -> *StepTotals* -> db. What the replay makes of the events is
// StepPredictions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db/records.h"
#include "event/event.h"
#include "event/rounds.h"
#include "predictor/daemon/intake/step_trace.h"
#include "predictor/daemon/steps/program_profile.h"
#include "predictor/daemon/steps/step_cost.h"
#include "predictor/daemon/steps/step_remarks.h"
#include "protocol/control_records.h"

namespace lbf::daemon {

class StepTotals {
 public:
  // REQUIRES: `remarks` outlives the totals.
  StepTotals(Rank ranks, StepRemarks& remarks) : ranks_(ranks), remarks_(remarks) {}
  // REQUIRES: before anything below. Not earlier than needed: a step that is only registered costs little.
  void begin();
  void clear();  // gives the memory back: nothing of this is there any more
  Bytes memory_bytes() const;

  // Events that came, whoever sent them.
  void count_events(std::size_t events) { events_ += events; }
  // Of a rank of the step, in its order, from the stream that carries it. False: they came after its end.
  bool take_events(std::uint32_t stream, Rank rank, std::span<const Event> events);
  // The same of rounds. REQUIRES: is_plain().
  void take_rounds(std::uint32_t stream, Rank rank, const Rounds& rounds);
  // Of a rank that has not ended, messages and work alone.
  bool is_plain(Rank rank, const Rounds& rounds) const;
  // RANK is one of the step's.
  void take(std::uint32_t stream, Rank rank, const protocol::ProcessRecord& record);
  void take(std::uint32_t stream, Rank rank, const protocol::StatsRecord& record);
  void take(std::uint32_t stream, Rank rank, const protocol::ProcessEndRecord& record);
  void take(std::uint32_t stream, Rank rank, const protocol::TaskExitRecord& record);
  void take(std::uint32_t stream, Rank, const protocol::StepKilledRecord& record);
  void take(std::uint32_t stream, Rank, const protocol::NoteRecord& record);
  void take(std::uint32_t stream, Rank, const protocol::CostRecord& record);
  void take(std::uint32_t stream, Rank, const protocol::RelayRecord& record);
  void take(std::uint32_t stream, Rank, const protocol::ProcessorsRecord& record);
  // True: it was open. Its events end here.
  bool close(Rank rank);

  std::uint64_t events() const { return events_; }
  bool any_rank_seen() const { return any_rank_seen_; }
  bool all_processes_seen() const;
  // Sum of the ranks' times as their capture counts them.
  Seconds counted_s() const;
  Seconds longest_stop_s() const { return longest_stop_s_; }
  std::uint64_t lost_records() const;
  std::vector<StreamCost> costs() const;

  // Why the run is not whole: how its ranks ended, what its streams lost. REQUIRES: all streams have ended.
  void report_end(const StepTrace& trace, const std::vector<StreamState>& streams);

  // Times, bytes and calls, with what people should know of them.
  void describe(const StepTrace& trace, db::StepRecord& record, std::vector<std::string>& notes) const;
  std::optional<db::ProgramRun> program() const;
  // Process time of a rank in what was recorded, without devices; the mean.
  Seconds mean_work_s() const { return (profile_.process_s() - devices_.wall_s) / static_cast<double>(ranks_); }

 private:
  struct RankTotals {
    bool has_events = false;
    bool process_seen = false;
    std::uint32_t stream = 0;  // if it has events
    std::int64_t pid = 0;
    std::string how;  // process_end
    std::optional<std::uint64_t> exit_code;
    std::optional<std::uint64_t> signal;
    Seconds elapsed_s = 0;
    ProgramScope scope;
    Seconds init_s = 0;
    Seconds unread_gap_s = 0;
    Seconds capture_s = 0;
    Seconds delayed_s = 0;
    Seconds others_s = 0;
    Seconds limited_s = 0;
    bool has_cuda = false;  // its library is loaded
    bool has_hip = false;
    std::uint64_t lost_records = 0;
    std::uint64_t abandoned_calls = 0;
    std::uint64_t events_without_communicator = 0;
    std::vector<protocol::FunctionTotal> calls;  // ascending, those that were called
  };
  struct StreamTotals {
    Seconds relay_cpu_s = 0;
    Bytes sent_bytes = 0;
    std::uint64_t relay_lost_batches = 0;
    std::uint64_t processes_left_out = 0;  // by the relay; its notes say why
    std::optional<StreamCost> cost;        // as the relay said last
  };
  struct CallTotal {
    std::uint64_t calls = 0;
    Seconds total_s = 0;
  };
  struct IoTotal {
    std::uint64_t calls = 0;  // waits for non-blocking ones too
    Seconds total_s = 0;
    Bytes bytes_read = 0;
    Bytes bytes_written = 0;
  };
  struct RegionTotal {
    std::uint64_t threads = 0;  // of the largest team
    Seconds wall_s = 0;
    Seconds work_s = 0;
  };
  struct DeviceTotal {
    std::uint64_t waits = 0;
    Seconds wall_s = 0;
    Seconds busy_s = 0;  // of it, on the processor
  };
  static constexpr std::uint32_t kSilent = ~std::uint32_t{0};
  // Makes it: RANK speaks.
  RankTotals& of(Rank rank);
  // Of a rank that nothing was heard of: as it began.
  const RankTotals& known_of(Rank rank) const;
  // In the order of ranks: sums of times are the same then, whoever spoke first.
  template <typename Look>
  void for_each_rank(const Look& look) const {
    for (const std::uint32_t slot : slot_of_rank_) {
      if (slot != kSilent) look(rank_totals_[slot]);
    }
  }
  void report_ranks(const std::vector<StreamState>& streams);
  void report_identity(std::uint32_t stream, Rank rank, const protocol::ProcessRecord& record);
  void report_unfinished();
  std::string end_of(const RankTotals& totals) const;
  void report_stream(const std::string& node, const StreamState& state);
  // " (12.3 % of the ranks' time)", of what was recorded where that is not all. Empty: not known.
  std::string share_of_time(Seconds part_s, const db::StepRecord& record) const;
  void describe_calls(db::StepRecord& record) const;
  void describe_other_programs(db::StepRecord& record) const;
  void describe_devices(db::StepRecord& record) const;
  void note_devices(const db::StepRecord& record, std::vector<std::string>& notes) const;
  void note_calls(const db::StepRecord& record, std::vector<std::string>& notes) const;
  // GIVEN: threads that each rank was given; 0: not known.
  void note_regions(std::uint32_t given, const db::StepRecord& record, std::vector<std::string>& notes) const;

  const Rank ranks_;
  StepRemarks& remarks_;
  std::vector<std::uint32_t> slot_of_rank_;  // in rank_totals_; kSilent: nothing was heard of it
  std::deque<RankTotals> rank_totals_;       // of those that spoke: a description can announce any number
  std::vector<bool> closed_;                 // by rank
  Rank processes_seen_ = 0;
  Bytes calls_bytes_ = 0;
  std::map<std::uint32_t, StreamTotals> stream_totals_;
  std::uint64_t events_ = 0;
  bool any_rank_seen_ = false;
  std::map<std::uint16_t, CallTotal> unmodelled_events_;  // by function
  std::uint64_t spawned_processes_ = 0;
  IoTotal io_;
  RegionTotal regions_;
  DeviceTotal devices_;
  std::string killed_by_;       // of the step; empty: not said
  Seconds look_sleep_s_ = 0;    // of all ranks, between looks for messages
  Seconds longest_stop_s_ = 0;  // of a rank, in a suspended job
  double stolen_percent_ = 0;   // of the worst node
  double softirq_percent_ = 0;
  ProgramProfile profile_;
};

}  // namespace lbf::daemon
