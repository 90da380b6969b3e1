// Recorder, point-to-point part: blocking sends and receives, Sendrecv, Probe, Mprobe. See recorder.h. A
// partner of MPI_PROC_NULL makes no message and no record.
#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {

namespace {

// What a request has that is over.
[[gnu::noinline]] void give_back_collective(PersistentCollective* collective) noexcept {
  const TableLock lock;
  process.pool.give_back(collective, PersistentCollective::block_bytes(collective->value_count));
}
[[gnu::always_inline]] inline void give_back(Thread& thread, const RequestInfo& info) noexcept {
  if (info.kind == RequestKind::kCollective && info.persistent) [[unlikely]]
    give_back_collective(info.collective);
  if (info.comm != nullptr) count_reference(thread, *info.comm, -1);
}

// Where there is no place its completion will look like that of one that is not known.
[[gnu::always_inline]] inline void keep(Thread& thread, std::uint64_t handle, const RequestInfo& info) noexcept {
  if (info.comm != nullptr) count_reference(thread, *info.comm, 1);
  if (!process.requests.put(handle, info, [&](const RequestInfo& before) { give_back(thread, before); })) [[unlikely]] {
    thread.ring.count_lost();
    if (info.comm != nullptr) count_reference(thread, *info.comm, -1);
  }
}

[[gnu::noinline]] void push_completed(Thread& thread, int queue, std::uint32_t id) noexcept {
  const SharedLock lock(thread.completed.lock);
  if (!thread.completed.queues[queue].push(id)) thread.ring.count_lost();
}

}  // namespace

void forget_request(Thread& thread, const RequestTable::Entry& entry) noexcept {
  if (process.requests.end(entry)) give_back(thread, entry.info);
}

void keep_request(Call& call, MPI_Request request, const RequestInfo& info) noexcept {
  if (const int queue = family::shared_queue(key_of(request)); queue >= 0)
    return push_completed(call.thread(), queue, info.id);
  keep(call.thread(), key_of(request), info);
}

namespace {

bool is_sentinel(const void* const (&sentinels)[4], const void* p) noexcept {
  for (const void* sentinel : sentinels) {
    if (sentinel != nullptr && sentinel == p) return true;
  }
  return false;
}

[[gnu::always_inline]] inline RingWriter::Fields message(const Communicator& comm, int peer, int tag,
                                                         std::uint64_t bytes, std::uint8_t flags) noexcept {
  return {comm.peer_world_rank(peer), recorded_tag(tag), comm.index, 0, bytes, flags};
}
[[gnu::always_inline]] inline RingWriter::Fields message(const Communicator& comm, int peer, int tag,
                                                         std::uint64_t bytes, std::uint8_t flags,
                                                         std::uint32_t request) noexcept {
  return {comm.peer_world_rank(peer),
          recorded_tag(tag),
          comm.index,
          request,
          bytes,
          static_cast<std::uint8_t>(flags | kFlagHasRequest)};
}

[[gnu::always_inline]] inline RequestInfo request_info(RequestKind kind, Communicator& comm, int peer, int tag,
                                                       std::uint64_t bytes) noexcept {
  RequestInfo info;
  info.kind = kind;
  info.active = true;
  info.peer = peer;
  info.tag = tag;
  info.comm = &comm;
  info.bytes = bytes;
  return info;
}

// keep_request for what most are.
[[gnu::always_inline]] inline void keep_message(Call& call, MPI_Request request, RequestKind kind, Communicator& comm,
                                                int peer, int tag, std::uint64_t bytes, std::uint8_t mode_flags,
                                                std::uint32_t id) noexcept {
  if (const int queue = family::shared_queue(key_of(request)); queue >= 0) [[unlikely]]
    return push_completed(call.thread(), queue, id);
  RequestInfo info = request_info(kind, comm, peer, tag, bytes);
  info.id = id;
  info.set_mode(mode_flags);
  keep(call.thread(), key_of(request), info);
}

// MPI_PROC_NULL: the request completes without a message.
void keep_nothing(Call& call, MPI_Request request, bool persistent) noexcept {
  RequestInfo info;
  info.kind = RequestKind::kNothing;
  info.persistent = persistent;
  info.active = !persistent;
  keep_request(call, request, info);
}

}  // namespace

