// Matcher: communicators, and collectives spelled out as messages. See matcher.h.
#include <algorithm>

#include "event/collective_op.h"
#include "predictor/engine/match/matcher.h"

namespace lbf::engine {

Result<void> Matcher::feed_comm_create(Rank rank, const Event& event) {
  if (event.comm == 0 || event.comm >= kMaxCommunicators) {
    return fail(rank, "communicator " + std::to_string(event.comm) + " cannot be defined");
  }
  if (event.values.size() < 3 || event.values[1] >= event.values.size() - 2) {
    return fail(rank, "communicator " + std::to_string(event.comm) + " is defined without members");
  }
  if (communicators_.size() <= event.comm) communicators_.resize(event.comm + std::size_t{1});
  CommunicatorGroups& comm = communicators_[event.comm];
  if (!comm.known) {
    const std::span<const std::uint64_t> members = event.values.subspan(2);
    const std::size_t local = event.values[1] != 0 ? static_cast<std::size_t>(event.values[1]) : members.size();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::uint64_t member = members[i];
      if (member >= static_cast<std::uint64_t>(store_.ranks())) {
        return fail(rank, "communicator " + std::to_string(event.comm) + " has rank " + std::to_string(member) +
                              ", the world has " + std::to_string(store_.ranks()));
      }
      if (comm.index.find(static_cast<std::uint32_t>(member)) != nullptr) {
        return fail(rank,
                    "communicator " + std::to_string(event.comm) + " has rank " + std::to_string(member) + " twice");
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
    CommunicatorGroups& comm = communicators_[event.comm];
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
  call.op = collective_op(event);
  call.nonblocking = nonblocking && (event.flags & kFlagBlockingCall) == 0;
  call.bytes = event.bytes;
  call.root = event.root;
  call.values = event.values;
  call.in_place = (event.flags & kFlagInPlace) != 0;
  // Also where no target knows their cost: they part exchanges (emit_steps), and no target's prediction shall
  // depend on which others there are.
  call.local_work = call.op != CollectiveOp::kCommCreate;
  call.library = mpi_.rules.library;
  peers_.clear();
  local_peers_.clear();
  const CommunicatorGroups* comm = nullptr;
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
  if (call.op == CollectiveOp::kCommCreate) call.creation = comm_creation(event.function);
  if (is_neighbour(call.op)) {
    // n, n destinations, n byte counts, m, m sources, m byte counts: world ranks become ranks of the
    // communicator.
    values_.assign(event.values.begin(), event.values.end());
    std::size_t at = 0;
    for (int half = 0; half < 2; ++half) {
      const std::size_t left = values_.size() - at;
      if (left < 1 || values_[at] > (left - 1) / 2) return fail(rank, "a neighbour collective with too few values");
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
    const bool is_message = step.kind == CollectiveStep::Kind::kSend || step.kind == CollectiveStep::Kind::kRecv;
    if (is_message && step.peer >= (step.local_group ? local_peers_.size() : peers))
      return fail(rank, "a collective with a peer outside its communicator");
  }
  ++stats_.collectives;
  stats_.approximated_collectives += steps->approximated || !mpi_.rules.exact ? 1 : 0;
  return {};
}

MessageIndex Matcher::step_message(Rank rank, ProcessIndex process, const Event& event, std::uint32_t collective_number,
                                   const CollectiveStep& step) {
  const std::vector<Rank>& group = step.local_group ? local_peers_ : peers_;
  const Rank peer = event.comm == 0 ? static_cast<Rank>(step.peer) : group[step.peer];
  const bool is_send = step.kind == CollectiveStep::Kind::kSend;
  const ChannelKey key{event.comm | kCollectiveChannel, is_send ? rank : peer, is_send ? peer : rank,
                       static_cast<std::int32_t>(collective_number)};
  const ProcessIndex ghost =
      skipped_collectives_.empty() && !any_ended_ ? kNobody : ghost_of_collective(event.comm, peer, collective_number);
  bool paired = false;
  const MessageIndex index = ghost != kNobody
                                 ? channels_.one_ended(key, is_send ? ChannelEnd::kSends : ChannelEnd::kReceives, ghost)
                             : is_send ? channels_.take_send(key, paired)
                                       : channels_.take_receive(key, paired);
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
// receive follows are blocking ones. Copies and reductions come between such runs. No steps at all: the event
// is an op without a message.
void Matcher::emit_steps(Rank rank, ProcessIndex process, const Event& event, std::uint32_t collective_number,
                         Seconds work_s, Seconds call_s, std::uint8_t last_flags) {
  const auto message_of = [&](const CollectiveStep& step) {
    return step_message(rank, process, event, collective_number, step);
  };
  step_ops_.clear();
  for (std::size_t first = 0; first < steps_.size();) {
    const CollectiveStep::Kind kind = steps_[first].kind;
    if (kind == CollectiveStep::Kind::kCopy || kind == CollectiveStep::Kind::kReduce) {
      const OpKind work = kind == CollectiveStep::Kind::kCopy ? OpKind::kCopy : OpKind::kReduce;
      for (Bytes left = local_work_ ? steps_[first].bytes : 0; left > 0; left -= std::min(left, kMostLocalBytes)) {
        step_ops_.push_back(Op::local_work(work, std::min(left, kMostLocalBytes)));
      }
      ++first;
      continue;
    }
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
      for (std::size_t i = receives; i < end; ++i) {
        step_ops_.push_back(Op::on_message(OpKind::kPost, message_of(steps_[i])));
      }
    }
    const std::size_t sends = step_ops_.size();
    for (std::size_t i = first; i < receives; ++i) {
      step_ops_.push_back(Op::on_message(OpKind::kSend, message_of(steps_[i]), 0, 0,
                                         static_cast<std::uint8_t>(is_exchange ? kOpNonblocking : 0)));
      if (is_exchange) store_.expect(step_ops_.back().message());
    }
    for (std::size_t i = receives; i < end; ++i) {
      step_ops_.push_back(Op::on_message(
          OpKind::kRecv, is_exchange ? step_ops_[posts + i - receives].message() : message_of(steps_[i])));
    }
    for (std::size_t i = first; is_exchange && i < receives; ++i) {
      step_ops_.push_back(Op::on_message(OpKind::kWaitSend, step_ops_[sends + i - first].message()));
    }
    first = end;
  }
  if (step_ops_.empty()) {
    if ((last_flags & kOpEndsEvent) != 0) emit_plain(rank, event);
    return;
  }
  step_ops_.front().work_s = work_s;
  step_ops_.back().call_s = call_s;
  step_ops_.back().flags |= last_flags;
  for (Op& op : step_ops_) {
    if (op.kind == OpKind::kSend) op.flags |= first_flag(rank, store_.message(op.message()).dst);
    if (op.kind == OpKind::kRecv) note_received_from(rank, store_.message(op.message()).src);
    emit(process, op);
  }
}

Result<void> Matcher::feed_collective(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const bool nonblocking = event.kind == EventKind::kIcollective;
  if (event.comm >= kMaxCommunicators) return fail(rank, "communicator " + std::to_string(event.comm) + " cannot be");
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
    emit_steps(rank, process, event, collective_number, event.process_s, event.call_s, kOpEndsEvent);
    return {};
  }
  stats_.nonblocking_collectives += (event.flags & kFlagBlockingCall) == 0 ? 1 : 0;
  if (state.requests.find(event.request) != nullptr) {
    if (Result<void> ok = lose_request(rank, event); !ok) return ok;
  }
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
  emit(actor, Op::on_message(OpKind::kRecv, fork, 0, 0, kOpInternal));
  emit_steps(rank, actor, event, collective_number, 0, 0, 0);
  emit(actor, Op::on_message(OpKind::kSend, join, 0, 0, kOpInternal));
  emit(process, Op::on_message(OpKind::kSend, fork, event.process_s, event.call_s, kOpInternal | kOpEndsEvent));
  const std::uint32_t record = new_record();
  records_[record].message = join;
  records_[record].actor = actor;
  state.requests.insert({event.request, record, RequestKind::kCollective, 0});
  return {};
}

}  // namespace lbf::engine
