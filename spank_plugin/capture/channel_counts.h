// ChannelCounts: how many messages passed on each channel while the capture was only counting.
//
// Place in the event's way: inside *capture*, one per thread; the counts go into the ring when a window opens
// (docs/adr/0010-capture-windows.md). Matching pairs the n-th send of a channel with its n-th receive; with
// the counts, n stays known across what was not recorded. A count costs one probe of a table of fixed
// capacity; of a channel that was counted lately, one look at a small table under the names that the program
// itself has for it (`recall`). Single thread; noexcept, no heap. A table that is full is emptied (take_changes) and
// goes on: a program may use a new tag for each message.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_annotations.h"
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

// The same as the table has it.
struct PackedEnd {
  static constexpr std::uint64_t kUsed = 1;
  std::uint64_t place = 0;  // comm, peer
  std::uint64_t what = 0;   // tag, side, kUsed; 0: none

  PackedEnd() noexcept = default;
  explicit PackedEnd(const ChannelEnd& end) noexcept
      : place(std::uint64_t{end.comm} << 32 | static_cast<std::uint32_t>(end.peer)),
        what(std::uint64_t{static_cast<std::uint32_t>(end.tag)} << 3 | static_cast<std::uint64_t>(end.side) << 1 |
             kUsed) {}
  ChannelEnd end() const noexcept {
    return {static_cast<std::uint32_t>(place >> 32), static_cast<std::int32_t>(place),
            static_cast<std::int32_t>(what >> 3), static_cast<SkippedSide>(what >> 1 & 3u)};
  }
  friend bool operator==(const PackedEnd&, const PackedEnd&) = default;
};

class ChannelCounts {
 public:
  // REQUIRES: 2 <= log2_capacity <= 30; called once. false: no memory.
  bool open(unsigned log2_capacity) noexcept {
    slots_ = static_cast<Slot*>(map_pages((std::size_t{1} << log2_capacity) * sizeof(Slot)));
    if (slots_ == nullptr) return false;
    shift_ = 64 - log2_capacity;
    mask_ = (std::uint32_t{1} << log2_capacity) - 1;
    named_ = kManyNames;
    forget_names();
    return true;
  }

  // `by` more messages on `end`. false: no room, nothing was counted.
  bool count(const ChannelEnd& end, std::uint64_t by = 1) noexcept {
    const std::uint32_t i = find_or_add(end);
    if (i == kNoRoom) return false;
    Slot& slot = slots_[i];
    if (slot.count == 0) {
      slot.next_changed = first_changed_;
      first_changed_ = i + 1;
      ++changed_;
    }
    slot.count += by;
    return true;
  }

  // The program's own words for a channel: the handle of the communicator (a key), a rank in it, a tag. They mean
  // what they do as long as `epoch` is the same: the caller's number that changes with any handle.
  // From now on `recall` finds the channel by them, if it was counted since the counts were taken last.
  void remember(std::uint32_t epoch, const ChannelEnd& end, std::uint64_t comm, std::int32_t peer,
                std::int32_t tag) noexcept {
    const std::uint32_t i = find_or_add(end);
    if (i == kNoRoom || slots_[i].count == 0) return;
    if (epoch != names_epoch_) forget_names();
    names_epoch_ = epoch;
    const std::size_t place = place_of_name(end.side, comm, peer, tag);
    if (named_ < kManyNames) named_at_[named_++] = static_cast<std::uint16_t>(place);
    names_[place] = {comm, peer_and_tag(peer, tag), &slots_[i].count};
  }
  std::uint32_t names_epoch() const noexcept { return names_epoch_; }
  // Finds the counter of a channel, to be added to; it is valid until the counts are taken. false: only `count` knows
  // the way. REQUIRES: names_epoch() is the caller's number now.
  [[gnu::always_inline]] bool recall(SkippedSide side, std::uint64_t comm, std::int32_t peer, std::int32_t tag,
                                     std::uint64_t*& counter) noexcept {
    const Name& name = names_[place_of_name(side, comm, peer, tag)];
    if (name.comm != comm || name.peer_and_tag != peer_and_tag(peer, tag)) [[unlikely]]
      return false;
    counter = name.count;
    return true;
  }
  // Whose counter `recall` has found. REQUIRES: the counts were not taken since.
  static const PackedEnd& end_of(const std::uint64_t* counter) noexcept {
    return reinterpret_cast<const Slot*>(reinterpret_cast<const std::byte*>(counter) - offsetof(Slot, count))->end;
  }

