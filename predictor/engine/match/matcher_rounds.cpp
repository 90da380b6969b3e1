// Matcher: events that come as rounds (event/rounds.h). See matcher.h.
//
// What the events of one place have in common is looked up once for all rounds: whether peer and communicator can be,
// the channel, the op. What is left for each event is the usual case of feed_send() and its like, with the same
// result. Any other case is theirs (docs/adr/0017-repeated-collectives.md).
#include <algorithm>

#include "predictor/engine/match/matcher.h"

namespace lbf::engine {

bool Matcher::is_plain(const RankState& state) const {
  return !state.exited && !state.closed && !state.counting && !state.looks && !state.any_unplaced() && !any_ended_;
}

Matcher::RoundPlace Matcher::place_of(Rank rank, const Event& event) const {
  RoundPlace place;
  place.event = &event;
  place.kind = event.kind;
  place.op_flags = kOpEndsEvent;
  const bool has_request = (event.flags & kFlagHasRequest) != 0;
  const bool is_buffered = (event.flags & kFlagBuffered) != 0;
  place.is_sync = (event.flags & kFlagSync) != 0;
  place.is_wildcard = (event.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0 || event.tag == kAnyTag;
  place.bytes = event.bytes;
  switch (event.kind) {
    case EventKind::kSend:
      place.op = OpKind::kSend;
      place.op_flags |= is_buffered ? kOpNonblocking : 0;
      place.is_usual = true;
      break;
    case EventKind::kIsend:
      place.op = OpKind::kSend;
      place.op_flags |= kOpNonblocking;
      place.request = !is_buffered && (event.bytes > eager_up_to_ || place.is_sync) ? RequestKind::kWaitingSend
                                                                                    : RequestKind::kSend;
      place.is_usual = has_request;
      break;
    case EventKind::kStartRecv:
      place.op = OpKind::kPost;
      place.request = RequestKind::kReceive;
      place.is_usual = has_request && !place.is_wildcard;
      break;
    case EventKind::kEndRecv:
      place.op = OpKind::kRecv;
      place.is_usual = has_request;
      break;
    case EventKind::kRecv:
      place.op = OpKind::kRecv;
      place.is_usual = true;
      break;
    case EventKind::kWait:
      place.op = OpKind::kCompute;
      // Ascending, none twice.
      place.is_usual =
          event.values.empty() ? has_request : std::ranges::all_of(event.values.subspan(1), [](std::uint64_t distance) {
            return static_cast<std::int64_t>(distance) > 0;
          });
      return place;
    case EventKind::kCompute:
      place.op = OpKind::kCompute;
      place.is_usual = vain_looks(event) == 0;
      return place;
    default:
      return place;
  }
  place.is_usual = place.is_usual && has_peer(event);
  const bool sends = place.op == OpKind::kSend;
  place.key = {event.comm, sends ? rank : event.peer, sends ? event.peer : rank, event.tag};
  return place;
}

[[gnu::always_inline]] inline bool Matcher::feed_usual(Rank rank, RankState& state, const Rounds::Times& times,
                                                       RoundPlace& place) {
  const auto number = static_cast<std::uint32_t>(times.request);
  MessageIndex message = kNoMessage;
  std::uint8_t flags = place.op_flags;
  bool paired = false;
  switch (place.kind) {
    case EventKind::kIsend:
    case EventKind::kSend: {
      ActiveRequest* slot = nullptr;
      if (place.request != RequestKind::kNone) {
        slot = state.requests.free_slot(number);
        if (slot == nullptr) return false;
      }
      message = channels_.take_send(place.key, paired, &place.channel);
      Message& sent = store_.message(message);
      sent.bytes = place.bytes;
      sent.sent = true;
      sent.sync = place.is_sync;
      sent.sender = static_cast<ProcessIndex>(rank);
      if (place.request == RequestKind::kWaitingSend) store_.expect(message);
      if (slot != nullptr) state.requests.occupy(*slot, {number, message, place.request, sent.generation});
      flags |= first_flag(rank, place.key.dst);
      break;
    }
    case EventKind::kStartRecv: {
      ActiveRequest* const slot = state.requests.free_slot(number);
      if (slot == nullptr) return false;
      message = channels_.take_receive(place.key, paired, &place.channel);
      state.requests.occupy(*slot, {number, message, RequestKind::kReceive, ++state.postings});
      break;
    }
    case EventKind::kEndRecv: {
      ActiveRequest* const found = state.requests.find_at_once(number);
      if (found == nullptr || found->what() != RequestKind::kReceive) return false;
      message = found->value;
      const Message& taken = store_.message(message);
      if (taken.comm != place.key.comm || taken.src != place.key.src || taken.tag != place.key.tag) return false;
      state.requests.vacate(*found);
      note_received_from(rank, place.key.src);
      break;
    }
    case EventKind::kRecv:
      stats_.wildcard_receives += place.is_wildcard ? 1 : 0;
      message = channels_.take_receive(place.key, paired, &place.channel);
      note_received_from(rank, place.key.src);
      break;
    case EventKind::kWait: {
      // All of them first: nothing may be done where one is not a send under way.
      const auto send_of = [&](std::uint64_t request) -> ActiveRequest* {
        if (request > ~std::uint32_t{0}) return nullptr;
        ActiveRequest* const found = state.requests.find_at_once(static_cast<std::uint32_t>(request));
        return found != nullptr && found->what() == RequestKind::kSend ? found : nullptr;
      };
      if (place.event->values.empty()) {
        ActiveRequest* const found = send_of(times.request);
        if (found == nullptr) return false;
        state.requests.vacate(*found);
        break;
      }
      std::uint64_t request = times.request;
      for (const std::uint64_t distance : place.event->values) {
        if (send_of(request += distance) == nullptr) return false;
      }
      request = times.request;
      for (const std::uint64_t distance : place.event->values) state.requests.vacate(*send_of(request += distance));
      break;
    }
    default:  // kCompute
      break;
  }
  stats_.messages += paired ? 1 : 0;
  const Seconds process_s = seconds_from_ns(static_cast<Nanoseconds>(times.process_ns));
  const Seconds call_s = seconds_from_ns(static_cast<Nanoseconds>(times.call_ns));
  emit(static_cast<ProcessIndex>(rank), message != kNoMessage
                                            ? Op::on_message(place.op, message, process_s, call_s, flags)
                                            : Op::plain(place.op, process_s, call_s, flags));
  state.measured_ns += times.process_ns + times.call_ns;
  if (state.measured_ns >= state.block_end_ns) [[unlikely]]
    end_block(rank, state);
  return true;
}

[[gnu::noinline]] Result<void> Matcher::feed_as_event(Rank rank, const Event& common, const Rounds::Times& times) {
  Event event = common;
  Rounds::set(event, times);
  if (Rounds::waits_for_several(common)) {
    Rounds::list_requests(common, times, waited_for_);
    event.values = waited_for_;
  }
  return feed(rank, event);
}

Result<bool> Matcher::feed_rounds(Rank rank, const Rounds& rounds) {
  if (rank < 0 || rank >= store_.ranks() || marks_functions_) return false;
  if (!store_.budget().spend(rounds.times.size())) return store_.budget().status().error();
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  places_.clear();
  for (const Event& event : rounds.events) {
    const RoundPlace& place = places_.emplace_back(place_of(rank, event));
    if (place.is_usual && takes_message(place.op)) channels_.prefetch(place.key);
  }
  const Rounds::Times* times = rounds.times.data();
  const Rounds::Times* const end = times + rounds.times.size();
  const Rounds::Times* uncounted = times;
  const auto count = [&] {
    const auto events = static_cast<std::uint64_t>(times - uncounted);
    state.events += events;
    stats_.events += events;
  };
  bool plain = is_plain(state);
  RoundPlace* place = places_.data();
  RoundPlace* const end_of_round = place + places_.size();
  for (; times != end; ++times) {
    if (!plain || !place->is_usual || !feed_usual(rank, state, *times, *place)) [[unlikely]] {
      count();
      if (Result<void> fed = feed_as_event(rank, *place->event, *times); !fed) return fed.error();
      uncounted = times + 1;
      plain = is_plain(state);
    }
    if (++place == end_of_round) place = places_.data();
  }
  count();
  return true;
}

}  // namespace lbf::engine
