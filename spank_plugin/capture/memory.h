// Memory of the capture: mapped pages instead of the heap, so that the program's allocator (and whatever the
// program put in its place) never runs because of us.
//
// Place in the event's way: inside *capture*, under the tables of requests and communicators.
#pragma once

#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace lbf::capture {

// Zeroed pages that cost nothing until they are touched; nullptr: the system has none.
inline void* map_pages(std::size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// Blocks for the members of communicators: power-of-two size classes with free lists over mapped chunks. Runs
// only where communicators are made and freed. Not thread-safe: the caller holds the process's lock.
class BlockPool {
 public:
  // Not zeroed; nullptr: no memory.
  void* take(std::size_t bytes) noexcept {
    const unsigned size_class = class_of(bytes);
    if (free_[size_class] != nullptr) {
      Block* block = free_[size_class];
      free_[size_class] = block->next;
      return block;
    }
    const std::size_t size = std::size_t{1} << size_class;
    if (size > left_) {
      const std::size_t chunk = size > kChunkBytes ? size : kChunkBytes;
      void* pages = map_pages(chunk);
      if (pages == nullptr) return nullptr;
      next_ = static_cast<std::byte*>(pages);
      left_ = chunk;
    }
    void* p = next_;
    next_ += size;
    left_ -= size;
    return p;
  }
  // REQUIRES: `p` came from take(bytes) with the same `bytes`, or is nullptr.
  void give_back(void* p, std::size_t bytes) noexcept {
    if (p == nullptr) return;
    auto* block = static_cast<Block*>(p);
    const unsigned size_class = class_of(bytes);
    block->next = free_[size_class];
    free_[size_class] = block;
  }

 private:
  struct Block {
    Block* next;
  };
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  static unsigned class_of(std::size_t bytes) noexcept {
    return bytes <= 64 ? 6u : static_cast<unsigned>(std::bit_width(bytes - 1));
  }
  Block* free_[48] = {};
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

// A growing array for one thread's scratch data; it grows by mapping, seldom, and never shrinks.
template <class T>
class Scratch {
 public:
  // At least `count` elements (old contents are not kept); nullptr: no memory.
  T* get(std::size_t count) noexcept {
    if (count <= capacity_) [[likely]]
      return data_;
    const std::size_t bytes = (count * sizeof(T) * 2 + 4095) & ~std::size_t{4095};
    void* pages = map_pages(bytes);
    if (pages == nullptr) return nullptr;
    release();
    data_ = static_cast<T*>(pages);
    capacity_ = bytes / sizeof(T);
    mapped_ = bytes;
    return data_;
  }
  void release() noexcept {
    if (data_ != nullptr) munmap(data_, mapped_);
    data_ = nullptr;
    capacity_ = 0;
  }

 private:
  T* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace lbf::capture
