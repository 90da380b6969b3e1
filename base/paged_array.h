// PagedArray: an array that grows without copying what it holds, for what there is one of per message.
//
// Its pages are the operating system's: growing moves them to a longer range of addresses, and what was never
// written costs no memory, so there is no moment at which the old and the new copy are both there.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace lbf {

// Zeroed pages that grow. Throws std::bad_alloc.
class PagedMemory {
 public:
  PagedMemory() = default;
  PagedMemory(PagedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  PagedMemory& operator=(PagedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~PagedMemory() {
    if (data_ != nullptr) ::munmap(data_, capacity_);
  }

  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  // At least `bytes`; what is there stays, at another address.
  void reserve(std::size_t bytes) {
    if (bytes <= capacity_) return;
    std::size_t wanted = std::max(capacity_, kFirstBytes);
    while (wanted < bytes) wanted *= 2;
    void* grown = data_ == nullptr ? map(wanted) : mremap(data_, capacity_, wanted, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(grown);
    capacity_ = wanted;
  }

 private:
  static constexpr std::size_t kFirstBytes = std::size_t{64} << 10;

  static void* map(std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
#ifdef __SANITIZE_THREAD__
  // The sanitizer does not see that pages move: what one thread left at an address looks like a race with the
  // thread that has it next.
  static void* mremap(void* data, std::size_t bytes, std::size_t wanted, int) {
    void* grown = map(wanted);
    if (grown == MAP_FAILED) return grown;
    std::memcpy(grown, data, bytes);
    ::munmap(data, bytes);
    return grown;
  }
#endif

  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

template <typename T>
class PagedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4096);

  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  // It will be asked for soon; of one that is not there nothing happens.
  void prefetch(std::size_t i) const {
    if (i < size_) __builtin_prefetch(data() + i, 1);
  }
  // References to elements are valid until the next call of these two.
  T& emplace_back() {
    memory_.reserve((size_ + 1) * sizeof(T));
    return *new (data() + size_++) T{};
  }
  // None; the memory stays.
  void clear() { size_ = 0; }
  // At least so many; new ones are T{}.
  void grow_to(std::size_t size) {
    if (size <= size_) return;
    memory_.reserve(size * sizeof(T));
    while (size_ < size) new (data() + size_++) T{};
  }

 private:
  T* data() const { return std::launder(reinterpret_cast<T*>(memory_.data())); }

  PagedMemory memory_;
  std::size_t size_ = 0;
};

}  // namespace lbf
