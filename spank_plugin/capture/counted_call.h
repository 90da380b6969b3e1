// CountedCall: one MPI call on its way through a wrapper while the capture only counts.
//
// Place in the event's way: inside *capture*, what the counting wrappers (generate_wrappers.py) are made of. The
// preload's entries lead there instead of to the recorder's wrappers as long as calls are counted
// (docs/capture.md, "Counting"). It does what Call does for such a call, for the usual case alone: a channel
// that was counted lately, one thread at a time in MPI, no receive whose completion has to be seen, nothing new
// from the relay. Whatever is not so goes on in the recorder's wrapper. noexcept, no heap, no lock.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/process.h"

namespace lbf::capture {

// The stack pointer of the caller of the wrapper that this is inlined into, and the address that it returns
// to.
[[gnu::always_inline]] inline const std::byte* wrapper_frame() noexcept {
  return static_cast<const std::byte*>(__builtin_dwarf_cfa());
}
[[gnu::always_inline]] inline const void* wrapper_return() noexcept {
  return __builtin_return_address(0);
}

// The control word of a ring: order and window in one.
inline std::uint64_t control_word(const ring::Header& header) noexcept {
  static_assert(offsetof(ring::Header, window) == offsetof(ring::Header, order) + 4 &&
                offsetof(ring::Header, order) % 8 == 0);
  using Word [[gnu::may_alias]] = std::uint64_t;
  return __atomic_load_n(reinterpret_cast<const Word*>(&header.order), __ATOMIC_RELAXED);
}

// The producer alone writes these: a plain add, visible to the relay.
[[gnu::always_inline]] inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept {
#if defined(__x86_64__)
  asm("addq %1, %0" : "+m"(counter) : "er"(amount) : "cc");
#else
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
#endif
}

// No request's completion has to be seen in any mode. (Those that a call waits for were made before it.)
inline bool nothing_watched() noexcept { return process.watched.empty(); }

// It is the next one that the sampler wants. true: as a null sample.
bool begin_timed_count(Thread& thread) noexcept;
// Its parts: from `begin` to `forward`, and from `returned` to `end`. By value, so that the call's state stays in registers.
void finish_timed_count(Thread& thread, std::uint64_t begin, std::uint64_t forward, std::uint64_t returned,
                        std::uint64_t end) noexcept;

// begin, forward, the program's call, returned, count if it succeeded, finish. Where begin says false, the recorder's
// wrapper has to look at the call.
class CountedCall {
 public:
  explicit CountedCall(std::uint16_t function) noexcept : function_(function) {}
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

  // A call that is no message: a probe.
  [[gnu::always_inline]] bool begin() noexcept { return begin_with<0>({}, 0, 0, 0, 0, 0); }
  // Its requests were counted when they were posted.
  [[gnu::always_inline]] bool begin_completion() noexcept { return nothing_watched() && begin(); }
  // One message, or a collective (kAnyRank, kAnyTag). Receives with wildcards are never remembered: false.
  [[gnu::always_inline]] bool begin(SkippedSide side, std::uint64_t comm, int peer, int tag) noexcept {
    return begin_with<1>(side, comm, peer, tag, 0, 0);
  }
  // A receive that takes its place when it is posted.
  [[gnu::always_inline]] bool begin_posted(std::uint64_t comm, int peer, int tag) noexcept {
    return nothing_watched() && begin(SkippedSide::kReceives, comm, peer, tag);
  }
  // A message each way.
  [[gnu::always_inline]] bool begin_exchange(std::uint64_t comm, int dest, int send_tag, int source,
                                             int recv_tag) noexcept {
    return begin_with<2>(SkippedSide::kSends, comm, dest, send_tag, source, recv_tag);
  }

  [[gnu::always_inline]] void forward() noexcept {
    available_thread = nullptr;
    thread_->outer_frame = wrapper_frame();
    thread_->outer_return = wrapper_return();
    if (timed_) [[unlikely]]
      forward_ticks_ = ticks_now();
  }
  [[gnu::always_inline]] void returned() noexcept {
    if (timed_) [[unlikely]]
      returned_ticks_ = ticks_now();
  }
  // REQUIRES: began with one message or collective; count_both: with two.
  [[gnu::always_inline]] void count() noexcept { ++*first_; }
  [[gnu::always_inline]] void count_both() noexcept {
    ++*first_;
    ++*second_;
  }
  [[gnu::always_inline]] void finish() noexcept {
    ring::Header* const header = thread_->header;
    add(header->calls[function_].count, 1);
    add(header->counted.executions, 1);
    available_thread = thread_;
    if (timed_) [[unlikely]]
      finish_timed_count(*thread_, begin_ticks_, forward_ticks_, returned_ticks_, ticks_now());
  }

 private:
  template <int kMessages>
  [[gnu::always_inline]] bool begin_with(SkippedSide side, std::uint64_t comm, int peer, int tag, int source,
                                         int recv_tag) noexcept {
    bool timed = false;
    for (;;) {
      Thread* const thread = available_thread;
      if (thread == nullptr) [[unlikely]]
        return false;
      const ring::Header* const header = thread->header;
      if (control_word(*header) != thread->expected_control.load(std::memory_order_relaxed)) [[unlikely]]
        return false;
      if constexpr (kMessages > 0) {
        if (thread->counts.names_epoch() != process.comm_epoch.load(std::memory_order_relaxed)) [[unlikely]]
          return false;
        if (!thread->counts.recall(side, comm, peer, tag, first_)) [[unlikely]]
          return false;
      }
      if constexpr (kMessages > 1) {
        if (!thread->counts.recall(SkippedSide::kReceives, comm, source, recv_tag, second_)) [[unlikely]]
          return false;
      }
      const std::uint64_t attention_at = thread->counted_attention_at;
      if (header->counted.executions.load(std::memory_order_relaxed) < attention_at) [[likely]] {
        thread_ = thread;
        timed_ = timed;
        return true;
      }
      if (attention_at == 0) return false;
      // Once more, and the time is taken of the very code that the others run: a copy of it would be timed with what it waits
      // for when it comes into the cache. A null sample has that code behind it.
      const bool is_null = begin_timed_count(*thread);
      timed = true;
      asm("" : "+r"(timed));  // unknown to the compiler, which would make that copy
      if (is_null) {
        thread_ = thread;
        timed_ = timed;
        begin_ticks_ = ticks_now();
        return true;
      }
      begin_ticks_ = ticks_now();
    }
  }

  Thread* thread_ = nullptr;
  std::uint64_t* first_ = nullptr;
  std::uint64_t* second_ = nullptr;
  std::uint64_t begin_ticks_ = 0;  // these where it is timed
  std::uint64_t forward_ticks_ = 0;
  std::uint64_t returned_ticks_ = 0;
  std::uint16_t function_;
  bool timed_ = false;
};

}  // namespace lbf::capture
