// Recorder, modes part: whether calls are recorded, counted by channel, or neither, and what is written when
// that changes. See recorder.h; docs/capture.md, "Counting"; docs/adr/0010-capture-windows.md.
//
// The relay says in each ring's control word what it wants; a thread looks at its own when a call begins. The
// mode is one for the process: the thread that notices changes it for all. It holds the StartLock, and waits
// only for threads that are inside the recorder, never for one that is inside MPI.
#include "spank_plugin/capture/recorder.h"

#include <algorithm>

#include "spank_plugin/capture/all_threads_barrier.h"
#include "spank_plugin/capture/procedure_times.h"

namespace lbf::capture {
namespace {

struct Control {
  std::uint64_t word;
  ring::CaptureOrder order;
  std::uint32_t window;
};

Control read_control(const ring::Header& header) noexcept {
  Control control{control_word(header), {}, 0};
  std::atomic_thread_fence(std::memory_order_acquire);
  std::uint32_t parts[2];
  __builtin_memcpy(parts, &control.word, sizeof(parts));
  control.order = static_cast<ring::CaptureOrder>(parts[0]);
  control.window = parts[1];
  return control;
}

template <class Visit>
void for_each_thread(Visit visit) noexcept {
  for (Thread* t = process.threads.load(std::memory_order_acquire); t != nullptr; t = t->next) visit(*t);
}

// While it lives no other thread is inside the recorder.
class ModeChange {
 public:
  explicit ModeChange(const Thread& self) noexcept REQUIRES(process.start_lock) : shared_(self.mode.shared) {
    if (!shared_) return;
    process.mode.changing.store(true, std::memory_order_seq_cst);
    if (process.all_threads_barrier) all_threads_barrier();
    for_each_thread([&](const Thread& thread) {
      if (&thread == &self) return;
      while (thread.mode.busy.load(std::memory_order_seq_cst)) sched_yield();
    });
#if defined(__x86_64__)
    _mm_lfence();  // else the ticks that are read next may be older than what was waited for
#endif
  }
  ~ModeChange() {
    if (shared_) process.mode.changing.store(false, std::memory_order_seq_cst);
  }
  ModeChange(const ModeChange&) = delete;
  ModeChange& operator=(const ModeChange&) = delete;

