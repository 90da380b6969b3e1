// The event ring of a thread: a file in LBF_CAPTURE_DIR that the relay finds once it is complete.
//
// Place in the event's way: a thread's first call (process.cpp) -> *its ring* -> ring writer. Nothing in here makes a
// program fail: a full or forbidden folder, a limit on the size of files, no memory are a RingFailure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/process.h"

namespace lbf::capture {

inline constexpr std::size_t kMaxDirectory = 3800;  // bytes of process.settings.directory
inline constexpr unsigned kLog2Channels = 14;  // of a thread, 512 KiB: pages that are never counted on cost nothing

// Why a thread has no ring.
struct RingFailure {
  const char* why = nullptr;
  int error = 0;  // errno
};

// All that takes long, some milliseconds: not under the StartLock, which a thread needs that wants to close the window,
// because it has used up its grant or its ring is full. The ring has no name yet that the relay looks for. nullptr:
// failure says why.
Thread* make_ring(RingFailure& failure) noexcept;
// From here on the relay finds the ring, and the thread goes on in the process's mode. What it did since BEGIN_TICKS is
// no work of the program's. nullptr: neither, THREAD is gone; without a failure because the capture ended meanwhile.
// REQUIRES: called on the thread that made it.
Thread* name_ring(Thread* thread, std::uint64_t begin_ticks, RingFailure& failure) noexcept
    REQUIRES(process.start_lock);
// Unmaps THREAD and its ring; the file stays for the relay.
void release_ring(Thread* thread) noexcept;
// The relay shall not read it (any more).
void remove_ring(const Thread& thread) noexcept;

}  // namespace lbf::capture
