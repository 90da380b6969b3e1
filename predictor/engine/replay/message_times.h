// MessageTimes: what DedicatedReplay knows of each message, its two times on K targets beside it.
//
// One record per message slot, so that a message costs one or two cache lines and not one per array.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/paged_array.h"
#include "base/units.h"
#include "predictor/engine/match/op_store.h"

namespace lbf::engine {

// `Clock`: of the replay (composed.h).
template <typename Clock>
class MessageTimesOf {
 public:
  // Of another message that had the slot before if the generation differs.
  struct Slot {
    std::uint32_t generation = ~std::uint32_t{0};
    std::uint32_t uses = 0;           // ops that name it, executed here
    ProcessIndex receiver = kNobody;  // waits for it to be sent
    ProcessIndex sender = kNobody;    // waits for it to be posted
    bool sent = false;
    bool posted = false;
    bool matched = false;  // arrival and end of send are known
    bool first = false;    // kOpFirst: leaves later than its send was ready
    // From here on: Clock arrival[K], free[K].
  };
  static_assert(sizeof(Slot) % alignof(Clock) == 4 && sizeof(Slot) == 20 && std::is_trivially_copyable_v<Clock>);

  explicit MessageTimesOf(std::size_t targets) : targets_(targets) {}
  MessageTimesOf(const MessageTimesOf& other) : targets_(other.targets_) {
    grow_to(other.size_);
    if (size_ > 0) std::memcpy(memory_.data(), other.memory_.data(), size_ * stride());
  }
  MessageTimesOf& operator=(const MessageTimesOf&) = delete;

  std::size_t size() const { return size_; }
  Bytes bytes_of(std::size_t slots) const { return std::max(slots, size_) * stride(); }
  // At least `slots`, new ones as Slot{}. References to slots and times are valid until then.
  void grow_to(std::size_t slots) {
    if (slots <= size_) return;
    memory_.reserve(slots * stride());
    for (; size_ < slots; ++size_) new (at(static_cast<MessageIndex>(size_))) Slot{};
  }
  // Only these targets, in this order.
  void drop_targets_except(const std::vector<std::size_t>& kept) {
    MessageTimesOf other(kept.size());
    other.grow_to(size_);
    for (MessageIndex index = 0; index < static_cast<MessageIndex>(size_); ++index) {
      other.slot(index) = slot(index);
      for (std::size_t k = 0; k < kept.size(); ++k) {
        other.arrival_s(index)[k] = arrival_s(index)[kept[k]];
        other.free_s(index)[k] = free_s(index)[kept[k]];
      }
    }
    targets_ = kept.size();
    memory_ = std::move(other.memory_);
  }
  // kTargets: how many there are, where that is known when the program is compiled, else 0.
  template <std::size_t kTargets = 0>
  Slot& slot(MessageIndex index) {
    return *std::launder(reinterpret_cast<Slot*>(at<kTargets>(index)));
  }
  // Sent, not matched: when the send was ready; matched: arrival.
  template <std::size_t kTargets = 0>
  Clock* arrival_s(MessageIndex index) {
    return reinterpret_cast<Clock*>(at<kTargets>(index) + kTimesAt);
  }
  // Will be asked for soon.
  void prefetch(MessageIndex index) {
    if (index < size_) __builtin_prefetch(at(index), 1);
  }
  // Posted, not matched: when; matched: when the sender is free.
  template <std::size_t kTargets = 0>
  Clock* free_s(MessageIndex index) {
    return arrival_s<kTargets>(index) + (kTargets != 0 ? kTargets : targets_);
  }

 private:
  static constexpr std::size_t kTimesAt = 24;
  template <std::size_t kTargets = 0>
  std::size_t stride() const {
    return kTimesAt + 2 * (kTargets != 0 ? kTargets : targets_) * sizeof(Clock);
  }
  template <std::size_t kTargets = 0>
  std::byte* at(MessageIndex index) {
    return memory_.data() + index * stride<kTargets>();
  }

  std::size_t targets_;
  std::size_t size_ = 0;
  PagedMemory memory_;
};

}  // namespace lbf::engine
