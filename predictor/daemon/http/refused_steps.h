// RefusedSteps: why lbfd took nothing of a step, for its user: no row of it is anywhere.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "predictor/daemon/intake/step_key.h"

namespace lbf::daemon {

// Thread-safe. The newest refusals since lbfd's start: a few of each user, bounded in all.
class RefusedSteps {
 public:
  static constexpr std::size_t kMost = 1024;
  static constexpr std::size_t kMostOfUser = 16;

  struct Refusal {
    uid_t uid = 0;  // who asked for the registration
    StepKey key;
    std::string why;
  };

  // The registration of a stream of KEY was refused. WHY is kept as it is.
  void add(uid_t uid, const StepKey& key, std::string why);
  // It was taken, by a later try or of another user.
  void forget(uid_t uid, const StepKey& key);
  // Of JOB's steps, the oldest first; UID empty: of all users.
  std::vector<Refusal> of(std::optional<uid_t> uid, std::uint32_t job) const;

 private:
  mutable Mutex mutex_;
  std::deque<Refusal> refusals_ GUARDED_BY(mutex_);
};

}  // namespace lbf::daemon
