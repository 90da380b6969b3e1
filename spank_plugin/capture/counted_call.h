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

// What a counting wrapper does next.
enum class CountedBegin : std::uint8_t {
  kHere,       // forward, the program's call, returned, count if it succeeded, finish
  kTimed,      // the same in the wrapper's twin that takes its time
  kElsewhere,  // the recorder's wrapper has to look at this call
};

// What the twin notes.
struct CountedTimes {
  std::uint64_t begin;
  std::uint64_t forward;
  std::uint64_t returned;
};
// It is the next one that the sampler wants; from when it is timed.
std::uint64_t begin_timed_count(Thread& thread) noexcept;
void finish_timed_count(Thread& thread, const CountedTimes& times) noexcept;

template <bool kIsTimed>
class CountedCall {
 public:
  explicit CountedCall(std::uint16_t function) noexcept : function_(function) {}
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

  // A call that is no message: a probe.
  [[gnu::always_inline]] CountedBegin begin() noexcept { return begin_with<0>({}, 0, 0, 0, 0, 0); }
  // Its requests were counted when they were posted.
  [[gnu::always_inline]] CountedBegin begin_completion() noexcept {
    if (!nothing_watched()) [[unlikely]]
      return CountedBegin::kElsewhere;
    return begin();
  }
  // One message, or a collective (kAnyRank, kAnyTag). Wildcards are never remembered: elsewhere.
  [[gnu::always_inline]] CountedBegin begin(SkippedSide side, std::uint64_t comm, int peer, int tag) noexcept {
    return begin_with<1>(side, comm, peer, tag, 0, 0);
  }
  // A receive that takes its place when it is posted.
  [[gnu::always_inline]] CountedBegin begin_posted(std::uint64_t comm, int peer, int tag) noexcept {
    if (!nothing_watched()) [[unlikely]]
      return CountedBegin::kElsewhere;
    return begin(SkippedSide::kReceives, comm, peer, tag);
  }
  // A message each way.
  [[gnu::always_inline]] CountedBegin begin_exchange(std::uint64_t comm, int dest, int send_tag, int source,
                                                     int recv_tag) noexcept {
    return begin_with<2>(SkippedSide::kSends, comm, dest, send_tag, source, recv_tag);
  }

  [[gnu::always_inline]] void forward() noexcept {
    available_thread = nullptr;
    thread_->outer_frame = wrapper_frame();
    thread_->outer_return = wrapper_return();
    if constexpr (kIsTimed) times_.forward = ticks_now();
  }
  [[gnu::always_inline]] void returned() noexcept {
    if constexpr (kIsTimed) times_.returned = ticks_now();
  }
  // REQUIRES: began with one message or collective; count_both: with two.
  [[gnu::always_inline]] void count() noexcept { ++*counters_[0]; }
  [[gnu::always_inline]] void count_both() noexcept {
    ++*counters_[0];
    ++*counters_[1];
  }
  [[gnu::always_inline]] void finish() noexcept {
    ring::Header* const header = thread_->header;
    add(header->calls[function_].count, 1);
    add(header->counted.executions, 1);
    if constexpr (kIsTimed) finish_timed_count(*thread_, times_);
    available_thread = thread_;
  }

 private:
  template <int kMessages>
  [[gnu::always_inline]] CountedBegin begin_with(SkippedSide side, std::uint64_t comm, int peer, int tag, int source,
                                                 int recv_tag) noexcept {
    Thread* const thread = available_thread;
    if (thread == nullptr) [[unlikely]]
      return CountedBegin::kElsewhere;
    if constexpr (kIsTimed) times_.begin = begin_timed_count(*thread);
    const ring::Header* const header = thread->header;
    if (control_word(*header) != thread->expected_control.load(std::memory_order_relaxed)) [[unlikely]]
      return CountedBegin::kElsewhere;
    if constexpr (kMessages > 0) {
      if (thread->counts.names_epoch() != process.comm_epoch.load(std::memory_order_relaxed)) [[unlikely]]
        return CountedBegin::kElsewhere;
      if (!thread->counts.recall(side, comm, peer, tag, counters_[0])) [[unlikely]]
        return CountedBegin::kElsewhere;
    }
    if constexpr (kMessages > 1) {
      if (!thread->counts.recall(SkippedSide::kReceives, comm, source, recv_tag, counters_[1])) [[unlikely]]
        return CountedBegin::kElsewhere;
    }
    const std::uint64_t attention_at = thread->counted_attention_at;
    if (header->counted.executions.load(std::memory_order_relaxed) >= attention_at) [[unlikely]]
      return attention_at != 0 ? CountedBegin::kTimed : CountedBegin::kElsewhere;
    thread_ = thread;
    return CountedBegin::kHere;
  }

  Thread* thread_;
  std::uint64_t* counters_[2];
  CountedTimes times_;
  std::uint16_t function_;
};

}  // namespace lbf::capture
