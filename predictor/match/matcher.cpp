#include "predictor/match/matcher.h"

#include <algorithm>
#include <limits>

namespace lbf {
namespace {

constexpr std::uint32_t kCollectiveChannel = 0x80000000U;  // ChannelKey::comm of collectives' messages
constexpr std::uint64_t kMaxLostEvents = std::uint64_t{1} << 60;
// How many events of a rank wait for a wildcard's match to be known. Where it takes longer, the receive
// counts as posted when it completes.
constexpr std::uint64_t kMaxHeldEvents = 65536;
// So many messages under way do not fit into the cache: the channels of a block of sends, each into another
// rank's table, are fetched while the ones before are worked on.
constexpr std::size_t kPrefetchFrom = 16384;

std::string number(std::int64_t value) {
  return std::to_string(value);
}

bool is_wildcard(const Event& event) {
  return (event.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0 || event.peer == kAnyRank ||
         event.tag == kAnyTag;
}

bool is_duration(Seconds seconds) {
  return seconds >= 0 && seconds <= std::numeric_limits<Seconds>::max();
}

bool is_neighbour(CollectiveOp op) {
  return op >= CollectiveOp::kNeighborAllgather && op <= CollectiveOp::kNeighborAlltoallw;
}

}  // namespace

Matcher::Matcher(Rank ranks, OpStore& store, Bytes eager_up_to)
    : store_(store), eager_up_to_(eager_up_to), channels_(store), ranks_(static_cast<std::size_t>(ranks)) {}

void Matcher::set_mpi(MpiSetup setup) {
  mpi_ = std::move(setup);
  if (mpi_.node_of_rank.size() != ranks_.size()) mpi_.node_of_rank.clear();
  world_layout_.reset();
  if (!mpi_.node_of_rank.empty()) world_layout_.emplace(mpi_.node_of_rank);
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

std::string Matcher::channel_text(const Event& event) const {
  return "tag " + number(event.tag) + ", communicator " + std::to_string(event.comm);
}

Error Matcher::no_such_peer(Rank rank, const Event& event) const {
  if (event.comm >= kMaxCommunicators) {
    return fail(rank, "communicator " + std::to_string(event.comm) + " cannot be");
  }
  return fail(rank,
              "rank " + number(event.peer) + " does not exist: the world has " + number(store_.ranks()));
}

void Matcher::emit_plain(Rank rank, const Event& event, OpKind kind) {
  emit(static_cast<ProcessIndex>(rank), kind, kNoMessage, event.process_s, event.call_s, kOpEndsEvent);
}

std::uint32_t Matcher::new_request() {
  if (free_requests_.empty()) {
    requests_.emplace_back();
    return static_cast<std::uint32_t>(requests_.size() - 1);
  }
  const std::uint32_t record = free_requests_.back();
  free_requests_.pop_back();
  requests_[record] = Request{};
  return record;
}

Result<void> Matcher::add_request(Rank rank, const Event& event, std::uint32_t record) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (const std::uint32_t* old = state.requests.find(event.request); old != nullptr) {
    const std::string what = "request " + std::to_string(event.request) + " is active already";
    if (!state.gap) return fail(rank, what);
    // Its completion was lost.
    note_partial(fail(rank, what).message + " (after events of this rank were lost)");
    const std::uint32_t lost = *old;
    state.requests.erase(event.request);
    forget(rank, lost);
  }
  state.requests.insert(event.request, record);
  return {};
}

ChannelKey Matcher::channel_of(Rank rank, const Request& receive) const {
  return {receive.comm, receive.peer, rank, receive.tag};
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
  return index;
}

[[gnu::always_inline]] inline MessageIndex Matcher::take_place(const ChannelKey& key) {
  bool paired = false;
  const MessageIndex index = channels_.take_receive(key, paired);
  store_.message(index).receiver = static_cast<ProcessIndex>(key.dst);
  stats_.messages += paired ? 1 : 0;
  return index;
}

bool Matcher::must_wait_for_place(const RankState& state, const Request& receive) const {
  for (std::uint32_t record : state.unplaced) {
    const Request& older = requests_[record];
    if (older.posted >= receive.posted) break;
    if (older.comm == receive.comm && (older.peer == kAnyRank || older.peer == receive.peer) &&
        (older.tag == kAnyTag || older.tag == receive.tag)) {
      return true;  // a wildcard that could match, or a receive on this channel that waits behind one
    }
  }
  return false;
}

void Matcher::remove_unplaced(Rank rank, std::uint32_t record) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  state.unplaced.erase(std::find(state.unplaced.begin(), state.unplaced.end(), record));
  // What waited behind it takes its place now, in posting order.
  for (std::size_t i = 0; i < state.unplaced.size();) {
    const std::uint32_t candidate = state.unplaced[i];
    if (requests_[candidate].wildcard || must_wait_for_place(state, requests_[candidate])) {
      ++i;
      continue;
    }
    place(rank, candidate, take_place(channel_of(rank, requests_[candidate])));
    state.unplaced.erase(state.unplaced.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Matcher::place(Rank rank, std::uint32_t record, MessageIndex message) {
  Request& request = requests_[record];
  request.message = message;
  if (request.post != nullptr) store_.release(static_cast<ProcessIndex>(rank), *request.post, message);
  request.post = nullptr;
}

void Matcher::release_posts(Rank rank) {
  for (std::uint32_t record : ranks_[static_cast<std::size_t>(rank)].unplaced) {
    place(rank, record, kNoMessage);
  }
}

void Matcher::forget(Rank rank, std::uint32_t record) {
  const Request& request = requests_[record];
  switch (request.kind) {
    case RequestKind::kSend:
      if (request.waits) store_.settle(request.message, kWaitToCome);
      break;
    case RequestKind::kReceive:
      if (request.message != kNoMessage) {
        store_.settle(request.message, kReceiveToCome);
      } else {
        place(rank, record, kNoMessage);
        remove_unplaced(rank, record);
      }
      break;
    case RequestKind::kCollective:
      store_.settle(request.message, kReceiveToCome);
      ranks_[static_cast<std::size_t>(rank)].idle_actors.push_back(request.actor);
      break;
  }
  free_request(record);
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_send(Rank rank, const Event& event) {
  if (!has_peer(event)) return no_such_peer(rank, event);
  if (event.kind == EventKind::kIsend) {
    if ((event.flags & kFlagHasRequest) == 0) return fail(rank, "a non-blocking send without a request");
    const std::uint32_t record = new_request();
    if (Result<void> ok = add_request(rank, event, record); !ok) return ok;
    const MessageIndex message = send_message(rank, event);
    Request& request = requests_[record];
    request.kind = RequestKind::kSend;
    request.comm = event.comm;
    request.peer = event.peer;
    request.tag = event.tag;
    request.message = message;
    request.waits =
        (event.flags & kFlagBuffered) == 0 && (event.bytes > eager_up_to_ || (event.flags & kFlagSync) != 0);
    if (request.waits) store_.message(message).to_come |= kWaitToCome;
    emit(static_cast<ProcessIndex>(rank), OpKind::kSend, message, event.process_s, event.call_s,
         kOpEndsEvent | kOpNonblocking);
    return {};
  }
  const bool waits = (event.flags & kFlagBuffered) == 0;
  emit(static_cast<ProcessIndex>(rank), OpKind::kSend, send_message(rank, event), event.process_s,
       event.call_s, waits ? kOpEndsEvent : kOpEndsEvent | kOpNonblocking);
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_start_recv(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const bool wildcard = is_wildcard(event);
  if (event.peer != kAnyRank) {
    if (!has_peer(event)) return no_such_peer(rank, event);
  }
  const std::uint32_t record = new_request();
  Request& request = requests_[record];
  request.kind = RequestKind::kReceive;
  request.wildcard = wildcard;
  request.comm = event.comm;
  request.peer = (event.flags & kFlagWildcardSource) != 0 ? kAnyRank : event.peer;
  request.tag = (event.flags & kFlagWildcardTag) != 0 ? kAnyTag : event.tag;
  request.posted = ++state.postings;
  if ((event.flags & kFlagHasRequest) != 0) {
    if (Result<void> ok = add_request(rank, event, record); !ok) return ok;
  } else {
    if (state.blocking_receive != kNone) {
      if (!state.gap) {
        return fail(rank, "a blocking receive starts while another is under way (missing endRecv)");
      }
      note_partial(fail(rank, "the end of the blocking receive before was lost").message);
      forget(rank, state.blocking_receive);
    }
    state.blocking_receive = record;
  }
  const bool placed = !wildcard && !must_wait_for_place(state, requests_[record]);
  if (placed) requests_[record].message = take_place(channel_of(rank, requests_[record]));
  Op& post = emit(static_cast<ProcessIndex>(rank), OpKind::kPost, requests_[record].message, event.process_s,
                  event.call_s, placed ? kOpEndsEvent : kOpEndsEvent | kOpHeld);
  if (!placed) {
    if (state.unplaced.empty()) state.held_since = state.events;
    state.unplaced.push_back(record);
    requests_[record].post = &post;
  }
  stats_.wildcard_receives += wildcard ? 1 : 0;
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_end_recv(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (!has_peer(event)) return no_such_peer(rank, event);
  const bool has_request = (event.flags & kFlagHasRequest) != 0;
  std::uint32_t record = state.blocking_receive;
  if (has_request) {
    const std::uint32_t* found = state.requests.find(event.request);
    record = found != nullptr ? *found : kNone;
  }
  if (record == kNone || requests_[record].kind != RequestKind::kReceive) {
    if (state.gap && record == kNone) {
      // The posting was lost, the message came: take it as posted here.
      note_partial(fail(rank, "the start of this receive was lost").message);
      emit(static_cast<ProcessIndex>(rank), OpKind::kRecv,
           take_place({event.comm, event.peer, rank, event.tag}), event.process_s, event.call_s,
           kOpEndsEvent);
      return {};
    }
    return contradiction(rank, event,
                         has_request ? "endRecv of request " + std::to_string(event.request) +
                                           ", which is no receive under way"
                                     : std::string("endRecv without a startRecv before it"));
  }
  Request& request = requests_[record];
  if (request.comm != event.comm || (request.peer != kAnyRank && request.peer != event.peer) ||
      (request.tag != kAnyTag && request.tag != event.tag)) {
    const std::string posted =
        (request.peer == kAnyRank ? std::string("any rank") : "rank " + number(request.peer)) + ", " +
        (request.tag == kAnyTag ? std::string("any tag") : "tag " + number(request.tag)) + ", communicator " +
        std::to_string(request.comm);
    return contradiction(rank, event,
                         "endRecv from rank " + number(event.peer) + ", " + channel_text(event) +
                             " ends a receive that was posted for " + posted);
  }
  request.peer = event.peer;
  request.tag = event.tag;
  MessageIndex message = request.message;
  if (message == kNoMessage) {
    message = take_place(channel_of(rank, request));
    place(rank, record, message);
    remove_unplaced(rank, record);
  }
  emit(static_cast<ProcessIndex>(rank), OpKind::kRecv, message, event.process_s, event.call_s, kOpEndsEvent);
  if (has_request) {
    state.requests.erase(event.request);
  } else {
    state.blocking_receive = kNone;
  }
  free_request(record);
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_recv(Rank rank, const Event& event) {
  if (!has_peer(event)) return no_such_peer(rank, event);
  stats_.wildcard_receives += is_wildcard(event) ? 1 : 0;
  emit(static_cast<ProcessIndex>(rank), OpKind::kRecv, take_place({event.comm, event.peer, rank, event.tag}),
       event.process_s, event.call_s, kOpEndsEvent);
  return {};
}

Result<void> Matcher::feed_probe(Rank rank, const Event& event) {
  if (!has_peer(event)) return no_such_peer(rank, event);
  bool paired = false;
  const MessageIndex message = channels_.peek({event.comm, event.peer, rank, event.tag}, paired);
  store_.message(message).receiver = static_cast<ProcessIndex>(rank);
  stats_.messages += paired ? 1 : 0;
  emit(static_cast<ProcessIndex>(rank), OpKind::kPeek, message, event.process_s, event.call_s, kOpEndsEvent);
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_wait(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const ProcessIndex process = static_cast<ProcessIndex>(rank);
  Seconds work_s = event.process_s;
  const auto complete = [&](std::uint64_t request_number) -> Result<void> {
    const std::uint32_t* found = request_number <= ~std::uint32_t{0}
                                     ? state.requests.find(static_cast<std::uint32_t>(request_number))
                                     : nullptr;
    if (found == nullptr || requests_[*found].kind == RequestKind::kReceive) {
      const Error error = fail(
          rank,
          "wait for request " + std::to_string(request_number) +
              (found == nullptr ? ", which is not active" : ", which is a receive (those end with endRecv)"));
      if (!state.gap) return error;
      note_partial(error.message + " (after events of this rank were lost)");
      return {};
    }
    const std::uint32_t record = *found;
    if (requests_[record].kind == RequestKind::kCollective) {
      emit(process, OpKind::kRecv, requests_[record].message, work_s, 0, kOpInternal);
      work_s = 0;
      state.idle_actors.push_back(requests_[record].actor);
    } else if (requests_[record].waits) {
      emit(process, OpKind::kWaitSend, requests_[record].message, work_s, 0, 0);
      work_s = 0;
    }
    state.requests.erase(static_cast<std::uint32_t>(request_number));
    free_request(record);
    return {};
  };
  if (event.values.empty()) {
    if ((event.flags & kFlagHasRequest) == 0) return contradiction(rank, event, "a wait without a request");
    if (Result<void> ok = complete(event.request); !ok) return ok;
  }
  for (std::uint64_t request_number : event.values) {
    if (Result<void> ok = complete(request_number); !ok) return ok;
  }
  emit(process, OpKind::kCompute, kNoMessage, work_s, event.call_s, kOpEndsEvent);
  return {};
}

Result<void> Matcher::feed_cancel(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const std::uint32_t* found = state.requests.find(event.request);
  if (found == nullptr || requests_[*found].kind == RequestKind::kCollective) {
    return contradiction(
        rank, event,
        "cancel of request " + std::to_string(event.request) + ", which is no send or receive under way");
  }
  const std::uint32_t record = *found;
  const Request cancelled = requests_[record];
  if (cancelled.kind == RequestKind::kSend) {
    if (cancelled.waits) store_.settle(cancelled.message, kWaitToCome);
    if (!channels_.cancel_send({cancelled.comm, rank, cancelled.peer, cancelled.tag}, cancelled.message)) {
      note_partial(fail(rank, "a cancelled send had its receive already").message);
    }
  } else if (cancelled.message == kNoMessage) {
    place(rank, record, kNoMessage);
    remove_unplaced(rank, record);
  } else {
    // The receives of this channel that were posted later move up by one place.
    std::vector<std::uint32_t> later;
    const auto consider = [&](std::uint32_t candidate) {
      const Request& other = requests_[candidate];
      if (other.kind == RequestKind::kReceive && other.message != kNoMessage &&
          other.posted > cancelled.posted && channel_of(rank, other) == channel_of(rank, cancelled)) {
        later.push_back(candidate);
      }
    };
    state.requests.for_each([&](std::uint32_t, std::uint32_t candidate) { consider(candidate); });
    if (state.blocking_receive != kNone) consider(state.blocking_receive);
    std::sort(later.begin(), later.end(),
              [this](std::uint32_t a, std::uint32_t b) { return requests_[a].posted < requests_[b].posted; });
    MessageIndex freed = cancelled.message;
    for (std::uint32_t candidate : later) std::swap(freed, requests_[candidate].message);
    channels_.return_receive(channel_of(rank, cancelled), freed);
  }
  state.requests.erase(event.request);
  free_request(record);
  emit_plain(rank, event);
  return {};
}

Result<void> Matcher::feed_request_free(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const std::uint32_t* found = state.requests.find(event.request);
  if (found == nullptr) {
    return contradiction(rank, event,
                         "free of request " + std::to_string(event.request) + ", which is not active");
  }
  const std::uint32_t record = *found;
  if (requests_[record].kind == RequestKind::kReceive && requests_[record].message == kNoMessage) {
    // Which message it took cannot be known: later receives may pair with the wrong one.
    note_partial(fail(rank, "a receive whose match is not known (wildcard) was freed").message);
  }
  state.requests.erase(event.request);
  forget(rank, record);
  emit_plain(rank, event);
  return {};
}

// --- communicators and collectives

Result<void> Matcher::feed_comm_create(Rank rank, const Event& event) {
  if (event.comm == 0 || event.comm >= kMaxCommunicators) {
    return fail(rank, "communicator " + std::to_string(event.comm) + " cannot be defined");
  }
  if (event.values.size() < 3 || event.values[1] >= event.values.size() - 2) {
    return fail(rank, "communicator " + std::to_string(event.comm) + " is defined without members");
  }
  if (communicators_.size() <= event.comm) communicators_.resize(event.comm + std::size_t{1});
  Communicator& comm = communicators_[event.comm];
  if (!comm.known) {
    const std::span<const std::uint64_t> members = event.values.subspan(2);
    const std::size_t local =
        event.values[1] != 0 ? static_cast<std::size_t>(event.values[1]) : members.size();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::uint64_t member = members[i];
      if (member >= static_cast<std::uint64_t>(store_.ranks())) {
        return fail(rank, "communicator " + std::to_string(event.comm) + " has rank " +
                              std::to_string(member) + ", the world has " + number(store_.ranks()));
      }
      if (comm.index.find(static_cast<std::uint32_t>(member)) != nullptr) {
        return fail(rank, "communicator " + std::to_string(event.comm) + " has rank " +
                              std::to_string(member) + " twice");
      }
      std::vector<Rank>& group = i < local ? comm.group : comm.remote_group;
      comm.index.insert(static_cast<std::uint32_t>(member), static_cast<std::uint32_t>(group.size()));
      group.push_back(static_cast<Rank>(member));
    }
    comm.known = true;
    if (!mpi_.node_of_rank.empty() && comm.remote_group.empty()) {
      std::vector<std::uint32_t> node_of_member;
      for (const Rank member : comm.group) {
        node_of_member.push_back(mpi_.node_of_rank[static_cast<std::size_t>(member)]);
      }
      comm.layout.emplace(node_of_member);
    }
  }
  if (comm.index.find(static_cast<std::uint32_t>(rank)) == nullptr) {
    return fail(rank, "is no member of communicator " + std::to_string(event.comm));
  }
  emit_plain(rank, event);
  return {};
}

Result<void> Matcher::feed_comm_free(Rank rank, const Event& event) {
  if (event.comm > 0 && event.comm < communicators_.size()) {
    Communicator& comm = communicators_[event.comm];
    // Indices are never used again (event.h): the last member to free it takes the members along.
    if (comm.known && ++comm.frees == comm.index.size()) {
      comm.group = {};
      comm.remote_group = {};
      comm.index = {};
      comm.layout.reset();
      comm.known = false;
    }
  }
  emit_plain(rank, event);
  return {};
}

Result<void> Matcher::expand(Rank rank, const Event& event, bool nonblocking) {
  CollectiveCall call;
  call.op = event.op;
  call.nonblocking = nonblocking;
  call.bytes = event.bytes;
  call.root = event.root;
  call.values = event.values;
  call.in_place = (event.flags & kFlagInPlace) != 0;
  call.library = mpi_.rules.library;
  peers_.clear();
  local_peers_.clear();
  const Communicator* comm = nullptr;
  if (event.comm == 0) {
    call.rank = static_cast<std::uint32_t>(rank);
    call.size = static_cast<std::uint32_t>(store_.ranks());
    if (world_layout_) call.layout = &*world_layout_;
  } else {
    if (event.comm >= communicators_.size() || !communicators_[event.comm].known) {
      return fail(rank, "communicator " + std::to_string(event.comm) + " is not defined");
    }
    comm = &communicators_[event.comm];
    const std::uint32_t* mine = comm->index.find(static_cast<std::uint32_t>(rank));
    if (mine == nullptr) return fail(rank, "is no member of communicator " + std::to_string(event.comm));
    call.rank = *mine;
    const bool first_group = *mine < comm->group.size() && comm->group[*mine] == rank;
    const std::vector<Rank>& local = first_group ? comm->group : comm->remote_group;
    const std::vector<Rank>& remote = first_group ? comm->remote_group : comm->group;
    call.size = static_cast<std::uint32_t>(local.size());
    if (!comm->remote_group.empty()) {
      call.remote_size = static_cast<std::uint32_t>(remote.size());
      call.low_group = local.front() < remote.front();
      if (call.root == kAnyRank) call.root = kRootIsElsewhere;
      peers_ = remote;
      local_peers_ = local;
    } else {
      peers_ = local;
      if (comm->layout) call.layout = &*comm->layout;
    }
  }
  if (is_neighbour(event.op)) {
    // n, n destinations, n byte counts, m, m sources, m byte counts: world ranks become ranks of the
    // communicator.
    values_.assign(event.values.begin(), event.values.end());
    std::size_t at = 0;
    for (int half = 0; half < 2; ++half) {
      const std::size_t left = values_.size() - at;
      if (left < 1 || values_[at] > (left - 1) / 2)
        return fail(rank, "a neighbour collective with too few values");
      const std::size_t count = static_cast<std::size_t>(values_[at]);
      for (std::size_t i = at + 1; i <= at + count; ++i) {
        if (values_[i] >= static_cast<std::uint64_t>(store_.ranks())) {
          return fail(rank, "neighbour " + std::to_string(values_[i]) + " does not exist");
        }
        if (comm == nullptr) continue;
        const std::uint32_t* index = comm->index.find(static_cast<std::uint32_t>(values_[i]));
        if (index == nullptr)
          return fail(rank, "neighbour " + std::to_string(values_[i]) + " is not in the communicator");
        values_[i] = *index;
      }
      at += 1 + 2 * count;
    }
    call.values = values_;
  }
  steps_.clear();
  Result<CollectiveSteps> steps = expand_collective(call, steps_);
  if (!steps) return fail(rank, steps.error().message);
  const std::size_t peers = comm == nullptr ? static_cast<std::size_t>(store_.ranks()) : peers_.size();
  for (const CollectiveStep& step : steps_) {
    if (step.peer >= (step.local_group ? local_peers_.size() : peers))
      return fail(rank, "a collective with a peer outside its communicator");
  }
  ++stats_.collectives;
  stats_.approximated_collectives += steps->approximated || !mpi_.rules.exact ? 1 : 0;
  return {};
}

MessageIndex Matcher::step_message(Rank rank, ProcessIndex process, const Event& event,
                                   std::uint32_t collective_number, const CollectiveStep& step) {
  const std::vector<Rank>& group = step.local_group ? local_peers_ : peers_;
  const Rank peer = event.comm == 0 ? static_cast<Rank>(step.peer) : group[step.peer];
  const bool is_send = step.kind == CollectiveStep::Kind::kSend;
  const ChannelKey key{event.comm | kCollectiveChannel, is_send ? rank : peer, is_send ? peer : rank,
                       static_cast<std::int32_t>(collective_number)};
  bool paired = false;
  const MessageIndex index = is_send ? channels_.take_send(key, paired) : channels_.take_receive(key, paired);
  Message& message = store_.message(index);
  if (is_send) {
    message.bytes = step.bytes;
    message.sent = true;
    message.sender = process;
  } else {
    message.receiver = process;
  }
  return index;
}

// A run of sends with the run of receives that follows it is what the algorithms write as one sendrecv, or as
// Irecvs, Isends and a Waitall: the receives are posted first, the sends wait at the end. Sends that no
// receive follows are blocking ones.
void Matcher::emit_steps(Rank rank, ProcessIndex process, const Event& event, std::uint32_t collective_number,
                         Seconds work_s, Seconds call_s, std::uint8_t last_flags) {
  const auto message_of = [&](const CollectiveStep& step) {
    return step_message(rank, process, event, collective_number, step);
  };
  step_ops_.clear();
  const auto add = [&](OpKind kind, MessageIndex message, std::uint8_t flags) {
    Op op;
    op.kind = kind;
    op.flags = flags;
    op.message = message;
    step_ops_.push_back(op);
  };
  for (std::size_t first = 0; first < steps_.size();) {
    std::size_t receives = first;
    while (receives < steps_.size() && steps_[receives].kind == CollectiveStep::Kind::kSend) ++receives;
    std::size_t end = receives;
    while (end < steps_.size() && steps_[end].kind == CollectiveStep::Kind::kRecv) ++end;
    const bool is_large = std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(first),
                                      steps_.begin() + static_cast<std::ptrdiff_t>(end),
                                      [&](const CollectiveStep& step) { return step.bytes > eager_up_to_; });
    const bool is_exchange = is_large && receives > first && end > receives;
    const std::size_t posts = step_ops_.size();
    if (is_exchange) {
      for (std::size_t i = receives; i < end; ++i) add(OpKind::kPost, message_of(steps_[i]), 0);
    }
    const std::size_t sends = step_ops_.size();
    for (std::size_t i = first; i < receives; ++i) {
      add(OpKind::kSend, message_of(steps_[i]), static_cast<std::uint8_t>(is_exchange ? kOpNonblocking : 0));
      if (is_exchange) store_.message(step_ops_.back().message).to_come |= kWaitToCome;
    }
    for (std::size_t i = receives; i < end; ++i) {
      add(OpKind::kRecv, is_exchange ? step_ops_[posts + i - receives].message : message_of(steps_[i]), 0);
    }
    for (std::size_t i = first; is_exchange && i < receives; ++i) {
      add(OpKind::kWaitSend, step_ops_[sends + i - first].message, 0);
    }
    first = end;
  }
  if (step_ops_.empty()) return;
  step_ops_.front().work_s = work_s;
  step_ops_.back().call_s = call_s;
  step_ops_.back().flags |= last_flags;
  for (const Op& op : step_ops_) emit(process, op.kind, op.message, op.work_s, op.call_s, op.flags);
}

Result<void> Matcher::feed_collective(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const bool nonblocking = event.kind == EventKind::kIcollective;
  if (event.comm >= kMaxCommunicators)
    return fail(rank, "communicator " + std::to_string(event.comm) + " cannot be");
  if (nonblocking && (event.flags & kFlagHasRequest) == 0) {
    return fail(rank, "a non-blocking collective without a request");
  }
  std::uint32_t* count = state.collectives.find(event.comm);
  if (count == nullptr) {
    state.collectives.insert(event.comm, 0);
    count = state.collectives.find(event.comm);
  }
  const std::uint32_t collective_number = (*count)++;
  if (Result<void> ok = expand(rank, event, nonblocking); !ok) {
    if (!state.gap) return ok;
    note_partial(ok.error().message + " (after events of this rank were lost)");
    steps_.clear();
  }
  const ProcessIndex process = static_cast<ProcessIndex>(rank);
  if (!nonblocking) {
    if (steps_.empty()) {
      emit_plain(rank, event);
    } else {
      emit_steps(rank, process, event, collective_number, event.process_s, event.call_s, kOpEndsEvent);
    }
    return {};
  }
  ++stats_.nonblocking_collectives;
  const std::uint32_t record = new_request();
  if (Result<void> ok = add_request(rank, event, record); !ok) return ok;
  ProcessIndex actor = 0;
  if (state.idle_actors.empty()) {
    actor = store_.add_actor(rank);
  } else {
    actor = state.idle_actors.back();
    state.idle_actors.pop_back();
  }
  const MessageIndex fork = store_.new_message();
  const MessageIndex join = store_.new_message();
  for (const auto& [index, sender] : {std::pair{fork, process}, std::pair{join, actor}}) {
    Message& message = store_.message(index);
    message.src = rank;
    message.dst = rank;
    message.comm = event.comm;
    message.sent = true;
    message.internal = true;
    message.sender = sender;
  }
  emit(actor, OpKind::kRecv, fork, 0, 0, kOpInternal);
  emit_steps(rank, actor, event, collective_number, 0, 0, 0);
  emit(actor, OpKind::kSend, join, 0, 0, kOpInternal);
  emit(process, OpKind::kSend, fork, event.process_s, event.call_s, kOpInternal | kOpEndsEvent);
  Request& request = requests_[record];
  request.kind = RequestKind::kCollective;
  request.comm = event.comm;
  request.message = join;
  request.actor = actor;
  return {};
}

// --- all kinds

Result<void> Matcher::feed(Rank rank, std::span<const Event> events) {
  if (rank < 0 || rank >= store_.ranks()) {
    return invalid_input("event of rank " + number(rank) + ": the world has " + number(store_.ranks()) +
                         " ranks");
  }
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (store_.message_slots() > kPrefetchFrom) {
    for (const Event& event : events) {
      const bool sends = event.kind == EventKind::kIsend || event.kind == EventKind::kSend;
      if (sends && has_peer(event)) channels_.prefetch({event.comm, rank, event.peer, event.tag});
    }
  }
  for (const Event& event : events) {
    if (Result<void> fed = feed_one(rank, state, event); !fed) return fed;
  }
  return {};
}

[[gnu::always_inline]] inline Result<void> Matcher::feed_one(Rank rank, RankState& state,
                                                             const Event& event) {
  if (event.kind != EventKind::kKeepAlive) {
    ++state.events;
    ++stats_.events;
  }
  if (state.exited || state.closed) {
    return fail(rank, state.exited ? "comes after the rank's exit" : "comes after the rank was closed");
  }
  if (!is_duration(event.process_s) || !is_duration(event.call_s) || !is_duration(event.off_s)) {
    return fail(rank, "a time is negative or not a number");
  }
  if (!state.unplaced.empty() && state.events - state.held_since > kMaxHeldEvents) {
    release_posts(rank);
    state.held_since = state.events;
  }
  const ProcessIndex process = static_cast<ProcessIndex>(rank);
  switch (event.kind) {
    case EventKind::kSend:
    case EventKind::kIsend:
      return feed_send(rank, event);
    case EventKind::kStartRecv:
      return feed_start_recv(rank, event);
    case EventKind::kEndRecv:
      return feed_end_recv(rank, event);
    case EventKind::kRecv:
      return feed_recv(rank, event);
    case EventKind::kWait:
      return feed_wait(rank, event);
    case EventKind::kProbe:
      return feed_probe(rank, event);
    case EventKind::kCollective:
    case EventKind::kIcollective:
      return feed_collective(rank, event);
    case EventKind::kCommCreate:
      return feed_comm_create(rank, event);
    case EventKind::kCommFree:
      return feed_comm_free(rank, event);
    case EventKind::kCancel:
      return feed_cancel(rank, event);
    case EventKind::kRequestFree:
      return feed_request_free(rank, event);
    case EventKind::kCompute:
    case EventKind::kEnter:
    case EventKind::kLeave:
    case EventKind::kPhase:
      emit_plain(rank, event);
      return {};
    case EventKind::kKeepAlive:
      // Time passes, no event of the program ends (TSE Sec. 2.1).
      emit(process, OpKind::kCompute, kNoMessage, event.process_s, event.call_s, 0);
      return {};
    case EventKind::kBlocked:
      emit(process, OpKind::kBlocked, kNoMessage, event.process_s, event.off_s,
           event.call_s > 0 ? 0 : kOpEndsEvent);
      if (event.call_s > 0) emit(process, OpKind::kCompute, kNoMessage, 0, event.call_s, kOpEndsEvent);
      return {};
    case EventKind::kUnmodelled:
      ++stats_.unmodelled_calls;
      stats_.unmodelled_s += event.call_s;
      emit(process, OpKind::kBlocked, kNoMessage, event.process_s, event.call_s, kOpEndsEvent);
      return {};
    case EventKind::kGap:
      if (event.bytes > kMaxLostEvents) return fail(rank, "a gap of an impossible number of events");
      state.gap = true;
      stats_.lost_events += event.bytes;
      note_partial(
          fail(rank, std::to_string(event.bytes) + " events were lost here (its event ring was full)")
              .message);
      emit_plain(rank, event);
      return {};
    case EventKind::kExit:
      state.exited = true;
      release_posts(rank);
      emit_plain(rank, event, OpKind::kExit);
      return {};
  }
  return fail(rank, "unknown kind " + number(static_cast<int>(event.kind)));
}

void Matcher::close(Rank rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.closed) return;
  state.closed = true;
  release_posts(rank);
  store_.close(static_cast<ProcessIndex>(rank));
  store_.touch(static_cast<ProcessIndex>(rank));
}

}  // namespace lbf
