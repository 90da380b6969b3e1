// Recorder, request part: Start, Wait*, Test*, Request_free, Cancel. See recorder.h. Before a completing call
// the requests' handles are kept, because MPI overwrites them (or what they stand for is looked up, where another
// thread may get the handle before the call is over); afterwards those that completed become kWait (sends,
// collectives), kEndRecv (receives, with the match that happened) or kCancel.
#include <iterator>

#include "spank_plugin/capture/dear_part.h"
#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {
namespace {

// The request is over (or, persistent, inactive) unless another one has the handle by now: with
// MPI_THREAD_MULTIPLE another thread may have got it the moment that MPI let go of it.
void retire(Thread& thread, const RequestTable::Entry& entry) noexcept {
  if (!entry.info.persistent) return forget_request(thread, entry);
  process.requests.change(entry, [](RequestState& state) { state.active = state.cancelled = false; });
}

[[gnu::always_inline]] inline RingWriter::Fields of_request(std::uint32_t id) noexcept {
  RingWriter::Fields fields;
  fields.request = id;
  fields.flags = kFlagHasRequest;
  return fields;
}

[[gnu::always_inline]] inline RingWriter::Fields end_of(const RequestInfo& info, const StatusView& got,
                                                        std::uint32_t id) noexcept {
  return {info.comm->peer_world_rank(got.source),
          recorded_tag(got.tag),
          info.comm->index,
          id,
          got.bytes,
          static_cast<std::uint8_t>(kFlagHasRequest | wildcards(info.peer, info.tag))};
}

// What most are: a send or a receive of the window that is open, to be told by its record alone. false: complete().
[[gnu::always_inline]] inline bool complete_plain(Call& call, const RequestTable::Entry& entry,
                                                  const void* status) noexcept {
  const RequestInfo& info = entry.info;
  if (info.persistent || !info.active || info.cancelled || info.exact || info.partitioned || info.watch != 0)
    return false;
  if (call.counts() || !is_seen(info.id)) return false;
  if (info.kind == RequestKind::kSend) {
    call.append(EventKind::kWait, of_request(info.id));
  } else {
    if (info.kind != RequestKind::kRecv || status == nullptr) return false;
    const StatusView got = view_status(status);
    if (got.cancelled || !std::atomic_ref<const bool>(info.comm->defined).load(std::memory_order_acquire)) return false;
    call.append(EventKind::kEndRecv, end_of(info, got, info.id));
  }
  retire(call.thread(), entry);
  return true;
}

void bind_duplicate(const RequestInfo& info) noexcept {
  const NewComm made = info.fortran_new_comm ? new_comm_of(static_cast<const MPI_Fint*>(info.new_comm))
                                             : new_comm_of(static_cast<const MPI_Comm*>(info.new_comm));
  bind_communicator(key_of(made.get()), info.comm);
}

// A watched request is over without a match. Its posting is void where records have it, else nobody knows of it.
void cancel_watched(Call& call, std::uint32_t recorded_as) noexcept {
  if (!is_seen(recorded_as)) return;
  if (!call.counts()) return call.append(EventKind::kCancel, of_request(recorded_as));
  if (!call.late()) return;
  call.begin_side();
  call.thread().ring.append(EventKind::kCancel, of_request(recorded_as));
  call.end_side();
}

// One request completed. `status`: its status, may be nullptr for sends. false: nothing is known of the
// request.
bool complete_otherwise(Call& call, const RequestTable::Entry& entry, const void* status) noexcept {
  if (entry.handle == key_of(library.request_null)) return true;
  if (const int queue = family::shared_queue(entry.handle); queue >= 0) {
    if (call.counts()) return true;
    const std::uint32_t id = pop_completed(call.thread(), queue);
    if (is_seen(id)) {
      call.append(EventKind::kWait, of_request(id));
    } else if (process.mode.ever_counted) {
      call.unseen();
    }
    return true;
  }
  const RequestInfo& info = entry.info;
  if (info.kind == RequestKind::kUnknown) {
    if (!process.mode.ever_counted) return false;
    call.unseen();
    return true;
  }
  if (!info.active) return true;
  const bool cancelled =
      status != nullptr && (info.cancelled || info.kind == RequestKind::kRecv) && view_status(status).cancelled;
  if (info.kind == RequestKind::kNothing) {
  } else if (info.kind == RequestKind::kRecv && !cancelled && status != nullptr) {
    StatusView got = view_status(status);
    if (info.partitioned || info.exact) [[unlikely]] {
      got.source = info.peer;
      got.tag = info.tag;
      got.bytes = info.bytes;
    }
    if (info.watch == 0 && !call.counts() && is_seen(info.id)) [[likely]] {
      define_communicator(call, *info.comm);
      call.append(EventKind::kEndRecv, end_of(info, got, info.id));
    } else {
      record::end_receive(call, info, got);
    }
  } else if (info.kind == RequestKind::kCommIdup) {
    bind_duplicate(info);
    unwatch(info);
    if (is_seen(info.id)) {
      call.append(EventKind::kWait, of_request(info.id));
    } else {
      call.unseen();
    }
  } else if (const Watched was = unwatch(info); was.watched) {
    cancel_watched(call, was.recorded_as);
    place_those_behind(call);
  } else if (call.counts()) {
  } else if (!is_seen(info.id)) {
    call.unseen();
  } else if (cancelled) {
    call.append(EventKind::kCancel, of_request(info.id));
  } else if (info.kind == RequestKind::kIo) {
    call.append(EventKind::kIo);  // the bytes are with the call that started it
  } else {
    call.append(EventKind::kWait, of_request(info.id));
  }
  retire(call.thread(), entry);
  return true;
}

[[gnu::always_inline]] inline bool complete(Call& call, const RequestTable::Entry& entry, const void* status) noexcept {
  return complete_plain(call, entry, status) || complete_otherwise(call, entry, status);
}

// What the call completed has no record: its time has.
void finish_unseen(Call& call) noexcept {
  if (call.has_unseen() && !call.counts() && !call.thread().ring.recorded()) record::unseen(call);
}

const void* nth_status(const void* statuses, int i) noexcept {
  return statuses == MPI_STATUSES_IGNORE ? nullptr : static_cast<const std::byte*>(statuses) + sizeof(MPI_Status) * i;
}

// In calls that ended with MPI_ERR_IN_STATUS: whether this request ended, with a message that is known. The fields of a
// status that belongs to a successful call do not count, MPI leaves MPI_ERROR alone there.
bool ended(bool in_status, const void* status) noexcept {
  if (!in_status || status == nullptr) return !in_status;
  MPI_Status s;
  __builtin_memcpy(&s, status, sizeof(s));
  return s.MPI_ERROR == MPI_SUCCESS || family::may_be_truncated(s.MPI_ERROR);
}

// No request, or one that has no handle of its own.
[[gnu::always_inline]] inline bool is_nameless(MPI_Request request) noexcept {
  return request == library.request_null || request == MPI_Request{} || family::shared_queue(key_of(request)) >= 0;
}

[[gnu::always_inline]] inline void note_nameless(RequestTable::Entry& entry, MPI_Request request) noexcept {
  entry.handle = key_of(request);
  entry.info.kind = RequestKind::kUnknown;
}

// Whether its status will be needed.
[[gnu::always_inline]] inline bool look_at(RequestTable::Entry& entry, MPI_Request request) noexcept {
  if (is_nameless(request)) {
    note_nameless(entry, request);
    return false;
  }
  return process.requests.read(key_of(request), entry) && entry.info.active &&
         (entry.info.kind == RequestKind::kRecv || entry.info.cancelled);
}

// The Ith request of the call, as it was when the call began. LOOKED_UP: for one that is looked up only now.
[[gnu::always_inline]] inline const RequestTable::Entry& nth_request(const Call& call, std::uint32_t i,
                                                                     RequestTable::Entry& looked_up) noexcept {
  if (call.handles == nullptr) return call.snapshot[i];
  const MPI_Request request = call.handles[i];
  if (is_nameless(request)) {
    note_nameless(looked_up, request);
  } else if (call.mark == 0) [[likely]] {
    process.requests.read(key_of(request), looked_up);
  } else {
    process.requests.read_at(key_of(request), call.mark, looked_up);
  }
  return looked_up;
}

}  // namespace

