// WatchedRequests: the requests whose completion the capture has to see also while it only counts.
//
// Place in the event's way: inside *capture* (docs/capture.md, "Counting"). A receive with a wildcard takes its
// place in a channel when its match is known; a receive behind it that could take the same message has to wait
// for that; the communicator of an MPI_Comm_idup gets its handle when the request completes. All other requests
// are nobody's business while closed. In posting order, found by a number of 16 bits that the request keeps.
// Not thread-safe: the caller holds the process's lock. noexcept, no heap.
#pragma once

#include <cstdint>

#include "base/thread_annotations.h"
#include "spank_plugin/capture/memory.h"

namespace lbf::capture {

class WatchedRequests {
 public:
  struct Node {
    std::uint64_t handle = 0;
    std::uint32_t id = 0;           // RequestInfo::id; 0: the node is free
    std::uint32_t recorded_as = 0;  // the request's number in the records that the open window has; 0: it has none
    std::uint16_t previous = 0;
    std::uint16_t next = 0;
    bool receives = false;
    bool wildcard = false;  // a receive that may take messages of several channels
    bool placed = false;    // a receive that waits for nobody any more: its place in the channel is known
    bool waits() const noexcept { return receives && !wildcard && !placed; }
  };

  bool open() noexcept {
    nodes_ = static_cast<Node*>(map_pages((std::size_t{kCapacity} + 1) * sizeof(Node)));
    return nodes_ != nullptr;
  }

  bool empty() const noexcept { return __atomic_load_n(&first_, __ATOMIC_RELAXED) == 0; }

  // The newest. 0: full. REQUIRES: id != 0.
  std::uint16_t add(std::uint64_t handle, std::uint32_t id, std::uint32_t recorded_as, bool receives,
                    bool wildcard) noexcept {
    std::uint16_t at = free_;
    if (at != 0) {
      free_ = nodes_[at].next;
    } else {
      if (used_ == kCapacity) return 0;
      at = ++used_;
    }
    nodes_[at] = {handle, id, recorded_as, last_, 0, receives, wildcard, false};
    waiting_ += nodes_[at].waits();
    (last_ != 0 ? nodes_[last_].next : first_) = at;
    last_ = at;
    return at;
  }

  // nullptr: the request is not watched (any more).
  Node* find(std::uint16_t at, std::uint32_t id) noexcept {
    return at != 0 && id != 0 && nodes_[at].id == id ? &nodes_[at] : nullptr;
  }

  void place(Node& node) noexcept {
    waiting_ -= node.waits();
    node.placed = true;
  }
  // Receives without wildcards that wait for their place.
  std::uint32_t waiting() const noexcept { return waiting_; }

  void remove(Node* node) noexcept {
    const auto at = static_cast<std::uint16_t>(node - nodes_);
    (node->previous != 0 ? nodes_[node->previous].next : first_) = node->next;
    (node->next != 0 ? nodes_[node->next].previous : last_) = node->previous;
    waiting_ -= node->waits();
    *node = Node{};
    node->next = free_;
    free_ = at;
  }

  // visit(Node&) in posting order, with the locks that the caller holds; it may remove the node that it is called with.
  template <class Visit>
  void for_each(Visit visit) noexcept NO_THREAD_SAFETY_ANALYSIS {
    for (std::uint16_t at = first_; at != 0;) {
      const std::uint16_t next = nodes_[at].next;
      visit(nodes_[at]);
      at = next;
    }
  }
  // Whether a receive without a place holds that was posted before `before`; nullptr: any.
  template <class Holds>
  bool any_before(const Node* before, Holds holds) noexcept NO_THREAD_SAFETY_ANALYSIS {
    for (std::uint16_t at = first_; at != 0 && &nodes_[at] != before; at = nodes_[at].next) {
      if (nodes_[at].receives && !nodes_[at].placed && holds(nodes_[at])) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint16_t kCapacity = 65535;
  Node* nodes_ = nullptr;  // [0] is nobody
  std::uint16_t first_ = 0;
  std::uint16_t last_ = 0;
  std::uint16_t free_ = 0;
  std::uint16_t used_ = 0;
  std::uint32_t waiting_ = 0;
};

}  // namespace lbf::capture
