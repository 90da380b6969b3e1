// EventQueue: binary heap of sources that each have at most one next time, which may change (indexed heap).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lbf::engine {

class EventQueue {
 public:
  using Source = std::uint32_t;
  // Ties in time go to the smaller order.
  struct Entry {
    Seconds time_s;
    std::uint64_t order;
    Source source;
  };

  void add_sources(std::size_t count) { position_.resize(count, kAbsent); }
  bool empty() const { return heap_.empty(); }
  const Entry& top() const { return heap_.front(); }

  // Sets or moves the source's next time.
  void set(Source source, Seconds time_s, std::uint64_t order) {
    std::size_t at = position_[source];
    if (at == kAbsent) {
      at = heap_.size();
      heap_.push_back({time_s, order, source});
      sift_up(at);
      return;
    }
    const bool later = heap_[at].time_s < time_s;
    heap_[at].time_s = time_s;
    heap_[at].order = order;
    if (later) {
      sift_down(at);
    } else {
      sift_up(at);
    }
  }
  void remove(Source source) {
    const std::size_t at = position_[source];
    if (at == kAbsent) return;
    position_[source] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    heap_[at] = last;
    position_[last.source] = at;
    sift_up(at);
    sift_down(position_[last.source]);
  }

 private:
  static constexpr std::size_t kAbsent = ~std::size_t{0};
  static bool before(const Entry& a, const Entry& b) {
    return a.time_s != b.time_s ? a.time_s < b.time_s : a.order < b.order;
  }
  void put(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    position_[entry.source] = at;
  }
  void sift_up(std::size_t at) {
    const Entry entry = heap_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / 2;
      if (!before(entry, heap_[parent])) break;
      put(at, heap_[parent]);
      at = parent;
    }
    put(at, entry);
  }
  void sift_down(std::size_t at) {
    const Entry entry = heap_[at];
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], entry)) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> position_;
};

}  // namespace lbf::engine
