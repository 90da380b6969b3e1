// Maps MPI handles (communicators, windows, partitioned requests: pointers in Open MPI) to what the capture knows of
// them. Requests have a table of their own (request_table.h).
//
// Place in the event's way: inside *capture*. Open addressing with linear probing over mapped pages, of fixed
// capacity: an insertion into a full table fails and the caller says so. Removal closes the hole, so that a
// program that runs for weeks keeps short probes. Not thread-safe: the caller holds the process's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/memory.h"

namespace lbf::capture {

// Value: trivially copyable.
template <class Value>
class HandleTable {
 public:
  using Key = std::uint64_t;  // 0 is no key

  // REQUIRES: 2 <= log2_capacity <= 30; called once. false: no memory.
  bool open(unsigned log2_capacity) noexcept {
    slots_ = static_cast<Slot*>(map_pages((std::size_t{1} << log2_capacity) * sizeof(Slot)));
    if (slots_ == nullptr) return false;
    shift_ = 64 - log2_capacity;
    mask_ = (std::size_t{1} << log2_capacity) - 1;
    return true;
  }

  Value* find(Key key) noexcept {
    for (std::size_t i = home(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == 0) return nullptr;
    }
  }

  // The value of `key`, new (zero) or the old one; nullptr: the table is full.
  Value* insert(Key key) noexcept {
    std::size_t i = home(key);
    while (slots_[i].key != 0 && slots_[i].key != key) i = (i + 1) & mask_;
    if (slots_[i].key == 0) {
      if (size_ >= mask_ - mask_ / 8) return nullptr;  // probes stay short below seven eighths
      ++size_;
      slots_[i].key = key;
      slots_[i].value = Value{};
    }
    return &slots_[i].value;
  }

  void erase(Key key) noexcept {
    std::size_t hole = home(key);
    while (slots_[hole].key != key) {
      if (slots_[hole].key == 0) return;
      hole = (hole + 1) & mask_;
    }
    --size_;
    for (std::size_t i = (hole + 1) & mask_; slots_[i].key != 0; i = (i + 1) & mask_) {
      // Move back what would no longer be found across the hole.
      if (((i - home(slots_[i].key)) & mask_) >= ((i - hole) & mask_)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole].key = 0;
  }

  std::size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    Key key;
    Value value;
  };
  std::size_t home(Key key) const noexcept { return (key * 0x9e3779b97f4a7c15u) >> shift_; }

  Slot* slots_ = nullptr;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  unsigned shift_ = 0;
};

}  // namespace lbf::capture
