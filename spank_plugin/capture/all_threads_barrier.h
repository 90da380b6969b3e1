// all_threads_barrier: every thread of the process passes a full memory barrier, whatever it is doing.
//
// Place in the event's way: inside *capture*, where several threads are in MPI at once. A call says with a plain store
// that it is inside the recorder, and looks then whether another thread changes the mode (counted_call.h,
// enter_recorder). Such a store becomes visible late; a locked operation against that, in each call, takes several
// times what counting takes. The mode changes rarely: the thread that changes it has the kernel do it for all of them
// (membarrier(2), private expedited, Linux 4.14). noexcept, errno stays.
#pragma once

namespace lbf::capture {

// Once, before the first barrier. Microseconds in a process of one thread; in others it waits for some milliseconds,
// without using the processor. false: this kernel (or a seccomp filter) does not have it.
bool register_all_threads_barrier() noexcept;

// What other threads stored before it, in the order of their programs, is visible when it returns; what they load after
// it has seen what the caller stored before it. REQUIRES: register_all_threads_barrier() said true.
void all_threads_barrier() noexcept;

}  // namespace lbf::capture