namespace record {

void end_receive(Call& call, const RequestInfo& info, const StatusView& got) noexcept {
  const Watched was = unwatch(info);
  if (!call.counts()) {
    if (!is_seen(was.recorded_as)) {  // its place in the channel is counted, or is taken here
      if (was.watched) call.lose_count(1);
      return call.unseen();
    }
    define_communicator(call, *info.comm);
    call.append(EventKind::kEndRecv, end_of(info, got, was.recorded_as));
    if (was.watched) place_those_behind(call);
    return;
  }
  if (call.late() && is_seen(was.recorded_as)) {
    if (info.watch == 0) return;  // it ended with its window
    call.begin_side();
    call.thread().ring.append(EventKind::kEndRecv, end_of(info, got, was.recorded_as));
    call.end_side();
  } else if (was.watched) {
    count_on(call, *info.comm, receives(*info.comm, got.source, got.tag));
  } else {
    return;  // counted, or recorded, when it was posted
  }
  place_those_behind(call);
}

void look_at_none(Call& call) noexcept {
  call.snapshot_count = 0;
  call.snapshot_needs_status = false;
}

void look_at_request(Call& call, MPI_Request request) noexcept {
  RequestTable::Entry* const entry = call.thread().scratch.first_snapshot;
  call.snapshot = entry;
  call.handles = nullptr;
  call.snapshot_count = 1;
  call.snapshot_needs_status = look_at(*entry, request);
}

void look_at_message(Call& call, MPI_Message message) noexcept {
  call.snapshot = call.thread().scratch.first_snapshot;
  call.snapshot_count = message == library.message_no_proc ? 0 : 1;
  if (call.snapshot_count != 0) process.requests.read(key_of(message), *call.snapshot);
}

void look_at_requests(Call& call, Requests requests) noexcept {
  Thread& thread = call.thread();
  call.snapshot_count = 0;
  call.snapshot_needs_status = false;
  const auto count = static_cast<std::uint32_t>(requests.count > 0 ? requests.count : 0);
  const DearPart looking(call, count);
  RequestTable::Entry* entries = thread.scratch.first_snapshot;
  if (count > sizeof(thread.scratch.first_snapshot) / sizeof(thread.scratch.first_snapshot[0])) {
    entries = thread.scratch.snapshot.get(count);
    if (entries == nullptr) return;
  }
  bool needs_status = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    needs_status |= look_at(entries[i], requests[static_cast<int>(i)]);
  }
  call.snapshot = entries;
  call.handles = nullptr;
  call.snapshot_count = count;
  call.snapshot_needs_status = needs_status;
}

