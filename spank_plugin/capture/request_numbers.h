// The numbers of requests in the records, and which of them are of the window that is open.
//
// Place in the event's way: inside *capture* (recorder.h). A rank's requests are numbered as they begin, from
// 1 to ring::kFirstRelayRequest - 1 and round again; each thread takes some at a time, so that threads which are in MPI
// at once do not wait for each other. Those of a window are told from those before it by their distance to the last one
// before it; in a window of very many requests that one is pulled along, kReach behind at most: what is older than that
// counts as from before the window. noexcept, no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "spank_plugin/capture/ring.h"

namespace lbf::capture {

class RequestNumbers {
 public:
  static constexpr std::uint32_t kAll = ring::kFirstRelayRequest;  // 0, which is no request, among them
  static_assert((kAll & (kAll - 1)) == 0);
  // So many are given out between two looks at how far the window reaches.
  static constexpr std::uint32_t kBlock = kAll / 8;
  static constexpr std::uint32_t kReach = 2 * kBlock;
  static constexpr std::uint32_t kTaken = 64;  // at a time

  // A thread's own: what it has taken and not given out.
  struct Taken {
    std::uint32_t next = 0;
    std::uint32_t left = 0;
    std::uint32_t generation = 0;
  };

  constexpr RequestNumbers() noexcept = default;
  // As if so many had been given out, all before the window. For tests.
  explicit constexpr RequestNumbers(std::uint32_t last) noexcept : before_window_(last), last_(last) {}

  // Whether `number` comes after `other`. REQUIRES: they are less than kAll / 2 apart, the way round that is
  // shorter.
  static constexpr bool is_after(std::uint32_t number, std::uint32_t other) noexcept {
    const std::uint32_t ahead = (number - other) & (kAll - 1);
    return ahead != 0 && ahead < kAll / 2;
  }

  // The next one of the thread. `shared`: several threads may ask at a time.
  [[gnu::always_inline]] std::uint32_t take(Taken& own, bool shared) noexcept {
    if (own.left == 0 || own.generation != generation_.load(std::memory_order_relaxed)) [[unlikely]]
      take_more(own, shared);
    --own.left;
    return own.next++;
  }

  // All that were given out or taken so far are from before the window. REQUIRES: no thread takes one now.
  void begin_window() noexcept {
    before_window_.store(last_.load(std::memory_order_relaxed) & (kAll - 1), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_relaxed);
  }

  // The last one before the window.
  std::uint32_t before_window() const noexcept { return before_window_.load(std::memory_order_relaxed); }
  bool is_of_window(std::uint32_t number) const noexcept { return is_after(number, before_window()); }

 private:
  [[gnu::noinline]] void take_more(Taken& own, bool shared) noexcept {
    const std::uint32_t before =
        shared ? last_.fetch_add(kTaken, std::memory_order_relaxed) : last_.load(std::memory_order_relaxed);
    if (!shared) last_.store(before + kTaken, std::memory_order_relaxed);
    own.next = (before + 1) & (kAll - 1);
    own.left = kTaken;
    if (own.next > kAll - kTaken) own.left = kAll - own.next;  // not beyond the last one
    if (own.next == 0) {
      own.next = 1;
      --own.left;
    }
    if (((before + kTaken) & (kAll - 1)) / kBlock != (before & (kAll - 1)) / kBlock) enter_block(own.next);
    own.generation = generation_.load(std::memory_order_relaxed);
  }

  // What threads took long ago and did not give out would be before the window, and then others' again.
  void enter_block(std::uint32_t number) noexcept {
    const std::uint32_t ahead = (number - before_window()) & (kAll - 1);
    if (ahead > kReach) before_window_.store((number - kReach) & (kAll - 1), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_relaxed);
  }

  // Every call reads these.
  std::atomic<std::uint32_t> before_window_{0};  // changed by who opens a window, or enters a block
  std::atomic<std::uint32_t> generation_{0};     // what was taken in an older one is void
  alignas(64) std::atomic<std::uint32_t> last_{0};
};

}  // namespace lbf::capture
