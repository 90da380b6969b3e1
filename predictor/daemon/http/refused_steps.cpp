// RefusedSteps, see refused_steps.h.
#include "predictor/daemon/http/refused_steps.h"

#include <algorithm>
#include <utility>

namespace lbf::daemon {

void RefusedSteps::forget(uid_t uid, const StepKey& key) {
  const MutexLock lock(mutex_);
  std::erase_if(refusals_, [&](const Refusal& one) { return one.uid == uid && one.key == key; });
}

void RefusedSteps::add(uid_t uid, const StepKey& key, std::string why) {
  const MutexLock lock(mutex_);
  std::erase_if(refusals_, [&](const Refusal& one) { return one.uid == uid && one.key == key; });
  const auto is_his = [uid](const Refusal& one) { return one.uid == uid; };
  if (static_cast<std::size_t>(std::ranges::count_if(refusals_, is_his)) >= kMostOfUser)
    refusals_.erase(std::ranges::find_if(refusals_, is_his));
  if (refusals_.size() >= kMost) refusals_.pop_front();
  refusals_.push_back({uid, key, std::move(why)});
}

std::vector<RefusedSteps::Refusal> RefusedSteps::of(std::optional<uid_t> uid, std::uint32_t job) const {
  const MutexLock lock(mutex_);
  std::vector<Refusal> found;
  for (const Refusal& one : refusals_) {
    if (one.key.job == job && (!uid || one.uid == *uid)) found.push_back(one);
  }
  return found;
}

}  // namespace lbf::daemon
