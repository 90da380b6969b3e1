// UserRates, see user_rates.h.
#include "predictor/daemon/steps/user_rates.h"

#include <algorithm>

#include "base/units.h"

namespace lbf::daemon {
namespace {

constexpr Seconds kForgottenS = 100;      // at the default rate a whole burst
constexpr std::size_t kMostUsers = 4096;  // kept; beyond, those of whom nothing came for kForgottenS go

Seconds seconds_between(UserRates::Clock::time_point from, UserRates::Clock::time_point to) {
  return std::max(0.0, std::chrono::duration<Seconds>(to - from).count());
}

}  // namespace

UserRates::Rate& UserRates::rate_of(uid_t user, Clock::time_point now) {
  if (rates_.size() >= kMostUsers && !rates_.contains(user)) {
    std::erase_if(rates_, [&](const auto& one) { return seconds_between(one.second.at, now) > kForgottenS; });
  }
  const auto [found, is_new] = rates_.try_emplace(user);
  Rate& rate = found->second;
  if (is_new) rate.at = now;
  const Seconds passed_s = seconds_between(rate.at, now);
  rate.steps = std::max(0.0, rate.steps - bounds_.user_starts_per_s * passed_s);
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

}  // namespace lbf::daemon
