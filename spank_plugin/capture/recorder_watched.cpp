// Recorder, requests across windows: those whose completion has to be seen while calls are only counted, and which of
// them have their places in the channels. See recorder.h; watched_requests.h; docs/capture.md, "Counting".
#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {

void watch(Call& call, std::uint64_t handle, RequestInfo& info, bool recorded) noexcept {
  info.watch = 0;
  if (family::shared_queue(handle) >= 0) return call.lose_count(1);
  const TableLock lock;
  const bool wildcard = info.kind == RequestKind::kRecv && wildcards(info.peer, info.tag) != 0;
  info.watch = process.watched.add(handle, info.id, recorded ? info.id : 0, info.kind == RequestKind::kRecv, wildcard);
  if (info.watch == 0 && !recorded) call.lose_count(1);
}

void rewatch(const RequestInfo& info, std::uint64_t handle) noexcept {
  const TableLock lock;
  if (WatchedRequests::Node* node = process.watched.find(info.watch, info.id)) node->handle = handle;
}

Watched take_watched(const RequestInfo& info) noexcept {
  Watched result{false, info.id};
  const TableLock lock;
  if (WatchedRequests::Node* node = process.watched.find(info.watch, info.id)) {
    result = {!node->placed, node->recorded_as};
    process.watched.remove(node);
  }
  return result;
}

void post_in_window(Call& call, const RequestInfo& info) noexcept {
  call.begin_side();
  RingWriter::Fields fields{info.comm->peer_world_rank(info.peer),
                            recorded_tag(info.tag),
                            info.comm->index,
                            info.id,
                            info.bytes,
                            static_cast<std::uint8_t>(kFlagHasRequest | wildcards(info.peer, info.tag))};
  call.thread().ring.append(EventKind::kStartRecv, fields);
  call.end_side();
}

namespace {

// As the matcher has it (must_wait_for_place).
bool is_behind(const WatchedRequests::Node* before, const Communicator& comm, int peer, int tag) noexcept
    REQUIRES(process.table_lock) {
  return process.watched.any_before(before, [&](const WatchedRequests::Node& node) {
    RequestTable::Entry entry;
    const RequestInfo& info = entry.info;
    return process.requests.read(node.handle, entry) && info.id == node.id && info.comm == &comm &&
           (info.peer == MPI_ANY_SOURCE || info.peer == peer) && (info.tag == MPI_ANY_TAG || info.tag == tag);
  });
}

// Without the lock: it is one word.
bool nothing_waits() noexcept NO_THREAD_SAFETY_ANALYSIS {
  return process.watched.waiting() == 0;
}

}  // namespace

bool is_behind_wildcard(const Communicator& comm, int peer, int tag) noexcept {
  if (nothing_watched()) return false;
  const TableLock lock;
  return is_behind(nullptr, comm, peer, tag);
}

void place_those_behind(Call& call) noexcept {
  if (nothing_waits()) return;
  const TableLock lock;
  process.watched.for_each([&](WatchedRequests::Node& node) REQUIRES(process.table_lock) {
    if (!node.waits()) return;
    RequestTable::Entry entry;
    const RequestInfo& info = entry.info;
    // Another thread is just keeping it, or it is over: a window that opens looks again.
    if (!process.requests.read(node.handle, entry) || info.id != node.id) return;
    if (is_behind(&node, *info.comm, info.peer, info.tag)) return;
    process.watched.place(node);
    if (!call.counts() || call.late()) return;  // the matcher finds it out by itself
    const ChannelEnd end = receives(*info.comm, info.peer, info.tag);
    process.watched.remove(&node);
    count_on(call, *info.comm, end);
  });
}

}  // namespace lbf::capture
