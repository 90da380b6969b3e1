#include "predictor/engine/match/unplaced_receives.h"

namespace lbf::engine {

UnplacedReceives::UnplacedReceives(MemoryAccount* account)
    : account_(account), entries_(account), free_(account), lists_(account), recent_(account), passing_(account) {}

std::size_t UnplacedReceives::Hash::operator()(const Pattern& pattern) const {
  const std::uint64_t channel =
      static_cast<std::uint64_t>(pattern.comm) << 32 | static_cast<std::uint32_t>(pattern.tag);
  const std::uint64_t mixed = channel * 0xbf58476d1ce4e5b9 + static_cast<std::uint32_t>(pattern.peer);
  return static_cast<std::size_t>((mixed ^ mixed >> 31) * 0x9e3779b97f4a7c15);
}

std::array<UnplacedReceives::Pattern, 4> UnplacedReceives::patterns_before(const Pattern& pattern) {
  const auto& [comm, peer, tag] = pattern;
  return {{{comm, peer, tag}, {comm, kAnyRank, tag}, {comm, peer, kAnyTag}, {comm, kAnyRank, kAnyTag}}};
}

bool UnplacedReceives::holds_up(const Pattern& pattern) const {
  return std::ranges::any_of(patterns_before(pattern), [this](const Pattern& before) {
    const auto list = lists_.find(before);
    return list != lists_.end() && list->second.alive > 0;
  });
}

UnplacedReceives::List& UnplacedReceives::list_of(const Pattern& pattern) {
  constexpr std::size_t kKeptLists = 64;
  if (lists_.size() > 2 * alive_ + kKeptLists) {
    std::erase_if(lists_, [](const auto& list) { return list.second.alive == 0; });
  }
  return lists_.try_emplace(pattern, account_).first->second;
}

std::uint32_t UnplacedReceives::add(std::uint32_t record, const Pattern& pattern) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const Ref ref{++serial_, free_.back()};
  free_.pop_back();
  List& list = list_of(pattern);
  Entry& entry = entries_[ref.entry];
  entry = {ref.serial, &list, record, 0};
  if (!pattern.is_wildcard()) {
    for (const Pattern& before : patterns_before(pattern)) {
      const auto other = lists_.find(before);
      if (other == lists_.end() || other->second.alive == 0) continue;
      push(other->second.waiting, ref);
      ++entry.waits;
    }
  }
  push(list.members, ref);
  ++list.alive;
  ++alive_;
  recent_.push_back(ref);
  return ref.entry;
}

void UnplacedReceives::push(Queue& queue, const Ref& ref) {
  if (queue.refs.size() == queue.refs.capacity()) {
    // Behind one that never ends, others come and go.
    const auto gone = [this](const Ref& other) { return !is_alive(other); };
    queue.refs.erase(queue.refs.begin(), queue.refs.begin() + static_cast<std::ptrdiff_t>(queue.first));
    queue.first = 0;
    std::erase_if(queue.refs, gone);
    if (queue.refs.size() > queue.refs.capacity() / 2) queue.refs.reserve(2 * queue.refs.capacity());
  }
  queue.refs.push_back(ref);
}

const UnplacedReceives::Ref* UnplacedReceives::front(Queue& queue) {
  while (queue.first < queue.refs.size() && !is_alive(queue.refs[queue.first])) ++queue.first;
  if (queue.first < queue.refs.size()) return &queue.refs[queue.first];
  queue.refs.clear();
  queue.first = 0;
  return nullptr;
}

UnplacedReceives::List* UnplacedReceives::kill(std::uint32_t index) {
  Entry& entry = entries_[index];
  entry.serial = 0;
  free_.push_back(index);
  --entry.list->alive;
  --alive_;
  return entry.list;
}

void UnplacedReceives::let_pass(List& list) {
  const Ref* const oldest = front(list.members);
  while (const Ref* const waiting = front(list.waiting)) {
    if (oldest != nullptr && oldest->serial < waiting->serial) return;
    const Ref passing = *waiting;
    ++list.waiting.first;
    if (--entries_[passing.entry].waits > 0) continue;
    passing_.push_back(passing);
    std::push_heap(passing_.begin(), passing_.end(), std::greater{});
  }
}

}  // namespace lbf::engine
