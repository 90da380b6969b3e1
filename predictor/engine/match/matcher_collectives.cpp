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
  if (!store_.budget().spend(event.values.size())) return store_.budget().status();
  auto comm = communicators_.find(event.comm);
  if (comm == communicators_.end()) {
    const std::span<const std::uint64_t> members = event.values.subspan(2);
    const auto refuse = [&](std::uint64_t member, const std::string& why) {
      return fail(rank, "communicator " + std::to_string(event.comm) + " has rank " + std::to_string(member) + why);
    };
    for (const std::uint64_t member : members) {
      if (member >= static_cast<std::uint64_t>(store_.ranks()))
        return refuse(member, ", the world has " + std::to_string(store_.ranks()));
    }
    const Rank twice = RankList(members).double_member();
    if (twice != kAnyRank) return refuse(static_cast<std::uint64_t>(twice), " twice");
    const std::size_t local = event.values[1] != 0 ? static_cast<std::size_t>(event.values[1]) : members.size();
    Communicator created;
    created.group = RankGroup(members.first(local));
    created.remote_group = RankGroup(members.subspan(local));
    store_.account()->bytes += created.memory_bytes();
    comm = communicators_.emplace(event.comm, std::move(created)).first;
  }
  if (!comm->second.place_of(rank)) return fail(rank, "is no member of communicator " + std::to_string(event.comm));
  emit_plain(rank, event);
  return {};
}

Result<void> Matcher::feed_comm_free(Rank rank, const Event& event) {
  // Indices are never used again (event.h): the last member to free it takes the members along.
  const auto found = communicators_.find(event.comm);
  if (found != communicators_.end() && ++found->second.frees == found->second.size()) {
    plans_.forget(event.comm);
    store_.account()->bytes -= found->second.memory_bytes();
    communicators_.erase(found);
  }
  emit_plain(rank, event);
  return {};
}

const NodeLayout* Matcher::layout_of(Communicator* comm) {
  if (comm == nullptr) return world_layout_ ? &*world_layout_ : nullptr;
  if (mpi_.node_of_rank.empty()) return nullptr;
  if (!comm->layout) {
    std::vector<std::uint32_t> node_of_member(comm->group.size());
    for (std::size_t place = 0; place < node_of_member.size(); ++place) {
      node_of_member[place] = mpi_.node_of_rank[static_cast<std::size_t>(comm->group[place])];
    }
    comm->layout.emplace(node_of_member);
    store_.account()->bytes += comm->layout->memory_bytes();
  }
  return &*comm->layout;
}

Result<void> Matcher::translate_neighbours(Rank rank, const Event& event, const Communicator* comm) {
  // n, n destinations, n byte counts, m, m sources, m byte counts.
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
      const std::optional<std::uint32_t> place = comm->place_of(static_cast<Rank>(values_[i]));
      if (!place) return fail(rank, "neighbour " + std::to_string(values_[i]) + " is not in the communicator");
      values_[i] = *place;
    }
    at += 1 + 2 * count;
  }
  return {};
}

Result<void> Matcher::expand(Rank rank, const Event& event, bool nonblocking) {
  CollectiveCall call;
  call.op = collective_op(event);
  call.nonblocking = nonblocking && (event.flags & kFlagBlockingCall) == 0;
  call.bytes = event.bytes;
  // Elsewhere it says nothing, and nobody checks it.
  call.root = is_rooted(call.op) ? event.root : 0;
  call.values = event.values;
  call.in_place = (event.flags & kFlagInPlace) != 0;
  // Also where no target knows their cost: they part exchanges (emit_steps), and no target's prediction shall
  // depend on which others there are.
  call.local_work = call.op != CollectiveOp::kCommCreate;
  call.library = mpi_.rules.library;
  call.settings = &mpi_.settings;
  call.budget = &store_.budget();
  peers_ = nullptr;
  local_peers_ = nullptr;
  Communicator* comm = nullptr;
  if (event.comm == 0) {
    call.rank = static_cast<std::uint32_t>(rank);
    call.size = static_cast<std::uint32_t>(store_.ranks());
    call.layout = layout_of(nullptr);
  } else {
    const auto found = communicators_.find(event.comm);
    if (found == communicators_.end()) {
      return fail(rank, "communicator " + std::to_string(event.comm) + " is not defined");
    }
    comm = &found->second;
    const std::optional<std::uint32_t> in_group = comm->group.place_of(rank);
    const std::optional<std::uint32_t> place = in_group ? in_group : comm->remote_group.place_of(rank);
    if (!place) return fail(rank, "is no member of communicator " + std::to_string(event.comm));
    call.rank = *place;
    const RankGroup& local = in_group ? comm->group : comm->remote_group;
    const RankGroup& remote = in_group ? comm->remote_group : comm->group;
    call.size = static_cast<std::uint32_t>(local.size());
    if (!comm->remote_group.empty()) {
      call.remote_size = static_cast<std::uint32_t>(remote.size());
      call.low_group = local.front() < remote.front();
      if (call.root == kAnyRank) call.root = kRootIsElsewhere;
      peers_ = &remote;
      local_peers_ = &local;
    } else {
      peers_ = &local;
      call.layout = layout_of(comm);
    }
  }
  if (call.op == CollectiveOp::kCommCreate) call.creation = comm_creation(event.function);
  if (is_neighbour(call.op)) {
    if (Result<void> ok = translate_neighbours(rank, event, comm); !ok) return ok;
    call.values = values_;
  }
  steps_.clear();
  Result<CollectiveSteps> steps = expand_collective(call, steps_);
  if (!steps) return fail(rank, steps.error().message);
  const std::size_t peers = peers_ == nullptr ? static_cast<std::size_t>(store_.ranks()) : peers_->size();
  const std::size_t local_peers = local_peers_ == nullptr ? 0 : local_peers_->size();
  for (const CollectiveStep& step : steps_) {
    const bool is_message = step.kind == CollectiveStep::Kind::kSend || step.kind == CollectiveStep::Kind::kRecv;
    if (is_message && step.peer >= (step.local_group ? local_peers : peers))
      return fail(rank, "a collective with a peer outside its communicator");
  }
  ++stats_.collectives;
  approximated_ = steps->approximated || !mpi_.is_exact();
  stats_.approximated_collectives += approximated_ ? 1 : 0;
  return {};
}