// With several threads in MPI one that waits for few looks them up at once: the mark is a line that all of them share.
void keep_handles(Call& call, Requests requests) noexcept {
  CallScratch& scratch = call.thread().scratch;
  const auto count = static_cast<std::uint32_t>(requests.count > 0 ? requests.count : 0);
  const bool few = count <= std::size(scratch.first_handles);
  const bool shared = process.shared.load(std::memory_order_relaxed);
  if (shared && few) [[unlikely]]
    return look_at_requests(call, requests);
  const DearPart copying(call, count);
  MPI_Request* const handles = few ? scratch.first_handles : scratch.handles.get(count);
  if (handles == nullptr) return look_at_none(call);
  if (requests.c != nullptr) {
    __builtin_memcpy(handles, requests.c, count * sizeof(MPI_Request));
  } else {
    for (std::uint32_t i = 0; i < count; ++i) handles[i] = requests[static_cast<int>(i)];
  }
  call.handles = handles;
  call.mark = shared ? process.requests.mark() : 0;
  call.snapshot_count = count;
  call.snapshot_needs_status = count != 0;  // a receive may be among them
}

void before_free(Call& call, Requests requests) noexcept {
  look_at_requests(call, requests);
  call.snapshot_needs_status = false;
  if (call.snapshot_count != 1) return;
  const RequestInfo& info = call.snapshot[0].info;
  if (info.kind == RequestKind::kUnknown || !info.active || !info.cancelled) return;
  int flag = 0;
  const int result = library.Request_get_status(requests[0], &flag, &call.thread().scratch.status);
  call.snapshot_needs_status = result == MPI_SUCCESS && flag != 0;
}

