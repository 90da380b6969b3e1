// Matcher: what else becomes of requests: receives whose match is not known when they are posted, requests
// that are cancelled, freed or lost, contradictions. See matcher.h.
#include <algorithm>
#include <utility>

#include "predictor/engine/match/matcher.h"

namespace lbf::engine {
namespace {

// Slots of a table of requests that are walked over.
constexpr std::size_t kSlotsPerUnit = 16;
constexpr const char* kAfterLoss = " (after events of this rank were lost)";

}  // namespace

std::uint32_t Matcher::new_record() {
  if (free_records_.empty()) {
    records_.emplace_back();
    return static_cast<std::uint32_t>(records_.size() - 1);
  }
  const std::uint32_t record = free_records_.back();
  free_records_.pop_back();
  records_[record] = Record{};
  return record;
}

// --- receives whose match is not known when they are posted

ActiveRequest Matcher::post_held(Rank rank, const Event& event, bool wildcard) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.unplaced == nullptr) {
    state.unplaced = std::make_unique<UnplacedReceives>(store_.account());
    store_.account()->bytes += sizeof(UnplacedReceives);
  }
  const std::uint32_t index = new_record();
  Record& record = records_[index];
  record.comm = event.comm;
  record.peer = (event.flags & kFlagWildcardSource) != 0 ? kAnyRank : event.peer;
  record.tag = (event.flags & kFlagWildcardTag) != 0 ? kAnyTag : event.tag;
  const UnplacedReceives::Pattern pattern{record.comm, record.peer, record.tag};
  const bool placed = !wildcard && !state.unplaced->holds_up(pattern);
  // Should the capture end before it has its place, who sent to it does not wait for more than this.
  if (!placed && state.held_ghost == kNobody) state.held_ghost = ghosts_.call(rank);
  if (placed) record.message = take_place({record.comm, record.peer, rank, record.tag});
  Op& post =
      emit(static_cast<ProcessIndex>(rank), Op::on_message(OpKind::kPost, record.message, event.process_s, event.call_s,
                                                           placed ? kOpEndsEvent : kOpEndsEvent | kOpHeld));
  if (!placed) {
    if (state.unplaced->empty()) state.held_since = state.events;
    record.unplaced = state.unplaced->add(index, pattern);
    record.post = &post;
  }
  stats_.wildcard_receives += wildcard ? 1 : 0;
  return {event.request, index, RequestKind::kHeldReceive, state.postings};
}

void Matcher::remove_unplaced(Rank rank, std::uint32_t record) {
  // What waited behind it takes its place now, in posting order.
  ranks_[static_cast<std::size_t>(rank)].unplaced->remove(records_[record].unplaced, [&](std::uint32_t next) {
    const Record& receive = records_[next];
    place(rank, next, take_place({receive.comm, receive.peer, rank, receive.tag}));
  });
}

void Matcher::place(Rank rank, std::uint32_t record, MessageIndex message) {
  Record& receive = records_[record];
  receive.message = message;
  if (receive.post != nullptr) store_.release(static_cast<ProcessIndex>(rank), *receive.post, message);
  receive.post = nullptr;
}

void Matcher::release_posts(Rank rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.any_unplaced())
    state.unplaced->for_each_recent([&](std::uint32_t record) { place(rank, record, kNoMessage); });
}

MessageIndex Matcher::end_held_receive(Rank rank, const Event& event, std::uint32_t index) {
  Record& record = records_[index];
  record.peer = event.peer;
  record.tag = event.tag;
  MessageIndex message = record.message;
  if (message == kNoMessage) {
    message = take_place({record.comm, record.peer, rank, record.tag});
    place(rank, index, message);
    remove_unplaced(rank, index);
  }
  free_record(index);
  return message;
}

// --- completions that are not what they should be, or take time

std::string Matcher::ends_another(const Event& event, std::uint32_t comm, Rank peer, std::int32_t tag) {
  const auto channel_text = [](std::int32_t channel_tag, std::uint32_t channel_comm) {
    return "tag " + std::to_string(channel_tag) + ", communicator " + std::to_string(channel_comm);
  };
  return "endRecv from rank " + std::to_string(event.peer) + ", " + channel_text(event.tag, event.comm) +
         " ends a receive that was posted for " +
         (peer == kAnyRank ? std::string("any rank") : "rank " + std::to_string(peer)) + ", " +
         (tag == kAnyTag ? "any tag, communicator " + std::to_string(comm) : channel_text(tag, comm));
}

Result<void> Matcher::end_of_no_receive(Rank rank, const Event& event, bool is_active) {
  if (ranks_[static_cast<std::size_t>(rank)].gap && !is_active) {
    // The posting was lost, the message came: take it as posted here.
    note_partial(fail(rank, "the start of this receive was lost").message);
    emit(static_cast<ProcessIndex>(rank),
         Op::on_message(OpKind::kRecv, take_place({event.comm, event.peer, rank, event.tag}), event.process_s,
                        event.call_s, kOpEndsEvent));
    note_received_from(rank, event.peer);
    return {};
  }
  return contradiction(rank, event,
                       (event.flags & kFlagHasRequest) != 0
                           ? "endRecv of request " + std::to_string(event.request) + ", which is no receive under way"
                           : std::string("endRecv without a startRecv before it"));
}

Result<void> Matcher::wait_for_no_send(Rank rank, std::uint64_t number, bool is_active) {
  const Error error =
      fail(rank, "wait for request " + std::to_string(number) +
                     (is_active ? ", which is a receive (those end with endRecv)" : ", which is not active"));
  if (!ranks_[static_cast<std::size_t>(rank)].gap) return error;
  note_partial(error.message + kAfterLoss);
  return {};
}

