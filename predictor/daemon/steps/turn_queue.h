// TurnQueue: whose step is replayed next. Users take turns, and none has all threads.
//
// Place: Steps::schedule -> *TurnQueue* -> a replay thread. A turn is one batch and can take seconds: without this,
// whoever has most steps has lbfd.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace lbf::daemon {

// Thread-safe.
template <typename Item>
class TurnQueue {
 public:
  explicit TurnQueue(unsigned threads) : threads_(std::max(1U, threads)) {}
  // A thread stays free for whoever comes next.
  unsigned threads_of_user() const { return std::max(1U, threads_ - 1); }

  void add(uid_t user, Item item) {
    const MutexLock lock(mutex_);
    const auto [found, is_new] = users_.try_emplace(user);
    if (is_new) found->second.last_turn = turns_ - 1;  // behind those who wait longer, before who had a turn just now
    found->second.waiting.push_back(std::move(item));
  }

  // The next turn, of the user who had one longest ago. done() must follow. Nothing: none may begin now.
  std::optional<std::pair<uid_t, Item>> take() {
    const MutexLock lock(mutex_);
    auto next = users_.end();
    for (auto user = users_.begin(); user != users_.end(); ++user) {
      if (user->second.waiting.empty() || user->second.running >= threads_of_user()) continue;
      if (next == users_.end() || user->second.last_turn < next->second.last_turn) next = user;
    }
    if (next == users_.end()) return std::nullopt;
    std::pair<uid_t, Item> turn{next->first, std::move(next->second.waiting.front())};
    next->second.waiting.pop_front();
    ++next->second.running;
    next->second.last_turn = turns_ += 2;
    return turn;
  }

  // A further thread for USER, who has a turn: only while nobody waits and one stays free. done() must follow.
  bool lend(uid_t user) {
    const MutexLock lock(mutex_);
    unsigned running = 0;
    for (const auto& [other, one] : users_) {
      if (!one.waiting.empty()) return false;
      running += one.running;
    }
    if (running + 1 >= threads_) return false;
    ++users_[user].running;
    return true;
  }

  // True: somebody waits who could not begin before.
  bool done(uid_t user) {
    const MutexLock lock(mutex_);
    const auto found = users_.find(user);
    --found->second.running;
    if (found->second.running == 0 && found->second.waiting.empty()) users_.erase(found);
    return std::ranges::any_of(users_, [](const auto& one) { return !one.second.waiting.empty(); });
  }

 private:
  struct User {
    std::deque<Item> waiting;
    unsigned running = 0;
    std::size_t last_turn = 0;  // the larger, the later
  };
  const unsigned threads_;
  Mutex mutex_;
  std::map<uid_t, User> users_ GUARDED_BY(mutex_);
  std::size_t turns_ GUARDED_BY(mutex_) = 2;
};

}  // namespace lbf::daemon