 private:
  bool shared_;
};

void update_estimate(Thread& thread) noexcept {
  const std::uint64_t calls = thread.header->recorded.executions.load(std::memory_order_relaxed);
  thread.header->capture_ticks_estimate.store(thread.cost.beside_calls_ticks + calls * thread.cost.call_ticks,
                                              std::memory_order_relaxed);
}

bool is_used_up(const ring::Header& header) noexcept {
  const std::uint64_t grant = header.grant.load(std::memory_order_relaxed);
  return grant != 0 && header.recorded.executions.load(std::memory_order_relaxed) >= grant;
}

bool is_counting_used_up(const ring::Header& header) noexcept {
  const std::uint64_t grant = header.counted_grant.load(std::memory_order_relaxed);
  return grant != 0 && header.counted.executions.load(std::memory_order_relaxed) >= grant;
}

// What the rank may do before its relay has spoken, of one of the two primitives: in all, by threads that ended, a thread's
// part of it as it set it itself.
struct FirstGrant {
  std::uint64_t all;
  std::uint64_t used_before;
  std::uint64_t OwnGrants::*own;
  std::atomic<std::uint64_t> ring::Header::*grant;
  ring::PrimitiveCounter ring::Header::*primitive;
};

// A thread that has used up its part takes half of what all of them have left. false: the relay has spoken, or nothing is left.
bool take_more(Thread& self, const FirstGrant& first) noexcept REQUIRES(process.start_lock) {
  std::atomic<std::uint64_t>& grant = self.header->*first.grant;
  if (grant.load(std::memory_order_relaxed) != self.own_grants.*first.own) return false;
  std::uint64_t used = first.used_before;
  for_each_thread([&](const Thread& thread) {
    used += (thread.header->*first.primitive).executions.load(std::memory_order_relaxed);
  });
  if (used >= first.all) return false;
  self.own_grants.*first.own += (first.all - used + 1) / 2;
  grant.store(self.own_grants.*first.own, std::memory_order_relaxed);
  return true;
}

bool records_on(Thread& self) noexcept REQUIRES(process.start_lock) {
  return take_more(self, {process.settings.first_grant, process.ended.recorded_calls, &OwnGrants::recorded, &ring::Header::grant,
                          &ring::Header::recorded});
}

bool counts_on(Thread& self) noexcept REQUIRES(process.start_lock) {
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(process.settings.first_grant, ring::kFirstCountedPerRecorded, &all)) return false;
  return take_more(self, {all, process.ended.counted_calls, &OwnGrants::counted, &ring::Header::counted_grant,
                          &ring::Header::counted});
}

// The next call ends the capture where the counted ones are used up.
void look_at_counted_grant(Thread& thread) noexcept {
  if (is_counting_used_up(*thread.header)) thread.attention.expected_control.store(kNever, std::memory_order_relaxed);
}

// Where the capture is regulated a ring that fills closes the window before anything is lost: the relay has not
// kept up. Looked at as often as calls are sampled.
bool is_nearly_full(Thread& thread) noexcept {
  return thread.header->grant.load(std::memory_order_relaxed) != 0 && thread.ring.nearly_full();
}

void set_attention(Thread& thread) noexcept {
  if (thread.mode.counting) {
    thread.attention.recorded_at = 0;
    thread.attention.counted_at = has_counted_calls(thread) ? thread.cost.counted.due() : 0;
    return;
  }
  thread.attention.counted_at = 0;
  if (procedures_library() != nullptr) {
    thread.attention.recorded_at = 0;
    return;
  }
  const std::uint64_t grant = thread.header->grant.load(std::memory_order_relaxed);
  const std::uint64_t due = thread.cost.recorded.due();
  thread.attention.recorded_at = grant != 0 && grant < due ? grant : due;
}

// The thread goes on in the process's mode; `now`: when its process time begins anew (open).
void take_mode(Thread& thread, std::uint64_t now) noexcept {
  const RecordingMode& mode = process.mode;
  thread.mode.epoch = mode.epoch.load(std::memory_order_relaxed);
  thread.mode.counting = mode.counting;
  thread.procedures.stale |= mode.counting;
  thread.ring.drop_adjustments();
  thread.header->in_call.store(mode.counting ? ring::kWhereUnknown : ring::kInProgram, std::memory_order_relaxed);
  if (!mode.counting) {
    thread.last_leave = now;
    thread.mode.last_was_failed_poll = false;
    const SharedLock lock(thread.completed.lock);
    for (CompletedRequests& completed : thread.completed.queues) completed.clear();
  }
  set_attention(thread);
}

// Another thread changed the mode.
void catch_up(Thread& thread) noexcept {
  if (thread.mode.epoch == process.mode.epoch.load(std::memory_order_acquire)) return;
  if (!process.mode.counting) thread.clock.renew();
  take_mode(thread, ticks_now());
}

void set_recording_window(const Thread& self, std::uint32_t window) noexcept {
  process.mode.epoch.fetch_add(1, std::memory_order_release);
  for_each_thread([&](Thread& thread) {
    thread.header->recording_window.store(window, std::memory_order_relaxed);
    if (&thread != &self) thread.attention.expected_control.store(kNever, std::memory_order_relaxed);
  });
}

bool write_skipped(RingWriter& ring, const ChannelEnd& end, std::uint64_t count, std::uint64_t at,
                   std::uint16_t function, bool must) noexcept {
  ring.begin_call(at, function);
  ring::Record* const record =
      must ? ring.append(EventKind::kSkipped) : ring.try_append(EventKind::kSkipped);
  if (record != nullptr) {
    record->words_and_op |= static_cast<std::uint32_t>(end.side) << 24;
    record->peer = end.peer;
    record->tag = end.tag;
    record->comm = end.comm;
    record->bytes = count;
  } else if (!must) {
    return false;
  }
  ring.commit(at);
  return record != nullptr;
}

// What was counted into the ring, as having no time, as far as there is room. false: not all.
bool write_counts_of(ChannelCounts& counts, RingWriter& ring, std::uint16_t function) noexcept {
  return counts.take_changes([&](const ChannelEnd& end, std::uint64_t count) {
    return write_skipped(ring, end, count, process.mode.close_ticks, function, false);
  });
}

// REQUIRES: no other thread is inside the recorder.
bool write_all_counts(Thread& self, std::uint16_t function) noexcept REQUIRES(process.start_lock) {
  // What others remember of their tables is void: a call of theirs that is under way looks again.
  self.mode.epoch = process.mode.epoch.fetch_add(1, std::memory_order_release) + 1;
  bool all = write_counts_of(process.ended.counts, self.ring, function);
  for_each_thread([&](Thread& thread) { all = all && write_counts_of(thread.counts, self.ring, function); });
  return all;
}

void append_mark(RingWriter& ring, EventKind kind, std::uint64_t enter, std::uint64_t leave, std::uint64_t bytes,
                 std::uint16_t function) noexcept {
  ring.begin_call(enter, function);
  if (ring::Record* record = ring.append(kind)) record->bytes = bytes;
  ring.commit(leave);
}

// Their ends are nobody's business any more.
void forget_placed_receives() noexcept {
  const TableLock lock;
  process.watched.for_each([](WatchedRequests::Node& node) REQUIRES(process.table_lock) {
    if (node.placed) process.watched.remove(&node);
  });
}

// Requests of the window that closes which were cancelled and are not over: whether their messages are taken back nobody will see, but
// of those that are watched. A look at the whole table, where anything was cancelled in the window.
std::uint64_t count_cancelled() noexcept {
  if (!process.mode.any_cancelled.exchange(false, std::memory_order_relaxed)) return 0;
  std::uint64_t count = 0;
  const TableLock lock;
  process.requests.for_each([&](const RequestInfo& info) REQUIRES(process.table_lock) {
    const bool is_message = info.kind == RequestKind::kSend || info.kind == RequestKind::kRecv;
    if (!is_message || !info.active || !info.cancelled || !is_seen(info.id)) return;
    if (process.watched.find(info.watch, info.id) == nullptr) ++count;
  });
  return count;
}

// What is taken away from the thread's gap goes before the record that ends it, whatever record that is.
void judge_gap_until(Thread& self, std::uint64_t now) noexcept {
  if (now - self.last_leave >= self.cpu_threshold) {
    const GapSplit split = self.clock.end_gap(self.last_leave, now);
    if ((split.preempted | split.blocked) != 0) self.ring.adjust(split.preempted, split.blocked, 0);
  }
  self.last_leave = now;
}

// Later than all that any thread has recorded: who merges the rings by time finds every record of the window before its
// close, and none behind it. REQUIRES: no other thread is inside the recorder.
std::uint64_t end_of_window(const Thread& self) noexcept {
  std::uint64_t latest = ticks_now();
  if (!self.mode.shared) return latest;
  for_each_thread([&](const Thread& thread) { latest = std::max(latest, thread.last_leave); });
  return latest + 1;
}

// REQUIRES: no other thread is inside the recorder; the mode is open.
void close_window(Thread& self, std::uint16_t function) noexcept {
  RecordingMode& mode = process.mode;
  const std::uint64_t now = end_of_window(self);
  judge_gap_until(self, now);
  self.ring.use_kept_back();
  append_mark(self.ring, EventKind::kWindowClose, now, now, 0, function);
  self.ring.keep_back();
  forget_placed_receives();
  mode.uncounted.fetch_add(count_cancelled(), std::memory_order_relaxed);
  mode.close_ticks = now;
  mode.counting = true;
  mode.ever_counted = true;
  set_recording_window(self, 0);
  take_mode(self, now);
  if (has_counted_calls(self)) lead_calls_to_counting_wrappers(self.mode.shared);
  update_estimate(self);
}

// Receives that are under way and have no place yet are posted anew in the window.
void post_watched(Thread& self, std::uint64_t at, std::uint16_t function) noexcept {
  const TableLock lock;
  process.watched.for_each([&](WatchedRequests::Node& node) REQUIRES(process.table_lock) {
    RequestTable::Entry entry;
    const RequestInfo& info = entry.info;
    if (!process.requests.read(node.handle, entry) || info.id != node.id) return process.watched.remove(&node);
    if (info.kind != RequestKind::kRecv) return;
    node.recorded_as = new_request_id(self);
    self.ring.begin_call(at, function);
    if (ring::Record* record = self.ring.append(EventKind::kStartRecv)) {
      record->peer = info.comm->peer_world_rank(info.peer);
      record->tag = info.tag;
      record->comm = info.comm->index;
      record->bytes = info.bytes;
      record->request = node.recorded_as;
      record->flags = static_cast<std::uint8_t>(record->flags | kFlagHasRequest | wildcards(info.peer, info.tag));
    }
    self.ring.commit(at);
  });
}

void begin_window(Thread& self, std::uint32_t window, std::uint64_t now) noexcept {
  RecordingMode& mode = process.mode;
  mode.window = window;
  mode.counting = false;
  process.request_numbers.begin_window();
  set_recording_window(self, window);
  take_mode(self, now);
  lead_calls_to_wrappers();
}

// false: the ring has no room for what is to be said first; nothing changed but that some of it is said.
// REQUIRES: no other thread is inside the recorder; the mode is counting.
bool open_window(Thread& self, std::uint32_t window, std::uint16_t function) noexcept REQUIRES(process.start_lock) {
  RecordingMode& mode = process.mode;
  if (!write_all_counts(self, function)) return false;
  self.clock.renew();
  self.ring.begin_call(mode.close_ticks, function);
  ring::Record* const record = self.ring.try_append(EventKind::kWindowOpen);
  if (record == nullptr) return false;
  record->bytes = window;
  const std::uint64_t now = ticks_now();
  self.ring.commit(now);
  begin_window(self, window, now);
  self.ring.lose_calls(mode.uncounted.exchange(0, std::memory_order_relaxed), now);
  post_watched(self, now, function);
  return true;
}

void leave_thread() noexcept {
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
}

// For the rest of the run, from where the last window closed: nothing is lost, but from there on this rank's end of
// every message is one that nobody recorded. What was counted since then need not be known.
// REQUIRES: no other thread is inside the recorder.
void go_off(Thread& self, std::uint16_t function) noexcept {
  RecordingMode& mode = process.mode;
  if (!mode.counting) close_window(self, function);
  mode.uncounted.store(0, std::memory_order_relaxed);
  self.ring.use_kept_back();
  write_skipped(self.ring, {0, kAnyRank, kAnyTag, SkippedSide::kEverything}, 1, mode.close_ticks, function, true);
  say_last_of_procedures(self, ProceduresEnd::kCapture);
  mode.off.store(true, std::memory_order_release);
  stop_procedures();
  const std::uint64_t now = ticks_now();
  for_each_thread([&](Thread& thread) {
    thread.header->off_ticks.store(now, std::memory_order_relaxed);
    thread.header->off.store(1, std::memory_order_relaxed);
    // One whose call leads into a wrapper all the same (MPI_Finalize) finds out there.
    if (&thread != &self) thread.attention.expected_control.store(kNever, std::memory_order_relaxed);
  });
  lead_calls_past_wrappers();
  leave_thread();
}

// Its ring is older than the run: its gaps are judged from there on, or from the call that it got in before.
void begin_in_run(Thread& self) noexcept {
  if (process.shared.load(std::memory_order_relaxed) && !self.mode.shared) {  // its ring was named while MPI_Init was ending
    self.mode.shared = self.mode.attentive = true;
    use_shared_ideal(self);
  }
  const std::uint64_t begin = process.run.init_leave_ticks;
  if (self.last_leave < begin && self.header->recorded.executions.load(std::memory_order_relaxed) == 0) {
    self.last_leave = begin;
    self.clock.begin_run(begin);
  }
  self.cpu_threshold = tick_clock.cpu_threshold;
}

// Does what the relay wants by now. false: the capture is off.
bool attend(Thread& self, std::uint16_t function) noexcept {
  RecordingMode& mode = process.mode;
  if (mode.off.load(std::memory_order_acquire) || process.state.load(std::memory_order_acquire) == CaptureState::kOff) {
    leave_thread();
    return false;
  }
  if (!process.run.initialised.load(std::memory_order_acquire)) {
    learn_world_if_initialised();
    return true;
  }
  if (self.cpu_threshold == kNever) begin_in_run(self);
  // With one thread in MPI at a time nobody changes the mode now; but a thread that ends may have the lock.
  if (!self.mode.shared) catch_up(self);
  if (!process.start_lock.try_lock()) return true;  // another thread starts, ends or changes the mode: the next call looks again
  const StartLock lock(StartLock::kAdopt);
  catch_up(self);
  const Control control = read_control(*self.header);
  bool again = false;
  if (control.order == ring::CaptureOrder::kOff || mode.ordered_off ||
      (mode.counting && is_counting_used_up(*self.header) && !counts_on(self))) {
    const ModeChange change(self);
    go_off(self, function);
    return false;
  }
  const bool opens = control.order == ring::CaptureOrder::kOpen && control.window > mode.window;
  const bool closes =
      opens || (control.order == ring::CaptureOrder::kCounting && control.window >= mode.window);
  if (!mode.counting && (closes || (is_used_up(*self.header) && !records_on(self)) || is_nearly_full(self))) {
    const ModeChange change(self);
    close_window(self, function);
  }
  if (mode.counting && opens) {
    again = is_nearly_full(self) || ticks_now() < process.next_try_ticks;
    if (!again) {
      const ModeChange change(self);
      again = !open_window(self, control.window, function);
    }
    // To disturb all threads takes its time, too.
    if (again && self.mode.shared && ticks_now() >= process.next_try_ticks) process.next_try_ticks = ticks_now() + tick_clock.cpu_threshold;
  }
  self.attention.expected_control.store(again ? kNever : control.word, std::memory_order_relaxed);
  set_attention(self);
  return true;
}

}  // namespace

