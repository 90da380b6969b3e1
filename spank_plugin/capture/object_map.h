// A value for each of a few loaded objects, found by an address inside the object without a lock.
//
// Place in the event's way: inside *capture*, under the preload.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/spin_mutex.h"

namespace lbf::capture {

// An entry is written before its size is. One of an object that is gone has no size, and is taken for the next object.
template <class Value, std::size_t kMost>
class ObjectMap {
 public:
  // nullptr: none.
  Value* find(const void* address) noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
      Entry& entry = entries_[i];
      const std::uintptr_t size = entry.size.load(std::memory_order_acquire);
      const Range range{entry.begin.load(std::memory_order_acquire), size};
      if (range.holds(reinterpret_cast<std::uintptr_t>(address)) && entry.size.load(std::memory_order_relaxed) == size)
        return &entry.value;
    }
    return nullptr;
  }
  // The object's value; a new one is first filled in by `fill`(Value&, its place among kMost). nullptr: there is no
  // room.
  template <class Fill>
  Value* add(const LoadedObject& object, Fill fill) noexcept {
    lock_.lock();
    Entry* const entry = place_for(object.range);
    if (entry != nullptr && entry->size.load(std::memory_order_relaxed) == 0) {
      const auto place = static_cast<std::size_t>(entry - entries_);
      fill(entry->value, place);
      entry->begin.store(object.range.begin, std::memory_order_release);
      entry->size.store(object.range.size, std::memory_order_release);
      if (place == count_.load(std::memory_order_relaxed)) count_.store(place + 1, std::memory_order_release);
    }
    lock_.unlock();
    return entry != nullptr ? &entry->value : nullptr;
  }
  // Drops each that `keep`(Range, Value&) says false to.
  template <class Keep>
  void keep_if(Keep keep) noexcept {
    lock_.lock();
    for (std::size_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
      Entry& entry = entries_[i];
      const std::uintptr_t size = entry.size.load(std::memory_order_relaxed);
      if (size != 0 && !keep(Range{entry.begin.load(std::memory_order_relaxed), size}, entry.value))
        entry.size.store(0, std::memory_order_release);
    }
    lock_.unlock();
  }
  // Without the lock: `use` may wait for the loader's, whose holder may be about to add an object.
  template <class Use>
  void for_each(Use use) noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
      if (entries_[i].size.load(std::memory_order_acquire) != 0) use(entries_[i].value);
    }
  }

 private:
  struct Entry {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> size{0};
    Value value{};
  };
  Entry* place_for(const Range& range) noexcept {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    Entry* free = count < kMost ? &entries_[count] : nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uintptr_t size = entries_[i].size.load(std::memory_order_relaxed);
      if (size == 0) free = &entries_[i];
      if (size == range.size && entries_[i].begin.load(std::memory_order_relaxed) == range.begin) return &entries_[i];
    }
    return free;
  }

  Entry entries_[kMost];
  std::atomic<std::size_t> count_{0};
  SpinMutex lock_;
};

}  // namespace lbf::capture