MessageIndex Matcher::step_message(Rank rank, ProcessIndex process, const Event& event, std::uint32_t collective_number,
                                   const CollectiveStep& step) {
  const RankGroup* const group = step.local_group ? local_peers_ : peers_;
  const Rank peer = group == nullptr ? static_cast<Rank>(step.peer) : (*group)[step.peer];
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
  if (joined_.notes) plans_.give_number(joined_, message);
  return index;
}

// A run of sends with the run of receives that follows it is what the algorithms write as one sendrecv, or as
// Irecvs, Isends and a Waitall: the receives are posted first, the sends wait at the end. Sends that no
// receive follows are blocking ones. Copies and reductions come between such runs. No steps at all: the event
// is an op without a message.
void Matcher::emit_steps(Rank rank, ProcessIndex process, const Event& event, std::uint32_t collective_number,
                         Seconds work_s, Seconds call_s, std::uint8_t last_flags) {
  if (joined_.part != nullptr) return emit_part(rank, process, event, collective_number, work_s, call_s, last_flags);
  WorkBudget& budget = store_.budget();
  const auto message_of = [&](const CollectiveStep& step) {
    return step_message(rank, process, event, collective_number, step);
  };
  const auto append = [&](const Op& op, std::size_t taken_by) {
    step_ops_.push_back(op);
    taken_by_.push_back(static_cast<std::uint32_t>(taken_by));
  };
  const auto append_first = [&](const Op& op) { append(op, step_ops_.size()); };
  step_ops_.clear();
  taken_by_.clear();
  for (std::size_t first = 0; first < steps_.size() && budget.spend(1);) {
    const CollectiveStep::Kind kind = steps_[first].kind;
    if (kind == CollectiveStep::Kind::kCopy || kind == CollectiveStep::Kind::kReduce) {
      if (local_work_) append_local_work(kind, steps_[first].bytes);
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
      for (std::size_t i = receives; i < end && budget.spend(1); ++i) {
        append_first(Op::on_message(OpKind::kPost, message_of(steps_[i])));
      }
    }
    const std::size_t sends = step_ops_.size();
    for (std::size_t i = first; i < receives && budget.spend(1); ++i) {
      append_first(Op::on_message(OpKind::kSend, message_of(steps_[i]), 0, 0,
                                  static_cast<std::uint8_t>(is_exchange ? kOpNonblocking : 0)));
      if (is_exchange) store_.expect(step_ops_.back().message());
    }
    for (std::size_t i = receives; i < end && budget.spend(1); ++i) {
      const std::size_t post = posts + i - receives;
      append(Op::on_message(OpKind::kRecv, is_exchange ? step_ops_[post].message() : message_of(steps_[i])),
             is_exchange ? post : step_ops_.size());
    }
    for (std::size_t i = first; is_exchange && i < receives && budget.spend(1); ++i) {
      append(Op::on_message(OpKind::kWaitSend, step_ops_[sends + i - first].message()), sends + i - first);
    }
    first = end;
  }
  if (budget.is_over()) return;
  if (joined_.notes) plans_.note(joined_, step_ops_, taken_by_, approximated_);
  if (step_ops_.empty()) {
    if ((last_flags & kOpEndsEvent) != 0) emit_plain(rank, event);
    return;
  }
  step_ops_.front().work_s = work_s;
  step_ops_.back().call_s = call_s;
  step_ops_.back().flags |= last_flags;
  for (Op& op : step_ops_) {
    if (!budget.spend(1)) return;
    if (op.kind == OpKind::kSend) op.flags |= first_flag(rank, store_.message(op.message()).dst);
    if (op.kind == OpKind::kRecv) note_received_from(rank, store_.message(op.message()).src);
    emit(process, op);
  }
}

