// One-sided communication. See otf2_rank.h. As the capture records it (docs/capture.md, "One-sided communication"): a
// window is a communicator of its own.
#include <algorithm>
#include <utility>

#include "tools/import/otf2_rank.h"

namespace lbf::tools::otf2 {
namespace {

enum EpochTag : std::int32_t { kPostTag = 0, kCompleteTag = 1 };

OneSidedOp operation(const Record& record, const MpiFunction* function) {
  if (record.kind == Record::Kind::kPut) return OneSidedOp::kPut;
  if (record.kind == Record::Kind::kGet) return OneSidedOp::kGet;
  switch (record.op) {
    case OTF2_RMA_ATOMIC_TYPE_COMPARE_AND_SWAP:
    case OTF2_RMA_ATOMIC_TYPE_TEST_AND_SET:
      return OneSidedOp::kCompareAndSwap;
    case OTF2_RMA_ATOMIC_TYPE_ACCUMULATE:
    case OTF2_RMA_ATOMIC_TYPE_INCREMENT:
      return OneSidedOp::kAccumulate;
    default:
      return function != nullptr && function->name.ends_with("et_accumulate") ? OneSidedOp::kGetAccumulate
                                                                              : OneSidedOp::kFetchAndOp;
  }
}

// MPI_Rput and the like have a request.
bool has_request(const MpiFunction* function) {
  return function != nullptr && function->role == MpiRole::kOneSided && function->name.starts_with("MPI_R");
}

}  // namespace

Held RankImport::on_window(EventKind kind, const Communicator& window, Rank peer) const {
  Held held;
  held.event = event_of_kind(kind);
  held.event.peer = peer;
  held.event.comm = window.index_of(rank_);
  held.comm = &window;
  return held;
}

void RankImport::add_sync(const Communicator& window, Rank peer, const Record& record) {
  std::erase_if(operations_, [&](const auto& operation) {
    const auto& [of_window, target] = operation.second;
    return of_window == record.comm && (peer == kAnyRank || peer == target);
  });
  add(on_window(EventKind::kOneSidedSync, window, peer), record.ns, record.position);
}

void RankImport::add_window_collective(const Communicator& on, CollectiveOp op, const Record& record) {
  Held held;
  held.event = event_of_kind(EventKind::kCollective);
  set_op(held.event, op);
  held.event.comm = on.index_of(rank_);
  held.event.bytes = op == CollectiveOp::kCommCreate ? 8 : 0;
  held.comm = &on;
  add(std::move(held), record.ns, record.position);
}

// An empty message between this rank and each of the group, as the call says.
Result<void> RankImport::add_group_messages(const Record& record, const Communicator& window) {
  const MpiRole role = call_.role();
  const bool is_of_starter = role == MpiRole::kWinStart || role == MpiRole::kWinComplete;
  const bool is_of_poster = role == MpiRole::kWinPost || role == MpiRole::kWinWait || role == MpiRole::kWinTest;
  if (!is_of_starter && !is_of_poster) return error(record, "a synchronisation of a group that no call is for");
  auto& [started, posted] = epochs_.try_emplace(record.comm, OTF2_UNDEFINED_GROUP, OTF2_UNDEFINED_GROUP).first->second;
  if (role == MpiRole::kWinStart) started = record.peer;
  if (role == MpiRole::kWinPost) posted = record.peer;
  const std::vector<Rank>* group = shared_.definitions.group(is_of_starter ? started : posted);
  if (group == nullptr) return error(record, "a group of ranks that is not defined");
  if (role == MpiRole::kWinComplete) add_sync(window, kAnyRank, record);
  const bool sends = role == MpiRole::kWinPost || role == MpiRole::kWinComplete;
  for (const Rank peer : *group) {
    Held held = on_window(sends ? EventKind::kSend : EventKind::kRecv, window, peer);
    held.event.tag = role == MpiRole::kWinPost || role == MpiRole::kWinStart ? kPostTag : kCompleteTag;
    add(std::move(held), record.ns, record.position);
  }
  return {};
}

Result<void> RankImport::begin_operation(const Record& record, const Communicator& window, Rank target) {
  if (target == kAnyRank) return error(record, "a target that is no rank of the window");
  const MpiFunction* function = call_.region->function;
  Held held = on_window(EventKind::kOneSided, window, target);
  set_op(held.event, operation(record, function));
  held.event.bytes = std::max(record.bytes, record.received);
  if (has_request(function)) return open(record, Request::Kind::kOneSided, std::move(held));
  operations_[record.request] = {record.comm, target};
  add(std::move(held), record.ns, record.position);
  return {};
}

// Of MPI_Rput and the like; the others' end is that of a synchronisation.
void RankImport::end_here(const Record& record) {
  const auto found = requests_.find(record.request);
  if (found == requests_.end()) return;
  Held held;
  held.event = event_of_kind(EventKind::kWait);
  held.event.flags = kFlagHasRequest;
  held.event.request = found->second.number;
  requests_.erase(found);
  add(std::move(held), record.ns, record.position);
}

void RankImport::end_there(const Record& record, const Communicator& window) {
  const auto found = operations_.find(record.request);
  if (found == operations_.end()) return;
  const Rank target = found->second.second;
  operations_.erase(found);
  const bool is_of_all = call_.role() == MpiRole::kWinFlushAll;
  if (!is_of_all && call_.role() != MpiRole::kWinFlush) return;
  // One for a call.
  if (!std::exchange(call_.has_sync, true)) add_sync(window, is_of_all ? kAnyRank : target, record);
}

void RankImport::lock(const Record& record, const Communicator& window, Rank target) {
  if (target == kAnyRank) return add_sync(window, target, record);  // libraries lock all without talking to all
  Held held = on_window(EventKind::kOneSided, window, target);
  set_op(held.event, OneSidedOp::kLock);
  add(std::move(held), record.ns, record.position);
}

void RankImport::end_window_collective(const Record& record, const Communicator& window) {
  call_.collectives = std::max(call_.collectives - 1, 0);
  if (record.op == OTF2_COLLECTIVE_OP_CREATE_HANDLE || record.op == OTF2_COLLECTIVE_OP_CREATE_HANDLE_AND_ALLOCATE) {
    const Communicator* parent = shared_.definitions.parent_of_window(record.comm);
    return add_window_collective(parent != nullptr ? *parent : window, CollectiveOp::kCommCreate, record);
  }
  add_sync(window, kAnyRank, record);
  add_window_collective(window, CollectiveOp::kBarrier, record);
}

Result<void> RankImport::one_sided(const Record& record) {
  const Communicator* window = shared_.definitions.window(record.comm);
  if (window == nullptr) return error(record, "window " + std::to_string(record.comm) + " is not defined");
  if (!window->place(rank_)) return error(record, "is no member of window " + std::to_string(record.comm));
  switch (record.kind) {
    case Record::Kind::kDoneHere:
      end_here(record);
      return {};
    case Record::Kind::kDoneThere:
      end_there(record, *window);
      return {};
    case Record::Kind::kGroupSync:
      return add_group_messages(record, *window);
    case Record::Kind::kWindowEnd:
      end_window_collective(record, *window);
      return {};
    default:
      break;
  }
  const std::optional<Rank> target =
      record.peer == OTF2_UNDEFINED_UINT32 ? std::optional(kAnyRank) : window->peer(rank_, record.peer);
  if (!target) return error(record, "a target that is no rank of the window");
  if (record.kind == Record::Kind::kLock) {
    lock(record, *window, *target);
  } else if (record.kind != Record::Kind::kUnlock) {
    return begin_operation(record, *window, *target);
  } else if (!std::exchange(call_.has_sync, true)) {
    add_sync(*window, *target, record);
  }
  return {};
}

}  // namespace lbf::tools::otf2
