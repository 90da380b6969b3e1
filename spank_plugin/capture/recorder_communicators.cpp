// Recorder, communicator part: creation and freeing of communicators, their numbers, members and definitions.
// See recorder.h and docs/capture.md, "Communicators".
#include <new>
#include <utility>

#include "spank_plugin/capture/communicator_uid.h"
#include "spank_plugin/capture/dear_part.h"
#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {
namespace {

constexpr std::uint64_t kSelfSeed = 0x6c62662d73656c66;
constexpr std::uint64_t kGroupSeed = 0x6c62662d67727570;

std::size_t members_bytes(const Communicator& comm) noexcept {
  return (static_cast<std::size_t>(comm.size) + comm.remote_size) * sizeof(std::int32_t);
}

// Sizes, rank and members of a communicator, asked of MPI. false: it cannot be modelled.
bool learn_members(Thread& thread, MPI_Comm handle, Communicator& comm) noexcept {
  int size = 0, remote_size = 0, rank = 0, is_inter = 0;
  library.Comm_size(handle, &size);
  library.Comm_rank(handle, &rank);
  library.Comm_test_inter(handle, &is_inter);
  if (is_inter != 0) library.Comm_remote_size(handle, &remote_size);
  comm.size = static_cast<std::uint32_t>(size);
  comm.remote_size = static_cast<std::uint32_t>(remote_size);
  comm.rank = rank;
  {
    const TableLock lock;
    comm.world_ranks = static_cast<std::int32_t*>(process.pool.take(members_bytes(comm)));
  }
  if (comm.world_ranks == nullptr) return false;
  MPI_Group group{};
  library.Comm_group(handle, &group);
  bool known = translate_group(thread, group, comm.size, comm.world_ranks);
  library.Group_free(&group);
  if (is_inter != 0) {
    library.Comm_remote_group(handle, &group);
    known = known && translate_group(thread, group, comm.remote_size, comm.world_ranks + size);
    library.Group_free(&group);
  }
  return known;
}

void recycle(Communicator* comm) noexcept REQUIRES(process.table_lock) {
  process.pool.give_back(comm->world_ranks, members_bytes(*comm));
  if (Neighbours* n = comm->neighbours) {
    process.pool.give_back(n->ranks, (std::size_t{n->destinations} + n->sources) * sizeof(std::int32_t));
    process.pool.give_back(n, sizeof(Neighbours));
  }
  process.pool.give_back(comm->epoch_ranks, epoch_ranks_bytes(*comm));
  process.pool.give_back(comm, sizeof(Communicator));
}

// Of the communicators that are freed those that no request refers to; a look at the oldest few, because some may stay
// for long.
void recycle_unreferenced() noexcept REQUIRES(process.table_lock) {
  constexpr int kLooks = 8;
  for (int i = 0; i < kLooks && process.communicators.first_freed != nullptr; ++i) {
    Communicator* const comm = process.communicators.first_freed;
    process.communicators.first_freed = comm->next_freed;
    if (process.communicators.first_freed == nullptr) process.communicators.last_freed = nullptr;
    comm->next_freed = nullptr;
    if (comm->references.none()) {
      recycle(comm);
      continue;
    }
    (process.communicators.last_freed != nullptr ? process.communicators.last_freed->next_freed
                                                 : process.communicators.first_freed) = comm;
    process.communicators.last_freed = comm;
  }
}

enum class Whose : std::uint8_t {
  kMadeByThisCall,  // no other thread has the handle before this call returns
  kMadeEarlier,
};

// The communicator's definition into the ring. Without room for it the communicator stays undefined, and its
// next use tries again: the definition goes before everything that refers to it, after the gap.
void define(Call& call, Communicator& comm, Whose whose) noexcept {
  std::atomic_ref<bool> defined(comm.defined);
  if (defined.load(std::memory_order_acquire)) [[likely]]
    return;
  RingWriter& ring = call.thread().ring;
  const std::uint32_t members = comm.size + comm.remote_size;
  // While calls are counted definitions are written all the same: what is counted refers to them.
  if (call.counts()) call.begin_side();
  const bool first_of_call = !ring.recorded();
  ring::Record* const record = call.counts() ? ring.try_append(EventKind::kCommCreate, 2 + members)
                                             : call.append(EventKind::kCommCreate, 2 + members);
  if (record == nullptr) return;
  record->comm = comm.index;
  std::uint64_t* const values = RingWriter::values_of(record);
  values[0] = comm.uid;
  values[1] = comm.remote_size != 0 ? comm.size : 0;
  for (std::uint32_t i = 0; i < members; ++i) values[2 + i] = static_cast<std::uint64_t>(comm.world_ranks[i]);
  // It takes no time itself, and another thread may take the communicator for defined only when it is
  // published.
  if (first_of_call) ring.commit(ring.enter());
  const bool others_may_see = process.shared.load(std::memory_order_relaxed) && whose == Whose::kMadeEarlier;
  // Else it is defined once more at the next use: readers take the same definition again.
  if (first_of_call || !others_may_see) defined.store(true, std::memory_order_release);
}

// The synchronisation that creating a communicator is; with `made`, it ends at the request's wait.
void synchronise(Call& call, const Communicator& comm, std::uint32_t request, bool nonblocking) noexcept {
  if (call.counts()) return count_on(call, comm, collectives(comm));
  ring::Record* const record = call.append(nonblocking ? EventKind::kIcollective : EventKind::kCollective);
  if (record == nullptr) return;
  ring::set_op(*record, CollectiveOp::kCommCreate);
  record->comm = comm.index;
  record->bytes = 8;
  record->request = request;
  if (nonblocking) record->flags |= kFlagHasRequest;
}

// How often a call that is collective over a group only was made with the same arguments.
bool next_use(std::uint64_t key, std::uint32_t& use) noexcept {
  const TableLock lock;
  std::uint32_t* const uses = process.communicators.group_uses.insert(key != 0 ? key : 1);
  if (uses == nullptr) return false;
  use = ++*uses;
  return true;
}

// The same on both sides of an intercommunicator.
std::int32_t leader_of(const Communicator& comm) noexcept {
  const std::int32_t local = comm.world_ranks[0];
  if (comm.remote_size == 0) return local;
  const std::int32_t remote = comm.world_ranks[comm.size];
  return local < remote ? local : remote;
}

// `key`: of the call's other arguments.
bool group_uid(std::uint64_t key, How how, const Communicator& comm, std::uint64_t& uid) noexcept {
  if (how == How::kCreateGroup) {
    key = mix_ranks(key, comm.world_ranks, comm.size);
  } else {
    const std::int32_t* first = comm.world_ranks;
    const std::int32_t* second = first + comm.size;
    std::uint32_t first_size = comm.size, second_size = comm.remote_size;
    if (second_size != 0 && *second < *first) {
      const std::int32_t* const ranks = first;
      first = second;
      second = ranks;
      first_size = comm.remote_size;
      second_size = comm.size;
    }
    key = mix_ranks(mix_ranks(key, first, first_size), second, second_size);
  }
  std::uint32_t use = 0;
  if (!next_use(key, use)) return false;
  uid = as_uid(mix(key, use));
  return true;
}

// A new communicator, numbered; nullptr: it cannot be modelled (foreign members, no memory).
// SAME_MEMBERS_AS: duplicates have its members, and MPI_Comm_idup's handle cannot be asked yet.
Communicator* make(Call& call, MPI_Comm handle, const Communicator* same_members_as) noexcept {
  Communicator* comm;
  {
    const TableLock lock;
    comm = static_cast<Communicator*>(process.pool.take(sizeof(Communicator)));
  }
  if (comm == nullptr) return nullptr;
  new (comm) Communicator;
  bool known;
  if (same_members_as != nullptr) {
    comm->size = same_members_as->size;
    comm->remote_size = same_members_as->remote_size;
    comm->rank = same_members_as->rank;
    const TableLock lock;
    comm->world_ranks = static_cast<std::int32_t*>(process.pool.take(members_bytes(*comm)));
    known = comm->world_ranks != nullptr;
    for (std::uint32_t i = 0; known && i < comm->size + comm->remote_size; ++i) {
      comm->world_ranks[i] =
          same_members_as->world_ranks != nullptr ? same_members_as->world_ranks[i] : static_cast<std::int32_t>(i);
    }
  } else {
    known = learn_members(call.thread(), handle, *comm);
  }
  const TableLock lock;
  if (!known) {
    recycle(comm);
    return nullptr;
  }
  comm->index = process.communicators.next_index++;
  return comm;
}

// Stands for a new communicator as long as it is not used. REQUIRES: one thread at a time is in MPI.
Communicator* make_unasked(const Communicator& parent) noexcept {
  const TableLock lock;
  auto* const comm = static_cast<Communicator*>(process.pool.take(sizeof(Communicator)));
  if (comm == nullptr) return nullptr;
  new (comm) Communicator;
  comm->unasked = true;
  comm->uid = child_seed(parent.uid, parent.children);
  return comm;
}

// It is used: what make() would have asked.
void ask(Thread& thread, MPI_Comm handle, Communicator& comm) noexcept {
  comm.unasked = false;
  if (!learn_members(thread, handle, comm)) {
    comm.foreign = comm.defined = true;  // as `process.unknown`
    return;
  }
  comm.uid = child_uid(comm.uid, leader_of(comm));
  const TableLock lock;
  comm.index = process.communicators.next_index++;
}

Communicator& find_self() noexcept {
  const TableLock lock;
  Communicator& self = process.self;
  if (self.size == 0) {
    self.world_ranks = static_cast<std::int32_t*>(process.pool.take(sizeof(std::int32_t)));
    if (self.world_ranks == nullptr) return process.unknown;
    self.world_ranks[0] = process.run.rank;
    self.uid = as_uid(mix(kSelfSeed, static_cast<std::uint64_t>(process.run.rank)));
    self.index = process.communicators.next_index++;
    self.size = 1;
  }
  return self;
}

// Collective over a group only, a parent's other members do not take part: the synchronisation is on the new
// communicator.
void create_over_group(Call& call, MPI_Comm handle, std::uint64_t key, How how) noexcept {
  if (handle == library.comm_null || handle == MPI_Comm{}) return;
  Communicator* const comm = make(call, handle, nullptr);
  if (comm == nullptr) return record::unmodelled(call);
  if (!group_uid(key, how, *comm, comm->uid)) {
    const TableLock lock;
    recycle(comm);
    return record::unmodelled(call);
  }
  bind_communicator(key_of(handle), comm);
  define(call, *comm, Whose::kMadeByThisCall);
  synchronise(call, *comm, 0, false);
}

std::uint64_t hash_of(Text text) noexcept {
  while (text.length > 0 && text.characters[text.length - 1] == ' ') --text.length;
  std::uint64_t hash = text.length;
  for (std::size_t i = 0; i < text.length; ++i) hash = mix(hash, static_cast<unsigned char>(text.characters[i]));
  return hash;
}

}  // namespace