// --- a call

namespace {

// The relay wants something else than the thread knows of, or has not come for too long.
bool wants_attention(Thread& thread) noexcept {
  const ring::Header& header = *thread.header;
  const bool is_new = control_word(header) != thread.attention.expected_control.load(std::memory_order_relaxed);
  return is_new || (!thread.mode.counting && (is_used_up(header) || is_nearly_full(thread)));
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
  if (procedures_library() != nullptr) {
    // What it leaves is the window's: nobody closes that or ends the capture meanwhile. Where somebody has, the call finds out
    // when it returns.
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
  (counts() ? thread.cost.counted : thread.cost.recorded)
      .advance(primitive.executions.load(std::memory_order_relaxed));
  if (counts()) look_at_counted_grant(thread);
  set_attention(thread);
  flags_ |= kTimed | kAttention;
  begin_ticks_ = ticks_now();
}

void Call::forward_with_attention() noexcept {
  if ((flags_ & kTimed) != 0) forward_ticks_ = ticks_now();
}

void Call::returned_with_attention() noexcept {
  if ((flags_ & kTimed) != 0) returned_ticks_ = ticks_now();
  Thread& thread = *thread_;
  if (!thread.mode.shared || (process.all_threads_barrier && enter_recorder(thread)) || enter_when_unchanging(thread)) return;
  catch_up(thread);
  flags_ = static_cast<std::uint8_t>((flags_ & ~(kTimed | kLate)) | kCounts | (thread.mode.counting ? 0 : kLate));
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
    note_sample(counts() ? thread_->cost.counted : thread_->cost.recorded, primitive,
                forward_ticks_ - begin_ticks_, end - returned_ticks_);
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
  const GapSplit split = thread_->clock.end_gap(thread_->last_leave, enter_);
  if ((split.preempted | split.blocked) != 0) thread_->ring.adjust(split.preempted, split.blocked, 0);
  thread_->procedures.gap_off_ticks = split.preempted + split.blocked;
  thread_->cost.beside_calls_ticks += tick_clock.cpu_read;
}

std::uint64_t Call::renew_clock(std::uint64_t now) noexcept {
  thread_->clock.renew_after_call(enter_, now);
  thread_->cost.beside_calls_ticks += tick_clock.cpu_read;
  return ticks_now();
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
    write_skipped(thread_->ring, end, 1, ticks_now(), function_, true);
    return;
  }
  if (write_counts(*this) && thread_->counts.count(end)) return;
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

bool write_counts(Call& call) noexcept {
  return write_counts_of(call.thread().counts, call.thread().ring, call.function());
}

std::uint64_t open_last_window(Call& call) noexcept {
  Thread& self = call.thread();
  const StartLock lock;
  const ModeChange change(self);
  catch_up(self);
  RecordingMode& mode = process.mode;
  const bool all = !mode.counting || write_all_counts(self, call.function());
  const std::uint64_t now = ticks_now();
  if (mode.counting) {
    self.ring.use_kept_back();
    append_mark(self.ring, EventKind::kWindowOpen, mode.close_ticks, now, mode.window, call.function());
    begin_window(self, mode.window, now);
    self.ring.lose_calls(mode.uncounted.exchange(0, std::memory_order_relaxed) + (all ? 0 : 1), now);
  }
  update_estimate(self);
  return now;
}

}  // namespace lbf::capture
