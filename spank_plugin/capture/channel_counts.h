// ChannelCounts: how many messages passed on each channel while the capture was only counting.
//
// Place in the event's way: inside *capture*, one per thread; the counts go into the ring when a window opens
// (docs/adr/0010-capture-windows.md). Matching pairs the n-th send of a channel with its n-th receive; with
// the counts, n stays known across what was not recorded. A count costs one probe of a table of fixed
// capacity. Single thread; noexcept, no heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/memory.h"

namespace lbf::capture {

// One rank's end of a channel.
struct ChannelEnd {
  std::uint32_t comm = 0;  // this rank's own index
  std::int32_t peer = 0;   // rank in the communicator
  std::int32_t tag = 0;
  bool receives = false;  // else it sends

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

  // `by` more messages on `end`; -1 for a receive that was cancelled. Without room the count is lost and
  // complete() is false from then on.
  void count(const ChannelEnd& end, std::int64_t by = 1) noexcept {
    const std::uint64_t place = std::uint64_t{end.comm} << 32 | static_cast<std::uint32_t>(end.peer);
    const std::uint64_t what =
        std::uint64_t{static_cast<std::uint32_t>(end.tag)} << 2 | (end.receives ? 2u : 0u) | kUsed;
    std::uint32_t i =
        static_cast<std::uint32_t>(((place * 0x9e3779b97f4a7c15u) ^ (what * 0xc2b2ae3d27d4eb4fu)) >> shift_);
    while (slots_[i].place != place || slots_[i].what != what) {
      if (slots_[i].what == 0) {
        if (used_ >= mask_ - mask_ / 8) {  // probes stay short below seven eighths
          complete_ = false;
          return;
        }
        ++used_;
        slots_[i].place = place;
        slots_[i].what = what;
        break;
      }
      i = (i + 1) & mask_;
    }
    Slot& slot = slots_[i];
    if (slot.count == 0 && !slot.listed) {
      slot.listed = true;
      slot.next_changed = first_changed_;
      first_changed_ = i + 1;
      ++changed_;
    }
    slot.count += by;
  }

  // How many channels take_changes() will visit at most.
  std::uint32_t changed() const noexcept { return changed_; }

  // visit(ChannelEnd, count) for each channel that was counted since the last time, count != 0; begins anew.
  template <class Visit>
  void take_changes(Visit visit) noexcept {
    for (std::uint32_t link = first_changed_; link != 0;) {
      Slot& slot = slots_[link - 1];
      link = slot.next_changed;
      if (slot.count != 0) {
        visit(ChannelEnd{static_cast<std::uint32_t>(slot.place >> 32), static_cast<std::int32_t>(slot.place),
                         static_cast<std::int32_t>(slot.what >> 2), (slot.what & 2u) != 0},
              slot.count);
      }
      slot.count = 0;
      slot.listed = false;
    }
    first_changed_ = 0;
    changed_ = 0;
  }

  // false: a channel was not counted for lack of room; nothing after that can be matched.
  bool complete() const noexcept { return complete_; }

 private:
  static constexpr std::uint64_t kUsed = 1;
  struct Slot {
    std::uint64_t place;  // comm, peer
    std::uint64_t what;   // tag, direction, kUsed; 0: free
    std::int64_t count;
    std::uint32_t next_changed;  // index + 1; 0: the last
    bool listed;
  };
  static_assert(sizeof(Slot) == 32);

  Slot* slots_ = nullptr;
  std::uint32_t mask_ = 0;
  unsigned shift_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t first_changed_ = 0;
  std::uint32_t changed_ = 0;
  bool complete_ = true;
};

}  // namespace lbf::capture