Communicator& find_other_communicator(Call& call, MPI_Comm handle) noexcept {
  const std::uint32_t epoch = process.comm_epoch.load(std::memory_order_relaxed);
  Communicator& found = handle == library.comm_self ? find_self() : look_up_handle(key_of(handle));
  if (found.unasked) {
    const DearPart dear(call, DearPart::kAlways);
    ask(call.thread(), handle, found);
    define_communicator(call, found);
  } else {
    define_communicator(call, found);
  }
  if (found.foreign || !std::atomic_ref<bool>(found.defined).load(std::memory_order_acquire)) return found;
  Thread& thread = call.thread();
  thread.last_comm.handle = handle;
  thread.last_comm.communicator = &found;
  thread.last_comm.epoch = epoch;
  return found;
}

void define_undefined(Call& call, Communicator& comm) noexcept {
  define(call, comm, Whose::kMadeEarlier);
}

void bind_communicator(std::uint64_t key, Communicator* communicator) noexcept {
  const TableLock lock;
  Communicator** const slot = process.communicators.handles.insert(key);
  if (slot == nullptr) return;  // full: calls on it will be reported as unmodelled
  // A handle that stands for nothing yet is remembered nowhere.
  if (std::exchange(*slot, communicator) != nullptr) process.comm_epoch.fetch_add(1, std::memory_order_relaxed);
}

