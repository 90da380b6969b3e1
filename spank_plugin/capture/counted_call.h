// CountedCall: one MPI call on its way through a wrapper while the capture only counts.
//
// Place in the event's way: inside *capture*, what the counting wrappers (generate_wrappers.py) are made of. The
// preload's entries lead there instead of to the recorder's wrappers as long as calls are counted
// (docs/capture.md, "Counting"). It does what Call does for such a call, for the usual case alone: a channel
// that was counted lately, no receive whose completion has to be seen, nothing new from the relay. Whatever is not
// so goes on in the recorder's wrapper. Where several threads are in MPI at once (SharedCountedCall) the mode may
// change while the call is under way: it is looked at once more when it returns. noexcept, no heap, no lock, no
// locked operation.
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
// Without the lock: it is one word, read atomically.
inline bool nothing_watched() noexcept NO_THREAD_SAFETY_ANALYSIS {
  return process.watched.empty();
}

// It is the next one that the sampler wants. true: as a null sample.
bool begin_timed_count(Thread& thread) noexcept;
// Its parts: from `begin` to `forward`, and from `returned` to `end`. By value, so that the call's state stays in
// registers.
void finish_timed_count(Thread& thread, std::uint64_t begin, std::uint64_t forward, std::uint64_t returned,
                        std::uint64_t end) noexcept;

// Whether the thread's calls may come here while they are counted.
inline bool has_counted_calls(const Thread& thread) noexcept {
  return !thread.mode.shared || process.all_threads_barrier;
}

// Between enter_recorder and leave_recorder no other thread changes the mode, or takes what this one has counted
// (ModeChange, recorder_modes.cpp). The store may become visible after the loads: the other one's all_threads_barrier
// comes before it, then these loads have seen that the mode changes, or behind it, then the other one waits. false: the
// mode changes just now, or has changed, which the thread does not know of yet; it is inside all the same.
// REQUIRES: process.all_threads_barrier.
[[gnu::always_inline]] inline bool enter_recorder(Thread& thread) noexcept {
  thread.mode.busy.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return !process.mode.changing.load(std::memory_order_acquire) &&
         process.mode.epoch.load(std::memory_order_relaxed) == thread.mode.epoch;
}
[[gnu::always_inline]] inline void leave_recorder(Thread& thread) noexcept {
  thread.mode.busy.store(false, std::memory_order_release);
}

// enter_recorder said false when a counted call returned: waits until the change is over, and goes on in the new mode.
void return_after_change(Thread& thread) noexcept;
// Of such a call what it counts, wherever that belongs now; and its end.
void count_after_change(Thread& thread, std::uint16_t function, PackedEnd end) noexcept;
void finish_after_change(Thread& thread, std::uint16_t function) noexcept;

// begin, forward, the program's call, returned, count if it succeeded, finish. Where begin says false, the recorder's
// wrapper has to look at the call. kShared: several threads are in MPI at once.
template <bool kShared>
class BasicCountedCall {
 public:
  explicit BasicCountedCall(std::uint16_t function) noexcept : function_(function) {}
  BasicCountedCall(const BasicCountedCall&) = delete;
  BasicCountedCall& operator=(const BasicCountedCall&) = delete;

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
    thread_->outermost.frame = wrapper_frame();
    thread_->outermost.return_address = wrapper_return();
    if (timed_) [[unlikely]]
      forward_ticks_ = ticks_now();
  }
  [[gnu::always_inline]] void returned() noexcept {
    if (timed_) [[unlikely]]
      returned_ticks_ = ticks_now();
    if constexpr (kShared) {
      if (!enter_recorder(*thread_)) [[unlikely]] {
        changed_ = true;
        timed_ = false;
        return_after_change(*thread_);
      }
    }
  }
  // REQUIRES: began with one message or collective; count_both: with two.
  [[gnu::always_inline]] void count() noexcept {
    if (kShared && changed_) [[unlikely]]
      return count_after_change(*thread_, function_, first_end_);
    ++*first_;
  }
  [[gnu::always_inline]] void count_both() noexcept {
    count();
    if (kShared && changed_) [[unlikely]]
      return count_after_change(*thread_, function_, second_end_);
    ++*second_;
  }
  [[gnu::always_inline]] void finish() noexcept {
    if (kShared && changed_) [[unlikely]]
      return finish_after_change(*thread_, function_);
    ring::Header* const header = thread_->header;
    add(header->calls[function_].count, 1);
    add(header->counted.executions, 1);
    if constexpr (kShared) leave_recorder(*thread_);
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
      const auto leave = [thread](bool begun) {
        if constexpr (kShared) leave_recorder(*thread);
        return begun;
      };
      if constexpr (kShared) {
        if (!enter_recorder(*thread)) [[unlikely]]
          return leave(false);
      }
      const ring::Header* const header = thread->header;
      if (control_word(*header) != thread->attention.expected_control.load(std::memory_order_relaxed)) [[unlikely]]
        return leave(false);
      if constexpr (kMessages > 0) {
        if (thread->counts.names_epoch() != process.comm_epoch.load(std::memory_order_relaxed)) [[unlikely]]
          return leave(false);
        if (!thread->counts.recall(side, comm, peer, tag, first_)) [[unlikely]]
          return leave(false);
        if constexpr (kShared) first_end_ = ChannelCounts::end_of(first_);
      }
      if constexpr (kMessages > 1) {
        if (!thread->counts.recall(SkippedSide::kReceives, comm, source, recv_tag, second_)) [[unlikely]]
          return leave(false);
        if constexpr (kShared) second_end_ = ChannelCounts::end_of(second_);
      }
      const std::uint64_t attention_at = thread->attention.counted_at;
      if (header->counted.executions.load(std::memory_order_relaxed) < attention_at) [[likely]] {
        thread_ = thread;
        timed_ = timed;
        return leave(true);
      }
      if (attention_at == 0) return leave(false);
      // Once more, and the time is taken of the very code that the others run: a copy of it would be timed with what it
      // waits for when it comes into the cache. A null sample has that code behind it.
      const bool is_null = begin_timed_count(*thread);
      timed = true;
      asm("" : "+r"(timed));  // unknown to the compiler, which would make that copy
      if (is_null) {
        thread_ = thread;
        timed_ = timed;
        begin_ticks_ = ticks_now();
        return leave(true);
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
  PackedEnd first_end_;  // these where shared: a counter is found again by what it counts
  PackedEnd second_end_;
  std::uint16_t function_;
  bool timed_ = false;
  bool changed_ = false;  // the mode, while the call was under way
};

using CountedCall = BasicCountedCall<false>;
using SharedCountedCall = BasicCountedCall<true>;

}  // namespace lbf::capture
