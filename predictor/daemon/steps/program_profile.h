// ProgramProfile: what a step's program did, as far as it is recognised by it (docs/lbfd.md, "Programs and outcomes").
#pragma once

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
#include "protocol/control_records.h"

namespace lbf::daemon {

// Of a rank: what the program asked for with MPI_Pcontrol.
struct ProgramScope {
  bool outside = false;   // after its last event
  Seconds outside_s = 0;  // measured time that is not predicted
};

class ProgramProfile {
 public:
  // The words come from the user's relay: long ones are cut.
  void take_process(Rank rank, const protocol::ProcessRecord& record);
  // Of one rank, in its order.
  void take_events(std::span<const Event> events, ProgramScope& scope);
  // The same. REQUIRES: they are messages and work alone.
  void take_rounds(const Rounds& rounds);
  // "solver (rank 0), analysis (rank 4)": the programs of a step of several, by their lowest ranks; empty: it is one.
  std::string several() const;

  bool has_windows() const { return windows_; }
  Seconds recorded_s() const { return seen_s_; }    // all ranks
  Seconds process_s() const { return process_s_; }  // of it: work, and waits for devices

  // What was seen of the calls, all ranks, as the relays said last.
  struct Watched {
    std::uint64_t recorded_calls = 0;
    std::uint64_t counted_calls = 0;
    Seconds recording_s = 0;    // what recording them took
    Seconds capture_s = 0;      // ... and counting
    Seconds watched_s = 0;      // wall time in which they were recorded or counted; 0: not all relays said it
    Seconds program_cpu_s = 0;  // processor time of the whole run
  };
  // `calls`: of all ranks, by function id, as the ranks' `stats` records say; `rank_s`: sum of the ranks'
  // times. Where the capture ended before the program: of the part until then (ProgramRun::seen_process_s). Nothing: no
  // process said which program it is; or the capture ended, and no relay said what was seen of it.
  std::optional<db::ProgramRun> run(const std::vector<std::uint64_t>& calls, std::size_t ranks_of_run, Seconds rank_s,
                                    const Watched& watched) const;

 private:
  std::vector<std::pair<Rank, std::string>> by_lowest_rank() const;

  std::set<std::string> build_ids_;
  std::set<std::string> scripts_;
  std::map<std::string, Rank> lowest_ranks_;  // of each program, by its name
  Seconds process_s_ = 0;
  Seconds seen_s_ = 0;  // all time in events
  double sent_bytes_ = 0;
  bool windows_ = false;        // the capture was closed at times
  bool capture_ended_ = false;  // ... or ended before the program
};

}  // namespace lbf::daemon
