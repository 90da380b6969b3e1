// UnplacedReceives: the receives of one rank that have no place in a channel yet, and who waits for whom.
//
// Place in the event's way: a part of *match*. Which message a wildcard takes is known when it completes. Until then
// receives that were posted after it and could take the same message wait behind it. A receive waits for the older ones
// of at most four patterns: its own, and those with any source, any tag, or both. The oldest of a pattern only ever
// gets younger. So each receive is looked at once for each of its patterns, however many wait and however long.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/units.h"
#include "predictor/engine/match/memory_account.h"

namespace lbf::engine {

class UnplacedReceives {
 public:
  // kAnyRank, kAnyTag: a wildcard.
  struct Pattern {
    std::uint32_t comm = 0;
    Rank peer = kAnyRank;
    std::int32_t tag = kAnyTag;
    bool operator==(const Pattern&) const = default;
    bool is_wildcard() const { return peer == kAnyRank || tag == kAnyTag; }
  };

  explicit UnplacedReceives(MemoryAccount* account);

  bool empty() const { return alive_ == 0; }
  // Has a receive that is posted now to wait for an older one? REQUIRES: no wildcard.
  bool holds_up(const Pattern& pattern) const;
  // Posted after all that are here. `record` is the caller's; the entry names it in remove().
  std::uint32_t add(std::uint32_t record, const Pattern& pattern);
  // It has its place, or never gets one. Then calls place(record) for those that need not wait any more, in the order
  // of their postings; these are gone as well.
  template <typename Place>
  void remove(std::uint32_t entry, Place place) {
    List* list = kill(entry);
    for (;;) {
      let_pass(*list);
      if (passing_.empty()) break;
      std::pop_heap(passing_.begin(), passing_.end(), std::greater{});
      const Ref next = passing_.back();
      passing_.pop_back();
      const std::uint32_t record = entries_[next.entry].record;
      list = kill(next.entry);
      place(record);
    }
    if (alive_ == 0) recent_.clear();
  }
  // Those that were added since the last call, in order.
  template <typename Visit>
  void for_each_recent(Visit visit) {
    for (const Ref& ref : recent_) {
      if (is_alive(ref)) visit(entries_[ref.entry].record);
    }
    recent_.clear();
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Entry& entry : entries_) {
      if (entry.serial != 0) visit(entry.record);
    }
  }

 private:
  // An entry, as long as it has that serial number.
  struct Ref {
    std::uint64_t serial = 0;
    std::uint32_t entry = 0;
    auto operator<=>(const Ref&) const = default;
  };
  // In the order of postings. Those that are gone are left out when somebody comes to them.
  struct Queue {
    explicit Queue(MemoryAccount* account) : refs(account) {}
    CountedVector<Ref> refs;
    std::size_t first = 0;
  };
  // The receives of a pattern, and those that wait for the older ones of them.
  struct List {
    explicit List(MemoryAccount* account) : members(account), waiting(account) {}
    Queue members;
    Queue waiting;
    std::size_t alive = 0;  // members
  };
  struct Entry {
    std::uint64_t serial = 0;  // of its posting; 0: gone
    List* list = nullptr;
    std::uint32_t record = 0;
    std::uint32_t waits = 0;  // lists in which it waits
  };
  struct Hash {
    std::size_t operator()(const Pattern& pattern) const;
  };

  static std::array<Pattern, 4> patterns_before(const Pattern& pattern);
  bool is_alive(const Ref& ref) const { return entries_[ref.entry].serial == ref.serial; }
  void push(Queue& queue, const Ref& ref);
  // nullptr: none is left.
  const Ref* front(Queue& queue);
  List& list_of(const Pattern& pattern);
  // The list that it was in.
  List* kill(std::uint32_t entry);
  // Who waits for no older member of the list any more.
  void let_pass(List& list);

  MemoryAccount* account_;
  CountedVector<Entry> entries_;
  CountedVector<std::uint32_t> free_;
  CountedMap<Pattern, List, Hash> lists_;
  CountedVector<Ref> recent_;
  CountedVector<Ref> passing_;  // heap
  std::size_t alive_ = 0;
  std::uint64_t serial_ = 0;
};

}  // namespace lbf::engine
