// Recorder, modes part: whether calls are recorded, counted by channel, or neither, and what is written when
// that changes. See recorder_modes.h; docs/capture.md, "Counting"; docs/adr/0010-capture-windows.md.
//
// The relay says in each ring's control word what it wants; a thread looks at its own when a call begins. The program
// says in MPI_Pcontrol what it wants: what both want is recorded. The mode is one for the process: the thread that
// notices changes it for all. It holds the StartLock, and waits only for threads that are inside the recorder, never
// for one that is inside MPI.
#include "spank_plugin/capture/recorder_modes.h"

#include <algorithm>

#include "spank_plugin/capture/all_threads_barrier.h"
#include "spank_plugin/capture/procedure_times.h"
#include "spank_plugin/capture/recorder.h"
#include "spank_plugin/capture/recorder_devices.h"
#include "spank_plugin/capture/recorder_regions.h"

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

// What the rank may do before its relay has spoken, of one of the two primitives: in all, by threads that ended, a
// thread's part of it as it set it itself.
struct FirstGrant {
  std::uint64_t all;
  std::uint64_t used_before;
  std::uint64_t OwnGrants::*own;
  std::atomic<std::uint64_t> ring::Header::*grant;
  std::uint64_t (*use)(const Thread&) noexcept;
};

// A thread that has used up its part takes half of what all of them have left. false: the relay has spoken, or nothing
// is left.
bool take_more(Thread& self, const FirstGrant& first) noexcept REQUIRES(process.start_lock) {
  std::atomic<std::uint64_t>& grant = self.header->*first.grant;
  if (grant.load(std::memory_order_relaxed) != self.own_grants.*first.own) return false;
  std::uint64_t used = first.used_before;
  for_each_thread([&](const Thread& thread) { used += first.use(thread); });
  if (used >= first.all) return false;
  self.own_grants.*first.own += (first.all - used + 1) / 2;
  grant.store(self.own_grants.*first.own, std::memory_order_relaxed);
  return true;
}

std::uint64_t counted_use(const Thread& thread) noexcept {
  return thread.header->counted.executions.load(std::memory_order_relaxed);
}

bool records_on(Thread& self) noexcept REQUIRES(process.start_lock) {
  return take_more(self, {process.settings.first_grant, process.ended.recorded_calls, &OwnGrants::recorded,
                          &ring::Header::grant, recorded_use});
}

bool counts_on(Thread& self) noexcept REQUIRES(process.start_lock) {
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(process.settings.first_grant, ring::kFirstCountedPerRecorded, &all)) return false;
  return take_more(self,
                   {all, process.ended.counted_calls, &OwnGrants::counted, &ring::Header::counted_grant, counted_use});
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
  watch_regions(thread);
  set_attention(thread);
}

void answer_relay() noexcept {
  const std::uint32_t window = process.mode.window_of_relay();
  for_each_thread([&](Thread& thread) { thread.header->recording_window.store(window, std::memory_order_relaxed); });
}

