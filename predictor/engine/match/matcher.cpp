// Matcher: events in their order, what most of them are. matcher_requests.cpp has what else becomes of
// requests, matcher_collectives.cpp communicators and collectives.
#include "predictor/engine/match/matcher.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "event/mpi_function_table.h"

namespace lbf::engine {
namespace {

constexpr std::uint64_t kMaxLostEvents = std::uint64_t{1} << 60;
// How many events of a rank wait for a wildcard's match to be known. Where it takes longer, the receive
// counts as posted when it completes.
constexpr std::uint64_t kMaxHeldEvents = 65536;
// So many messages under way do not fit into the cache: the channels of a block of sends, each into another
// rank's table, are fetched while the ones before are worked on.
constexpr std::size_t kPrefetchFrom = 16384;

// What a kGap stands for, in words. The capture counts what a full ring could not take; the relay and the
// decoder put one in the place of an event on a communicator that they have no definition of.
std::string what_was_lost(const Event& gap) {
  if (gap.function != 0) {
    return "a call of " + std::string(mpi_function_name(gap.function)) +
           " was lost here (its communicator is not known)";
  }
  const std::string count = std::to_string(lost_events(gap)) + (lost_events(gap) == 1 ? " event was" : " events were");
  const bool took_time = gap.process_s > 0 || gap.call_s > 0;
  return count + " lost here (its event ring was full" + (took_time ? ")" : ", or could not be read on)");
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

bool is_wildcard(const Event& event) {
  return (event.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0 || event.peer == kAnyRank ||
         event.tag == kAnyTag;
}

bool may_come_between_windows(EventKind kind) {
  return kind == EventKind::kWindowOpen || kind == EventKind::kSkipped || kind == EventKind::kCommCreate ||
         kind == EventKind::kCommFree || kind == EventKind::kKeepAlive || kind == EventKind::kExit ||
         kind == EventKind::kGap;
}

// What comes between sleeps of a rank that looks for a message and the event that says for which.
bool keeps_sleep(EventKind kind) {
  return kind == EventKind::kStartRecv || kind == EventKind::kProcedure || kind == EventKind::kRegions ||
         kind == EventKind::kEnter || kind == EventKind::kLeave || kind == EventKind::kKeepAlive ||
         kind == EventKind::kCommCreate || kind == EventKind::kPreempted || kind == EventKind::kDevice;
}

bool is_end_of_wait(EventKind kind) {
  return kind == EventKind::kProbe || kind == EventKind::kEndRecv || kind == EventKind::kWait;
}

// Whole nanoseconds, of which any three can be added.
bool are_durations(const Event& event) {
  constexpr std::uint64_t kOthers = ~((std::uint64_t{1} << 61) - 1);
  const Nanoseconds bits = event.process_s.ns() | event.call_s.ns() | event.off_s.ns();
  return (static_cast<std::uint64_t>(bits) & kOthers) == 0;
}

}  // namespace

Matcher::Matcher(Rank ranks, OpStore& store, const MatchOptions& options)
    : store_(store),
      eager_up_to_(options.eager_up_to),
      marks_first_(options.marks_first),
      local_work_(options.local_work),
      marks_functions_(options.marks_functions),
      ghosts_(store),
      channels_(store, ghosts_),
      has_plans_(options.plans),
      plans_(store, channels_),
      one_sided_(ranks, store, options.eager_up_to),
      ranks_(store.account()),
      communicators_(store.account()),
      free_records_(store.account()),
      skipped_collectives_(store.account()) {
  ranks_.reserve(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) ranks_.emplace_back(store.account());
}

Bytes Matcher::memory_bytes() const {
  const auto of = [](const auto& list) { return list.capacity() * sizeof(list[0]); };
  const Bytes scratch = of(steps_) + of(step_ops_) + of(taken_by_) + of(part_messages_) + of(values_) + of(places_) +
                        of(waited_for_) + of(mpi_.node_of_rank);
  const Bytes layout = world_layout_ ? world_layout_->memory_bytes() : 0;
  // A number and its index in a tree node.
  const Bytes windows =
      of(windows_) +
      window_of_number_.size() * (sizeof(std::map<std::uint64_t, std::uint32_t>::value_type) + 4 * sizeof(void*));
  const Bytes procedures = procedures_ ? procedures_->memory_bytes() : 0;
  return records_.size() * sizeof(Record) + plans_.memory_bytes() + scratch + layout + windows + procedures;
}

void Matcher::set_mpi(MpiSetup setup) {
  mpi_ = std::move(setup);
  if (mpi_.node_of_rank.size() != ranks_.size()) mpi_.node_of_rank.clear();
  if (mpi_.node_of_rank.empty())
    world_layout_.reset();
  else
    world_layout_.emplace(mpi_.node_of_rank);
}

Error Matcher::fail(Rank rank, const std::string& what) const {
  return invalid_input("rank " + number(rank) + ", event " +
                       std::to_string(ranks_[static_cast<std::size_t>(rank)].events) + ": " + what);
}

Result<void> Matcher::contradiction(Rank rank, const Event& event, const std::string& what) {
  Error error = fail(rank, what);
  if (!ranks_[static_cast<std::size_t>(rank)].gap) return error;
  note_partial(error.message + " (after events of this rank were lost)");
  emit_plain(rank, event);
  return {};
}

void Matcher::note_partial(const std::string& why) {
  if (why_partial_.empty()) why_partial_ = why;
}

Error Matcher::no_such_peer(Rank rank, const Event& event) const {
  if (event.comm >= kMaxCommunicators) {
    return fail(rank, "communicator " + std::to_string(event.comm) + " cannot be");
  }
  return fail(rank, "rank " + number(event.peer) + " does not exist: the world has " + number(store_.ranks()));
}

void Matcher::emit_plain(Rank rank, const Event& event) {
  emit(static_cast<ProcessIndex>(rank), Op::plain(OpKind::kCompute, event.process_s, event.call_s, kOpEndsEvent));
}

// --- messages

[[gnu::always_inline]] inline MessageIndex Matcher::send_message(Rank rank, const Event& event) {
  bool paired = false;
  const MessageIndex index = channels_.take_send({event.comm, rank, event.peer, event.tag}, paired);
  Message& message = store_.message(index);
  message.bytes = event.bytes;
  message.sent = true;
  message.sync = (event.flags & kFlagSync) != 0;
  message.sender = static_cast<ProcessIndex>(rank);
  stats_.messages += paired ? 1 : 0;
  if (procedures_) [[unlikely]]
    procedures_->note_sent(rank, index);
  if (any_ended_ && !paired) [[unlikely]]
    play_after_end(event.peer, {event.comm, rank, event.peer, event.tag}, ChannelEnd::kReceives);
  return index;
}

[[gnu::always_inline]] inline MessageIndex Matcher::take_place_now(const ChannelKey& key) {
  bool paired = false;
  const MessageIndex index = channels_.take_receive(key, paired);
  stats_.messages += paired ? 1 : 0;
  if (any_ended_ && !paired) [[unlikely]]
    play_after_end(key.src, key, ChannelEnd::kSends);
  return index;
}

MessageIndex Matcher::take_place(const ChannelKey& key) {
  return take_place_now(key);
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_send(Rank rank, RankState& state, const Event& event) {
  if (!has_peer(event)) return no_such_peer(rank, event);
  if (event.kind == EventKind::kIsend) {
    if ((event.flags & kFlagHasRequest) == 0) return fail(rank, "a non-blocking send without a request");
    if (state.requests.find(event.request) != nullptr) {
      if (Result<void> ok = lose_request(rank, event); !ok) return ok;
    }
    const MessageIndex message = send_message(rank, event);
    const bool waits =
        (event.flags & kFlagBuffered) == 0 && (event.bytes > eager_up_to_ || (event.flags & kFlagSync) != 0);
    if (waits) store_.expect(message);
    state.requests.insert({event.request, message, waits ? RequestKind::kWaitingSend : RequestKind::kSend,
                           store_.message(message).generation});
    emit(static_cast<ProcessIndex>(rank), Op::on_message(OpKind::kSend, message, event.process_s, event.call_s,
                                                         kOpEndsEvent | kOpNonblocking | first_flag(rank, event.peer)));
    return {};
  }
  const bool waits = (event.flags & kFlagBuffered) == 0;
  emit(static_cast<ProcessIndex>(rank),
       Op::on_message(OpKind::kSend, send_message(rank, event), event.process_s, event.call_s,
                      static_cast<std::uint8_t>((waits ? kOpEndsEvent : kOpEndsEvent | kOpNonblocking) |
                                                first_flag(rank, event.peer))));
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_start_recv(Rank rank, RankState& state, const Event& event) {
  const bool wildcard = is_wildcard(event);
  if (event.peer != kAnyRank) {
    if (!has_peer(event)) return no_such_peer(rank, event);
  }
  const bool has_request = (event.flags & kFlagHasRequest) != 0;
  ++state.postings;
  if (has_request && state.requests.find(event.request) != nullptr) {
    if (Result<void> ok = lose_request(rank, event); !ok) return ok;
  }
  if (!has_request && state.blocking_receive.what() != RequestKind::kNone) {
    if (!state.gap) {
      return fail(rank, "a blocking receive starts while another is under way (missing endRecv)");
    }
    note_partial(fail(rank, "the end of the blocking receive before was lost").message);
    forget(rank, std::exchange(state.blocking_receive, {}));
  }
  ActiveRequest receive{event.request, kNoMessage, RequestKind::kReceive, state.postings};
  if (wildcard || state.any_unplaced()) [[unlikely]] {
    receive = post_held(rank, event, wildcard);
  } else {
    receive.value = take_place_now({event.comm, event.peer, rank, event.tag});
    emit(static_cast<ProcessIndex>(rank),
         Op::on_message(OpKind::kPost, receive.value, event.process_s, event.call_s, kOpEndsEvent));
  }
  if (has_request) {
    state.requests.insert(receive);
  } else {
    state.blocking_receive = receive;
  }
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_end_recv(Rank rank, RankState& state, const Event& event) {
  if (!has_peer(event)) return no_such_peer(rank, event);
  const bool has_request = (event.flags & kFlagHasRequest) != 0;
  const ActiveRequest* const found = has_request ? state.requests.find(event.request) : &state.blocking_receive;
  MessageIndex message = kNoMessage;
  if (found != nullptr && found->what() == RequestKind::kReceive) {
    message = found->value;
    const Message& taken = store_.message(message);
    if (taken.comm != event.comm || taken.src != event.peer || taken.tag != event.tag) {
      return contradiction(rank, event, ends_another(event, taken.comm, taken.src, taken.tag));
    }
  } else {
    if (found == nullptr || found->what() != RequestKind::kHeldReceive) {
      return end_of_no_receive(rank, event, found != nullptr && found->what() != RequestKind::kNone);
    }
    const Record& record = records_[found->value];
    if (record.comm != event.comm || (record.peer != kAnyRank && record.peer != event.peer) ||
        (record.tag != kAnyTag && record.tag != event.tag)) {
      return contradiction(rank, event, ends_another(event, record.comm, record.peer, record.tag));
    }
    message = end_held_receive(rank, event, found->value);
  }
  if (procedures_) [[unlikely]]
    procedures_->note_received(rank, message);
  emit(static_cast<ProcessIndex>(rank),
       Op::on_message(OpKind::kRecv, message, event.process_s, event.call_s, kOpEndsEvent));
  note_received_from(rank, event.peer);
  if (has_request) {
    state.requests.erase(event.request);
  } else {
    state.blocking_receive = {};
  }
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_recv(Rank rank, const Event& event) {
  if (!has_peer(event)) return no_such_peer(rank, event);
  stats_.wildcard_receives += is_wildcard(event) ? 1 : 0;
  const MessageIndex message = take_place_now({event.comm, event.peer, rank, event.tag});
  if (procedures_) [[unlikely]]
    procedures_->note_received(rank, message);
  emit(static_cast<ProcessIndex>(rank),
       Op::on_message(OpKind::kRecv, message, event.process_s, event.call_s, kOpEndsEvent));
  note_received_from(rank, event.peer);
  return {};
}

Result<void> Matcher::feed_probe(Rank rank, const Event& event) {
  if (!has_peer(event)) return no_such_peer(rank, event);
  bool paired = false;
  const MessageIndex message = channels_.peek({event.comm, event.peer, rank, event.tag}, paired);
  stats_.messages += paired ? 1 : 0;
  if (any_ended_ && !paired) [[unlikely]]
    play_after_end(event.peer, {event.comm, event.peer, rank, event.tag}, ChannelEnd::kSends);
  emit(static_cast<ProcessIndex>(rank),
       Op::on_message(OpKind::kPeek, message, event.process_s, event.call_s, kOpEndsEvent));
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::complete(Rank rank, RankState& state, std::uint64_t number,
                                                             Seconds& work_s) {
  ActiveRequest* const request =
      number <= ~std::uint32_t{0} ? state.requests.find(static_cast<std::uint32_t>(number)) : nullptr;
  if (request == nullptr || is_receive(*request)) return wait_for_no_send(rank, number, request != nullptr);
  if (request->what() != RequestKind::kSend) work_s = complete_slowly(rank, *request, work_s);
  state.requests.erase(request->number);
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_wait(Rank rank, RankState& state, const Event& event) {
  if (!store_.budget().spend(event.values.size())) return store_.budget().status();
  Seconds work_s = event.process_s;
  if (event.values.empty()) {
    if ((event.flags & kFlagHasRequest) == 0) return contradiction(rank, event, "a wait without a request");
    if (Result<void> ok = complete(rank, state, event.request, work_s); !ok) return ok;
  }
  for (std::uint64_t request_number : event.values) {
    if (Result<void> ok = complete(rank, state, request_number, work_s); !ok) return ok;
  }
  emit(static_cast<ProcessIndex>(rank), Op::plain(OpKind::kCompute, work_s, event.call_s, kOpEndsEvent));
  return {};
}

// --- one-sided communication

Result<void> Matcher::feed_one_sided(Rank rank, const Event& event) {
  if (event.kind == EventKind::kOneSidedSync) {
    if (event.peer != kAnyRank && !has_peer(event)) return no_such_peer(rank, event);
    one_sided_.sync(rank, event);
    return {};
  }
  if (!has_peer(event)) return no_such_peer(rank, event);
  if (event.op_code >= kOneSidedOpCount) {
    return fail(rank, "unknown one-sided operation " + number(event.op_code));
  }
  const bool has_request = (event.flags & kFlagHasRequest) != 0;
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (has_request && state.requests.find(event.request) != nullptr) {
    if (Result<void> ok = lose_request(rank, event); !ok) return ok;
  }
  const OneSided::Ticket ticket = one_sided_.operate(rank, event);
  if (has_request) {
    const std::uint32_t record = new_record();
    records_[record].one_sided = ticket;
    state.requests.insert({event.request, record, RequestKind::kOneSided, 0});
  }
  stats_.one_sided_operations = one_sided_.operations();
  return {};
}

// --- all kinds

Result<void> Matcher::feed(Rank rank, std::span<const Event> events) {
  if (rank < 0 || rank >= store_.ranks()) {
    return invalid_input("event of rank " + number(rank) + ": the world has " + number(store_.ranks()) + " ranks");
  }
  if (!store_.budget().spend(events.size())) return store_.budget().status();
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (store_.message_slots() > kPrefetchFrom) {
    for (const Event& event : events) {
      const bool sends = event.kind == EventKind::kIsend || event.kind == EventKind::kSend;
      if (sends && has_peer(event)) channels_.prefetch({event.comm, rank, event.peer, event.tag});
    }
  }
  const std::uint64_t before = state.events;
  for (const Event& event : events) {
    Result<void> fed = marks_functions_ ? feed_marked(rank, state, event) : feed_one(rank, state, event);
    if (!fed) {
      stats_.events += state.events - before;
      return fed;
    }
    state.measured_ns += static_cast<std::uint64_t>(event.process_s.ns() + event.call_s.ns() + event.off_s.ns());
    if (state.measured_ns >= state.block_end_ns) [[unlikely]]
      end_block(rank, state);
  }
  stats_.events += state.events - before;
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_one(Rank rank, RankState& state, const Event& event) {
  ++state.events;
  if (state.exited || state.closed) {
    return fail(rank, state.exited ? "comes after the rank's exit" : "comes after the rank was closed");
  }
  if (!are_durations(event)) [[unlikely]]
    return fail(rank, "a time is negative or too long");
  if (state.any_unplaced() && state.events - state.held_since > kMaxHeldEvents) {
    release_posts(rank);
    state.held_since = state.events;
  }
  const ProcessIndex process = static_cast<ProcessIndex>(rank);
  if ((state.counting | state.looks) != 0) [[unlikely]] {
    if (state.looks && ends_sleep(state.sleep, event)) {
      --state.events;
      return feed_after_sleep(rank, state, event);
    }
    if (state.counting && !may_come_between_windows(event.kind))
      return fail(rank, "an event while the capture only counts");
  }
  switch (event.kind) {
    case EventKind::kSend:
    case EventKind::kIsend:
      return feed_send(rank, state, event);
    case EventKind::kStartRecv:
      return feed_start_recv(rank, state, event);
    case EventKind::kEndRecv:
      return feed_end_recv(rank, state, event);
    case EventKind::kRecv:
      return feed_recv(rank, event);
    case EventKind::kWait:
      return feed_wait(rank, state, event);
    case EventKind::kProbe:
      return feed_probe(rank, event);
    case EventKind::kCollective:
    case EventKind::kIcollective:
      return feed_collective(rank, event);
    case EventKind::kOneSided:
    case EventKind::kOneSidedSync:
      return feed_one_sided(rank, event);
    case EventKind::kIo:
      ++stats_.io_calls;
      stats_.io_s += event.call_s;
      if (io_direction(event) == IoDirection::kRead) stats_.bytes_read += event.bytes;
      if (io_direction(event) == IoDirection::kWrite) stats_.bytes_written += event.bytes;
      emit(process, Op::plain(OpKind::kBlocked, event.process_s, event.call_s, kOpEndsEvent));
      return {};
    case EventKind::kCommCreate:
      return feed_comm_create(rank, event);
    case EventKind::kCommFree:
      return feed_comm_free(rank, event);
    case EventKind::kCancel:
      return feed_cancel(rank, event);
    case EventKind::kRequestFree:
      return feed_request_free(rank, event);
    case EventKind::kCompute:
      if (vain_looks(event) > 0) {
        if (event.process_s > 0) emit(process, Op::plain(OpKind::kCompute, event.process_s, 0));
        emit(process, Op::vain_looks(vain_looks(event), event.call_s, kOpEndsEvent));
        return {};
      }
      emit_plain(rank, event);
      return {};
    case EventKind::kEnter:
    case EventKind::kLeave:
    case EventKind::kProcedure:
      emit_plain(rank, event);
      return {};
    case EventKind::kPhase:
      state.outside = is_outside_after(event, state.outside);
      emit_plain(rank, event);
      return {};
    case EventKind::kRegions:
      emit_regions(rank, event);
      return {};
    case EventKind::kDevice:
      emit_device(rank, event);
      return {};
    case EventKind::kKeepAlive:
      // Time passes, no event of the program ends (TSE Sec. 2.1).
      --state.events;
      emit(process, Op::plain(OpKind::kCompute, event.process_s, 0));
      if (event.call_s > 0) emit_unseen(rank, state, event.call_s);
      return {};
    case EventKind::kBlocked:
      if (look_period_ns(event) > 0) {
        emit_plain(rank, event);
        state.looks = true;
        state.sleep = {event.off_s, seconds_from_ns(look_period_ns(event)), state.sleep.function};
        return {};
      }
      emit(process, Op::plain(OpKind::kBlocked, event.process_s, event.off_s, event.call_s > 0 ? 0 : kOpEndsEvent));
      if (event.call_s > 0) emit(process, Op::plain(OpKind::kCompute, 0, event.call_s, kOpEndsEvent));
      return {};
    case EventKind::kPreempted:
      emit_preempted(rank, event);
      return {};
    case EventKind::kUnmodelled:
      ++stats_.unmodelled_calls;
      stats_.unmodelled_s += event.call_s;
      emit(process, Op::plain(OpKind::kBlocked, event.process_s, event.call_s, kOpEndsEvent));
      return {};
    case EventKind::kGap:
      if (lost_events(event) > kMaxLostEvents) return fail(rank, "a gap of an impossible number of events");
      state.gap = true;
      stats_.lost_events += lost_events(event);
      note_partial(fail(rank, what_was_lost(event)).message);
      emit_plain(rank, event);
      return {};
    case EventKind::kWindowOpen:
      return feed_window_open(rank, event);
    case EventKind::kWindowClose:
      return feed_window_close(rank, event);
    case EventKind::kSkipped:
      return feed_skipped(rank, event);
    case EventKind::kExit: {
      state.exited = true;
      const bool in_window = end_last_window(rank, event.process_s, event.call_s);
      release_posts(rank);
      emit(process, Op::plain(OpKind::kExit, in_window ? Duration() : event.process_s,
                              in_window ? Duration() : event.call_s, kOpEndsEvent));
      return {};
    }
  }
  return fail(rank, "unknown kind " + number(static_cast<int>(event.kind)));
}

void Matcher::keep_sleep(Rank rank, const Sleep& sleep) {
  if (sleep.off_s > 0) emit(static_cast<ProcessIndex>(rank), Op::plain(OpKind::kBlocked, 0, sleep.off_s));
}

bool Matcher::ends_sleep(const Sleep& sleep, const Event& event) {
  if (sleep.off_s > 0) return !keeps_sleep(event.kind);
  // Of the messages that one call found the first is what it waited for.
  return sleep.function != 0 && event.function == sleep.function && (event.flags & kFlagCallBegin) != 0 &&
         is_end_of_wait(event.kind);
}

Result<void> Matcher::feed_after_sleep(Rank rank, RankState& state, const Event& event) {
  const Sleep sleep = state.sleep;
  state.sleep.off_s = 0;
  state.looks = false;  // while the event is fed
  Result<void> fed;
  if (is_end_of_wait(event.kind)) {
    fed = feed_look(rank, state, event, sleep);
  } else {
    keep_sleep(rank, sleep);
    fed = feed_one(rank, state, event);
  }
  // One sleep is no habit: a rank that was off its processor between two looks of a busy loop.
  if (sleep.off_s == 0 && ++state.sleep.awake == Sleep::kMostAwake) state.sleep.function = 0;
  state.looks = state.sleep.off_s > 0 || state.sleep.function != 0;
  return fed;
}

Result<void> Matcher::feed_look(Rank rank, RankState& state, const Event& event, const Sleep& sleep) {
  const bool is_wait = event.kind == EventKind::kWait;
  const ActiveRequest* const request = is_wait && event.values.empty() ? state.requests.find(event.request) : nullptr;
  const bool in_background = request != nullptr && request->what() == RequestKind::kCollective;
  if (is_wait && !in_background) {
    keep_sleep(rank, sleep);
    return feed_one(rank, state, event);
  }
  state.sleep.function = event.function;
  const ProcessIndex process = static_cast<ProcessIndex>(rank);
  // What the rank did between its looks comes first, whatever they found. The look below counts one period as measured
  // time; here is the rest of what was slept.
  emit(process, Op::plain(OpKind::kCompute, event.process_s, sleep.off_s - sleep.period_s));
  Event wait = event;
  wait.process_s = Duration();
  if (in_background) {
    const MessageIndex end = records_[request->value].message;
    store_.expect(end);
    emit(process, Op::on_message(OpKind::kLook, end, 0, sleep.period_s, kOpInternal));
    return feed_one(rank, state, wait);
  }
  if (Result<void> fed = feed_one(rank, state, wait); !fed) return fed;
  Op& last = store_.last(process);
  if (last.kind != OpKind::kRecv && last.kind != OpKind::kPeek) {  // lost events: it is not known what came
    emit(process, Op::plain(OpKind::kBlocked, 0, sleep.period_s));
    return {};
  }
  const Op found = last;
  if (found.kind == OpKind::kRecv) store_.expect(found.message());  // of a kPeek push() does it
  last = Op::on_message(OpKind::kLook, found.message(), 0, sleep.period_s, found.flags & kOpInternal);
  last.function = found.function;
  store_.push(process, found);
  return {};
}

void Matcher::shift_procedures(ProcedurePlan plan) {
  store_.set_row_width(plan.scenarios.size() + plan.profiled.size());
  procedures_.emplace(store_.ranks(), store_, std::move(plan));
  marks_functions_ = true;
}

Result<void> Matcher::feed_marked(Rank rank, RankState& state, Event event) {
  function_ = event.function;
  one_sided_.set_function(event.function);
  const bool is_wrong = state.exited || state.closed || !are_durations(event);
  if (procedures_ && !is_wrong) procedures_->take(rank, event);
  return feed_one(rank, state, event);
}

void Matcher::close(Rank rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.closed) return;
  state.closed = true;
  keep_sleep(rank, state.sleep);
  release_posts(rank);
  const bool last = ++closed_ranks_ == store_.ranks();
  if (procedures_) {
    procedures_->close(rank);
    if (last) procedures_->finish();
  }
  if (last) settle();
  store_.close(static_cast<ProcessIndex>(rank));
  store_.touch(static_cast<ProcessIndex>(rank));
}

}  // namespace lbf::engine
