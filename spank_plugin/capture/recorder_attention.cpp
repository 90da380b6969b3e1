// Recorder, attention part: the rarer ways of a call. It is timed, it is counted, it follows a long gap, or the mode
// changed. See recorder.h, recorder_modes.h.
#include <algorithm>

#include "spank_plugin/capture/procedure_times.h"
#include "spank_plugin/capture/recorder.h"
#include "spank_plugin/capture/recorder_devices.h"
#include "spank_plugin/capture/recorder_modes.h"
#include "spank_plugin/capture/recorder_regions.h"

namespace lbf::capture {
namespace {

// The relay wants something else than the thread knows of, or has not come for too long.
bool wants_attention(Thread& thread) noexcept {
  const ring::Header& header = *thread.header;
  const bool is_new = control_word(header) != thread.attention.expected_control.load(std::memory_order_relaxed);
  return is_new || (!thread.mode.counting && (is_used_up(thread) || is_nearly_full(thread)));
}

// The thread is inside the recorder, and no other one changes the mode. Whether it knows the mode.
bool enter_when_unchanging(Thread& thread) noexcept {
  for (;;) {
    thread.mode.busy.exchange(true, std::memory_order_seq_cst);
    if (!process.mode.changing.load(std::memory_order_seq_cst)) break;
    leave_recorder(thread);
    sched_yield();
  }
  return thread.mode.epoch == process.mode.epoch.load(std::memory_order_acquire);
}

bool is_due(const ring::PrimitiveCounter& primitive, const Sampler& sampler) noexcept {
  return primitive.executions.load(std::memory_order_relaxed) >= sampler.due();
}

// Regions and waits are the window's: nobody closes that meanwhile. Where somebody has, they are nobody's.
void end_parts_of_gap(Thread& thread, std::uint64_t enter, std::uint16_t function) noexcept {
  if (!thread.mode.shared || enter_when_unchanging(thread)) {
    if (has_regions(thread)) write_regions(thread, enter, function);
    if (has_devices(thread)) write_devices(thread, enter, function);
  }
  thread.regions->clear();
  *thread.devices = {};
  if (thread.mode.shared) leave_recorder(thread);
}

// What a counted call did before it was known that it is timed, once more, so that it is in its time.
[[gnu::noinline]] void enter_again(Thread& thread) noexcept {
  const std::byte* frame = thread.outermost.frame;
  const void* from = thread.outermost.return_address;
  asm volatile("" : "+r"(frame), "+r"(from) : : "memory");
  available_thread = nullptr;
  thread.outermost.frame = frame;
  thread.outermost.return_address = from;
  bool looks = wants_attention(thread) || is_due(thread.header->counted, thread.cost.counted);
  asm volatile("" : "+r"(looks) : : "memory");
}

}  // namespace

bool Call::begin_otherwise() noexcept {
  Thread& thread = *thread_;
  ring::Header& header = *thread.header;
  if (wants_attention(thread) && !attend(thread, function_)) return false;
  if (thread.mode.attentive) flags_ |= kAttention;  // begin_in_run() may have found that out
  if (thread.mode.counting) {
    flags_ |= kCounts;
    if (!is_due(header.counted, thread.cost.counted)) return true;
    begin_timing();
    if (thread.cost.counted.is_null()) {
      begin_ticks_ = ticks_now();
    } else {
      enter_again(thread);
    }
    return true;
  }
  if (is_due(header.recorded, thread.cost.recorded)) {
    begin_timing();
  } else {
    set_attention(thread);
  }
  begin_recording();
  if (has_regions(thread) || has_devices(thread)) end_parts_of_gap(thread, enter_, function_);
  if (procedures_library() != nullptr) {
    // What it leaves is the window's: nobody closes that or ends the capture meanwhile. Where somebody has, the call
    // finds out when it returns.
    const bool knows_mode = !thread.mode.shared || enter_when_unchanging(thread);
    if (knows_mode && procedures_library() != nullptr) {
      end_procedure_interval(thread, enter_, gap_, function_);
    } else {
      thread.procedures.stale = true;  // goes on through the call: nobody's
    }
    if (thread.mode.shared) leave_recorder(thread);
    flags_ |= kAttention;
    if ((flags_ & kTimed) != 0) begin_ticks_ += ticks_now() - enter_;  // charged to the procedures
  }
  if ((flags_ & kTimed) != 0 && thread.cost.recorded.is_null()) begin_ticks_ = ticks_now();
  return true;
}

void Call::begin_timing() noexcept {
  Thread& thread = *thread_;
  const ring::PrimitiveCounter& primitive = counts() ? thread.header->counted : thread.header->recorded;
  (counts() ? thread.cost.counted : thread.cost.recorded).advance(primitive.executions.load(std::memory_order_relaxed));
  if (counts()) look_at_counted_grant(thread);
  set_attention(thread);
  flags_ |= kTimed | kAttention;
  begin_ticks_ = ticks_now();
}

void Call::forward_with_attention() noexcept {
  if ((flags_ & kTimed) == 0) return;
  forward_ticks_ = ticks_now();
  if (thread_->mode.last_was_failed_poll) look_cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void Call::returned_with_attention() noexcept {
  Thread& thread = *thread_;
  if ((flags_ & kTimed) != 0) {
    if (thread.mode.last_was_failed_poll) look_cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - look_cpu_ns_;
    returned_ticks_ = ticks_now();
  }
  if (!thread.mode.shared || (process.all_threads_barrier && enter_recorder(thread)) || enter_when_unchanging(thread))
    return;
  catch_up(thread);
  count_from_here();
}

namespace {

// A null sample has nothing between `begin` and `forward` but what the timing adds, and a sample has that twice.
void note_sample(Sampler& sampler, ring::PrimitiveCounter& primitive, std::uint64_t before_call,
                 std::uint64_t after_call) noexcept {
  sampler.note(primitive, sampler.is_null() ? 2 * before_call : before_call + after_call,
               tick_clock.off_cpu_tolerance != 0 ? tick_clock.off_cpu_tolerance : kNever);
}

}  // namespace

void Call::finish_with_attention(ring::PrimitiveCounter& primitive) noexcept {
  if ((flags_ & kTimed) != 0) {
    const std::uint64_t end = ticks_now();
    note_sample(counts() ? thread_->cost.counted : thread_->cost.recorded, primitive, forward_ticks_ - begin_ticks_,
                end - returned_ticks_);
    update_estimate(*thread_);
  }
  begin_procedure_interval(counts() ? ticks_now() : thread_->last_leave);
  leave_recorder(*thread_);
}

bool begin_timed_count(Thread& thread) noexcept {
  look_at_counted_grant(thread);
  thread.cost.counted.advance(thread.header->counted.executions.load(std::memory_order_relaxed));
  set_attention(thread);
  return thread.cost.counted.is_null();
}

void finish_timed_count(Thread& thread, std::uint64_t begin, std::uint64_t forward, std::uint64_t returned,
                        std::uint64_t end) noexcept {
  note_sample(thread.cost.counted, thread.header->counted, forward - begin, end - returned);
  update_estimate(thread);
}

void return_after_change(Thread& thread) noexcept {
  if (!enter_when_unchanging(thread)) catch_up(thread);
}

void count_after_change(Thread& thread, std::uint16_t function, PackedEnd end) noexcept {
  Call(function, thread).count(end.end());
}

void finish_after_change(Thread& thread, std::uint16_t function) noexcept {
  Call(function, thread).finish();
}

void Call::judge_long_gap() noexcept {
  const std::uint64_t spent = thread_->clock.spent_ticks();
  GapSplit split = thread_->clock.end_gap(thread_->last_leave, enter_, off_in_parts_of_gap(*thread_));
  judge_pool(*thread_, gap_, enter_, function_, split);
  adjust_gap(*thread_, split);
  thread_->procedures.gap_off_ticks = split.preempted + split.blocked;
  thread_->cost.beside_calls_ticks += thread_->clock.spent_ticks() - spent;
  thread_->cpu_threshold = std::min(thread_->clock.threshold(), gap_);  // this gap was judged, and stays so
  thread_->header->cpu_threshold_ticks.store(thread_->cpu_threshold, std::memory_order_relaxed);
}

std::uint64_t Call::renew_clock(std::uint64_t now) noexcept {
  const std::uint64_t spent = thread_->clock.spent_ticks();
  const std::uint64_t delay = thread_->clock.renew_after_call(enter_, now);
  if (delay > 0 && thread_->ring.recorded()) thread_->ring.delay_call(delay);
  if (thread_->pool.wants_call(now - enter_)) [[unlikely]] {
    thread_->pool.note_call(now - enter_, thread_->clock.cpu_ns());
    thread_->cost.beside_calls_ticks += tick_clock.cpu_read;
  }
  thread_->cost.beside_calls_ticks += thread_->clock.spent_ticks() - spent;
  return ticks_now();
}

// Longer than this for each part only where the thread lost its processor.
void Call::add_dear(std::uint64_t ticks, std::uint32_t parts) noexcept {
  Thread& thread = *thread_;
  if (const std::uint64_t tolerance = tick_clock.off_cpu_tolerance; tolerance != 0)
    ticks = std::min(ticks, tolerance + tolerance / kPartsInTolerance * parts);
  flags_ &= static_cast<std::uint8_t>(~kTimed);
  add((counts() ? thread.header->counted : thread.header->recorded).dear_ticks, ticks);
  if (counts()) return;
  thread.own_grants.dear_ticks += ticks;
  if (has_own_grant(thread)) thread.attention.recorded_at = 0;  // the next call looks
}

void Call::begin_side() noexcept {
  thread_->ring.begin_call(late() ? ticks_now() : process.mode.close_ticks, function_);
}

void Call::end_side() noexcept {
  thread_->ring.commit(thread_->ring.enter());
}

void Call::lose_count(std::uint64_t n) noexcept {
  if (counts() && !late()) {
    process.mode.uncounted.fetch_add(n, std::memory_order_relaxed);
  } else {
    thread_->ring.lose_calls(n, thread_->ring.enter());
  }
}

void Call::count_otherwise(const ChannelEnd& end) noexcept {
  if (late()) {
    write_skipped(thread_->ring, end, 1, ticks_now(), function_, Room::kOrLost);
    return;
  }
  if (write_counts_of(thread_->counts, thread_->ring, function_) && thread_->counts.count(end)) return;
  lose_count(1);
  process.mode.ordered_off = true;
  thread_->attention.expected_control.store(kNever, std::memory_order_relaxed);
}

void count_on(Call& call, const Communicator& comm, const ChannelEnd& end) noexcept {
  if (!std::atomic_ref<const bool>(comm.defined).load(std::memory_order_relaxed)) [[unlikely]]
    return call.lose_count(1);
  call.count(end);
}

void count_named(Call& call, const Communicator& comm, const ChannelEnd& end, MPI_Comm handle, int peer,
                 int tag) noexcept {
  count_on(call, comm, end);
  Thread& thread = call.thread();
  if (has_counted_calls(thread))
    thread.counts.remember(process.comm_epoch.load(std::memory_order_relaxed), end, key_of(handle), peer, tag);
}

bool write_counts(Call& call, const Communicator& comm) noexcept {
  return write_counts_of(comm.index, call.thread().counts, call.thread().ring, call.function());
}

}  // namespace lbf::capture
