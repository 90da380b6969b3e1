// Cache lines that are wanted soon, so that they come while something else is done, and several at once.
//
// Place in the event's way: inside *capture*, under the recorder and the ring writer. Never faults, whatever the address.
#pragma once

#include <cstddef>

namespace lbf::capture {

inline constexpr std::size_t kLineBytes = 64;

// To be written: another processor may have it.
[[gnu::always_inline]] inline void want_line_to_write(const std::byte* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));  // no operation on processors that lack it
#else
  __builtin_prefetch(at, 1);
#endif
}

// Those of BYTES from AT on, at least one; data or code.
[[gnu::always_inline]] inline void want_lines(const void* at, std::size_t bytes) noexcept {
  const auto* line = static_cast<const std::byte*>(at);
  const std::byte* const end = line + bytes;
  do {
    __builtin_prefetch(line);
    line += kLineBytes;
  } while (line < end);
}

}  // namespace lbf::capture
