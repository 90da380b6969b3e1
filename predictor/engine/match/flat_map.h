// FlatMap: small open-addressing map from a 32-bit number to a 32-bit number, for collective counters and the
// members of communicators: no allocation once it has grown to what is there at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "predictor/engine/match/memory_account.h"

namespace lbf::engine {

class FlatMap {
 public:
  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};
  explicit FlatMap(MemoryAccount* account = nullptr) : slots_(account) {}
  // nullptr when `key` is not there; valid until the next insert or erase.
  std::uint32_t* find(std::uint32_t key) {
    if (slots_.empty()) return nullptr;
    for (std::size_t i = home(key);; i = next(i)) {
      if (slots_[i].value == kNothing) return nullptr;
      if (slots_[i].key == key) return &slots_[i].value;
    }
  }
  const std::uint32_t* find(std::uint32_t key) const { return const_cast<FlatMap*>(this)->find(key); }
  // REQUIRES: `key` is not there, `value` is not kNothing.
  void insert(std::uint32_t key, std::uint32_t value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    place(key, value);
    ++size_;
  }
  // As a set: `key` with the value 0, unless it is there. True: it was not.
  bool add(std::uint32_t key) {
    if (find(key) != nullptr) return false;
    insert(key, 0);
    return true;
  }
  // REQUIRES: `key` is there.
  void erase(std::uint32_t key) {
    std::size_t hole = home(key);
    while (slots_[hole].key != key || slots_[hole].value == kNothing) hole = next(hole);
    for (std::size_t i = next(hole); slots_[i].value != kNothing; i = next(i)) {
      // An entry may move into the hole when its home is not between the hole and itself.
      const std::size_t mask = slots_.size() - 1;
      if (((i - home(slots_[i].key)) & mask) >= ((i - hole) & mask)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole].value = kNothing;
    --size_;
  }
  std::size_t size() const { return size_; }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.value != kNothing) visit(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    std::uint32_t key = 0;
    std::uint32_t value = kNothing;
  };
  std::size_t home(std::uint32_t key) const {
    return static_cast<std::size_t>((key * std::uint64_t{0x9e3779b97f4a7c15}) >> 32) & (slots_.size() - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  void place(std::uint32_t key, std::uint32_t value) {
    std::size_t i = home(key);
    while (slots_[i].value != kNothing) i = next(i);
    slots_[i] = {key, value};
  }
  void grow() {
    CountedVector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 8 : old.size() * 2, Slot{});
    for (const Slot& slot : old) {
      if (slot.value != kNothing) place(slot.key, slot.value);
    }
  }

  CountedVector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace lbf::engine
