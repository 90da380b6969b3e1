// BodyMemory, see body_memory.h.
#include "predictor/daemon/http/body_memory.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace lbf::daemon {

BodyMemory::Body BodyMemory::open(const std::string& user) {
  entries_.emplace(next_, Entry{.user = user});
  return next_++;
}

bool BodyMemory::has_room(const Sum& sum, Bytes more, Bytes limit, bool is_oldest) {
  return sum.held + more <= limit || (is_oldest && sum.complete == 0);
}

std::function<void()> BodyMemory::grant(Entry& entry) {
  const Bytes more = entry.wanted - entry.held;
  entry.held = entry.wanted;
  users_[entry.user].held += more;
  total_.held += more;
  --waiting_;
  return std::exchange(entry.then, nullptr);
}

void BodyMemory::grow(Body body, Bytes bytes, std::function<void()> then) {
  Entry& entry = entries_.at(body);
  entry.wanted = bytes;
  entry.then = std::move(then);
  ++waiting_;
  serve();
}

void BodyMemory::serve() {
  if (waiting_ == 0) return;
  std::vector<std::function<void()>> granted;
  std::set<std::string_view> users;  // that have an older body which is still being read
  bool is_oldest = true;
  for (auto& [body, entry] : entries_) {
    if (entry.is_complete) continue;
    const bool is_oldest_of_user = users.insert(entry.user).second;
    if (entry.then) {
      const Bytes more = entry.wanted - entry.held;
      if (has_room(users_[entry.user], more, user_limit_bytes_, is_oldest_of_user) &&
          has_room(total_, more, limit_bytes_, is_oldest)) {
        granted.push_back(grant(entry));
      }
    }
    is_oldest = false;
  }
  for (const auto& then : granted) then();
}

void BodyMemory::complete(Body body) {
  Entry& entry = entries_.at(body);
  entry.is_complete = true;
  users_[entry.user].complete += entry.held;
  total_.complete += entry.held;
  serve();  // another one is the oldest
}

void BodyMemory::close(Body body) {
  const auto found = entries_.find(body);
  if (found == entries_.end()) return;
  const Entry entry = std::move(found->second);
  entries_.erase(found);
  if (entry.then) --waiting_;
  const auto user = users_.find(entry.user);
  if (user != users_.end()) {
    for (Sum* const sum : {&user->second, &total_}) {
      sum->held -= entry.held;
      if (entry.is_complete) sum->complete -= entry.held;
    }
    if (user->second.held == 0) users_.erase(user);
  }
  serve();
}

void BodyMemory::forget_waiting() {
  std::vector<std::function<void()>> forgotten;  // ends after the loop: their owners may call close()
  for (auto& [body, entry] : entries_) {
    if (entry.then) forgotten.push_back(std::exchange(entry.then, nullptr));
  }
  waiting_ = 0;
}

}  // namespace lbf::daemon
