// CostRecord: what the capture of a step cost, and what was decided about it (docs/cost-system.md, "The record").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace lbf::db {

// The capture of one rank; times are processor time.
struct RankCostRecord {
  Rank rank = 0;
  Seconds direct_s = 0;
  Seconds ideal_s = 0;
  std::uint64_t recorded_calls = 0;
  std::uint64_t counted_calls = 0;
  Seconds program_cpu_s = 0;
};

// What one node's relay said last.
struct NodeCostRecord {
  std::uint32_t node = 0;  // in the step's description
  std::string state;
  Seconds program_cpu_s = 0;
  Seconds direct_s = 0;
  Seconds ideal_s = 0;
  Seconds relay_cpu_s = 0;
  Seconds open_s = 0;       // for how long it was ordered to record
  Seconds regulated_s = 0;  // of how long
  Seconds pressed_s = 0;    // closed because too much waited to be sent
  std::uint64_t windows = 0;
  std::optional<Seconds> once_capture_s{};  // as in CostRecord
  std::optional<Seconds> once_relay_s{};
  Seconds held_up_s = 0;  // as in CostRecord
};

struct CostRecord {
  std::optional<double> limit_percent;  // of the program's processor time; the lowest of all nodes; empty: none
  std::optional<double> predicted_percent;  // before the first call; mean of the nodes
  std::optional<double> corrected_percent;  // of recording every call, by what was seen
  std::string state = "open";               // open, counting, off: of the node that records least
  Seconds program_cpu_s = 0;                // all ranks, the capture's own not included
  Seconds direct_s = 0;                     // C_obs_direct
  Seconds ideal_s = 0;                      // C_obs_ideal
  Seconds relay_cpu_s = 0;                  // of all nodes, without once_relay_s
  Seconds held_up_s = 0;                    // other ranks, by the relays (cost/held_up.h); 0 of runs before migration 0013
  // Spent once, before the first event, and in no share that has a limit: the ranks' (loading the capture, its rings), the
  // relays'. Empty: not known.
  std::optional<Seconds> once_capture_s;
  std::optional<Seconds> once_relay_s;
  std::optional<Seconds> recording_s;  // of direct_s: recorded calls; empty: not known
  std::uint64_t recorded_calls = 0;
  std::uint64_t counted_calls = 0;
  std::uint64_t disbelieved = 0;  // looks at counters that could not be true
  std::uint64_t windows = 0;      // opened, the most of any node; 1: never closed
  double seen_share = 1;          // of the ranks' measured time
  std::vector<NodeCostRecord> nodes;
  std::vector<RankCostRecord> ranks;

  // C_obs_low and C_obs_high with the relays' processor time, in percent of the program's (Hollingsworth & Miller,
  // Sec. 3.2), the second one with what the relays held up: what the limit is about. Empty: no time passed yet.
  std::optional<double> low_percent() const { return percent(direct_s); }
  std::optional<double> high_percent() const { return percent(high_s()); }

  std::optional<Seconds> once_s() const {
    if (!once_capture_s || !once_relay_s) return std::nullopt;
    return *once_capture_s + *once_relay_s;
  }
  // The same with what was spent once: all that the run cost on its nodes. Empty: not known.
  std::optional<double> total_low_percent() const { return once_s() ? percent(direct_s + *once_s()) : std::nullopt; }
  std::optional<double> total_high_percent() const { return once_s() ? percent(high_s() + *once_s()) : std::nullopt; }

 private:
  Seconds high_s() const { return direct_s + (direct_s > ideal_s ? direct_s - ideal_s : 0) + held_up_s; }
  std::optional<double> percent(Seconds capture_s) const {
    if (!(program_cpu_s > 0)) return std::nullopt;
    return 100 * (capture_s + relay_cpu_s) / program_cpu_s;
  }
};

}  // namespace lbf::db