namespace {

void append_start(Call& call, const RequestInfo& info) noexcept {
  const bool is_send = info.kind == RequestKind::kSend;
  define_communicator(call, *info.comm);
  if (call.counts()) {
    if (info.watch != 0) return call.late() ? post_in_window(call, info) : void();
    return count_on(call, *info.comm,
                    is_send ? sends(*info.comm, info.peer, info.tag) : receives(*info.comm, info.peer, info.tag));
  }
  const std::uint8_t flags = is_send ? info.mode_flags() : wildcards(info.peer, info.tag);
  call.append(is_send ? EventKind::kIsend : EventKind::kStartRecv,
              {info.comm->peer_world_rank(info.peer), recorded_tag(info.tag), info.comm->index, info.id, info.bytes,
               static_cast<std::uint8_t>(kFlagHasRequest | flags)});
}

}  // namespace

// Partitions of a send became ready; with the last one the message goes.
void pready(Call& call, int count, MPI_Request request) noexcept {
  RequestTable::Entry entry;
  if (count <= 0 || !process.requests.read(key_of(request), entry)) return;
  {
    const TableLock lock;
    Partitions* const partitions = process.partitions.find(key_of(request));
    if (partitions == nullptr) return;
    const auto ready = static_cast<std::uint32_t>(count);
    const bool last = partitions->left != 0 && partitions->left <= ready;
    partitions->left -= partitions->left < ready ? partitions->left : ready;
    if (!last) return;
  }
  append_start(call, entry.info);
}

// Open MPI begins a persistent send anew with another request, and another handle, where it still has the message of
// the last time (MPI_Bsend_init).
void start(Call& call, Requests requests) noexcept {
  const DearPart starting(call, call.snapshot_count);
  Thread& thread = call.thread();
  if (requests.count > 0 && call.snapshot_count != static_cast<std::uint32_t>(requests.count)) thread.ring.count_lost();
  for (std::uint32_t i = 0; i < call.snapshot_count; ++i) {
    RequestTable::Entry entry = call.snapshot[i];
    if (entry.info.kind == RequestKind::kUnknown || !entry.info.persistent) continue;
    const MPI_Request request = requests[static_cast<int>(i)];
    if (key_of(request) != entry.handle && entry.info.kind == RequestKind::kSend) [[unlikely]] {
      keep_request(call, request, entry.info);
      forget_request(thread, entry);
      entry.handle = key_of(request);
      entry.place = nullptr;
    }
    RequestInfo info = entry.info;
    info.active = true;
    info.watch = 0;
    if (info.kind != RequestKind::kNothing) info.id = new_request_id(call.thread());
    const auto keep = [&] { process.requests.change(entry, [&](RequestState& state) { state = info; }); };
    if (info.partitioned && info.kind == RequestKind::kSend) [[unlikely]] {
      keep();
      const TableLock lock;
      if (Partitions* partitions = process.partitions.find(entry.handle)) partitions->left = partitions->all;
      continue;
    }
    if (info.kind == RequestKind::kRecv &&
        (wildcards(info.peer, info.tag) != 0 || is_behind_wildcard(*info.comm, info.peer, info.tag))) [[unlikely]] {
      watch(call, entry.handle, info, !call.counts() || call.late());
    }
    if (call.late() && info.watch == 0 && info.kind != RequestKind::kNothing) [[unlikely]]
      info.id = unseen_request_id();  // it counts
    keep();
    if (info.kind == RequestKind::kCollective) {
      start_collective(call, info);
    } else if (info.kind != RequestKind::kNothing) {
      append_start(call, info);
    }
  }
}

void completed_one(Call& call, bool flag, const void* status) noexcept {
  if (!flag) return call.failed_poll();
  if (call.snapshot_count == 1 && !complete(call, call.snapshot[0], status)) unmodelled(call);
  finish_unseen(call);
}

void completed_any(Call& call, bool flag, int index, const void* status) noexcept {
  if (!flag) return call.failed_poll();
  if (index < 0 || static_cast<std::uint32_t>(index) >= call.snapshot_count) return;  // MPI_UNDEFINED: all null
  RequestTable::Entry looked_up;
  if (!complete(call, nth_request(call, static_cast<std::uint32_t>(index), looked_up), status)) unmodelled(call);
  finish_unseen(call);
}

