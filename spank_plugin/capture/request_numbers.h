// The numbers of requests in the records, and which of them are of the window that is open.
//
// Place in the event's way: inside *capture* (recorder.h). A rank's requests are numbered as they begin, from
// 1 to ring::kFirstRelayRequest - 1 and round again. Those of a window are told from those before it by their
// distance to the last one before it; in a window of very many requests that one is pulled along, kReach
// behind at most: what is older than that counts as from before the window. noexcept, no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "spank_plugin/capture/ring.h"

namespace lbf::capture::request_numbers {

inline constexpr std::uint32_t kAll = ring::kFirstRelayRequest;  // 0, which is no request, among them
static_assert((kAll & (kAll - 1)) == 0);
// So many are given out between two looks at how far the window reaches.
inline constexpr std::uint32_t kBlock = kAll / 8;
inline constexpr std::uint32_t kReach = 2 * kBlock;

// Whether `number` comes after `other`. REQUIRES: they are less than kAll / 2 apart, the way round that is
// shorter.
constexpr bool is_after(std::uint32_t number, std::uint32_t other) noexcept {
  const std::uint32_t ahead = (number - other) & (kAll - 1);
  return ahead != 0 && ahead < kAll / 2;
}

// The first number of a block: `before_window` is pulled along. false: it is 0, which is none.
[[gnu::noinline]] inline bool enter_block(std::uint32_t number,
                                          std::atomic<std::uint32_t>& before_window) noexcept {
  const std::uint32_t ahead = (number - before_window.load(std::memory_order_relaxed)) & (kAll - 1);
  if (ahead > kReach) before_window.store((number - kReach) & (kAll - 1), std::memory_order_relaxed);
  return number != 0;
}

// The next one after `last`, which several threads may ask for at a time where `shared`. `before_window`: the
// last one before the window; changed here, and by who opens a window while nobody is here.
[[gnu::always_inline]] inline std::uint32_t take(std::atomic<std::uint32_t>& last,
                                                 std::atomic<std::uint32_t>& before_window,
                                                 bool shared) noexcept {
  for (;;) {
    std::uint32_t number;
    if (shared) [[unlikely]] {
      number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    } else {
      number = last.load(std::memory_order_relaxed) + 1;
      last.store(number, std::memory_order_relaxed);
    }
    number &= kAll - 1;
    if (number % kBlock != 0 || enter_block(number, before_window)) [[likely]]
      return number;
  }
}

}  // namespace lbf::capture::request_numbers