bool translate_group(Thread& thread, MPI_Group group, std::uint32_t count, std::int32_t* out) noexcept {
  std::int32_t* const own = thread.scratch.ranks.get(count + 1);
  if (own == nullptr) return false;
  for (std::uint32_t i = 0; i < count; ++i) own[i] = static_cast<std::int32_t>(i);
  if (!translate_to_world(group, static_cast<int>(count), own, out)) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (out[i] < 0) return false;
  }
  return true;
}

Communicator* duplicate_communicator(Call& call, Communicator& parent) noexcept {
  ++parent.children;
  Communicator* const comm = make(call, MPI_Comm{}, &parent);
  if (comm != nullptr) comm->uid = child_uid(parent.uid, parent.children, leader_of(*comm));
  return comm;
}

Communicator& look_up_handle(std::uint64_t key) noexcept {
  const TableLock lock;
  Communicator** const slot = process.communicators.handles.find(key);
  return slot == nullptr ? process.unknown : **slot;
}

void free_communicator(std::uint64_t key, Communicator& comm) noexcept {
  const TableLock lock;
  // Another thread may have got the handle for a new one the moment that MPI let go of it.
  Communicator** const slot = process.communicators.handles.find(key);
  if (slot != nullptr && *slot == &comm) process.communicators.handles.erase(key);
  if (!comm.unasked) process.comm_epoch.fetch_add(1, std::memory_order_relaxed);
  (process.communicators.last_freed != nullptr ? process.communicators.last_freed->next_freed
                                               : process.communicators.first_freed) = &comm;
  process.communicators.last_freed = &comm;
  recycle_unreferenced();
}

ring::Record* append_collective(Call& call, CollectiveOp op, const Communicator& comm, std::uint64_t bytes) noexcept {
  if (call.counts()) {
    count_on(call, comm, collectives(comm));
    return nullptr;
  }
  ring::Record* const record = call.append(EventKind::kCollective);
  if (record == nullptr) return nullptr;
  ring::set_op(*record, op);
  record->comm = comm.index;
  record->bytes = bytes;
  return record;
}

