// Stopped threads: while one lives, every other thread of the process waits, and none of them stands inside
// the bytes that are about to change.
//
// Place in the event's way: inside *procedures*: code patch while the program runs. Each thread gets a signal
// that the program does not use and waits in its handler; one that was interrupted between two instructions
// that the patch replaces goes on at the same instruction's copy. Returning from the handler (iret) makes its
// processor read the new code. docs/procedures.md, "While threads run".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace lbf::procedures {

// A thread at `from` has to go on at `to`.
struct Move {
  std::uintptr_t from = 0;
  std::uintptr_t to = 0;
};

// A real-time signal, from the highest down, that has no handler and is not ignored; 0: none is left.
int unused_signal();

class StoppedThreads {
 public:
  // REQUIRES: one at a time; `moves` outlives it. kUnavailable: a thread did not answer (it blocks the
  // signal): all run again.
  static Result<StoppedThreads> stop(const std::vector<Move>& moves);
  StoppedThreads(StoppedThreads&& other) noexcept : active_(other.active_) { other.active_ = false; }
  StoppedThreads& operator=(StoppedThreads&&) = delete;
  ~StoppedThreads();

 private:
  explicit StoppedThreads(bool active) : active_(active) {}
  bool active_;
};

// Threads of this process, from /proc/self/task.
std::vector<int> thread_ids();

}  // namespace lbf::procedures
