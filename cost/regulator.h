// Regulator: decides for one node when the capture records, so that its cost stays below the limit.
//
// Place in the cost system: observed cost (cumulative, from the rings and the relay) -> *regulator* -> the
// rings' control words. The rule is Hollingsworth & Miller's: the type of data stays constant, *when* it is
// collected is regulated. Below the limit the capture is open all the time. Above it, it opens in windows on
// the step's WindowGrid, each as long as the budget lasts. Between windows calls are only counted
// (docs/cost-system.md: the counts are what lets messages be matched across the gaps). Where even counting costs
// more than the limit, what is left of the budget goes into a few short windows, and when it is used up the capture
// ends for good.
//
// No clock in here: the caller brings the time. Not thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "cost/budget.h"
#include "cost/first_grant.h"
#include "cost/window_grid.h"

namespace lbf::cost {

enum class CaptureState : std::uint8_t {
  kOpen,      // calls are recorded
  kCounting,  // calls are counted, so that later windows can be matched
  kOff,       // nothing any more, for the rest of the run
};
std::string_view name_of(CaptureState state);

// What capture and relay cost on this node so far, all ranks, cumulative since the step began.
struct NodeUsage {
  Seconds program_cpu_s = 0;  // processor time of the ranks without capture_s
  Seconds capture_s = 0;      // the capture's own (C_obs_high), recording and counting
  Seconds relay_cpu_s = 0;
  std::uint64_t recorded_calls = 0;  // while open
  std::uint64_t counted_calls = 0;   // while counting
  Seconds held_up_s = 0;             // of other ranks, by the relay (held_up.h)
  std::uint64_t counting_bytes = 0;  // out of the rings: records that counting left
  // Not cumulative: windows end now and none begins, whatever the budget says. A rank has used up its grant (the
  // others are not to record alone), or another resource is at its limit (memory, network).
  bool must_close = false;
};

// What is to happen until the next decision.
struct Order {
  CaptureState state = CaptureState::kOpen;
  // With kOpen: how many calls all ranks of the node together may record from now on; the capture closes by
  // itself when they are used up, whatever the relay is doing.
  std::uint64_t call_grant = 0;
  // How many calls all ranks of the node together may count until the next decision; who uses that up ends its capture
  // by itself. At least 1 but with kOff.
  std::uint64_t count_grant = 0;
  // With kOpen: the window's number, alike on all nodes and growing with time: 1 is the one that is open from the
  // start, later ones have the number of their cell in the grid.
  std::uint32_t window = 1;
  // CLOCK_REALTIME when the state changes next as far as is known now: the relay should decide again then,
  // and at its own pace before.
  Nanoseconds until_ns = 0;
};

struct RegulatorSettings {
  double limit = 0.02;               // share of the program's processor time; 0: off from the start
  double relay_limit = 0;            // the relay's own part of it at most, as a share of the same; 0: any part
  Seconds depth_s = kDepthPerRankS;  // Budget; times the ranks of the node
  Seconds shortest_window_s = 0.1;   // shorter ones are worth little: a message must be seen from both ends
  // All ranks of the step are here: windows need no instant that other nodes know, and their ends none either. Where
  // counting costs more than the limit, they may be as short as this.
  bool alone = false;
  Seconds shortest_burst_s = 1e-3;
  // Predicted cost (predicted_cost.h) until calls were seen: per recorded call with the relay's share, per
  // counted call, and calls per second of the node.
  Seconds recorded_call_s = kDefaultRecordedCallS;
  Seconds counted_call_s = kDefaultCountedCallS;
  double calls_per_s = kDefaultCallsPerCpuS;
};

class Regulator {
 public:
  Regulator(const RegulatorSettings& settings, const WindowGrid& grid);

  // Calls per second of the node as earlier runs of the program made them, instead of settings.calls_per_s. Does
  // nothing once calls were seen.
  void expect(double calls_per_s);

  // The state from `now_ns` (CLOCK_REALTIME) on. Usage that goes backwards (a rank ended) counts as no
  // change.
  Order decide(Nanoseconds now_ns, const NodeUsage& usage);
  // Every rank ended its capture by itself: kOff from the next decision on.
  void end() { ended_ = true; }

  CaptureState state() const { return state_; }
  const Budget& budget() const { return budget_; }
  // Cost of one recorded call, the relay's share with it, as seen so far.
  Seconds recorded_call_s() const { return recorded_call_s_; }
  // recorded_call_s() is what was seen, and has all that the relay did in it; else its share of each call alone.
  bool recorded_call_seen() const { return recorded_call_seen_; }
  // Predicted cost of recording every call, as a share of the program's processor time, corrected by what was seen so
  // far (Hollingsworth & Miller, Sec. 3.1). Before the program has run: of `cpu_per_s` processors that it keeps busy.
  double predicted_share(double cpu_per_s) const;

 private:
  Seconds chargeable_s(const NodeUsage& change) const;
  void account(Nanoseconds now_ns, const NodeUsage& usage);
  void learn(const NodeUsage& change, Seconds passed_s, Nanoseconds now_ns);
  void learn_relayed_count(const NodeUsage& change, Seconds passed_s);
  Seconds cost_per_s_when_open() const { return recorded_call_s_ * calls_per_s_; }
  Seconds allowed_per_s() const;
  Seconds counting_cost_per_s() const;
  Seconds counting_s() const;
  Seconds spendable_s() const;
  bool affordable_all_the_time() const;
  bool cannot_count() const;
  bool hopeless() const;
  Seconds life_s() const;
  Seconds burst_s() const;
  Seconds shortest_window_s() const;
  Seconds affordable_window_s(Nanoseconds now_ns) const;
  unsigned thinning() const;
  Seconds granted_call_s() const;
  std::uint64_t calls_for(Seconds cost_s) const;
  std::uint64_t counts_for(Seconds cost_s) const;
  Order disable();
  Order open(Nanoseconds now_ns);
  Order count(Nanoseconds now_ns);

  RegulatorSettings settings_;
  WindowGrid grid_;
  Budget budget_;
  CaptureState state_ = CaptureState::kOpen;
  Nanoseconds window_end_ns_ = 0;    // kOpen; kNoEnd: as long as the budget lasts
  Nanoseconds next_opening_ns_ = 0;  // kCounting
  std::uint32_t window_ = 1;         // kOpen
  Nanoseconds closed_ns_ = 0;        // kCounting: since when
  bool any_ = false;
  Nanoseconds last_ns_ = 0;
  NodeUsage last_;

  // As seen, what is recent counting more.
  Seconds recorded_call_s_;
  bool recorded_call_seen_ = false;
  double calls_per_s_;
  double cpu_per_s_ = 0;            // processor time of the program per second
  Seconds counting_cost_per_s_;     // of everything, while no call is recorded
  Seconds counted_call_s_;          // one counted call, with what the relay takes for it
  bool counted_call_seen_ = false;  // ... as the capture measured it
  Seconds relayed_count_s_ = 0;     // the relay's part of it: 0 but where counting leaves records
  Seconds counting_now_per_s_ = 0;  // the cost of counting at the last look, where the capture only counted
  bool over_by_counting_ = false;   // that alone was above the limit
  bool ended_ = false;
};

}  // namespace lbf::cost
