// UserRates, see user_rates.h.
#include "predictor/daemon/steps/user_rates.h"

#include <algorithm>
#include <cmath>

namespace lbf::daemon {
namespace {

constexpr Seconds kMemoryS = 10;          // after it, processor time counts for 1/e
constexpr Seconds kPresentS = 10;         // a user of whom nothing came for so long is not there
constexpr std::size_t kMostUsers = 4096;  // kept; beyond, those who are not there are forgotten

Seconds seconds_between(UserRates::Clock::time_point from, UserRates::Clock::time_point to) {
  return std::max(0.0, std::chrono::duration<Seconds>(to - from).count());
}

}  // namespace

UserRates::Rate& UserRates::rate_of(uid_t user, Clock::time_point now) {
  if (rates_.size() >= kMostUsers && !rates_.contains(user)) {
    std::erase_if(rates_, [&](const auto& one) { return seconds_between(one.second.at, now) > 10 * kPresentS; });
  }
  const auto [found, is_new] = rates_.try_emplace(user);
  Rate& rate = found->second;
  if (is_new) rate.at = now;
  const Seconds passed_s = seconds_between(rate.at, now);
  rate.steps = std::max(0.0, rate.steps - bounds_.user_starts_per_s * passed_s);
  rate.cpu_s *= std::exp(-passed_s / kMemoryS);
  rate.at = std::max(rate.at, now);
  return rate;
}

bool UserRates::begin_step(uid_t user, Clock::time_point now) {
  const MutexLock lock(mutex_);
  Rate& rate = rate_of(user, now);
  if (rate.steps + 1 > bounds_.user_starts_at_once) return false;
  rate.steps += 1;
  return true;
}

bool UserRates::may_be_answered(uid_t user, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const Rate& rate = rate_of(user, now);
  if (rate.cpu_s <= bounds_.user_intake_share * kMemoryS * threads_) return true;
  return std::ranges::none_of(rates_, [&](const auto& other) {
    return other.first != user && seconds_between(other.second.at, now) < kPresentS;
  });
}

void UserRates::count_cpu(uid_t user, Seconds cpu_s, Clock::time_point now) {
  const MutexLock lock(mutex_);
  rate_of(user, now).cpu_s += cpu_s;
}

}  // namespace lbf::daemon