void completed_all(Call& call, int code, bool flag, const void* statuses) noexcept {
  if (!flag) return call.failed_poll();
  const DearPart completing(call, call.snapshot_count);
  bool all_known = true;
  const bool with_status = call.snapshot_needs_status;
  RequestTable::Entry looked_up;
  for (std::uint32_t i = 0; i < call.snapshot_count; ++i) {
    const void* status = with_status ? nth_status(statuses, static_cast<int>(i)) : nullptr;
    if (!ended(code != MPI_SUCCESS, status)) continue;
    all_known &= complete(call, nth_request(call, i, looked_up), status);
  }
  if (!all_known && !call.thread().ring.recorded()) unmodelled(call);
  finish_unseen(call);
}

void completed_some(Call& call, int code, int outcount, Indices indices, const void* statuses) noexcept {
  if (outcount == 0) return call.failed_poll();
  if (outcount < 0) return;  // MPI_UNDEFINED: no active request
  const DearPart completing(call, static_cast<std::uint32_t>(outcount));
  bool all_known = true;
  const bool with_status = call.snapshot_needs_status;
  RequestTable::Entry looked_up;
  for (int i = 0; i < outcount; ++i) {
    const int index = indices[i];
    if (index < 0 || static_cast<std::uint32_t>(index) >= call.snapshot_count) continue;
    const void* status = with_status ? nth_status(statuses, i) : nullptr;
    if (!ended(code != MPI_SUCCESS, status)) continue;
    all_known &= complete(call, nth_request(call, static_cast<std::uint32_t>(index), looked_up), status);
  }
  if (!all_known && !call.thread().ring.recorded()) unmodelled(call);
  finish_unseen(call);
}

void request_status(Call& call, bool flag) noexcept {
  if (!flag) call.failed_poll();
}

void request_free(Call& call) noexcept {
  if (call.snapshot_count != 1) return;
  const RequestTable::Entry& entry = call.snapshot[0];
  if (const int queue = family::shared_queue(entry.handle); queue >= 0) {
    const std::uint32_t id = call.counts() ? 0 : pop_completed(call.thread(), queue);
    if (is_seen(id)) call.append(EventKind::kRequestFree, of_request(id));
    return;
  }
  if (entry.info.kind == RequestKind::kUnknown) return;
  if (call.snapshot_needs_status && (entry.info.kind == RequestKind::kSend || entry.info.kind == RequestKind::kRecv)) {
    complete(call, entry, &call.thread().scratch.status);  // as a wait would have it
    finish_unseen(call);
  } else if (entry.info.active && entry.info.kind != RequestKind::kNothing && entry.info.kind != RequestKind::kIo) {
    const Watched was = unwatch(entry.info);
    if (!call.counts() && is_seen(was.recorded_as)) {
      if (entry.info.cancelled) call.lose_count(1);  // whether there is a message nobody will know
      call.append(EventKind::kRequestFree, of_request(was.recorded_as));
      place_those_behind(call);
    } else if (was.watched && entry.info.kind == RequestKind::kRecv) {
      call.lose_count(1);  // which message it takes nobody will know
    }
  }
  if (entry.info.partitioned) {
    const TableLock lock;
    process.partitions.erase(entry.handle);
  }
  forget_request(call.thread(), entry);
}

// A send or receive that was counted when it was posted, or recorded in a window that is over, cannot be taken
// back: whether the cancel succeeds is not looked at. Nor can one whose window ends before it does (count_cancelled).
void cancel(Call& call, MPI_Request request) noexcept {
  bool can_be_told = false;
  RequestTable::Entry entry;
  if (process.requests.read(key_of(request), entry) &&
      process.requests.change(entry, [](RequestState& state) { state.cancelled = true; })) {
    process.mode.any_cancelled.store(true, std::memory_order_relaxed);
    const TableLock lock;
    can_be_told =
        process.watched.find(entry.info.watch, entry.info.id) != nullptr || (!call.counts() && is_seen(entry.info.id));
  }
  if (!can_be_told && (call.counts() || process.mode.ever_counted)) call.lose_count(1);
}

}  // namespace record
}  // namespace lbf::capture