namespace record {

MPI_Status* status_for(Call& call, MPI_Status* status) noexcept {
  return status == MPI_STATUS_IGNORE ? &call.thread().scratch.status : status;
}

MPI_Fint* status_for(Call& call, MPI_Fint* status) noexcept {
  if (!is_sentinel(library.fortran_status_ignore, status)) return status;
  return reinterpret_cast<MPI_Fint*>(&call.thread().scratch.status);
}

MPI_Status* completion_status_for(Call& call, MPI_Status* status) noexcept {
  return call.snapshot_needs_status ? status_for(call, status) : status;
}

MPI_Fint* completion_status_for(Call& call, MPI_Fint* status) noexcept {
  return call.snapshot_needs_status ? status_for(call, status) : status;
}

MPI_Status* completion_statuses_for(Call& call, MPI_Status* statuses) noexcept {
  if (!call.snapshot_needs_status || statuses != MPI_STATUSES_IGNORE) return statuses;
  MPI_Status* const ours = call.thread().scratch.statuses.get(call.snapshot_count);
  return ours != nullptr ? ours : statuses;
}

MPI_Fint* completion_statuses_for(Call& call, MPI_Fint* statuses) noexcept {
  if (!call.snapshot_needs_status || !is_sentinel(library.fortran_statuses_ignore, statuses)) return statuses;
  MPI_Status* const ours = call.thread().scratch.statuses.get(call.snapshot_count);
  return ours != nullptr ? reinterpret_cast<MPI_Fint*>(ours) : statuses;
}

namespace {

[[gnu::noinline]] void send_otherwise(Call& call, std::uint8_t mode_flags, std::int64_t count, MPI_Datatype type,
                                      int dest, int tag, MPI_Comm comm) noexcept {
  if (dest == MPI_PROC_NULL) return;
  const Communicator& where = find_communicator(call, comm);
  if (where.foreign) return unmodelled(call);
  if (call.counts()) [[unlikely]]
    return count_named(call, where, sends(where, dest, tag), comm, dest, tag);
  call.append(EventKind::kSend, message(where, dest, tag, message_bytes(call.thread(), count, type), mode_flags));
}

[[gnu::noinline]] void recv_otherwise(Call& call, int source, int tag, MPI_Comm comm, const void* status) noexcept {
  if (source == MPI_PROC_NULL) return;
  const Communicator& where = find_communicator(call, comm);
  if (where.foreign) return unmodelled(call);
  const StatusView got = view_status(status);
  if (call.counts()) [[unlikely]] {
    return wildcards(source, tag) == 0 ? count_named(call, where, receives(where, source, tag), comm, source, tag)
                                       : count_on(call, where, receives(where, got.source, got.tag));
  }
  call.append(EventKind::kRecv, message(where, got.source, got.tag, got.bytes, wildcards(source, tag)));
}

}  // namespace

// Most sends and receives: no function is called, so that no register has to be kept for one.
void send(Call& call, std::uint8_t mode_flags, std::int64_t count, MPI_Datatype type, int dest, int tag,
          MPI_Comm comm) noexcept {
  const Communicator* const where = plain_communicator(call, comm);
  if (where == nullptr || dest < 0 || !knows_type_bytes(call.thread(), type)) [[unlikely]]
    return send_otherwise(call, mode_flags, count, type, dest, tag, comm);
  const std::uint64_t bytes =
      count > 0 ? static_cast<std::uint64_t>(count) * type_size_slot(call.thread(), type).bytes : 0;
  call.thread().ring.append_plain(EventKind::kSend, message(*where, dest, tag, bytes, mode_flags));
}

void isend(Call& call, std::uint8_t mode_flags, std::int64_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request request) noexcept {
  if (dest == MPI_PROC_NULL) return call.counts() ? void() : keep_nothing(call, request, false);
  Communicator& where = find_communicator(call, comm);
  if (where.foreign) return unmodelled(call);
  if (call.counts()) [[unlikely]]
    return count_named(call, where, sends(where, dest, tag), comm, dest, tag);
  const std::uint64_t bytes = message_bytes(call.thread(), count, type);
  const std::uint32_t id = new_request_id(call.thread());
  call.append(EventKind::kIsend, message(where, dest, tag, bytes, mode_flags, id));
  keep_message(call, request, RequestKind::kSend, where, dest, tag, bytes, mode_flags, id);
}

void send_init(Call& call, std::uint8_t mode_flags, std::int64_t count, MPI_Datatype type, int dest, int tag,
               MPI_Comm comm, MPI_Request request) noexcept {
  if (dest == MPI_PROC_NULL) return keep_nothing(call, request, true);
  Communicator& where = find_communicator(call, comm);
  if (where.foreign) return;
  RequestInfo info = request_info(RequestKind::kSend, where, dest, tag, message_bytes(call.thread(), count, type));
  info.set_mode(mode_flags);
  info.persistent = true;
  info.active = false;
  keep_request(call, request, info);
}

void recv(Call& call, int source, int tag, MPI_Comm comm, const void* status) noexcept {
  const Communicator* const where = plain_communicator(call, comm);
  if (where == nullptr || source == MPI_PROC_NULL) [[unlikely]]
    return recv_otherwise(call, source, tag, comm, status);
  const StatusView got = view_status(status);
  call.thread().ring.append_plain(EventKind::kRecv,
                                  message(*where, got.source, got.tag, got.bytes, wildcards(source, tag)));
}

namespace {

[[gnu::noinline]] void keep_watched(Call& call, MPI_Request request, RequestInfo& info) noexcept {
  if (wildcards(info.peer, info.tag) != 0 || is_behind_wildcard(*info.comm, info.peer, info.tag))
    watch(call, key_of(request), info, true);
  keep_request(call, request, info);
}

// A receive that was posted while calls are counted: counted, or watched until its place is known.
[[gnu::noinline]] void count_posted(Call& call, MPI_Request request, RequestInfo& info, MPI_Comm comm) noexcept {
  if (wildcards(info.peer, info.tag) == 0 && !is_behind_wildcard(*info.comm, info.peer, info.tag)) {
    return count_named(call, *info.comm, receives(*info.comm, info.peer, info.tag), comm, info.peer, info.tag);
  }
  watch(call, key_of(request), info, call.late());
  if (call.late()) post_in_window(call, info);
  keep_request(call, request, info);
}

}  // namespace

void irecv(Call& call, std::int64_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
           MPI_Request request) noexcept {
  if (source == MPI_PROC_NULL) return call.counts() ? void() : keep_nothing(call, request, false);
  Communicator& where = find_communicator(call, comm);
  if (where.foreign) return unmodelled(call);
  const std::uint64_t bytes = message_bytes(call.thread(), count, type);
  const std::uint32_t id = new_request_id(call.thread());
  const std::uint8_t given = wildcards(source, tag);
  call.append(EventKind::kStartRecv, message(where, source, tag, bytes, given, id));
  if (!call.counts() && given == 0 && nothing_watched()) [[likely]]
    return keep_message(call, request, RequestKind::kRecv, where, source, tag, bytes, 0, id);
  RequestInfo info = request_info(RequestKind::kRecv, where, source, tag, bytes);
  info.id = id;
  return call.counts() ? count_posted(call, request, info, comm) : keep_watched(call, request, info);
}

void recv_init(Call& call, std::int64_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request request) noexcept {
  if (source == MPI_PROC_NULL) return keep_nothing(call, request, true);
  Communicator& where = find_communicator(call, comm);
  if (where.foreign) return;
  RequestInfo info = request_info(RequestKind::kRecv, where, source, tag, message_bytes(call.thread(), count, type));
  info.persistent = true;
  info.active = false;
  keep_request(call, request, info);
}

namespace {

// A partitioned request is a persistent one whose send begins when its last partition is ready. MPI has no
// wildcards there, and the status of its receive need not be filled: the request says what is received.
void keep_partitioned(Call& call, RequestInfo info, int partitions, MPI_Request request) noexcept {
  info.persistent = true;
  info.active = false;
  info.partitioned = true;
  if (info.kind == RequestKind::kSend) {
    const TableLock lock;
    Partitions* const slot = process.partitions.insert(key_of(request));
    if (slot == nullptr) return call.thread().ring.count_lost();
    slot->all = static_cast<std::uint32_t>(partitions > 0 ? partitions : 0);
  }
  keep_request(call, request, info);
}

}  // namespace

void psend_init(Call& call, int partitions, std::int64_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                MPI_Request request) noexcept {
  if (dest == MPI_PROC_NULL) return keep_nothing(call, request, true);
  Communicator& where = find_communicator(call, comm);
  if (where.foreign) return;
  const std::uint64_t bytes = message_bytes(call.thread(), partitions * count, type);
  keep_partitioned(call, request_info(RequestKind::kSend, where, dest, tag, bytes), partitions, request);
}

void precv_init(Call& call, int partitions, std::int64_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                MPI_Request request) noexcept {
  if (source == MPI_PROC_NULL) return keep_nothing(call, request, true);
  Communicator& where = find_communicator(call, comm);
  if (where.foreign) return;
  const std::uint64_t bytes = message_bytes(call.thread(), partitions * count, type);
  keep_partitioned(call, request_info(RequestKind::kRecv, where, source, tag, bytes), partitions, request);
}

void sendrecv(Call& call, std::int64_t send_count, MPI_Datatype send_type, int dest, int send_tag, int source,
              int recv_tag, MPI_Comm comm, const void* status) noexcept {
  if (dest == MPI_PROC_NULL && source == MPI_PROC_NULL) return;
  const Communicator& where = find_communicator(call, comm);
  if (where.foreign) return unmodelled(call);
  const bool has_receive = source != MPI_PROC_NULL;
  if (call.counts()) [[unlikely]] {
    if (has_receive && wildcards(source, recv_tag) == 0) {
      count_named(call, where, receives(where, source, recv_tag), comm, source, recv_tag);
    } else if (has_receive) {
      const StatusView got = view_status(status);
      count_on(call, where, receives(where, got.source, got.tag));
    }
    if (dest != MPI_PROC_NULL) count_named(call, where, sends(where, dest, send_tag), comm, dest, send_tag);
    return;
  }
  const StatusView got = view_status(status);
  const std::uint32_t id = has_receive ? new_request_id(call.thread()) : 0;
  const std::uint8_t given = wildcards(source, recv_tag);
  if (has_receive) call.append(EventKind::kStartRecv, message(where, source, recv_tag, got.bytes, given, id));
  if (dest != MPI_PROC_NULL) {
    call.append(EventKind::kSend,
                message(where, dest, send_tag, message_bytes(call.thread(), send_count, send_type), 0));
  }
  if (has_receive) call.append(EventKind::kEndRecv, message(where, got.source, got.tag, got.bytes, given, id));
}

// One request for both: that of the receive. Nobody waits for the send, so it is recorded as a buffered one.
void isendrecv(Call& call, std::int64_t send_count, MPI_Datatype send_type, int dest, int send_tag,
               std::int64_t recv_count, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm,
               MPI_Request request) noexcept {
  if (find_communicator(call, comm).foreign) return unmodelled(call);
  irecv(call, recv_count, recv_type, source, recv_tag, comm, request);
  send(call, kFlagBuffered, send_count, send_type, dest, send_tag, comm);
  // MPICH 4.0 leaves the status of such a request empty: without wildcards it is not needed.
  if (source == MPI_ANY_SOURCE || recv_tag == MPI_ANY_TAG) return;
  RequestTable::Entry entry;
  if (process.requests.read(key_of(request), entry) && entry.info.kind == RequestKind::kRecv)
    process.requests.change(entry, [](RequestState& state) { state.exact = true; });
}

void probe(Call& call, bool found, int source, int tag, MPI_Comm comm, const void* status) noexcept {
  if (!found) return call.failed_poll();
  if (source == MPI_PROC_NULL) return;
  const Communicator& where = find_communicator(call, comm);
  if (where.foreign) return unmodelled(call);
  const StatusView got = view_status(status);
  call.append(EventKind::kProbe, message(where, got.source, got.tag, got.bytes, wildcards(source, tag)));
}

// A matched probe takes the message out of the matching: for the replay the receive is posted here, for the
// source and tag that it found, and ends where the program receives the message.
void mprobe(Call& call, bool found, int source, int tag, MPI_Comm comm, MPI_Message message,
            const void* status) noexcept {
  if (!found) return call.failed_poll();
  if (source == MPI_PROC_NULL) return;
  Communicator& where = find_communicator(call, comm);
  if (where.foreign) return unmodelled(call);
  const StatusView got = view_status(status);
  const bool is_behind = is_behind_wildcard(where, got.source, got.tag);
  if (call.counts() && !is_behind) return count_on(call, where, receives(where, got.source, got.tag));
  RequestInfo info = request_info(RequestKind::kRecv, where, source, tag, got.bytes);
  info.id = new_request_id(call.thread());
  if (wildcards(source, tag) != 0 || is_behind) watch(call, key_of(message), info, !call.counts());
  call.append(EventKind::kStartRecv,
              lbf::capture::message(where, got.source, got.tag, got.bytes, wildcards(source, tag), info.id));
  keep(call.thread(), key_of(message), info);
}

// The library may have given the message's handle to another thread's probe meanwhile: what it stood for was looked up
// before.
void mrecv(Call& call, const void* status) noexcept {
  if (call.snapshot_count == 0) return;
  const RequestTable::Entry& entry = call.snapshot[0];
  if (entry.info.kind == RequestKind::kUnknown) return process.mode.ever_counted ? unseen(call) : unmodelled(call);
  end_receive(call, entry.info, view_status(status));
  forget_request(call.thread(), entry);
}

// The request may have the message's handle.
void imrecv(Call& call, MPI_Request request) noexcept {
  if (call.snapshot_count == 0) return keep_nothing(call, request, false);
  const RequestTable::Entry& entry = call.snapshot[0];
  const RequestInfo info = entry.info;
  if (info.kind == RequestKind::kUnknown) return process.mode.ever_counted ? unseen(call) : unmodelled(call);
  const bool was_ours = process.requests.end(entry);
  rewatch(info, key_of(request));
  keep_request(call, request, info);
  if (was_ours) count_reference(call.thread(), *info.comm, -1);  // keep_request took one of its own
}

}  // namespace record
}  // namespace lbf::capture
