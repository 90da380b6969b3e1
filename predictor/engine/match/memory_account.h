// MemoryAccount: the bytes that the containers of a matching hold, counted where they grow.
//
// A container with a CountedAllocator books what it allocates on its account, so that the sum over all ranks is known
// at any time without a walk over them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace lbf::engine {

struct MemoryAccount {
  std::size_t bytes = 0;
};

template <typename T>
class CountedAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  // nullptr: nobody counts. REQUIRES: the account outlives the container.
  CountedAllocator(MemoryAccount* account = nullptr) : account_(account) {}  // NOLINT(google-explicit-constructor)
  template <typename Other>
  CountedAllocator(const CountedAllocator<Other>& other)  // NOLINT(google-explicit-constructor)
      : account_(other.account()) {}

  T* allocate(std::size_t count) {
    T* const memory = std::allocator<T>().allocate(count);
    if (account_ != nullptr) account_->bytes += count * sizeof(T);
    return memory;
  }
  void deallocate(T* memory, std::size_t count) {
    std::allocator<T>().deallocate(memory, count);
    if (account_ != nullptr) account_->bytes -= count * sizeof(T);
  }
  MemoryAccount* account() const { return account_; }
  template <typename Other>
  bool operator==(const CountedAllocator<Other>& other) const {
    return account_ == other.account();
  }

 private:
  MemoryAccount* account_;
};

template <typename T>
using CountedVector = std::vector<T, CountedAllocator<T>>;
template <typename Key, typename Value, typename Hash = std::hash<Key>>
using CountedMap =
    std::unordered_map<Key, Value, Hash, std::equal_to<Key>, CountedAllocator<std::pair<const Key, Value>>>;

}  // namespace lbf::engine
