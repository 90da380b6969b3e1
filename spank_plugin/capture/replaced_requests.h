// ReplacedRequests: requests whose handles were given anew before whoever waits for them has looked them up.
//
// Place in the event's way: inside *capture*, beside request_table.h, where several threads may be in MPI at once. MPI
// lets go of a handle inside the call that completes its request, and another thread may get it before that call has
// returned. Who looks up what it completed only then finds it here. Times are those of RequestTable::mark(). The oldest
// are overwritten: what is not found is not known, never another request. noexcept, no heap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/memory.h"
#include "spank_plugin/capture/spin_mutex.h"

namespace lbf::capture {

template <class Info>
class ReplacedRequests {
 public:
  struct Replaced {
    std::uint64_t handle = 0;  // 0: none
    std::uint64_t born = 0;    // when the handle was given to it
    std::uint64_t until = 0;   // when the handle was given to another one
    Info info{};
  };

  void add(const Replaced& replaced) noexcept {
    lock_.lock();
    if (kept_ == nullptr) kept_ = static_cast<Replaced*>(map_pages(kCapacity * sizeof(Replaced)));
    if (kept_ != nullptr) kept_[added_++ % kCapacity] = replaced;
    if (replaced.until > last_.load(std::memory_order_relaxed)) last_.store(replaced.until, std::memory_order_relaxed);
    lock_.unlock();
  }

  // What HANDLE stood for at MARK. false: not known.
  bool find(std::uint64_t handle, std::uint64_t mark, Info& info) noexcept {
    if (last_.load(std::memory_order_relaxed) < mark) return false;
    lock_.lock();
    const Replaced* found = nullptr;
    for (std::size_t i = 0; kept_ != nullptr && i < kCapacity && i < added_; ++i) {
      const Replaced& one = kept_[i];
      if (one.handle == handle && one.born < mark && one.until >= mark) found = &one;
    }
    if (found != nullptr) info = found->info;
    lock_.unlock();
    return found != nullptr;
  }

 private:
  static constexpr std::size_t kCapacity = 4096;
  SpinMutex lock_;
  Replaced* kept_ = nullptr;
  std::size_t added_ = 0;
  std::atomic<std::uint64_t> last_{0};  // the greatest `until`
};

}  // namespace lbf::capture
