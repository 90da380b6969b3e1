// SwitchMark: whether the thread had its processor all the time since the mark was set, without a system call.
//
// Place in the event's way: inside *capture*, under ProcessClock (clock.h). glibc 2.35 and later register an area for
// each thread with the kernel (restartable sequences, rseq(2)). The kernel clears the area's field rseq_cs when it
// takes the processor from a thread that is outside of the sequence which the field names, and when it delivers a
// signal (linux/rseq.h, "rseq_cs"). The mark is a sequence that nobody ever runs. Whoever has sequences of its own
// (allocators) overwrites the field, and the mark seems to be gone. noexcept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbf::capture {

// Finds out, once per process, whether that works here: it sleeps for a moment. Before it a mark is never intact.
void switch_marks_start() noexcept;

// Of one thread, and used by it only.
class SwitchMark {
 public:
  void open() noexcept;
  void close() noexcept;
  // From here on.
  void set() noexcept {
    if (field_ != nullptr) __atomic_store_n(field_, mark(), __ATOMIC_RELAXED);
  }
  // false: the thread was switched out, or got a signal, or nobody knows. A hypervisor that takes the processor, or an
  // interrupt, is not seen.
  bool intact() const noexcept { return field_ != nullptr && __atomic_load_n(field_, __ATOMIC_RELAXED) == mark(); }

 private:
  static std::uint64_t mark() noexcept;
  std::uint64_t* field_ = nullptr;
};

}  // namespace lbf::capture
