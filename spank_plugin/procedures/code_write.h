// Code write: changes a few bytes of the program's code at once.
//
// Place in the event's way: inside *procedures*, under code patch. Compiled for general registers only, with
// direct system calls: hooks may come here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbf::procedures {

enum class WriteResult { kDone, kRefused, kNotAtOnce };

// The turn to write code: one at a time, for another's pages must not become read-only under it. To be taken before
// other threads are stopped: one of them might have it.
class WriteTurn {
 public:
  WriteTurn() noexcept;
  ~WriteTurn();
  WriteTurn(const WriteTurn&) = delete;
  WriteTurn& operator=(const WriteTurn&) = delete;
};

// Writes `bytes` (at most 16) at `address`, as one atomic store where they lie in one 16-byte line (that is
// what a processor fetches at once, and cmpxchg16b writes it at once). Else, with `others_wait`, byte by byte
// from the last to the first; without: kNotAtOnce, as also when another thread has the turn. `protection`: what
// the pages have before and after. Keeps errno. REQUIRES: with `others_wait` the caller has the turn.
WriteResult write_code(std::uintptr_t address, const std::uint8_t* bytes, std::size_t size, int protection,
                       bool others_wait) noexcept;

// A jump in the program's code, in or out. Never freed: hooks look at it at any time.
struct EntryJump {
  std::uintptr_t address = 0;
  std::uint8_t original[5] = {};
  bool patched = false;
  int protection = 0;         // of the code's pages
  EntryJump* next = nullptr;  // of the same procedure
};

// Takes all jumps of a procedure out where that can be done at once, and has its entry hook return at once
// where not.
void switch_off(std::uint32_t procedure) noexcept;
// By procedure: its jumps; whether it is switched off.
extern constinit EntryJump* entry_jumps[];
extern constinit bool switched_off[];
// How often that happened; all threads.
extern constinit std::uint32_t switch_offs;

}  // namespace lbf::procedures
