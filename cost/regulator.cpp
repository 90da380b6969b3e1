#include "cost/regulator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lbf::cost {
namespace {

constexpr Nanoseconds kNoEnd = std::numeric_limits<Nanoseconds>::max();
constexpr Seconds kMemory_s = 2;  // what was seen so long ago counts 1/e of what is seen now
// Windows leave this much of the full bucket: for what is noticed late.
constexpr double kReserve = 0.25;
// Open all the time only with this much of the limit to spare: else it would open and close in turn.
constexpr double kOpenShare = 0.8;
// Openings are planned so thinly that between two of them this many shortest windows are earned: two openings
// may lie close together.
constexpr double kSaved = 1.5;
// The capture ends for good when what is left pays for so long of counting.
constexpr Seconds kMargin_s = 0.01;
// Where counting is above the limit: a part of what is left goes into each window, and into the counting until the
// next one.
constexpr double kBurstShare = 0.25;
// Of the full bucket: may be counted until the next decision in any case. What is noticed too late is at most this.
constexpr double kLeastCountShare = 0.05;
// Where counting is affordable it goes on for so long without a decision, and longer where there is more left.
constexpr Seconds kCountsAhead_s = 1;
// One counted call, as long as the capture has measured none: grants are not made on a guess that is too low.
constexpr Seconds kLeastCountedCall_s = 12e-9;
// The same of one recorded call, until what the relay takes for it, and what that holds up, was seen.
constexpr Seconds kLeastRecordedCall_s = kDefaultRecordedCallS;
// The relay still works off what a window recorded for so long: not the cost of counting.
constexpr Nanoseconds kAfterWindow_ns = 500'000'000;
// Counting leaves records, too, where communicators are made and used: from so many bytes of them a second on they are
// most of what the relay works on.
constexpr double kRecordBytesPerS = 1 << 20;
// From so many recorded calls on, their cost is worth learning from.
constexpr std::uint64_t kCallsToLearn = 1'000;
constexpr Nanoseconds kFirstLook_ns = 10'000'000;
constexpr Nanoseconds kShortestLook_ns = 2'000'000;

Nanoseconds ns_of(Seconds s) {
  return static_cast<Nanoseconds>(s * 1e9);
}

double moved(double estimate, double seen, Seconds passed_s) {
  return seen + (estimate - seen) * std::exp(-passed_s / kMemory_s);
}

std::uint64_t grown(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

}  // namespace

std::string_view name_of(CaptureState state) {
  switch (state) {
    case CaptureState::kOpen:
      return "open";
    case CaptureState::kCounting:
      return "counting";
    case CaptureState::kOff:
      break;
  }
  return "off";
}

Regulator::Regulator(const RegulatorSettings& settings, const WindowGrid& grid)
    : settings_(settings),
      grid_(grid),
      budget_(std::max(settings.limit, 0.0), settings.depth_s),
      window_end_ns_(kNoEnd),
      recorded_call_s_(settings.recorded_call_s),
      calls_per_s_(settings.calls_per_s),
      counting_cost_per_s_(settings.counted_call_s * settings.calls_per_s),
      counted_call_s_(std::max(settings.counted_call_s, kLeastCountedCall_s)) {
  if (!(settings.limit > 0)) state_ = CaptureState::kOff;
}

Order Regulator::decide(Nanoseconds now_ns, const NodeUsage& usage) {
  account(now_ns, usage);
  if (state_ == CaptureState::kOff || ended_) return disable();
  if (state_ == CaptureState::kOpen) {
    if (window_end_ns_ == kNoEnd && cannot_count()) {
      window_end_ns_ = now_ns + ns_of(burst_s() / cost_per_s_when_open());
    }
    const bool spent = spendable_s() <= 0 && !affordable_all_the_time();
    const bool over = window_end_ns_ == kNoEnd ? spent : now_ns >= window_end_ns_;
    if (!over && !usage.must_close && budget_.left_s() > 0) return open(now_ns);
    closed_ns_ = now_ns;
    return count(now_ns);
  }
  if (hopeless()) return disable();
  if (now_ns < next_opening_ns_ || usage.must_close) return count(now_ns);
  // Nodes agree on the number of a window as they do on its opening.
  const auto cell = static_cast<std::uint32_t>(next_opening_ns_ / grid_.cell_ns());
  if (affordable_all_the_time() && budget_.left_s() >= 0.5 * budget_.full_s()) {
    window_end_ns_ = kNoEnd;
  } else {
    const Seconds window_s = affordable_window_s(now_ns);
    if (window_s < shortest_window_s()) return count(now_ns);
    window_end_ns_ = now_ns + ns_of(window_s);
  }
  // Bursts of a node that is alone may have taken the numbers of cells to come.
  window_ = std::max(cell, settings_.alone ? window_ + 1 : cell);
  return open(now_ns);
}

Order Regulator::disable() {
  state_ = CaptureState::kOff;
  return {CaptureState::kOff, 0, 0, 0, kNoEnd};
}

void Regulator::expect(double calls_per_s) {
  if (last_.recorded_calls + last_.counted_calls > 0) return;
  calls_per_s_ = calls_per_s;
  counting_cost_per_s_ = settings_.counted_call_s * calls_per_s;
}

double Regulator::predicted_share(double cpu_per_s) const {
  const double seen_per_s = cpu_per_s_ > 0 ? cpu_per_s_ : cpu_per_s;
  return seen_per_s > 0 ? cost_per_s_when_open() / seen_per_s : 0;
}

// What counts against the budget. Where the relay has a limit of its own its time weighs as many times more as that
// one is lower, if that is more than all cost together: so both limits hold.
Seconds Regulator::chargeable_s(const NodeUsage& change) const {
  const Seconds all_s = change.capture_s + change.relay_cpu_s + change.held_up_s;
  if (!(settings_.relay_limit > 0)) return all_s;
  return std::max(all_s, change.relay_cpu_s * settings_.limit / settings_.relay_limit);
}

void Regulator::account(Nanoseconds now_ns, const NodeUsage& usage) {
  const NodeUsage change{
      std::max(usage.program_cpu_s - last_.program_cpu_s, 0.0), std::max(usage.capture_s - last_.capture_s, 0.0),
      std::max(usage.relay_cpu_s - last_.relay_cpu_s, 0.0),     grown(usage.recorded_calls, last_.recorded_calls),
      grown(usage.counted_calls, last_.counted_calls),          std::max(usage.held_up_s - last_.held_up_s, 0.0),
      grown(usage.counting_bytes, last_.counting_bytes)};
  last_ = usage;
  budget_.earn(change.program_cpu_s);
  budget_.spend(chargeable_s(change));
  if (any_ && now_ns > last_ns_) learn(change, seconds_from_ns(now_ns - last_ns_), now_ns);
  any_ = true;
  last_ns_ = std::max(last_ns_, now_ns);
}

void Regulator::learn(const NodeUsage& change, Seconds passed_s, Nanoseconds now_ns) {
  const Seconds cost_s = chargeable_s(change);
  const double calls_per_s = static_cast<double>(change.recorded_calls + change.counted_calls) / passed_s;
  // A storm is believed at once, its end only after a while.
  calls_per_s_ = std::max(calls_per_s, moved(calls_per_s_, calls_per_s, passed_s));
  cpu_per_s_ =
      cpu_per_s_ == 0 ? change.program_cpu_s / passed_s : moved(cpu_per_s_, change.program_cpu_s / passed_s, passed_s);
  if (state_ == CaptureState::kOpen && change.recorded_calls >= kCallsToLearn) {
    // Outside of the program's scope calls are counted while the window is open.
    const Seconds recorded_s = std::max(cost_s - counting_s() * static_cast<double>(change.counted_calls), 0.0);
    recorded_call_s_ = moved(recorded_call_s_, recorded_s / static_cast<double>(change.recorded_calls), passed_s);
    recorded_call_seen_ = true;
  }
  if (state_ != CaptureState::kCounting || change.recorded_calls > 0) return;
  const bool is_after_window = now_ns - closed_ns_ < kAfterWindow_ns + ns_of(passed_s);
  if (change.counted_calls >= kCallsToLearn && (change.counting_bytes > 0 || !is_after_window))
    learn_relayed_count(change, passed_s);
  // The relay's own looks go on without any call being counted: ending the capture would not help against them.
  const Seconds spent_s = change.capture_s + relayed_count_s_ * static_cast<double>(change.counted_calls);
  if (change.counted_calls >= kCallsToLearn) {
    const Seconds once_s = spent_s / static_cast<double>(change.counted_calls);
    counted_call_s_ = counted_call_seen_ ? moved(counted_call_s_, once_s, passed_s) : once_s;
    counted_call_seen_ = true;
  }
  counting_now_per_s_ = spent_s / passed_s;
  over_by_counting_ = spent_s > settings_.limit * change.program_cpu_s;
  if (!is_after_window) counting_cost_per_s_ = moved(counting_cost_per_s_, cost_s / passed_s, passed_s);
}

void Regulator::learn_relayed_count(const NodeUsage& change, Seconds passed_s) {
  const bool leaves_records = static_cast<double>(change.counting_bytes) > kRecordBytesPerS * passed_s;
  const Seconds relayed_s = leaves_records ? chargeable_s(change) - change.capture_s : 0;
  const Seconds once_s = relayed_s / static_cast<double>(change.counted_calls);
  relayed_count_s_ = relayed_count_s_ > 0 ? moved(relayed_count_s_, once_s, passed_s) : once_s;
}

Seconds Regulator::allowed_per_s() const {
  return settings_.limit * cpu_per_s_;
}

Seconds Regulator::counting_cost_per_s() const {
  return std::max(counting_cost_per_s_, counting_s() * calls_per_s_);
}

Seconds Regulator::counting_s() const {
  return counted_call_seen_ ? counted_call_s_ : settings_.counted_call_s;
}

// Counting alone, of the calls that are made now, is above the limit.
bool Regulator::cannot_count() const {
  return cpu_per_s_ > 0 && counting_s() * calls_per_s_ > allowed_per_s();
}

// What one window may cost where counting is too much: nothing is kept back for a time that will not come.
Seconds Regulator::burst_s() const {
  return kBurstShare * std::max(budget_.left_s() - kLeastCountShare * budget_.full_s(), 0.0);
}

// Until the bucket is empty, if calls go on as they are and are counted.
Seconds Regulator::life_s() const {
  const Seconds earned_per_s = budget_.advanced_s() > 0 ? 0 : allowed_per_s();
  const Seconds drain_per_s = std::max(counting_now_per_s_, counting_s() * calls_per_s_) - earned_per_s;
  return drain_per_s > 0 ? std::max(budget_.left_s(), 0.0) / drain_per_s : kNeverS;
}

Seconds Regulator::spendable_s() const {
  // What was advanced must also pay for counting until it is repaid.
  const Seconds unpaid_s = cpu_per_s_ > 0 ? budget_.advanced_s() / cpu_per_s_ : 0;
  return budget_.left_s() - kReserve * budget_.full_s() - unpaid_s * counting_cost_per_s();
}

bool Regulator::affordable_all_the_time() const {
  return cost_per_s_when_open() <= kOpenShare * allowed_per_s();
}

bool Regulator::hopeless() const {
  return over_by_counting_ && budget_.left_s() <= kMargin_s * counting_now_per_s_;
}

Seconds Regulator::shortest_window_s() const {
  if (settings_.alone && cannot_count()) return settings_.shortest_burst_s;
  // With a limit so low, or calls so many, that the whole bucket is less: what it can pay for.
  const Seconds full_s = (1 - kReserve) * budget_.full_s();
  return std::min(settings_.shortest_window_s, 0.9 * full_s / cost_per_s_when_open());
}

Seconds Regulator::affordable_window_s(Nanoseconds now_ns) const {
  if (cannot_count()) return burst_s() / cost_per_s_when_open();
  const Seconds to_next_s = seconds_from_ns(grid_.next_opening_ns(now_ns, thinning()) - now_ns);
  const Seconds earned_s = (allowed_per_s() - counting_cost_per_s()) * to_next_s;
  // The next opening is not to be missed: other nodes open then, too.
  const Seconds next_s = shortest_window_s() * cost_per_s_when_open();
  const Seconds to_spend_s = std::min(spendable_s(), std::max(spendable_s() + earned_s - next_s, next_s));
  const Seconds drain_per_s = cost_per_s_when_open() - allowed_per_s();
  const Seconds longest_s = seconds_from_ns(grid_.cell_ns());
  if (to_spend_s <= 0) return 0;
  return drain_per_s * longest_s <= to_spend_s ? longest_s : to_spend_s / drain_per_s;
}

unsigned Regulator::thinning() const {
  const Seconds cell_s = seconds_from_ns(grid_.cell_ns());
  const Seconds earned_s = (allowed_per_s() - counting_cost_per_s()) * cell_s;
  const Seconds needed_s = kSaved * shortest_window_s() * cost_per_s_when_open();
  if (cannot_count()) return 0;  // there will not be many
  if (earned_s <= 0) return WindowGrid::kMostThinning;
  const double cells = std::max(needed_s / earned_s, 1.0);
  return static_cast<unsigned>(std::min<double>(std::ceil(std::log2(cells)), WindowGrid::kMostThinning));
}

Order Regulator::open(Nanoseconds now_ns) {
  state_ = CaptureState::kOpen;
  over_by_counting_ = false;
  if (cpu_per_s_ == 0) {
    return {state_, calls_for(kFirstGrantShare * budget_.full_s()), counts_for(0.5 * budget_.full_s()), window_,
            now_ns + kFirstLook_ns};
  }
  // Something is kept back also where all can be recorded: a storm that comes now would leave nothing to count with.
  const Seconds ahead_s = kCountsAhead_s * calls_per_s_ * granted_call_s();
  const Seconds granted_s =
      cannot_count() ? burst_s()
                     : std::max(spendable_s(), affordable_all_the_time() ? std::min(budget_.left_s(), ahead_s) : 0.0);
  return {state_, calls_for(granted_s), counts_for(budget_.left_s() - granted_s), window_, window_end_ns_};
}

// REQUIRES: the capture is not off.
std::uint64_t Regulator::counts_for(Seconds cost_s) const {
  const Seconds least_s = cannot_count() ? 0 : kCountsAhead_s * counted_call_s_ * calls_per_s_;
  const Seconds granted_s = std::max({cost_s, least_s, kLeastCountShare * budget_.full_s()});
  return static_cast<std::uint64_t>(std::clamp(granted_s / counted_call_s_, 1.0, 1e18));
}

// What a recorded call is taken to cost where calls are granted.
Seconds Regulator::granted_call_s() const {
  return recorded_call_seen_ ? recorded_call_s_ : std::max(recorded_call_s_, kLeastRecordedCall_s);
}

std::uint64_t Regulator::calls_for(Seconds cost_s) const {
  return static_cast<std::uint64_t>(std::clamp(cost_s / granted_call_s(), 0.0, 1e18));
}

Order Regulator::count(Nanoseconds now_ns) {
  const bool was_counting = state_ == CaptureState::kCounting;
  state_ = CaptureState::kCounting;
  const Seconds life_s = this->life_s();
  const bool ends = cannot_count() && life_s < kNeverS;
  if (settings_.alone && ends) {
    // Bursts, as long as what is left pays for them: not before the one that was planned.
    if (!was_counting || now_ns >= next_opening_ns_) next_opening_ns_ = now_ns + ns_of(kBurstShare * life_s) + 1;
  } else {
    next_opening_ns_ = grid_.next_opening_ns(now_ns, thinning());
  }
  const Nanoseconds empty_ns = ends ? now_ns + std::max(ns_of(life_s), kShortestLook_ns) : kNoEnd;
  return {state_, 0, counts_for(budget_.left_s()), 0, std::min(next_opening_ns_, empty_ns)};
}

}  // namespace lbf::cost
