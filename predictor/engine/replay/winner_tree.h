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

namespace lbf::engine {

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
    // The winner so far stays in registers; no early end, which would be a jump to guess.
    Seconds winner_s = time_s;
    Source winner = source;
    for (std::size_t at = leaves_ + source;; at /= 2) {
      entries_[at] = {winner_s, winner};
      if (at == 1) return;
      const Entry other = entries_[at ^ 1];
      const bool other_is_left = (at & 1) != 0;
      const bool other_wins =
          (other.time_s < winner_s) | ((other.time_s == winner_s) & static_cast<int>(other_is_left));
      winner_s = other_wins ? other.time_s : winner_s;
      winner = other_wins ? other.source : winner;
    }
  }

 private:
  std::size_t leaves_;          // a power of two
  std::vector<Entry> entries_;  // [1]: the root, [2 i] and [2 i + 1]: below [i], [leaves_ + s]: source s
};

}  // namespace lbf::engine