// Readers forget the members when all of them said so: what was counted goes before it. Other threads' counts are
// out of reach; without the record the members are only kept.
void append_free(Call& call, const Communicator& comm) noexcept {
  if (!std::atomic_ref<const bool>(comm.defined).load(std::memory_order_acquire)) return;
  if (!call.counts()) {
    if (ring::Record* record = call.append(EventKind::kCommFree)) record->comm = comm.index;
    return;
  }
  if (call.late() || call.thread().mode.shared || !write_counts(call, comm)) return;
  call.begin_side();
  if (ring::Record* record = call.thread().ring.try_append(EventKind::kCommFree)) record->comm = comm.index;
  call.end_side();
}

namespace record {

void comm_create(Call& call, How how, MPI_Comm parent_handle, NewComm new_comm, int tag, Made made) noexcept {
  Communicator& parent = find_communicator(call, parent_handle);
  const bool over_group = how == How::kCreateGroup || how == How::kIntercommCreate;
  // While calls are counted it is asked and defined when it is used. Programs that make and free communicators all the
  // time do not use most of them.
  const bool is_asked =
      over_group || made.nonblocking || !call.counts() || process.shared.load(std::memory_order_relaxed);
  const DearPart dear(call, is_asked ? DearPart::kAlways : 0);
  if (!over_group) ++parent.children;
  if (parent.foreign) return unmodelled(call);

  if (made.nonblocking) {  // MPI_Comm_idup: defined here, complete at the request's wait
    RequestInfo info;
    info.kind = RequestKind::kCommIdup;
    info.active = true;
    info.id = call.late() ? unseen_request_id() : new_request_id(call.thread());
    synchronise(call, parent, info.id, true);
    info.comm = make(call, MPI_Comm{}, &parent);
    if (info.comm != nullptr) {
      info.comm->uid = child_uid(parent.uid, parent.children, leader_of(*info.comm));
      if (!call.counts()) define(call, *info.comm, Whose::kMadeByThisCall);
    } else {
      info.kind = RequestKind::kCollective;  // the communicator itself stays unknown
    }
    info.fortran_new_comm = new_comm.c == nullptr;
    info.new_comm = info.fortran_new_comm ? static_cast<const void*>(new_comm.fortran) : new_comm.c;
    if (family::shared_queue(key_of(made.request)) >= 0 && info.comm != nullptr)
      bind_communicator(key_of(new_comm.get()), info.comm);
    if (call.counts() && info.kind != RequestKind::kCommIdup) return;
    if (info.kind == RequestKind::kCommIdup && family::shared_queue(key_of(made.request)) < 0)
      watch(call, key_of(made.request), info, false);
    if (!call.counts() || info.watch != 0) keep_request(call, made.request, info);
    return;
  }

  const MPI_Comm handle = new_comm.get();
  if (over_group) {
    const std::uint64_t key = mix(kGroupSeed, static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag)));
    return create_over_group(call, handle, how == How::kCreateGroup ? mix(key, parent.uid) : key, how);
  }
  synchronise(call, parent, 0, false);
  if (handle == library.comm_null || handle == MPI_Comm{}) return;
  Communicator* const comm = is_asked ? make(call, handle, how == How::kDup ? &parent : nullptr) : make_unasked(parent);
  if (comm == nullptr) return;
  if (is_asked) comm->uid = child_uid(parent.uid, parent.children, leader_of(*comm));
  bind_communicator(key_of(handle), comm);
  if (!call.counts()) define(call, *comm, Whose::kMadeByThisCall);
}

void comm_create_from_group(Call& call, How how, Text tag, NewComm new_comm) noexcept {
  const DearPart dear(call, DearPart::kAlways);
  process.run.made_in_session.store(true, std::memory_order_relaxed);
  create_over_group(call, new_comm.get(), mix(kGroupSeed, hash_of(tag)), how);
}

void freeing(Call& call, std::uint64_t key) noexcept {
  call.freeing = &look_up_handle(key);
}

void comm_free(Call& call, MPI_Comm handle) noexcept {
  if (handle == library.comm_world || handle == library.comm_self) return;
  Communicator& comm = *call.freeing;
  const bool has_records = std::atomic_ref<bool>(comm.defined).load(std::memory_order_relaxed);
  const DearPart dear(call, has_records ? DearPart::kAlways : 0);
  if (comm.foreign) {
    unmodelled(call);
  } else {
    append_free(call, comm);
  }
  if (&comm != &process.unknown) free_communicator(key_of(handle), comm);
}

}  // namespace record
}  // namespace lbf::capture
