// See otf2_rank.h.
#include "tools/import/otf2_rank.h"

#include <algorithm>
#include <utility>

namespace lbf::tools::otf2 {
namespace {

bool ends_wait(EventKind kind) {
  return kind == EventKind::kEndRecv || kind == EventKind::kWait || kind == EventKind::kRecv ||
         kind == EventKind::kProbe;
}

bool ends_several(MpiRole role) {
  return role == MpiRole::kWaitall || role == MpiRole::kWaitsome || role == MpiRole::kTestall ||
         role == MpiRole::kTestsome;
}

Duration duration(Nanoseconds ns) {
  return Duration::of_ns(std::max<Nanoseconds>(ns, 0));
}

}  // namespace

Error RankImport::error(const Record& record, const std::string& what) const {
  return shared_.error(rank_, record.position, call_.region == nullptr ? "" : call_.region->name, what);
}
Error RankImport::error(const Call& call, const std::string& what) const {
  return shared_.error(rank_, call.position, call.region == nullptr ? "" : call.region->name, what);
}

// --- time

void RankImport::work_until(Nanoseconds ns) {
  work_ns_ += std::max<Nanoseconds>(ns - since_ns_, 0);
  since_ns_ = std::max(since_ns_, ns);
}

std::uint64_t RankImport::add(Held held, Nanoseconds ns, std::uint64_t position) {
  Event& event = held.event;
  event.function = call_.function();
  if (!call_.has_record) {
    event.flags |= kFlagCallBegin;
    if (looks_ > 0 && !ends_wait(event.kind))
      add_plain(vain_looks_event(std::exchange(looks_, 0), duration(std::exchange(looks_ns_, 0))));
    event.process_s = duration(std::exchange(work_ns_, 0));
    // What looked in vain before waited for this.
    event.call_s = duration(std::exchange(looks_ns_, 0));
    looks_ = 0;
    call_.has_record = true;
  }
  event.call_s += duration(ns - call_.last_ns);
  call_.last_ns = std::max(call_.last_ns, ns);
  held.position = position;
  return held_.push(std::move(held));
}

std::uint64_t RankImport::add_alone(Held held, const Call& call, Nanoseconds ns) {
  call_ = call;
  const std::uint64_t number = add(std::move(held), ns, call.position);
  call_ = {};
  since_ns_ = std::max(since_ns_, ns);
  return number;
}

void RankImport::add_plain(Event event) {
  Held held;
  held.event = event;
  held.event.process_s = duration(std::exchange(work_ns_, 0));
  held_.push(std::move(held));
}

Result<void> RankImport::end_program(Nanoseconds ns) {
  if (Result<void> ended = end_lost_before_call(); !ended) return ended;
  if (call_.region != nullptr) {  // killed in a call, or the archive is cut
    ++shared_.counts.odd_regions;
    call_.depth = 0;
    if (Result<void> ended = end_call(ns); !ended) return ended;
    if (Result<void> ended = end_lost(); !ended) return ended;
  }
  if (Result<void> ended = end_of_lost(); !ended) return ended;
  if (off_depth_ == 0 && !paused_) work_until(ns);
  if (looks_ > 0) add_plain(vain_looks_event(looks_, duration(looks_ns_)));
  for (const std::uint64_t id : open_in_order()) {
    const Request& request = requests_.at(id);
    if (request.kind != Request::Kind::kReceive && request.kind != Request::Kind::kCollective) continue;
    if (request.kind == Request::Kind::kCollective) {
      return shared_.error(rank_, request.position, "",
                           "a non-blocking collective has no end, and the archive says only there what it is");
    }
    ++shared_.counts.unended_receives;
    has_unended_receives_ = true;
    if (!request.is_late) drop(request.post);
  }
  requests_.clear();
  for (const std::uint64_t number : probes_) give_up_probe(number);
  probes_.clear();
  if (blocking_post_) drop(*blocking_post_);
  add_plain(event_of_kind(EventKind::kExit));
  ended_ = true;
  return {};
}

Result<void> RankImport::finish() {
  shared_.counts.calls_in_teams += teams_.with_calls();
  if (ended_) return {};
  if (!began_) begin_program(last_ns_);
  return end_program(std::max(since_ns_, last_ns_));
}

void RankImport::begin_program(Nanoseconds ns) {
  began_ = true;
  since_ns_ = ns;
  if (start_.later_ns == 0) return;
  Event wait = event_of_kind(EventKind::kBlocked);
  wait.off_s = duration(start_.later_ns);
  add_plain(wait);
}

// --- regions

std::vector<const Region*>& RankImport::stack(std::uint16_t thread) {
  if (thread >= stacks_.size()) stacks_.resize(thread + std::size_t{1});
  return stacks_[thread];
}

void RankImport::track(const Record& record) {
  std::vector<const Region*>& regions = stack(record.thread);
  if (record.kind == Record::Kind::kEnter) {
    regions.push_back(record.region);
  } else if (!regions.empty()) {
    regions.pop_back();
  }
}

Result<void> RankImport::on(const Record& record) {
  if (ended_) return {};
  last_ns_ = record.ns;
  if (!began_) {
    // As in the capture, nothing counts before the end of MPI_Init.
    if (start_.is_after_init && !ends_init(record)) {
      if (record.kind == Record::Kind::kEnter || record.kind == Record::Kind::kLeave) track(record);
      return {};
    }
    begin_program(record.ns);
    if (start_.is_after_init) {
      track(record);
      return {};
    }
  }
  switch (record.kind) {
    case Record::Kind::kEnter:
      return enter(record);
    case Record::Kind::kLeave:
      return leave(record);
    case Record::Kind::kFork:
    case Record::Kind::kJoin:
    case Record::Kind::kTeamBegin:
    case Record::Kind::kTeamEnd:
      teams_.on(record);
      return {};
    case Record::Kind::kFlush:
    case Record::Kind::kOff:
    case Record::Kind::kOn:
      of_measurement(record);
      return {};
    default:
      return in_call(record);
  }
}

// The measurement writes its buffer, or pauses.
void RankImport::of_measurement(const Record& record) {
  const bool is_flush = record.kind == Record::Kind::kFlush;
  const auto length = static_cast<Nanoseconds>(record.bytes);
  shared_.counts.flushes += is_flush ? 1 : 0;
  shared_.counts.flush_s += is_flush ? seconds_from_ns(length) : 0;
  if (record.thread != 0) return;
  if (is_flush && call_.region != nullptr) {
    call_.last_ns = std::max(call_.last_ns, record.ns + length);
  } else if (is_flush) {
    work_until(record.ns);
    since_ns_ = std::max(since_ns_, record.ns + length);
  } else if (record.kind == Record::Kind::kOff && !paused_) {
    paused_ = true;
    if (call_.region == nullptr) work_until(record.ns);
    paused_ns_ = record.ns;
  } else if (record.kind == Record::Kind::kOn && paused_) {
    paused_ = false;
    has_gap_ = true;
    ++shared_.counts.pauses;
    if (call_.region != nullptr) return;
    add_plain(gap_event(1));
    Event unknown = event_of_kind(EventKind::kUnmodelled);
    unknown.flags = kFlagCallBegin;
    unknown.call_s = duration(record.ns - paused_ns_);
    add_plain(unknown);
    since_ns_ = record.ns;
  }
}

Result<void> RankImport::enter(const Record& record) {
  if (record.region == nullptr) return error(record, "a region that is not defined");
  stack(record.thread).push_back(record.region);
  const Region& region = *record.region;
  const bool is_end =
      region.kind == RegionKind::kEnd || (region.function != nullptr && region.function->role == MpiRole::kFinalize);
  if (is_end) return end_program(record.ns);
  switch (region.kind) {
    case RegionKind::kCall:
      return begin_call(record);
    case RegionKind::kOff:
      if (record.thread == 0 && call_.region == nullptr && off_depth_++ == 0) {
        if (Result<void> ended = end_lost(); !ended) return ended;
        work_until(record.ns);
        off_since_ns_ = record.ns;
      }
      return {};
    case RegionKind::kBarrier:
      teams_.enter_barrier(record.thread, record.ns);
      return {};
    default:
      return {};
  }
}

// Regions that have no end, or no beginning, are counted: measurements begin and end anywhere.
Result<void> RankImport::leave(const Record& record) {
  std::vector<const Region*>& regions = stack(record.thread);
  const auto found = std::find(regions.rbegin(), regions.rend(), record.region);
  if (found == regions.rend()) {
    ++shared_.counts.odd_regions;
    return {};
  }
  shared_.counts.odd_regions += static_cast<std::uint64_t>(found - regions.rbegin());
  const auto size = static_cast<std::size_t>(regions.rend() - found) - 1;
  while (regions.size() > size) {
    const Region* region = regions.back();
    regions.pop_back();
    if (Result<void> ended = end_region(*region, record.thread, record.ns); !ended) return ended;
  }
  return {};
}

Result<void> RankImport::end_region(const Region& region, std::uint16_t thread, Nanoseconds ns) {
  switch (region.kind) {
    case RegionKind::kCall:
      if (call_.region == nullptr || call_.thread != thread) return {};
      return call_.depth-- > 0 ? Result<void>() : end_call(ns);
    case RegionKind::kOff:
      if (thread == 0 && off_depth_ > 0 && --off_depth_ == 0) {
        Event off = event_of_kind(EventKind::kBlocked);
        off.off_s = duration(ns - off_since_ns_);
        add_plain(off);
        since_ns_ = std::max(since_ns_, ns);
      }
      return {};
    case RegionKind::kBarrier:
      teams_.leave_barrier(thread, ns);
      return {};
    default:
      return {};
  }
}

Result<void> RankImport::begin_call(const Record& record) {
  if (call_.region != nullptr) {
    if (call_.thread == record.thread) {
      ++call_.depth;
      return {};
    }
    return error(record, "two threads are in MPI at once (" + record.region->name +
                             " of another one): the replay has one thread of MPI calls for each rank");
  }
  Call call;
  call.region = record.region;
  call.thread = record.thread;
  call.position = record.position;
  call.enter_ns = call.last_ns = record.ns;
  if (!lost_.empty() && !is_wait_or_test(call.role())) {
    if (Result<void> ended = end_lost(); !ended) return ended;
  }
  teams_.call();
  if (lost_.empty()) {
    work_until(record.ns);
    if (std::optional<Teams::Sum> regions = teams_.take()) {
      Held held;
      held.event = event_of_kind(EventKind::kRegions);
      held.event.process_s = duration(std::min(regions->wall_ns, work_ns_));
      held.values = std::move(regions->values);
      work_ns_ -= std::min(regions->wall_ns, work_ns_);
      held_.push(std::move(held));
    }
  }
  call.first = held_.end();
  call_ = call;
  return {};
}

Result<void> RankImport::end_call(Nanoseconds ns) {
  if (call_.posted) drop(*call_.posted);  // from MPI_PROC_NULL
  if (call_.collectives > 0)
    return error(call_, "has no record of its end: which communicator, root and size it has is not in the archive");
  const Call call = call_;
  if (!call.has_record) {
    call_ = {};
    return end_silent_call(call, ns);
  }
  if (shared_.rebuilds() && ends_several(call.role())) {
    if (Result<void> only = rule_out_left_open(call); !only) return only;
    if (call.role() == MpiRole::kWaitall) lose_ends(requests_.size(), call, ns);
  }
  held_.at(held_.end() - 1).event.call_s += duration(ns - call_.last_ns);
  call_ = {};
  since_ns_ = std::max(since_ns_, ns);
  return {};
}

Result<void> RankImport::end_lost_before_call() {
  if (lost_.empty()) return {};
  const Call mine = std::exchange(call_, {});
  if (Result<void> ended = end_lost(); !ended) return ended;
  call_ = mine;
  if (mine.region == nullptr) return {};
  work_until(mine.enter_ns);
  call_.first = held_.end();
  return {};
}

// --- records in a call

Result<void> RankImport::in_call(const Record& record) {
  if (call_.region == nullptr) {
    return error(record,
                 "a record of a message outside of an MPI region: how long the rank was in the call is not in the "
                 "archive");
  }
  if (record.thread != call_.thread) return error(record, "a record of another thread than the one in MPI");
  if (Result<void> ended = end_lost_before_call(); !ended) return ended;
  switch (record.kind) {
    case Record::Kind::kSend:
    case Record::Kind::kIsend:
    case Record::Kind::kRecv:
      return message(record);
    case Record::Kind::kIrecvRequest:
    case Record::Kind::kNonblockingRequest: {
      Held held;
      const bool is_receive = record.kind == Record::Kind::kIrecvRequest;
      held.event = event_of_kind(is_receive ? EventKind::kStartRecv : EventKind::kIcollective);
      held.waits = true;
      if (!is_receive) call_.collectives = 0;
      return open(record, is_receive ? Request::Kind::kReceive : Request::Kind::kCollective, std::move(held));
    }
    case Record::Kind::kIsendComplete:
    case Record::Kind::kIrecv:
    case Record::Kind::kCancelled:
      return completion(record);
    case Record::Kind::kCollectiveBegin:
      ++call_.collectives;
      return {};
    case Record::Kind::kCollectiveEnd:
      return collective_end(record);
    case Record::Kind::kNonblockingComplete:
      return nonblocking_end(record);
    default:
      return one_sided(record);
  }
}

Result<void> RankImport::set_channel(const Record& record, Held& held) const {
  const Communicator* comm = shared_.definitions.communicator(record.comm);
  if (comm == nullptr) return error(record, "communicator " + std::to_string(record.comm) + " is not defined");
  if (!comm->place(rank_)) return error(record, "is no member of communicator " + std::to_string(record.comm));
  const std::optional<Rank> peer = comm->peer(rank_, record.peer);
  if (!peer) {
    return error(record, "rank " + std::to_string(record.peer) + " of communicator " + std::to_string(record.comm) +
                             ", which has " + std::to_string(comm->peers(rank_)));
  }
  constexpr std::uint32_t kMostTag = 0x7FFFFFFF;
  if (record.tag > kMostTag) return error(record, "tag " + std::to_string(record.tag) + " is none");
  held.comm = comm;
  held.event.comm = comm->index_of(rank_);
  held.event.peer = *peer;
  held.event.tag = static_cast<std::int32_t>(record.tag);
  held.event.bytes = record.bytes;
  return {};
}

Result<void> RankImport::message(const Record& record) {
  Held held;
  if (Result<void> set = set_channel(record, held); !set) return set;
  const Message sent{held.comm, rank_, held.event.tag, record.bytes, record.ns};
  const auto peer = static_cast<std::size_t>(held.event.peer);
  if (record.kind == Record::Kind::kRecv) {
    ++shared_.received_by[static_cast<std::size_t>(rank_)];
    if (shared_.rebuilds()) {
      Message mine = sent;
      mine.source = held.event.peer;
      shared_.inboxes[static_cast<std::size_t>(rank_)].receive(mine);
    }
    resolve_probes(held);
    const std::optional<std::uint64_t> post = call_.posted ? call_.posted : std::exchange(blocking_post_, {});
    held.event.kind = post ? EventKind::kEndRecv : EventKind::kRecv;
    if (post) fill_receive(*post, held);
    call_.posted.reset();
    add(std::move(held), record.ns, record.position);
    return {};
  }
  ++shared_.sent_to[peer];
  if (shared_.rebuilds()) shared_.inboxes[peer].send(sent);
  if (const MpiFunction* function = call_.region->function) {
    if (function->mode == SendMode::kSynchronous) held.event.flags |= kFlagSync;
    if (function->mode == SendMode::kBuffered) held.event.flags |= kFlagBuffered;
  }
  const MpiRole role = call_.role();
  if (!call_.posted && (role == MpiRole::kSendrecv || role == MpiRole::kSendrecvReplace)) {
    // The receive is there before the send waits.
    Held post;
    post.event = event_of_kind(EventKind::kStartRecv);
    post.waits = true;
    call_.posted = add(std::move(post), record.ns, record.position);
  }
  held.event.kind = record.kind == Record::Kind::kSend ? EventKind::kSend : EventKind::kIsend;
  if (record.kind == Record::Kind::kIsend) return open(record, Request::Kind::kSend, std::move(held));
  add(std::move(held), record.ns, record.position);
  return {};
}

Result<void> RankImport::open(const Record& record, Request::Kind kind, Held held) {
  if (requests_.contains(record.request)) {
    if (Result<void> ended = end_by_look(record.request, record.position); !ended) return ended;
  }
  if (!maybe_open_.empty()) maybe_open_.erase(record.request);
  if (requests_.empty()) next_number_ = 0;
  Request request;
  request.kind = kind;
  request.number = next_number_++;
  request.position = record.position;
  request.order = next_order_++;
  request.ns = record.ns;
  held.event.flags |= kFlagHasRequest;
  held.event.request = request.number;
  request.post = add(std::move(held), record.ns, record.position);
  requests_.emplace(record.request, request);
  return {};
}

// The post of a receive has the channel of its end.
void RankImport::fill_receive(std::uint64_t post, const Held& end) {
  if (!held_.has(post)) return;
  Held& held = held_.at(post);
  held.event.peer = end.event.peer;
  held.event.tag = end.event.tag;
  held.event.comm = end.event.comm;
  held.comm = end.comm;
  held.waits = false;
}

void RankImport::drop(std::uint64_t number) {
  if (!held_.has(number)) return;
  Held& held = held_.at(number);
  Event time = event_of_kind(EventKind::kCompute);
  time.process_s = held.event.process_s;
  time.process_s += held.event.call_s;
  held.event = time;
  held.comm = nullptr;
  held.waits = false;
}

Result<void> RankImport::completion(const Record& record) {
  const auto found = requests_.find(record.request);
  if (found == requests_.end()) {
    if (has_gap_) return {};
    return error(record, "ends request " + std::to_string(record.request) + ", which no record before it has posted");
  }
  const Request request = found->second;
  requests_.erase(found);
  settle_looks();  // they found nothing
  const bool is_receive = request.kind == Request::Kind::kReceive;
  Held held;
  held.event.flags = kFlagHasRequest;
  held.event.request = request.number;
  if (record.kind == Record::Kind::kCancelled) {
    if (is_receive) {
      ++shared_.counts.cancelled_receives;
      if (!request.is_late) drop(request.post);
      return {};
    }
    held.event.kind = EventKind::kCancel;
    add(std::move(held), record.ns, record.position);
    return {};
  }
  if (record.kind == Record::Kind::kIrecv && !is_receive) {
    // EZTrace has a persistent send end so.
    if (!shared_.rebuilds()) return error(record, "a receive ends a request that is none");
    ++shared_.counts.false_receives;
  }
  if (record.kind == Record::Kind::kIsendComplete && is_receive)
    return error(record, "a send ends the request of a receive");
  if (!is_receive) {
    held.event.kind = EventKind::kWait;
    add(std::move(held), record.ns, record.position);
    return {};
  }
  if (Result<void> set = set_channel(record, held); !set) return set;
  held.event.kind = EventKind::kEndRecv;
  ++shared_.received_by[static_cast<std::size_t>(rank_)];
  if (shared_.rebuilds()) {
    shared_.inboxes[static_cast<std::size_t>(rank_)].receive(
        {held.comm, held.event.peer, held.event.tag, held.event.bytes, record.ns});
  }
  if (request.is_late) {
    Held post = held;
    post.event.kind = EventKind::kStartRecv;
    post.event.bytes = 0;
    add(std::move(post), record.ns, record.position);
  } else {
    fill_receive(request.post, held);
  }
  add(std::move(held), record.ns, record.position);
  return {};
}

Result<void> RankImport::collective_end(const Record& record) {
  Held held;
  held.event = event_of_kind(EventKind::kCollective);
  if (Result<void> set = set_collective(record, rank_, call_.region->function, shared_, held); !set)
    return error(record, set.error().message);
  call_.collectives = std::max(call_.collectives - 1, 0);
  add(std::move(held), record.ns, record.position);
  return {};
}

Result<void> RankImport::nonblocking_end(const Record& record) {
  const auto found = requests_.find(record.request);
  if (found == requests_.end() || found->second.kind != Request::Kind::kCollective) {
    if (has_gap_) return {};
    return error(record, "ends collective " + std::to_string(record.request) + ", which no record before it has begun");
  }
  const Request request = found->second;
  requests_.erase(found);
  Held made;
  made.event = event_of_kind(EventKind::kIcollective);
  // The function is that of the begin.
  const std::uint16_t function = request.is_late ? call_.function() : held_.at(request.post).event.function;
  if (Result<void> set = set_collective(record, rank_, mpi_function(function), shared_, made); !set)
    return error(record, set.error().message);
  made.event.flags |= kFlagHasRequest;
  made.event.request = request.number;
  if (request.is_late) {
    add(std::move(made), record.ns, record.position);
  } else {
    Held& post = held_.at(request.post);
    made.event.process_s = post.event.process_s;
    made.event.call_s = post.event.call_s;
    made.event.function = post.event.function;
    made.event.flags |= post.event.flags;
    made.position = post.position;
    post = std::move(made);
  }
  Held end;
  end.event = event_of_kind(EventKind::kWait);
  end.event.flags = kFlagHasRequest;
  end.event.request = request.number;
  add(std::move(end), record.ns, record.position);
  return {};
}

void RankImport::resolve_probes(const Held& receive) {
  for (const std::uint64_t number : probes_) fill_receive(number, receive);
  probes_.clear();
}

}  // namespace lbf::tools::otf2
