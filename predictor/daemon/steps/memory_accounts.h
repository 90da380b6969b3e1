// MemoryAccounts: what steps hold in memory, by step, by user and in all, and how much each may hold
// (docs/lbfd.md, "Bounds").
//
// Place in the event's way: StepRun asks it between batches, and the replay within one (engine::EngineLimits::stop).
// Where all together hold too much, the user who holds most gives way: nobody loses a replay to somebody who holds
// more.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/units.h"
#include "predictor/daemon/bounds.h"

namespace lbf::daemon {

class MemoryAccounts {
 public:
  explicit MemoryAccounts(const Bounds& bounds) : bounds_(bounds) {}

  // Of one step. Different ones are thread-safe; of one, what is const is.
  class Account {
   public:
    Account(std::shared_ptr<MemoryAccounts> accounts, uid_t user);
    ~Account();
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    void set(Bytes bytes);  // held now
    // Why the step may not hold BYTES; empty: it may.
    std::string why_not(Bytes bytes) const;
    Bytes step_limit() const { return accounts_->bounds_.step_memory_bytes; }

   private:
    const std::shared_ptr<MemoryAccounts> accounts_;
    const uid_t user_;
    Bytes bytes_ = 0;
  };

  Bytes of_user(uid_t user) const;
  Bytes of_all() const;

 private:
  const Bounds bounds_;
  mutable Mutex mutex_;
  std::map<uid_t, Bytes> of_user_ GUARDED_BY(mutex_);  // who holds something
  Bytes all_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lbf::daemon
