// What the capture of a step cost, all nodes together: COST of docs/formats/http-v1.md (docs/cost-system.md, "The
// record").
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "protocol/field.h"

namespace lbf::protocol {

template <Side kSide>
struct StoredCostFields {
  std::optional<double> limit_percent;      // of the program's processor time; the lowest of all nodes; empty: none
  std::optional<double> predicted_percent;  // before the first call; mean of the nodes
  std::optional<double> corrected_percent;  // of recording every call, by what was seen
  std::string state = kSide == Side::kLbfd ? "open" : "";  // open, counting, off: of the node that records least
  Known<kSide, Seconds> program_cpu_s{};                   // all ranks, the capture's own not included
  Known<kSide, Seconds> direct_s{};                        // C_obs_direct
  Known<kSide, Seconds> ideal_s{};                         // C_obs_ideal
  Known<kSide, Seconds> relay_cpu_s{};                     // of all nodes, without once_relay_s
  Known<kSide, Seconds> held_up_s{};  // other ranks, by the relays (cost/held_up.h); 0 of runs before migration 0013
  // Spent once, before the first event, and in no share that has a limit: the ranks' (loading the capture, its rings),
  // the relays'. Empty: not known.
  std::optional<Seconds> once_capture_s;
  std::optional<Seconds> once_relay_s;
  std::optional<Seconds> recording_s;  // of direct_s: recorded calls; empty: not known
  Known<kSide, std::uint64_t> recorded_calls{};
  Known<kSide, std::uint64_t> counted_calls{};
  Known<kSide, std::uint64_t> disbelieved{};               // looks at counters that could not be true
  Known<kSide, std::uint64_t> windows{};                   // opened, the most of any node; 1: never closed
  Known<kSide, double> seen_share = at_first<kSide>(1.0);  // of the ranks' measured time

  std::optional<Seconds> once_s() const {
    if (!once_capture_s || !once_relay_s) return std::nullopt;
    return *once_capture_s + *once_relay_s;
  }
};

template <Side kSide>
struct CostFields : StoredCostFields<kSide> {
  std::optional<double> low_percent;
  std::optional<double> high_percent;
  std::optional<double> total_low_percent;
  std::optional<double> total_high_percent;
};

// lbfd computes the ranges.
template <>
struct CostFields<Side::kLbfd> : StoredCostFields<Side::kLbfd> {
  // C_obs_low and C_obs_high with the relays' processor time, in percent of the program's (Hollingsworth & Miller,
  // Sec. 3.2), the second one with what the relays held up: what the limit is about. Empty: no time passed yet.
  std::optional<double> low_percent() const { return percent(direct_s); }
  std::optional<double> high_percent() const { return percent(high_s()); }
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

// In the order of the document. A key of it in ROWS is `cost.KEY`.
template <Side kSide>
inline constexpr auto kCostTable = [] {
  using C = CostFields<kSide>;
  // clang-format off
  return std::tuple{
      Field{&C::limit_percent, "limit_percent", "limit_percent", Unit::kPercent, {"OverheadLimit", 13}, "the lowest of the nodes; null if none"},
      Field{&C::predicted_percent, "predicted_percent", "predicted_percent", Unit::kPercent, {"OverheadPredicted", 17}, "before the first call; null if unknown"},
      Field{&C::corrected_percent, "corrected_percent", "corrected_percent", Unit::kPercent, kNoColumn, "of recording every call, by what was seen; null if unknown"},
      Field{&C::low_percent, "low_percent", kNotStored, Unit::kPercent, {"OverheadLow", 11}, "with `high_percent` the range that was observed; null if unknown"},
      Field{&C::high_percent, "high_percent", kNotStored, Unit::kPercent, {"OverheadHigh", 12}, "likewise"},
      Field{&C::state, "state", "state", Unit::kNone, {"CaptureState", 12, Align::kLeft}, "`open`, `counting` or `off`: of the node that records least"},
      Field{&C::program_cpu_s, "program_cpu_s", "program_cpu_s", Unit::kSeconds, kNoColumn, "processor time of all ranks, without the capture's own"},
      Field{&C::direct_s, "direct_s", "direct_s", Unit::kSeconds, kNoColumn, "processor time of the capture in the ranks", In::kDocuments},
      Field{&C::ideal_s, "ideal_s", "ideal_s", Unit::kSeconds, kNoColumn, "the same at the cost of each call alone", In::kDocuments},
      Field{&C::relay_cpu_s, "relay_cpu_s", "relay_cpu_s", Unit::kSeconds, kNoColumn, "of the relays, without `once_relay_s`", In::kDocuments},
      Field{&C::held_up_s, "held_up_s", "held_up_s", Unit::kSeconds, kNoColumn, "how long ranks stood still at most because a relay had a processor that one of them wanted", In::kDocuments},
      Field{&C::once_capture_s, "once_capture_s", "once_capture_s", Unit::kSeconds, kNoColumn, "spent once in the ranks, before the first event or to choose procedures, in no range but `total_*`; null in steps stored without this key"},
      Field{&C::once_relay_s, "once_relay_s", "once_relay_s", Unit::kSeconds, kNoColumn, "the same of the relays"},
      Field{&C::recording_s, kNoKey, "recording_s", Unit::kSeconds, kNoColumn, ""},
      Field{&C::total_low_percent, "total_low_percent", kNotStored, Unit::kPercent, kNoColumn, "`low_percent` with what was spent once; null if unknown"},
      Field{&C::total_high_percent, "total_high_percent", kNotStored, Unit::kPercent, {"OverheadTotal", 13}, "`high_percent` with what was spent once; null if unknown"},
      Field{&C::recorded_calls, "recorded_calls", "recorded_calls", Unit::kCount, kNoColumn, "of all ranks"},
      Field{&C::counted_calls, "counted_calls", "counted_calls", Unit::kCount, kNoColumn, "of all ranks"},
      Field{&C::disbelieved, "disbelieved", "disbelieved", Unit::kCount, kNoColumn, "looks at counters that could not be true", In::kDocuments},
      Field{&C::windows, "windows", "windows", Unit::kCount, {"Windows", 7}, "that were opened, the most of any node; 1: never closed"},
      Field{&C::seen_share, "seen_share", "seen_share", Unit::kShare, kNoColumn, "of the ranks' measured time"},
  };
  // clang-format on
}();

}  // namespace lbf::protocol
