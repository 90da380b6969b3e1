// ChannelCounts: how many messages passed on each channel while the capture was only counting.
//
// Place in the event's way: inside *capture*, one per thread; the counts go into the ring when a window opens
// (docs/adr/0010-capture-windows.md). Matching pairs the n-th send of a channel with its n-th receive; with
// the counts, n stays known across what was not recorded. A count costs one probe of a table of fixed
// capacity. Single thread; noexcept, no heap. A table that is full is emptied (take_changes) and goes on: a
// program may use a new tag for each message.
#pragma once

#include <cstddef>
#include <cstdint>

#include "event/event.h"
#include "spank_plugin/capture/memory.h"

namespace lbf::capture {

// One rank's end of a channel; or what it does together with all of a communicator.
struct ChannelEnd {
  std::uint32_t comm = 0;  // this rank's own index
  std::int32_t peer = 0;   // world rank; collectives: kAnyRank
  std::int32_t tag = 0;    // collectives: kAnyTag
  SkippedSide side = SkippedSide::kSends;

  friend bool operator==(const ChannelEnd&, const ChannelEnd&) = default;
};

class ChannelCounts {
 public:
  // REQUIRES: 2 <= log2_capacity <= 30; called once. false: no memory.
  bool open(unsigned log2_capacity) noexcept {
    slots_ = static_cast<Slot*>(map_pages((std::size_t{1} << log2_capacity) * sizeof(Slot)));
    if (slots_ == nullptr) return false;
    shift_ = 64 - log2_capacity;
    mask_ = (std::uint32_t{1} << log2_capacity) - 1;
    return true;
  }

  // `by` more messages on `end`. false: no room, nothing was counted.
  [[gnu::always_inline]] bool count(const ChannelEnd& end, std::uint64_t by = 1) noexcept {
    const std::uint64_t place = std::uint64_t{end.comm} << 32 | static_cast<std::uint32_t>(end.peer);
    const std::uint64_t what =
        std::uint64_t{static_cast<std::uint32_t>(end.tag)} << 3 | static_cast<std::uint64_t>(end.side) << 1 | kUsed;
    std::uint32_t i =
        static_cast<std::uint32_t>(((place * 0x9e3779b97f4a7c15u) ^ (what * 0xc2b2ae3d27d4eb4fu)) >> shift_);
    while (slots_[i].place != place || slots_[i].what != what) {
      if (slots_[i].what == 0) {
        if (used_ >= mask_ - mask_ / 8) return false;  // probes stay short below seven eighths
        ++used_;
        slots_[i].place = place;
        slots_[i].what = what;
        break;
      }
      i = (i + 1) & mask_;
    }
    Slot& slot = slots_[i];
    if (slot.count == 0) {
      slot.next_changed = first_changed_;
      first_changed_ = i + 1;
    }
    slot.count += by;
    return true;
  }

  // visit(ChannelEnd, count) for each channel that was counted since it was taken last, until one returns
  // false: that one and those that were not visited stay. Whether all were taken.
  template <class Visit>
  bool take_changes(Visit visit) noexcept {
    while (first_changed_ != 0) {
      Slot& slot = slots_[first_changed_ - 1];
      const ChannelEnd end{static_cast<std::uint32_t>(slot.place >> 32), static_cast<std::int32_t>(slot.place),
                           static_cast<std::int32_t>(slot.what >> 3), static_cast<SkippedSide>(slot.what >> 1 & 3u)};
      if (!visit(end, slot.count)) return false;
      first_changed_ = slot.next_changed;
      slot.count = 0;
    }
    if (used_ > mask_ / 2) {  // most of these may never be seen again
      __builtin_memset(static_cast<void*>(slots_), 0, (std::size_t{mask_} + 1) * sizeof(Slot));
      used_ = 0;
    }
    return true;
  }
  bool empty() const noexcept { return first_changed_ == 0; }
  void release() noexcept {
    if (slots_ != nullptr) munmap(slots_, (std::size_t{mask_} + 1) * sizeof(Slot));
    slots_ = nullptr;
  }

 private:
  static constexpr std::uint64_t kUsed = 1;
  struct Slot {
    std::uint64_t place;  // comm, peer
    std::uint64_t what;   // tag, side, kUsed; 0: free
    std::uint64_t count;  // 0: not among the changed ones
    std::uint32_t next_changed;  // index + 1; 0: the last
  };
  static_assert(sizeof(Slot) == 32);

  Slot* slots_ = nullptr;
  std::uint32_t mask_ = 0;
  unsigned shift_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t first_changed_ = 0;
};

}  // namespace lbf::capture
