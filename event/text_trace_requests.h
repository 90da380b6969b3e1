// What is active in a text trace that is being read: requests, and blocking receives. No file but the reader
// (event/text_trace_reader.cpp) needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "event/event.h"

namespace lbf::text_trace {

// What is active under a request number, or the blocking receive that is posted.
struct Posted {
  EventKind kind = EventKind::kCompute;  // kCompute: nothing
  std::uint32_t comm = 0;
  Rank from = kAnyRank;  // rank in comm
  std::int32_t tag = kAnyTag;
};

// (rank, request) -> Posted: open addressing, because it is touched for most lines of a trace.
class ActiveRequests {
 public:
  ActiveRequests() : slots_(kInitialSlots) {}

  // nullptr: not active.
  Posted* find(std::uint64_t key) {
    for (std::size_t i = home(key);; i = next(i)) {
      if (slots_[i].posted.kind == EventKind::kCompute) return nullptr;
      if (slots_[i].key == key) return &slots_[i].posted;
    }
  }

  // REQUIRES: key is not active.
  void insert(std::uint64_t key, const Posted& posted) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    place(key, posted);
    ++size_;
  }

  // REQUIRES: key is active.
  void erase(std::uint64_t key) {
    std::size_t hole = home(key);
    while (slots_[hole].key != key || slots_[hole].posted.kind == EventKind::kCompute) hole = next(hole);
    // Close the gap: pull back whatever its probing had passed over the hole.
    for (std::size_t i = next(hole); slots_[i].posted.kind != EventKind::kCompute; i = next(i)) {
      const std::size_t wanted = home(slots_[i].key);
      const std::size_t mask = slots_.size() - 1;
      if (((i - wanted) & mask) >= ((i - hole) & mask)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole].posted.kind = EventKind::kCompute;
    --size_;
  }

 private:
  static constexpr std::size_t kInitialSlots = 1024;
  struct Slot {
    std::uint64_t key = 0;
    Posted posted;
  };

  std::size_t home(std::uint64_t key) const {
    key ^= key >> 32;
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 29;
    key *= 0xBF58476D1CE4E5B9u;
    return static_cast<std::size_t>(key >> 20) & (slots_.size() - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  void place(std::uint64_t key, const Posted& posted) {
    std::size_t i = home(key);
    while (slots_[i].posted.kind != EventKind::kCompute) i = next(i);
    slots_[i] = {key, posted};
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.posted.kind != EventKind::kCompute) place(slot.key, slot.posted);
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace lbf::text_trace
