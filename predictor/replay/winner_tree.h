// WinnerTree: the next of a fixed number of sources that nearly all have a next time, nearly all of the time.
//
// A tournament: each inner node holds the earlier of its two children. A change is played up the tree, one
// comparison a level, which costs no jump that the processor could guess wrong; a heap (event_queue.h) asks
// two a level, and is better where few of many sources have a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lbf {

class WinnerTree {
 public:
  using Source = std::uint32_t;
  struct Entry {
    Seconds time_s = kNeverS;
    Source source = 0;
  };

  explicit WinnerTree(std::size_t sources) : leaves_(std::bit_ceil(sources)), entries_(2 * leaves_) {
    for (std::size_t i = 0; i < leaves_; ++i) entries_[leaves_ + i].source = static_cast<Source>(i);
    for (std::size_t i = leaves_; --i > 0;) entries_[i] = entries_[2 * i];
  }
  // The earliest; ties in time go to the smaller source. Its time is kNeverS if no source has one.
  const Entry& top() const { return entries_[1]; }
  // kNeverS: the source has no next time.
  void set(Source source, Seconds time_s) {
    std::size_t at = leaves_ + source;
    entries_[at].time_s = time_s;
    while (at > 1) {
      at /= 2;
      const Entry& left = entries_[2 * at];
      const Entry& right = entries_[2 * at + 1];
      const Entry& earlier = right.time_s < left.time_s ? right : left;
      const Entry winner = earlier;
      // The same as before, and not the one that changed: nothing further up changes.
      if (entries_[at].source == winner.source && winner.source != source) return;
      entries_[at] = winner;
    }
  }

 private:
  std::size_t leaves_;          // a power of two
  std::vector<Entry> entries_;  // [1]: the root, [2 i] and [2 i + 1]: below [i], [leaves_ + s]: source s
};

}  // namespace lbf
