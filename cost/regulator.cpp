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
// Counting alone must be above the limit for so long before the capture ends for good.
constexpr Seconds kPatience_s = 0.5;
// The relay still works off what a window recorded for so long: not the cost of counting.
constexpr Nanoseconds kAfterWindow_ns = 500'000'000;
// From so many recorded calls on, their cost is worth learning from.
constexpr std::uint64_t kCallsToLearn = 1'000;
constexpr Nanoseconds kFirstLook_ns = 10'000'000;

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
      counting_cost_per_s_(settings.counted_call_s * settings.calls_per_s) {
  if (!(settings.limit > 0)) state_ = CaptureState::kOff;
}

Order Regulator::decide(Nanoseconds now_ns, const NodeUsage& usage) {
  account(now_ns, usage);
  if (state_ == CaptureState::kOff) return {CaptureState::kOff, 0, 0, kNoEnd};
  if (state_ == CaptureState::kOpen) {
    const bool spent = spendable_s() <= 0 && !affordable_all_the_time();
    const bool over = window_end_ns_ == kNoEnd ? spent : now_ns >= window_end_ns_;
    if (!over && !usage.must_close && budget_.left_s() > 0) return open(now_ns);
    closed_ns_ = now_ns;
    return count(now_ns);
  }
  if (hopeless()) {
    state_ = CaptureState::kOff;
    return {CaptureState::kOff, 0, 0, kNoEnd};
  }
  if (now_ns < next_opening_ns_ || usage.must_close) return count(now_ns);
  // Nodes agree on the number of a window as they do on its opening.
  const auto cell = static_cast<std::uint32_t>(next_opening_ns_ / grid_.cell_ns());
  if (affordable_all_the_time() && budget_.left_s() >= 0.5 * budget_.full_s()) {
    window_end_ns_ = kNoEnd;
    window_ = cell;
    return open(now_ns);
  }
  const Seconds window_s = affordable_window_s(now_ns);
  if (window_s < shortest_window_s()) return count(now_ns);
  window_end_ns_ = now_ns + ns_of(window_s);
  window_ = cell;
  return open(now_ns);
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
  const Seconds all_s = change.capture_s + change.relay_cpu_s;
  if (!(settings_.relay_limit > 0)) return all_s;
  return std::max(all_s, change.relay_cpu_s * settings_.limit / settings_.relay_limit);
}

void Regulator::account(Nanoseconds now_ns, const NodeUsage& usage) {
  const NodeUsage change{
      std::max(usage.program_cpu_s - last_.program_cpu_s, 0.0),
      std::max(usage.capture_s - last_.capture_s, 0.0), std::max(usage.relay_cpu_s - last_.relay_cpu_s, 0.0),
      grown(usage.recorded_calls, last_.recorded_calls), grown(usage.counted_calls, last_.counted_calls)};
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
  cpu_per_s_ = cpu_per_s_ == 0 ? change.program_cpu_s / passed_s
                               : moved(cpu_per_s_, change.program_cpu_s / passed_s, passed_s);
  if (state_ == CaptureState::kOpen && change.recorded_calls >= kCallsToLearn) {
    recorded_call_s_ = moved(recorded_call_s_, cost_s / static_cast<double>(change.recorded_calls), passed_s);
  }
  if (state_ != CaptureState::kCounting || change.recorded_calls > 0) return;
  if (now_ns - closed_ns_ < kAfterWindow_ns + ns_of(passed_s)) return;
  counting_cost_per_s_ = moved(counting_cost_per_s_, cost_s / passed_s, passed_s);
  // The relay's own looks go on without any call being counted: ending the capture would not help against them.
  over_by_counting_s_ =
      change.capture_s > settings_.limit * change.program_cpu_s ? over_by_counting_s_ + passed_s : 0;
}

Seconds Regulator::allowed_per_s() const {
  return settings_.limit * cpu_per_s_;
}

Seconds Regulator::counting_cost_per_s() const {
  return std::max(counting_cost_per_s_, settings_.counted_call_s * calls_per_s_);
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
  return over_by_counting_s_ >= kPatience_s && budget_.left_s() <= 0;
}

Seconds Regulator::shortest_window_s() const {
  // With a limit so low, or calls so many, that the whole bucket is less: what it can pay for.
  const Seconds full_s = (1 - kReserve) * budget_.full_s();
  return std::min(settings_.shortest_window_s, 0.9 * full_s / cost_per_s_when_open());
}

Seconds Regulator::affordable_window_s(Nanoseconds now_ns) const {
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
  if (earned_s <= 0) return WindowGrid::kMostThinning;
  const double cells = std::max(needed_s / earned_s, 1.0);
  return static_cast<unsigned>(std::min<double>(std::ceil(std::log2(cells)), WindowGrid::kMostThinning));
}

Order Regulator::open(Nanoseconds now_ns) {
  state_ = CaptureState::kOpen;
  if (cpu_per_s_ == 0) {
    return {state_, calls_for(kFirstGrantShare * budget_.full_s()), window_, now_ns + kFirstLook_ns};
  }
  return {state_, calls_for(affordable_all_the_time() ? budget_.left_s() : spendable_s()), window_,
          window_end_ns_};
}

std::uint64_t Regulator::calls_for(Seconds cost_s) const {
  return static_cast<std::uint64_t>(std::clamp(cost_s / recorded_call_s_, 0.0, 1e18));
}

Order Regulator::count(Nanoseconds now_ns) {
  state_ = CaptureState::kCounting;
  next_opening_ns_ = grid_.next_opening_ns(now_ns, thinning());
  return {state_, 0, 0, next_opening_ns_};
}

}  // namespace lbf::cost
