// CostControl: decides for the ranks of one program on one node when they record, and says it ring by ring.
//
// Place in the cost system: rings (CostMeter), processor times -> *CostControl* (cost::Regulator) -> the rings'
// control words (spank_plugin/capture/ring.h). Implements docs/cost-system.md. No clock and no files in here: the
// caller brings time and readings, and carries the orders out. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cost/predicted_cost.h"
#include "cost/regulator.h"
#include "spank_plugin/capture/ring.h"
#include "spank_plugin/relay/cost_meter.h"

namespace lbf::relay {

struct CostSettings {
  double limit = 0;         // share of the program's processor time; 0: the capture is off
  double relay_limit = 0;   // the relay's own part; 0: any part of `limit`
  std::uint64_t seed = 0;   // of the step, alike on all its nodes: where the windows are
  std::uint32_t ranks = 1;  // of this node
  bool alone = false;       // they are all ranks of the step
  double calls_per_cpu_s = cost::kDefaultCallsPerCpuS;
  PrimitiveCosts primitives{cost::kDefaultRecordedCallS / 2, cost::kDefaultCountedCallS,
                            cost::kDefaultRecordedCallS / 2};
};

// What one ring says. `id` is the same at each look, and no other ring's.
struct RingUse {
  std::uint64_t id = 0;
  std::uint64_t recorded_calls = 0;  // Header::recorded, as it is in the ring
  std::uint64_t counted_calls = 0;
  bool recording = false;  // Header::recording_window is not 0
  bool off = false;
  std::uint32_t window = 0;  // Header::recording_window
};

struct RingOrder {
  ring::CaptureOrder order = ring::CaptureOrder::kOpen;
  std::uint32_t window = 1;
  std::uint64_t grant = 0;          // as Header::grant: in all since the ring began
  std::uint64_t counted_grant = 0;  // as Header::counted_grant; 0: without bound
};

class CostControl {
 public:
  explicit CostControl(const CostSettings& settings);

  // From earlier runs: the prediction is made anew from them, whenever the word comes (nothing of this run is in it);
  // the regulator takes them before the first call only, because then it knows better.
  void expect(const cost::CostHistory& history);

  // One order for each of RINGS, in their order. NOW_NS: CLOCK_REALTIME, never stepping back. USAGE is cumulative, all
  // ranks; its must_close is set where another resource is at its limit.
  std::span<const RingOrder> decide(Nanoseconds now_ns, cost::NodeUsage usage, std::span<const RingUse> rings);

  // CLOCK_REALTIME at which decide() is wanted again, if not before at the caller's own pace.
  Nanoseconds until_ns() const { return until_ns_; }

  cost::CaptureState state() const { return regulator_.state(); }
  double limit() const { return settings_.limit; }
  // Predicted cost of recording every call, capture and relay (docs/cost-system.md, "Parts"), a share of the program's
  // processor time: before the first call, and as it was corrected by what was seen.
  double predicted_share() const { return predicted_share_; }
  double corrected_share() const;
  std::uint32_t windows() const { return windows_; }    // opened so far, the first included
  Seconds open_s() const { return open_s_; }            // for how long the capture was ordered to record
  Seconds regulated_s() const { return regulated_s_; }  // since the first decision
  // How often a ring used up its grant before the relay looked again.
  std::uint64_t grants_used_up() const { return grants_used_up_; }

 private:
  struct Ring {
    std::uint64_t calls = 0;
    double calls_per_s = 0;
    std::uint64_t counted_calls = 0;  // at the look before
    bool looked_in_window = false;    // it was looked at since the window opened
    bool seen = false;                // in this decision
    RingOrder told;
  };
  double predict(const cost::CostHistory& history) const;
  double looks_share() const;
  bool used_up(const Ring& ring, const RingUse& use, bool is_new) const;
  void share_out(const cost::Order& order, std::span<const RingUse> rings);

  CostSettings settings_;
  cost::Regulator regulator_;
  double predicted_share_ = 0;
  double relay_share_ = 0;  // as predicted: cost::CostHistory
  // While the capture was ordered to record, as the decisions saw it.
  cost::NodeUsage last_usage_;
  Seconds open_relay_s_ = 0;
  Seconds open_program_s_ = 0;
  double open_calls_ = 0;
  std::map<std::uint64_t, Ring> rings_;  // by id
  std::vector<RingOrder> orders_;
  Nanoseconds last_ns_ = 0;
  Nanoseconds until_ns_ = 0;
  std::uint32_t windows_ = 1;
  std::uint32_t window_ = 1;
  Seconds open_s_ = 0;
  Seconds regulated_s_ = 0;
  std::uint64_t grants_used_up_ = 0;
};

// The seed of a step's windows from its key (docs/formats/http-v1.md).
std::uint64_t window_seed(std::string_view step_key);

}  // namespace lbf::relay
