// RequestTable: what is known of each active request of one rank, by its number.
//
// A program's requests are numbered as they start (event/event.h), so those that are active are mostly a run
// of numbers: each has its own place at number modulo size, neighbours side by side, and neither search nor
// erasure goes further. What finds its place taken makes the table larger if it is well filled, else goes
// to an ordinary map.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "predictor/engine/match/memory_account.h"
#include "predictor/engine/match/op.h"

namespace lbf::engine {

enum class RequestKind : std::uint8_t {
  kNone,         // not a request
  kSend,         // its completion takes no time on any target
  kWaitingSend,  // its completion is a kWaitSend
  kReceive,      // posted, with the message that it takes
  kHeldReceive,  // posted before it was known which message it takes; `value`: record of the matcher
  kCollective,   // `value`: record of the matcher
  kOneSided,     // `value`: record of the matcher
};

struct ActiveRequest {
  std::uint32_t number = 0;
  std::uint32_t value = 0;      // MessageIndex, or a record
  std::uint32_t note : 29 = 0;  // sends: the message's generation; receives: posting order in the rank
  std::uint32_t kind : 3 = 0;

  ActiveRequest() = default;
  ActiveRequest(std::uint32_t its_number, std::uint32_t its_value, RequestKind its_kind, std::uint32_t its_note)
      : number(its_number), value(its_value), note(cut(its_note)), kind(static_cast<std::uint32_t>(its_kind) & 7U) {}
  RequestKind what() const { return static_cast<RequestKind>(kind); }
  // What a note keeps of a number.
  static std::uint32_t cut(std::uint32_t number) { return number & ((1U << 29) - 1); }
};
static_assert(sizeof(ActiveRequest) == 12);

inline bool is_receive(const ActiveRequest& request) {
  return request.what() == RequestKind::kReceive || request.what() == RequestKind::kHeldReceive;
}
// Of two postings of a rank; what is active at a time is less than 2^28 postings apart.
inline bool is_before(std::uint32_t posted, std::uint32_t other_posted) {
  const std::uint32_t apart = ActiveRequest::cut(other_posted - posted);
  return apart != 0 && apart < (1U << 28);
}

class RequestTable {
 public:
  explicit RequestTable(MemoryAccount* account = nullptr) : slots_(1, account), overflow_(account) {}

  // nullptr: not active. Valid until the next insert or erase.
  [[gnu::always_inline]] ActiveRequest* find(std::uint32_t number) {
    ActiveRequest& slot = slots_[number & mask_];
    if (slot.number == number && slot.what() != RequestKind::kNone) return &slot;
    return overflow_.empty() ? nullptr : find_in_overflow(number);
  }
  // REQUIRES: `request.number` is not active, its kind is not kNone.
  [[gnu::always_inline]] void insert(const ActiveRequest& request) {
    ++size_;
    ActiveRequest& slot = slots_[request.number & mask_];
    if (slot.what() == RequestKind::kNone) {
      slot = request;
    } else {
      insert_by_growing(request);
    }
  }
  // REQUIRES: `number` is active.
  [[gnu::always_inline]] void erase(std::uint32_t number) {
    --size_;
    ActiveRequest& slot = slots_[number & mask_];
    if (slot.number == number && slot.what() != RequestKind::kNone) {
      slot.kind = 0;
    } else {
      overflow_.erase(number);
    }
  }
  // The same where one look is enough: the request's own slot, or nullptr: it may be active elsewhere. vacate() ends
  // it.
  [[gnu::always_inline]] ActiveRequest* find_at_once(std::uint32_t number) {
    ActiveRequest& slot = slots_[number & mask_];
    return slot.number == number && slot.what() != RequestKind::kNone ? &slot : nullptr;
  }
  void vacate(ActiveRequest& slot) {
    --size_;
    slot.kind = 0;
  }
  // Where a request of this number starts, or nullptr: one may be active, or there is no room. occupy() starts it.
  [[gnu::always_inline]] ActiveRequest* free_slot(std::uint32_t number) {
    ActiveRequest& slot = slots_[number & mask_];
    return slot.what() == RequestKind::kNone && overflow_.empty() ? &slot : nullptr;
  }
  void occupy(ActiveRequest& slot, const ActiveRequest& request) {
    ++size_;
    slot = request;
  }
  std::size_t size() const { return size_; }
  std::size_t slots() const { return slots_.size(); }
  template <typename Visit>
  void for_each(Visit visit) {
    for (ActiveRequest& slot : slots_) {
      if (slot.what() != RequestKind::kNone) visit(slot);
    }
    for (auto& [number, request] : overflow_) visit(request);
  }

 private:
  static constexpr std::size_t kFirstSlots = 8;

  ActiveRequest* find_in_overflow(std::uint32_t number) {
    const auto found = overflow_.find(number);
    return found == overflow_.end() ? nullptr : &found->second;
  }
  void insert_by_growing(const ActiveRequest& request) {
    const std::size_t wanted = std::max(kFirstSlots, std::bit_ceil(2 * size_));
    if (wanted > slots_.size()) grow_to(wanted);
    place(request);
  }
  void grow_to(std::size_t size) {
    CountedVector<ActiveRequest> old(size, slots_.get_allocator());
    old.swap(slots_);
    mask_ = static_cast<std::uint32_t>(size - 1);
    for (const ActiveRequest& slot : old) {
      if (slot.what() != RequestKind::kNone) place(slot);
    }
    CountedMap<std::uint32_t, ActiveRequest> left_over(overflow_.get_allocator());
    left_over.swap(overflow_);
    for (const auto& [number, request] : left_over) place(request);
  }
  void place(const ActiveRequest& request) {
    ActiveRequest& slot = slots_[request.number & mask_];
    if (slot.what() == RequestKind::kNone) {
      slot = request;
    } else {
      overflow_.emplace(request.number, request);
    }
  }

  CountedVector<ActiveRequest> slots_;
  std::uint32_t mask_ = 0;  // slots - 1; slots are a power of two
  CountedMap<std::uint32_t, ActiveRequest> overflow_;
  std::size_t size_ = 0;
};

}  // namespace lbf::engine