  // visit(ChannelEnd, count) for each channel that was counted since it was taken last, until one returns
  // false: that one and those that were not visited stay. Whether all were taken. VISIT runs with the locks that the
  // caller holds.
  template <class Visit>
  bool take_changes(Visit visit) noexcept NO_THREAD_SAFETY_ANALYSIS {
    forget_names();
    while (first_changed_ != 0) {
      Slot& slot = slots_[first_changed_ - 1];
      if (!visit(slot.end.end(), slot.count)) return false;
      take_out(first_changed_, slot);
    }
    if (used_ > mask_ / 2) {  // most of these may never be seen again
      __builtin_memset(static_cast<void*>(slots_), 0, (std::size_t{mask_} + 1) * sizeof(Slot));
      used_ = 0;
    }
    return true;
  }
  // The same for the channels of COMM. The others stay, where they are few: a walk over many for each communicator that
  // is freed would take longer than to take them, too.
  template <class Visit>
  bool take_changes_of(std::uint32_t comm, Visit visit) noexcept {
    if (changed_ > kFewChannels || used_ > mask_ / 2) return take_changes(visit);
    forget_names();
    for (std::uint32_t* link = &first_changed_; *link != 0;) {
      Slot& slot = slots_[*link - 1];
      if (slot.end.end().comm != comm) {
        link = &slot.next_changed;
        continue;
      }
      if (!visit(slot.end.end(), slot.count)) return false;
      take_out(*link, slot);
    }
    return true;
  }
  bool empty() const noexcept { return first_changed_ == 0; }
  void release() noexcept {
    if (slots_ != nullptr) munmap(slots_, (std::size_t{mask_} + 1) * sizeof(Slot));
    slots_ = nullptr;
  }

 private:
  struct Slot {
    PackedEnd end;
    std::uint64_t count;         // 0: not among the changed ones
    std::uint32_t next_changed;  // index + 1; 0: the last
  };
  static_assert(sizeof(Slot) == 32);
  struct Name {
    std::uint64_t comm;  // kNobody: free
    std::uint64_t peer_and_tag;
    std::uint64_t* count;
  };
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  static constexpr unsigned kLog2Names = 8;
  static constexpr std::uint32_t kNoRoom = ~std::uint32_t{0};
  static constexpr std::uint32_t kFewChannels = 64;
  // Where there are so many names the whole table of them is wiped.
  static constexpr std::uint16_t kManyNames = 32;

  static std::uint64_t peer_and_tag(std::int32_t peer, std::int32_t tag) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | static_cast<std::uint32_t>(tag);
  }
  [[gnu::always_inline]] static std::size_t place_of_name(SkippedSide side, std::uint64_t comm, std::int32_t peer,
                                                          std::int32_t tag) noexcept {
    const std::uint64_t mixed = peer_and_tag(peer, tag) * 0x9e3779b97f4a7c15u + comm * 0xc2b2ae3d27d4eb4fu;
    return static_cast<std::size_t>(side) << kLog2Names | mixed >> (64 - kLog2Names);
  }
  void forget_names() noexcept {
    if (named_ == kManyNames) {
      __builtin_memset(static_cast<void*>(names_), 0xff, sizeof(names_));  // kNobody
    } else {
      for (std::uint16_t i = 0; i < named_; ++i) names_[named_at_[i]].comm = kNobody;
    }
    named_ = 0;
  }
  // REQUIRES: LINK leads to SLOT.
  void take_out(std::uint32_t& link, Slot& slot) noexcept {
    link = slot.next_changed;
    slot.count = 0;
    --changed_;
  }

  // The slot of `end`; kNoRoom: it has none, and gets none.
  [[gnu::always_inline]] std::uint32_t find_or_add(const ChannelEnd& end) noexcept {
    const PackedEnd packed(end);
    std::uint32_t i = static_cast<std::uint32_t>(
        ((packed.place * 0x9e3779b97f4a7c15u) ^ (packed.what * 0xc2b2ae3d27d4eb4fu)) >> shift_);
    while (slots_[i].end != packed) {
      if (slots_[i].end.what == 0) {
        if (used_ >= mask_ - mask_ / 8) return kNoRoom;  // probes stay short below seven eighths
        ++used_;
        slots_[i].end = packed;
        break;
      }
      i = (i + 1) & mask_;
    }
    return i;
  }

  Slot* slots_ = nullptr;
  std::uint32_t mask_ = 0;
  unsigned shift_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t first_changed_ = 0;
  std::uint32_t changed_ = 0;
  std::uint32_t names_epoch_ = 0;
  std::uint16_t named_ = 0;  // so many places in names_, one after the other
  std::uint16_t named_at_[kManyNames] = {};
  Name names_[std::size_t{kSkippedSideCount} << kLog2Names] = {};
};

}  // namespace lbf::capture