Seconds Matcher::complete_slowly(Rank rank, const ActiveRequest& request, Seconds work_s) {
  const ProcessIndex process = static_cast<ProcessIndex>(rank);
  if (request.what() == RequestKind::kWaitingSend) {
    emit(process, Op::on_message(OpKind::kWaitSend, request.value, work_s));
    return 0;
  }
  const Record record = records_[request.value];
  free_record(request.value);
  if (request.what() == RequestKind::kOneSided) return one_sided_.complete(record.one_sided, work_s);
  emit(process, Op::on_message(OpKind::kRecv, record.message, work_s, 0, kOpInternal));
  ranks_[static_cast<std::size_t>(rank)].idle_actors.push_back(record.actor);
  return 0;
}

// --- requests that do not complete

Result<void> Matcher::lose_request(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const std::string what = "request " + std::to_string(event.request) + " is active already";
  if (!state.gap) return fail(rank, what);
  // Its completion was lost.
  note_partial(fail(rank, what).message + kAfterLoss);
  const ActiveRequest lost = *state.requests.find(event.request);
  state.requests.erase(event.request);
  forget(rank, lost);
  return {};
}

void Matcher::forget(Rank rank, const ActiveRequest& request) {
  switch (request.what()) {
    case RequestKind::kNone:
    case RequestKind::kSend:
      return;
    case RequestKind::kWaitingSend:
    case RequestKind::kReceive:
      store_.withdraw(request.value, 1);
      return;
    case RequestKind::kHeldReceive:
      if (records_[request.value].message != kNoMessage) {
        store_.withdraw(records_[request.value].message, 1);
      } else {
        place(rank, request.value, kNoMessage);
        remove_unplaced(rank, request.value);
      }
      break;
    case RequestKind::kCollective:
      store_.withdraw(records_[request.value].message, 1);
      ranks_[static_cast<std::size_t>(rank)].idle_actors.push_back(records_[request.value].actor);
      break;
    case RequestKind::kOneSided:  // the window's next sync waits for it
      break;
  }
  free_record(request.value);
}

MessageIndex& Matcher::message_of(ActiveRequest& receive) {
  return receive.what() == RequestKind::kReceive ? receive.value : records_[receive.value].message;
}

ChannelKey Matcher::channel_of(Rank rank, ActiveRequest& receive) {
  if (receive.what() == RequestKind::kHeldReceive) {
    const Record& record = records_[receive.value];
    return {record.comm, record.peer, rank, record.tag};
  }
  const Message& message = store_.message(receive.value);
  return {message.comm, message.src, rank, message.tag};
}

void Matcher::cancel_send(Rank rank, const ActiveRequest& request) {
  if (request.what() == RequestKind::kWaitingSend) store_.withdraw(request.value, 1);
  const Message& message = store_.message(request.value);
  // Another message has the slot: this one was received, by all replays.
  const bool is_there = ActiveRequest::cut(message.generation) == request.note;
  if (!is_there || !channels_.cancel_send({message.comm, rank, message.dst, message.tag}, request.value)) {
    note_partial(fail(rank, "a cancelled send had its receive already").message);
  }
}

void Matcher::cancel_receive(Rank rank, ActiveRequest request) {
  if (message_of(request) == kNoMessage) {
    place(rank, request.value, kNoMessage);
    remove_unplaced(rank, request.value);
    return;
  }
  // The receives of this channel that were posted later move up by one place.
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (!store_.budget().spend(state.requests.slots() / kSlotsPerUnit)) return;
  const ChannelKey channel = channel_of(rank, request);
  std::vector<ActiveRequest*> later;
  const auto consider = [&](ActiveRequest& other) {
    if (is_receive(other) && message_of(other) != kNoMessage && is_before(request.note, other.note) &&
        channel_of(rank, other) == channel) {
      later.push_back(&other);
    }
  };
  state.requests.for_each(consider);
  consider(state.blocking_receive);
  std::sort(later.begin(), later.end(),
            [](const ActiveRequest* a, const ActiveRequest* b) { return is_before(a->note, b->note); });
  MessageIndex freed = message_of(request);
  for (ActiveRequest* other : later) std::swap(freed, message_of(*other));
  channels_.return_receive(channel, freed);
}

Result<void> Matcher::feed_cancel(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const ActiveRequest* const found = state.requests.find(event.request);
  const bool can_be =
      found != nullptr && found->what() != RequestKind::kCollective && found->what() != RequestKind::kOneSided;
  if (!can_be) {
    return contradiction(
        rank, event, "cancel of request " + std::to_string(event.request) + ", which is no send or receive under way");
  }
  const ActiveRequest cancelled = *found;
  if (is_receive(cancelled)) {
    cancel_receive(rank, cancelled);
  } else {
    cancel_send(rank, cancelled);
  }
  state.requests.erase(event.request);
  if (cancelled.what() == RequestKind::kHeldReceive) free_record(cancelled.value);
  emit_plain(rank, event);
  return {};
}

Result<void> Matcher::feed_request_free(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const ActiveRequest* const found = state.requests.find(event.request);
  if (found == nullptr) {
    return contradiction(rank, event, "free of request " + std::to_string(event.request) + ", which is not active");
  }
  const ActiveRequest freed = *found;
  if (freed.what() == RequestKind::kHeldReceive && records_[freed.value].message == kNoMessage) {
    // Which message it took cannot be known: later receives may pair with the wrong one.
    note_partial(fail(rank, "a receive whose match is not known (wildcard) was freed").message);
  }
  state.requests.erase(event.request);
  forget(rank, freed);
  emit_plain(rank, event);
  return {};
}

}  // namespace lbf::engine