void announce_mode(const Thread& self) noexcept {
  process.mode.epoch.fetch_add(1, std::memory_order_release);
  answer_relay();
  for_each_thread([&](Thread& thread) {
    if (&thread != &self) thread.attention.expected_control.store(kNever, std::memory_order_relaxed);
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

// Their ends are nobody's business any more.
void forget_placed_receives() noexcept {
  const TableLock lock;
  process.watched.for_each([](WatchedRequests::Node& node) REQUIRES(process.table_lock) {
    if (node.placed) process.watched.remove(&node);
  });
}

// Requests of the window that closes which were cancelled and are not over: whether their messages are taken back
// nobody will see, but of those that are watched. A look at the whole table, where anything was cancelled in the
// window.
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
    const GapSplit split = self.clock.end_gap(self.last_leave, now, off_in_parts_of_gap(self));
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
  if (has_regions(self)) write_regions(self, now, function);
  if (has_devices(self)) write_devices(self, now, function);
  self.ring.use_kept_back();
  self.ring.begin_call(now, function);
  (void)self.ring.append(EventKind::kWindowClose);
  self.ring.commit(now);
  self.ring.keep_back();
  forget_placed_receives();
  mode.uncounted.fetch_add(count_cancelled(), std::memory_order_relaxed);
  mode.close_ticks = now;
  mode.counting = true;
  mode.ever_counted = true;
  announce_mode(self);
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
      record->tag = recorded_tag(info.tag);
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
  mode.window_over = mode.window_over && window == mode.window;
  mode.window = window;
  mode.counting = false;
  process.request_numbers.begin_window();
  announce_mode(self);
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
  ring::set_window(*record, window);
  const std::uint64_t now = ticks_now();
  self.ring.commit(now);
  begin_window(self, window, now);
  self.ring.lose_calls(mode.uncounted.exchange(0, std::memory_order_relaxed), now);
  post_watched(self, now, function);
  return true;
}

// What the program asked for last, into the ring. While calls are counted for another reason an empty window has it:
// what lies between two windows is all inside of the program's scope, or all outside. false: no room now. REQUIRES: no
// other thread is inside the recorder.
bool follow_program(Thread& self, std::uint16_t function) noexcept REQUIRES(process.start_lock) {
  RecordingMode& mode = process.mode;
  if (mode.outside == mode.wants_outside) return true;
  if (mode.counting && (is_nearly_full(self) || !open_window(self, mode.window, function))) return false;
  const std::uint64_t at = std::max(self.ring.enter(), self.last_leave);
  mode.outside = mode.wants_outside;
  self.ring.use_kept_back();
  self.ring.begin_call(at, function);
  if (ring::Record* const record = self.ring.append(EventKind::kPhase))
    ring::set_phase_level(*record, mode.outside ? kScopeEnds : kScopeBegins);
  self.ring.commit(at);
  self.ring.keep_back();
  self.last_leave = at;
  if (mode.outside || mode.window_over) close_window(self, function);
  return true;
}

// Outside of the program's scope a window opens and closes for the relay alone.
void follow_relay_outside(const Control& control, bool opens, bool closes) noexcept {
  RecordingMode& mode = process.mode;
  if (!opens && (!closes || mode.window_over)) return;
  if (opens) mode.window = control.window;
  mode.window_over = !opens;
  answer_relay();
}

void leave_thread() noexcept {
  unwatch_regions();
  available_thread = nullptr;
  own_thread = nullptr;
  thread_state = ThreadState::kOff;
}

// For the rest of the run, from where the last window closed: nothing is lost, but from there on this rank's end of
// every message is one that nobody recorded. What was counted since then need not be known.
// REQUIRES: no other thread is inside the recorder.
void go_off(Thread& self, std::uint16_t function) noexcept {
  RecordingMode& mode = process.mode;
  mode.window_over = true;
  if (!mode.counting) close_window(self, function);
  mode.uncounted.store(0, std::memory_order_relaxed);
  self.ring.use_kept_back();
  write_skipped(self.ring, {0, kAnyRank, kAnyTag, SkippedSide::kEverything}, 1, mode.close_ticks, function,
                Room::kOrLost);
  say_last_of_procedures(self, ProceduresEnd::kCapture);
  mode.off.store(true, std::memory_order_release);
  stop_procedures();
  stop_regions();
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
  if (process.shared.load(std::memory_order_relaxed) &&
      !self.mode.shared) {  // its ring was named while MPI_Init was ending
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

}  // namespace

void catch_up(Thread& thread) noexcept {
  if (thread.mode.epoch == process.mode.epoch.load(std::memory_order_acquire)) return;
  if (!process.mode.counting) thread.clock.renew();
  take_mode(thread, ticks_now());
}

bool write_skipped(RingWriter& ring, const ChannelEnd& end, std::uint64_t count, std::uint64_t at,
                   std::uint16_t function, Room room) noexcept {
  ring.begin_call(at, function);
  ring::Record* const record =
      room == Room::kOrLost ? ring.append(EventKind::kSkipped) : ring.try_append(EventKind::kSkipped);
  if (record != nullptr) {
    ring::set_skipped(*record, end.side, count);
    record->peer = end.peer;
    record->tag = end.tag;
    record->comm = end.comm;
  } else if (room == Room::kOrNothing) {
    return false;
  }
  ring.commit(at);
  return record != nullptr;
}

namespace {

auto skipped_into(RingWriter& ring, std::uint16_t function) noexcept {
  return [&ring, function](const ChannelEnd& end, std::uint64_t count) noexcept {
    return write_skipped(ring, end, count, process.mode.close_ticks, function, Room::kOrNothing);
  };
}

}  // namespace

bool write_counts_of(ChannelCounts& counts, RingWriter& ring, std::uint16_t function) noexcept {
  return counts.take_changes(skipped_into(ring, function));
}

bool write_counts_of(std::uint32_t comm, ChannelCounts& counts, RingWriter& ring, std::uint16_t function) noexcept {
  return counts.take_changes_of(comm, skipped_into(ring, function));
}

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
  if (!process.start_lock.try_lock())
    return true;  // another thread starts, ends or changes the mode: the next call looks again
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
  const bool closes = opens || (control.order == ring::CaptureOrder::kCounting && control.window >= mode.window);
  if (!mode.counting && (closes || (is_used_up(self) && !records_on(self)) || is_nearly_full(self))) {
    const ModeChange change(self);
    mode.window_over = true;
    close_window(self, function);
  }
  if (mode.outside) follow_relay_outside(control, opens, closes);
  const bool program_waits = mode.outside != mode.wants_outside;
  if ((mode.counting && opens && !mode.outside) || program_waits) {
    again = is_nearly_full(self) || ticks_now() < process.next_try_ticks;
    if (!again) {
      const ModeChange change(self);
      again = !(program_waits ? follow_program(self, function) : open_window(self, control.window, function));
    }
    // To disturb all threads takes its time, too.
    if (again && self.mode.shared && ticks_now() >= process.next_try_ticks)
      process.next_try_ticks = ticks_now() + tick_clock.cpu_threshold;
  }
  self.attention.expected_control.store(again ? kNever : control.word, std::memory_order_relaxed);
  set_attention(self);
  if (self.regions == nullptr) watch_regions(self);
  return true;
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
    self.ring.begin_call(mode.close_ticks, call.function());
    if (ring::Record* const record = self.ring.append(EventKind::kWindowOpen)) ring::set_window(*record, mode.window);
    self.ring.commit(now);
    mode.window_over = false;
    begin_window(self, mode.window, now);
    self.ring.lose_calls(mode.uncounted.exchange(0, std::memory_order_relaxed) + (all ? 0 : 1), now);
  }
  update_estimate(self);
  return now;
}

namespace record {

void set_scope(Call& call, int level) noexcept {
  if (level != kScopeEnds && level != kScopeBegins) return;
  RecordingMode& mode = process.mode;
  Thread& self = call.thread();
  const std::uint64_t begin = ticks_now();
  {
    const StartLock lock;
    mode.wants_outside = level == kScopeEnds;
    if (mode.outside == mode.wants_outside || mode.off.load(std::memory_order_relaxed)) return;
    const bool in_run = process.run.running.load(std::memory_order_acquire);
    const ModeChange change(self);
    catch_up(self);
    if (!in_run || !follow_program(self, call.function()))
      self.attention.expected_control.store(kNever, std::memory_order_relaxed);  // the next call tries again
    if (!in_run) return;
  }
  call.count_from_here();
  call.add_dear(ticks_now() - begin, 1);
}

}  // namespace record

}  // namespace lbf::capture