void Matcher::append_local_work(CollectiveStep::Kind kind, Bytes bytes) {
  const OpKind work = kind == CollectiveStep::Kind::kCopy ? OpKind::kCopy : OpKind::kReduce;
  const auto append = [&](Bytes part) {
    taken_by_.push_back(static_cast<std::uint32_t>(step_ops_.size()));
    step_ops_.push_back(Op::local_work(work, part));
  };
  if (bytes > kManyLocalBytes) {
    const Bytes rest = bytes % kMostLocalBytes;
    append(bytes - rest);
    bytes = rest;
  }
  for (; bytes > 0; bytes -= std::min(bytes, kMostLocalBytes)) append(std::min(bytes, kMostLocalBytes));
}

RepeatedCollectives::Joined Matcher::join_plan(Rank rank, const Event& event, std::uint32_t collective_number) {
  if (!has_plans_ || !skipped_collectives_.empty() || any_ended_) return {};
  std::uint32_t place = static_cast<std::uint32_t>(rank);
  std::size_t size = static_cast<std::size_t>(store_.ranks());
  if (event.comm != 0) {
    const auto comm = communicators_.find(event.comm);
    if (comm == communicators_.end() || !comm->second.remote_group.empty()) return {};
    const std::optional<std::uint32_t> at = comm->second.group.place_of(rank);
    if (!at) return {};
    place = *at;
    size = comm->second.group.size();
  }
  if (size < 2) return {};
  const bool can_be_planned = event.values.empty() && !has_byte_counts(collective_op(event));
  return plans_.join(event.comm, collective_number, place, static_cast<std::uint32_t>(size),
                     RepeatedCollectives::call_of(event), can_be_planned);
}

void Matcher::emit_part(Rank rank, ProcessIndex process, const Event& event, std::uint32_t collective_number,
                        Seconds work_s, Seconds call_s, std::uint8_t last_flags) {
  const std::span<const RepeatedCollectives::Step> steps = joined_.part->steps;
  if (steps.empty()) {
    if ((last_flags & kOpEndsEvent) != 0) emit_plain(rank, event);
    return;
  }
  part_messages_.resize(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!store_.budget().spend(1)) return;
    const RepeatedCollectives::Step& step = steps[i];
    const OpKind kind = step.kind();
    Op op;
    if (is_local_work(kind)) {
      op = Op::local_work(kind, step.bytes);
    } else {
      const auto peer = static_cast<Rank>(step.peer);
      std::uint8_t flags = step.nonblocking != 0 ? kOpNonblocking : 0;
      MessageIndex index = kNoMessage;
      if (step.takes != 0) {
        const bool sends = kind == OpKind::kSend;
        bool is_new = false;
        index = plans_.take(*joined_.collective, step.number, is_new);
        Message& message = store_.message(index);
        if (is_new) {
          message.src = sends ? rank : peer;
          message.dst = sends ? peer : rank;
          message.comm = event.comm;
          message.collective = true;
          message.tag = static_cast<std::int32_t>(collective_number);
        }
        if (sends) {
          message.bytes = step.bytes;
          message.sent = true;
          message.sender = process;
        } else {
          message.receiver = process;
        }
        if (step.nonblocking != 0) store_.expect(index);
      } else {
        index = part_messages_[i - step.number];
      }
      part_messages_[i] = index;
      if (kind == OpKind::kSend) flags |= first_flag(rank, peer);
      if (kind == OpKind::kRecv) note_received_from(rank, peer);
      op = Op::on_message(kind, index, 0, 0, flags);
    }
    if (i == 0) op.work_s = work_s;
    if (i + 1 == steps.size()) {
      op.call_s = call_s;
      op.flags |= last_flags;
    }
    emit(process, op);
  }
}

Result<void> Matcher::feed_collective(Rank rank, const Event& event) {
  // An alltoallv of many ranks has many values, even where nothing is sent.
  if (!store_.budget().spend(event.values.size())) return store_.budget().status();
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
  joined_ = join_plan(rank, event, collective_number);
  if (joined_.part != nullptr) {
    ++stats_.collectives;
    stats_.approximated_collectives += joined_.part->approximated ? 1 : 0;
    if (!store_.budget().spend(joined_.part->steps.size())) return store_.budget().status();
  } else {
    if (Result<void> ok = expand(rank, event, nonblocking); !ok) {
      if (!state.gap) return ok;
      note_partial(ok.error().message + " (after events of this rank were lost)");
      steps_.clear();
      joined_.notes = false;
    }
    if (!store_.budget().spend(steps_.size())) return store_.budget().status();
  }
  const ProcessIndex process = static_cast<ProcessIndex>(rank);
  if (!nonblocking) {
    emit_steps(rank, process, event, collective_number, event.process_s, event.call_s, kOpEndsEvent);
    plans_.leave(joined_);
    return store_.budget().status();
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
  plans_.leave(joined_);
  emit(actor, Op::on_message(OpKind::kSend, join, 0, 0, kOpInternal));
  emit(process, Op::on_message(OpKind::kSend, fork, event.process_s, event.call_s, kOpInternal | kOpEndsEvent));
  const std::uint32_t record = new_record();
  records_[record].message = join;
  records_[record].actor = actor;
  state.requests.insert({event.request, record, RequestKind::kCollective, 0});
  return store_.budget().status();
}

}  // namespace lbf::engine
