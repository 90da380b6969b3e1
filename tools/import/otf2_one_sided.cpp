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

void RankImport::add_sync(const Communicator& window, Rank peer, const Record& record) {
  Held held;
  held.event = event_of_kind(EventKind::kOneSidedSync);
  held.event.peer = peer;
  held.event.comm = window.index_of(rank_);
  held.comm = &window;
  add(std::move(held), record.ns, record.position);
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
  auto& [started, posted] = epochs_.try_emplace(record.comm, OTF2_UNDEFINED_GROUP, OTF2_UNDEFINED_GROUP).first->second;
  if (role == MpiRole::kWinStart) started = record.peer;
  if (role == MpiRole::kWinPost) posted = record.peer;
  const bool is_of_starter = role == MpiRole::kWinStart || role == MpiRole::kWinComplete;
  const std::vector<Rank>* group = shared_.definitions.group(is_of_starter ? started : posted);
  if (group == nullptr) return error(record, "a group of ranks that is not defined");
  if (role == MpiRole::kWinComplete) add_sync(window, kAnyRank, record);
  const bool sends = role == MpiRole::kWinPost || role == MpiRole::kWinComplete;
  for (const Rank peer : *group) {
    Held held;
    held.event = event_of_kind(sends ? EventKind::kSend : EventKind::kRecv);
    held.event.peer = peer;
    held.event.tag = role == MpiRole::kWinPost || role == MpiRole::kWinStart ? kPostTag : kCompleteTag;
    held.event.comm = window.index_of(rank_);
    held.comm = &window;
    add(std::move(held), record.ns, record.position);
  }
  return {};
}

Result<void> RankImport::window_sync(const Record& record, const Communicator& window) {
  switch (call_.role()) {
    case MpiRole::kWinPost:
    case MpiRole::kWinStart:
    case MpiRole::kWinComplete:
    case MpiRole::kWinWait:
    case MpiRole::kWinTest:
      return add_group_messages(record, window);
    default:
      return error(record, "a synchronisation of a group that no call is for");
  }
}

Result<void> RankImport::one_sided(const Record& record) {
  const Communicator* window = shared_.definitions.window(record.comm);
  if (window == nullptr) return error(record, "window " + std::to_string(record.comm) + " is not defined");
  if (!window->place(rank_)) return error(record, "is no member of window " + std::to_string(record.comm));
  const auto peer_of = [&]() -> std::optional<Rank> {
    return record.peer == OTF2_UNDEFINED_UINT32 ? std::optional(kAnyRank) : window->peer(rank_, record.peer);
  };
  switch (record.kind) {
    case Record::Kind::kPut:
    case Record::Kind::kGet:
    case Record::Kind::kAtomic: {
      const std::optional<Rank> peer = peer_of();
      if (!peer || *peer == kAnyRank) return error(record, "a target that is no rank of the window");
      const MpiFunction* function = call_.region->function;
      Held held;
      held.event = event_of_kind(EventKind::kOneSided);
      set_op(held.event, operation(record, function));
      held.event.peer = *peer;
      held.event.comm = window->index_of(rank_);
      held.event.bytes = std::max(record.bytes, record.received);
      held.comm = window;
      if (has_request(function)) return open(record, Request::Kind::kOneSided, std::move(held));
      operations_[record.request] = {record.comm, *peer};
      add(std::move(held), record.ns, record.position);
      return {};
    }
    case Record::Kind::kDoneHere: {
      const auto found = requests_.find(record.request);
      if (found == requests_.end()) return {};  // a sync says when
      Held held;
      held.event = event_of_kind(EventKind::kWait);
      held.event.flags = kFlagHasRequest;
      held.event.request = found->second.number;
      requests_.erase(found);
      add(std::move(held), record.ns, record.position);
      return {};
    }
    case Record::Kind::kDoneThere: {
      const auto found = operations_.find(record.request);
      if (found == operations_.end()) return {};
      const Rank peer = found->second.second;
      operations_.erase(found);
      const bool is_flush = call_.role() == MpiRole::kWinFlush || call_.role() == MpiRole::kWinFlushAll;
      if (is_flush && !call_.has_sync) {
        call_.has_sync = true;  // one sync for a call
        add_sync(*window, call_.role() == MpiRole::kWinFlush ? peer : kAnyRank, record);
      }
      return {};
    }
    case Record::Kind::kLock: {
      const std::optional<Rank> peer = peer_of();
      if (!peer) return error(record, "a target that is no rank of the window");
      if (*peer == kAnyRank) {  // libraries lock all without talking to all
        add_sync(*window, kAnyRank, record);
        return {};
      }
      Held held;
      held.event = event_of_kind(EventKind::kOneSided);
      set_op(held.event, OneSidedOp::kLock);
      held.event.peer = *peer;
      held.event.comm = window->index_of(rank_);
      held.comm = window;
      add(std::move(held), record.ns, record.position);
      return {};
    }
    case Record::Kind::kUnlock: {
      const std::optional<Rank> peer = peer_of();
      if (!peer) return error(record, "a target that is no rank of the window");
      if (!std::exchange(call_.has_sync, true)) add_sync(*window, *peer, record);
      return {};
    }
    case Record::Kind::kGroupSync:
      return window_sync(record, *window);
    case Record::Kind::kWindowEnd: {
      call_.collectives = std::max(call_.collectives - 1, 0);
      const bool is_create =
          record.op == OTF2_COLLECTIVE_OP_CREATE_HANDLE || record.op == OTF2_COLLECTIVE_OP_CREATE_HANDLE_AND_ALLOCATE;
      if (is_create) {
        const Communicator* parent = shared_.definitions.parent_of_window(record.comm);
        add_window_collective(parent != nullptr ? *parent : *window, CollectiveOp::kCommCreate, record);
        return {};
      }
      add_sync(*window, kAnyRank, record);
      add_window_collective(*window, CollectiveOp::kBarrier, record);
      return {};
    }
    default:
      return error(record, "a record that the import does not know");
  }
}

}  // namespace lbf::tools::otf2
