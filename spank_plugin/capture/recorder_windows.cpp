// Recorder, one-sided part: windows, operations on them, and what completes those. See recorder.h and
// docs/capture.md, "One-sided communication".
//
// A window is a communicator of its own for the replay, with the members of the one that it was made from:
// nobody else can send on it, so the messages of post, start, complete and wait need no reserved tags, and a
// fence is a barrier on it.
#include "spank_plugin/capture/dear_part.h"
#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {
namespace {

enum EpochTag : std::int32_t { kPostTag = 0, kCompleteTag = 1 };

// The window, its definition in the ring; nullptr after the call was recorded as unmodelled.
Communicator* modelled(Call& call, MPI_Win handle) noexcept {
  Communicator& window = look_up_handle(key_of(handle));
  if (window.foreign) {
    record::unmodelled(call);
    return nullptr;
  }
  define_communicator(call, window);
  return &window;
}

void append_sync(Call& call, const Communicator& window, std::int32_t world_rank) noexcept {
  ring::Record* const record = call.append(EventKind::kOneSidedSync);
  if (record == nullptr) return;
  record->peer = world_rank;
  record->comm = window.index;
}

// An empty message between this process and each of the group.
void append_messages(Call& call, EventKind kind, EpochTag tag, const Communicator& window,
                     const std::int32_t* world_ranks, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (call.counts()) {
      count_on(
          call, window,
          {window.index, world_ranks[i], tag, kind == EventKind::kSend ? SkippedSide::kSends : SkippedSide::kReceives});
      continue;
    }
    ring::Record* const record = call.append(kind);
    if (record == nullptr) return;
    record->peer = world_ranks[i];
    record->tag = tag;
    record->comm = window.index;
  }
}

// The group's world ranks where the window keeps them; nullptr: they cannot be known, or there is no memory.
const std::int32_t* keep_group(Call& call, Communicator& window, MPI_Group group, std::uint32_t first,
                               std::uint32_t& count) noexcept {
  int size = 0;
  library.Group_size(group, &size);
  count = 0;
  if (size < 0 || static_cast<std::uint32_t>(size) > window.size) return nullptr;
  if (window.epoch_ranks == nullptr) {
    const TableLock lock;
    window.epoch_ranks = static_cast<std::int32_t*>(process.pool.take(epoch_ranks_bytes(window)));
    if (window.epoch_ranks == nullptr) return nullptr;
  }
  std::int32_t* const ranks = window.epoch_ranks + first;
  if (!translate_group(call.thread(), group, static_cast<std::uint32_t>(size), ranks)) return nullptr;
  count = static_cast<std::uint32_t>(size);
  return ranks;
}

}  // namespace

namespace record {

void win_create(Call& call, MPI_Comm parent_handle, MPI_Win win) noexcept {
  const DearPart dear(call, DearPart::kAlways);
  Communicator& parent = find_communicator(call, parent_handle);
  if (parent.foreign) return unmodelled(call);
  append_collective(call, CollectiveOp::kCommCreate, parent, 8);
  Communicator* const window = duplicate_communicator(call, parent);
  if (window == nullptr) return;  // its calls will be unmodelled
  bind_communicator(key_of(win), window);
  define_communicator(call, *window);
}

void win_free(Call& call, MPI_Win win) noexcept {
  const DearPart dear(call, DearPart::kAlways);
  Communicator* const window = call.freeing;
  if (window->foreign) return unmodelled(call);
  define_communicator(call, *window);
  append_sync(call, *window, kAnyRank);
  append_collective(call, CollectiveOp::kBarrier, *window, 0);
  append_free(call, *window);
  free_communicator(key_of(win), *window);
}

void win_fence(Call& call, MPI_Win win) noexcept {
  const Communicator* const window = modelled(call, win);
  if (window == nullptr) return;
  append_sync(call, *window, kAnyRank);
  append_collective(call, CollectiveOp::kBarrier, *window, 0);
}

// MPI_MODE_NOCHECK stands on both sides or on none (MPI 3.1, 11.5.5): then nobody tells nobody.
void win_post(Call& call, MPI_Group group, int assertions, MPI_Win win) noexcept {
  Communicator* const window = modelled(call, win);
  if (window == nullptr) return;
  const std::int32_t* const ranks = keep_group(call, *window, group, window->size, window->posted);
  if (ranks == nullptr) return unmodelled(call);
  if ((assertions & MPI_MODE_NOCHECK) != 0) return;
  append_messages(call, EventKind::kSend, kPostTag, *window, ranks, window->posted);
}

void win_start(Call& call, MPI_Group group, int assertions, MPI_Win win) noexcept {
  Communicator* const window = modelled(call, win);
  if (window == nullptr) return;
  const std::int32_t* const ranks = keep_group(call, *window, group, 0, window->started);
  if (ranks == nullptr) return unmodelled(call);
  if ((assertions & MPI_MODE_NOCHECK) != 0) return;
  append_messages(call, EventKind::kRecv, kPostTag, *window, ranks, window->started);
}

void win_complete(Call& call, MPI_Win win) noexcept {
  Communicator* const window = modelled(call, win);
  if (window == nullptr) return;
  append_sync(call, *window, kAnyRank);
  append_messages(call, EventKind::kSend, kCompleteTag, *window, window->epoch_ranks, window->started);
  window->started = 0;
}

void win_wait(Call& call, bool flag, MPI_Win win) noexcept {
  if (!flag) return call.failed_poll();
  Communicator* const window = modelled(call, win);
  if (window == nullptr) return;
  append_messages(call, EventKind::kRecv, kCompleteTag, *window, window->epoch_ranks + window->size, window->posted);
  window->posted = 0;
}

void win_lock(Call& call, int target, int assertions, MPI_Win win) noexcept {
  if (target == MPI_PROC_NULL || (assertions & MPI_MODE_NOCHECK) != 0) return;
  one_sided(call, OneSidedOp::kLock, 0, MPI_Datatype{}, target, win, kBlockingCall);
}

// Libraries lock all without talking to all: no message.
void win_lock_all(Call& call, MPI_Win win) noexcept {
  if (const Communicator* window = modelled(call, win)) append_sync(call, *window, kAnyRank);
}

void win_flush(Call& call, int target, MPI_Win win) noexcept {
  if (target == MPI_PROC_NULL) return;
  const Communicator* const window = modelled(call, win);
  if (window != nullptr) append_sync(call, *window, window->peer_world_rank(target));
}

void one_sided(Call& call, OneSidedOp op, std::int64_t count, MPI_Datatype type, int target, MPI_Win win,
               Made made) noexcept {
  RequestInfo info;
  info.kind = RequestKind::kNothing;
  info.active = true;
  if (target == MPI_PROC_NULL) {
    if (made.nonblocking && !call.counts()) keep_request(call, made.request, info);
    return;
  }
  const Communicator* const window = modelled(call, win);
  if (window == nullptr) return;
  ring::Record* const record = call.append(EventKind::kOneSided);
  if (call.counts()) return;
  if (made.nonblocking) {
    info.kind = RequestKind::kOneSided;
    info.id = new_request_id(call.thread());
    keep_request(call, made.request, info);
  }
  if (record == nullptr) return;
  ring::set_op(*record, op);
  record->peer = window->peer_world_rank(target);
  record->comm = window->index;
  record->bytes = op == OneSidedOp::kLock ? 0 : message_bytes(call.thread(), count, type);
  record->request = info.id;
  if (made.nonblocking) record->flags |= kFlagHasRequest;
}

}  // namespace record
}  // namespace lbf::capture
