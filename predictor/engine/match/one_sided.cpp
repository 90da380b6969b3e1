#include "predictor/engine/match/one_sided.h"

namespace lbf::engine {
namespace {

// On a window, beside the empty messages of post and complete (spank_plugin/capture/recorder_windows.cpp).
constexpr std::int32_t kThereTag = 2;
constexpr std::int32_t kBackTag = 3;

// The bytes that travel from the origin to the target, and back.
struct Bothways {
  Bytes there;
  Bytes back;
};

Bothways bytes_of(const Event& event) {
  switch (one_sided_op(event)) {
    case OneSidedOp::kPut:
    case OneSidedOp::kAccumulate:
      return {event.bytes, 0};
    case OneSidedOp::kGet:
      return {0, event.bytes};
    case OneSidedOp::kGetAccumulate:
    case OneSidedOp::kFetchAndOp:
      return {event.bytes, event.bytes};
    case OneSidedOp::kCompareAndSwap:
      return {2 * event.bytes, event.bytes};  // what to compare with, and what to write
    case OneSidedOp::kLock:
      break;
  }
  return {0, 0};
}

}  // namespace

OneSided::OneSided(Rank ranks, OpStore& store, Bytes eager_up_to)
    : store_(store),
      eager_up_to_(eager_up_to),
      ranks_(static_cast<std::size_t>(ranks), store.account()),
      records_(store.account()),
      free_(store.account()) {}

OneSided::RankState& OneSided::state_of(Rank origin) {
  std::unique_ptr<RankState>& state = ranks_[static_cast<std::size_t>(origin)];
  if (state == nullptr) {
    state = std::make_unique<RankState>(store_.account());
    store_.account()->bytes += sizeof(RankState);
  }
  return *state;
}

std::uint64_t OneSided::list_key(std::size_t list, std::uint32_t window, Rank target) {
  if (list == 0) return ~std::uint64_t{0};
  const std::uint32_t low = list == 1 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(target);
  return static_cast<std::uint64_t>(window) << 32 | low;
}

OneSided::Ends* OneSided::find_list(Rank origin, std::uint64_t key) {
  if (ranks_[static_cast<std::size_t>(origin)] == nullptr) return nullptr;
  auto& lists = state_of(origin).lists;
  const auto found = lists.find(key);
  return found != lists.end() ? &found->second : nullptr;
}

ProcessIndex OneSided::actor_of(Rank origin, Rank target, bool large) {
  Actors& actors = state_of(origin).actors[target];
  const std::uint32_t which = large ? actors.large++ % kActorsPerPair : 0;
  while (actors.made <= which) {
    actors.process[actors.made] = store_.add_actor_for(target, origin, actors.made, kActorsPerPair);
    ++actors.made;
  }
  return actors.process[which];
}

MessageIndex OneSided::new_message(Rank from, Rank to, ProcessIndex sender, ProcessIndex receiver, std::int32_t tag,
                                   std::uint32_t window, Bytes bytes) {
  const MessageIndex index = store_.new_sent_message(from, to, sender, receiver);
  Message& message = store_.message(index);
  message.bytes = bytes;
  message.comm = window;
  message.tag = tag;
  return index;
}

OneSided::Ticket OneSided::operate(Rank origin, const Event& event) {
  RankState& state = state_of(origin);
  ++operations_;
  Seconds work_s = event.process_s;
  if (state.under_way == kMaxUnderWay) {
    receive(find_list(origin, list_key(0, 0, 0))->first, work_s);
    work_s = 0;
  }
  const Bothways bytes = bytes_of(event);
  const ProcessIndex process = static_cast<ProcessIndex>(origin);
  const bool large = bytes.there > eager_up_to_ || bytes.back > eager_up_to_;
  const ProcessIndex actor = actor_of(origin, event.peer, large);
  const MessageIndex there = new_message(origin, event.peer, process, actor, kThereTag, event.comm, bytes.there);
  const MessageIndex back = new_message(event.peer, origin, actor, process, kBackTag, event.comm, bytes.back);
  const bool waits = one_sided_op(event) == OneSidedOp::kLock;
  // Where the data goes is known to both sides: its place is posted before it is asked for.
  if (bytes.back > eager_up_to_) {
    push(process, Op::on_message(OpKind::kPost, back, work_s));
    work_s = 0;
  }
  const auto sent_flags = static_cast<std::uint8_t>(waits ? kOpNonblocking : kOpNonblocking | kOpEndsEvent);
  push(process, Op::on_message(OpKind::kSend, there, work_s, waits ? Duration() : event.call_s, sent_flags));
  push(actor, Op::on_message(OpKind::kRecv, there));
  push(actor, Op::on_message(OpKind::kSend, back, 0, 0, kOpNonblocking));
  if (waits) {
    push(process, Op::on_message(OpKind::kRecv, back, 0, event.call_s, kOpEndsEvent));
    return {};
  }
  const std::uint32_t record = add(origin, event, back);
  return {record, records_[record].serial};
}

void OneSided::sync(Rank origin, const Event& event) {
  const std::size_t list = event.peer == kAnyRank ? 1 : 2;
  const std::uint64_t key = list_key(list, event.comm, event.peer);
  Seconds work_s = event.process_s;
  while (const Ends* ends = find_list(origin, key)) {
    receive(ends->first, work_s);
    work_s = 0;
  }
  push(static_cast<ProcessIndex>(origin), Op::plain(OpKind::kCompute, work_s, event.call_s, kOpEndsEvent));
}

Seconds OneSided::complete(const Ticket& ticket, Seconds work_s) {
  if (ticket.serial == 0 || records_[ticket.record].serial != ticket.serial) return work_s;
  receive(ticket.record, work_s);
  return 0;
}

std::uint32_t OneSided::add(Rank origin, const Event& event, MessageIndex answer) {
  std::uint32_t record = 0;
  if (free_.empty()) {
    record = static_cast<std::uint32_t>(records_.size());
    records_.emplace_back();
  } else {
    record = free_.back();
    free_.pop_back();
  }
  RankState& state = state_of(origin);
  ++state.under_way;
  Operation& operation = records_[record];
  operation = {};
  operation.serial = operations_;
  operation.answer = answer;
  operation.origin = origin;
  operation.target = event.peer;
  operation.window = event.comm;
  for (std::size_t list = 0; list < kLists; ++list) {
    Ends& ends = state.lists[list_key(list, event.comm, event.peer)];
    operation.links[list].previous = ends.last;
    (ends.last == kNone ? ends.first : records_[ends.last].links[list].next) = record;
    ends.last = record;
  }
  return record;
}

void OneSided::receive(std::uint32_t record, Seconds work_s) {
  Operation& operation = records_[record];
  push(static_cast<ProcessIndex>(operation.origin), Op::on_message(OpKind::kRecv, operation.answer, work_s));
  RankState& state = state_of(operation.origin);
  --state.under_way;
  for (std::size_t list = 0; list < kLists; ++list) {
    const std::uint64_t key = list_key(list, operation.window, operation.target);
    Ends& ends = *find_list(operation.origin, key);
    const Links links = operation.links[list];
    (links.previous == kNone ? ends.first : records_[links.previous].links[list].next) = links.next;
    (links.next == kNone ? ends.last : records_[links.next].links[list].previous) = links.previous;
    if (ends.first == kNone) state.lists.erase(key);
  }
  operation.serial = 0;
  free_.push_back(record);
}

}  // namespace lbf::engine
