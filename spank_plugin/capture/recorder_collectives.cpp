// Recorder, collective part: what one rank sends to one peer (or the vector), as event/event.h defines
// `bytes` and `values` for each operation. See recorder.h. Arguments that are significant at the root only
// are read there only; MPI_IN_PLACE takes the size from the other side.
#include <cstring>

#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {
namespace {

// The communicator of a collective, or nullptr after the call was recorded as unmodelled, or counted.
Communicator* modelled(Call& call, MPI_Comm handle, Made made) noexcept {
  Communicator& comm = find_communicator(call, handle);
  if (made.persistent) [[unlikely]]
    return comm.foreign ? nullptr : &comm;  // its waits will be unmodelled
  if (call.counts() && !comm.foreign) {
    count_named(call, comm, collectives(comm), handle, kAnyRank, kAnyTag);
    return nullptr;
  }
  if (!comm.foreign) return &comm;
  record::unmodelled(call);
  return nullptr;
}

// For MPI_Start; nullptr: no memory.
[[gnu::cold]] PersistentCollective* keep_persistent(Call& call, CollectiveOp op, Communicator& comm, int root,
                                                    std::uint64_t bytes, bool in_place, Made made,
                                                    std::uint32_t values) noexcept {
  RequestInfo info;
  info.kind = RequestKind::kCollective;
  info.persistent = true;
  info.comm = &comm;
  {
    const TableLock lock;
    info.collective = static_cast<PersistentCollective*>(process.pool.take(PersistentCollective::block_bytes(values)));
  }
  if (info.collective == nullptr) return call.thread().ring.count_lost(), nullptr;
  *info.collective = {bytes, root < 0 ? recorded_negative_rank(root) : root, values, op, in_place};
  keep_request(call, made.request, info);
  return info.collective;
}

[[gnu::always_inline]] inline std::uint32_t keep_active(Call& call, Made made) noexcept {
  RequestInfo info;
  info.kind = RequestKind::kCollective;
  info.active = true;
  info.id = new_request_id(call.thread());
  keep_request(call, made.request, info);
  return info.id;
}

// A collective without values: most are.
[[gnu::always_inline]] inline void append_plain(Call& call, CollectiveOp op, Communicator& comm, int root,
                                                std::uint64_t bytes, bool in_place, Made made) noexcept {
  if (made.persistent) [[unlikely]] {
    keep_persistent(call, op, comm, root, bytes, in_place, made, 0);
    return;
  }
  const std::uint32_t id = made.nonblocking ? keep_active(call, made) : 0;
  call.append(made.nonblocking ? EventKind::kIcollective : EventKind::kCollective,
              {root < 0 ? recorded_negative_rank(root) : root, 0, comm.index, id, bytes,
               static_cast<std::uint8_t>((made.nonblocking ? kFlagHasRequest : 0) | (in_place ? kFlagInPlace : 0)),
               static_cast<std::uint8_t>(op)});
}

// Of COUNT elements of TYPE, no values.
[[gnu::noinline]] void append_elements_otherwise(Call& call, CollectiveOp op, std::int64_t count, MPI_Datatype type,
                                                 int root, MPI_Comm handle, bool in_place, Made made) noexcept {
  if (Communicator* const comm = modelled(call, handle, made))
    append_plain(call, op, *comm, root, message_bytes(call.thread(), count, type), in_place, made);
}

// Most are blocking: no function is called, so that no register has to be kept for one.
[[gnu::always_inline]] inline void append_elements(Call& call, CollectiveOp op, std::int64_t count, MPI_Datatype type,
                                                   int root, MPI_Comm handle, bool in_place, Made made) noexcept {
  const Communicator* const comm = plain_communicator(call, handle);
  Thread& thread = call.thread();
  if (comm == nullptr || made.persistent || made.nonblocking || (count > 0 && !knows_type_bytes(thread, type)))
      [[unlikely]]
    return append_elements_otherwise(call, op, count, type, root, handle, in_place, made);
  const std::uint64_t bytes = count > 0 ? static_cast<std::uint64_t>(count) * type_size_slot(thread, type).bytes : 0;
  thread.ring.append_plain(EventKind::kCollective,
                           {root < 0 ? recorded_negative_rank(root) : root, 0, comm->index, 0, bytes,
                            static_cast<std::uint8_t>(in_place ? kFlagInPlace : 0), static_cast<std::uint8_t>(op)});
}

// What a collective with values leaves to be written: its values, and its bytes where they are known last.
struct Body {
  std::uint64_t* values = nullptr;  // nullptr: lost (its request is kept all the same)
  std::uint64_t* bytes = nullptr;
  explicit operator bool() const noexcept { return values != nullptr; }
};

void fill(ring::Record& record, CollectiveOp op, const Communicator& comm, std::int32_t recorded_root,
          std::uint64_t bytes, bool in_place, std::uint32_t id) noexcept {
  ring::set_op(record, op);
  record.peer = recorded_root;
  record.comm = comm.index;
  record.bytes = bytes;
  record.request = id;
  record.flags =
      static_cast<std::uint8_t>(record.flags | (id != 0 ? kFlagHasRequest : 0) | (in_place ? kFlagInPlace : 0));
}

Body append(Call& call, CollectiveOp op, Communicator& comm, int root, std::uint64_t bytes, bool in_place, Made made,
            std::uint32_t values) noexcept {
  if (made.persistent) {
    PersistentCollective* const kept = keep_persistent(call, op, comm, root, bytes, in_place, made, values);
    return kept != nullptr ? Body{kept->values(), &kept->bytes} : Body{};
  }
  ring::Record* const record = call.append(made.nonblocking ? EventKind::kIcollective : EventKind::kCollective, values);
  const std::uint32_t id = made.nonblocking ? keep_active(call, made) : 0;
  if (record == nullptr) return {};
  fill(*record, op, comm, root < 0 ? recorded_negative_rank(root) : root, bytes, in_place, id);
  return {RingWriter::values_of(record), &record->bytes};
}

// Whether this process is the root: in an intercommunicator the root says MPI_ROOT.
bool is_root(const Communicator& comm, int root) noexcept {
  return comm.remote_size != 0 ? root == MPI_ROOT : root == comm.rank;
}

bool takes_no_part(int root) noexcept {
  return root == MPI_PROC_NULL;
}

std::uint64_t count_bytes(std::int64_t count, std::uint64_t element) noexcept {
  return count > 0 ? static_cast<std::uint64_t>(count) * element : 0;
}

std::uint64_t sum_bytes(Counts counts, std::uint32_t n, std::uint64_t element) noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < n; ++i) sum += count_bytes(counts[i], element);
  return sum;
}

void put_bytes(std::uint64_t* values, Counts counts, std::uint32_t n, std::uint64_t element) noexcept {
  for (std::uint32_t i = 0; i < n; ++i) values[i] = count_bytes(counts[i], element);
}

// The neighbours of a process in the topology of its communicator, in the order of the buffers; looked up
// once.
const Neighbours* neighbours_of(Call& call, Communicator& comm, MPI_Comm handle) noexcept {
  if (comm.neighbours != nullptr) return comm.neighbours;
  int topology = MPI_UNDEFINED;
  library.Topo_test(handle, &topology);
  int dimensions = 0, sources = 0, destinations = 0, weighted = 0;
  switch (topology) {
    case MPI_CART:
      library.Cartdim_get(handle, &dimensions);
      sources = destinations = 2 * dimensions;
      break;
    case MPI_GRAPH:
      library.Graph_neighbors_count(handle, comm.rank, &destinations);
      sources = destinations;
      break;
    case MPI_DIST_GRAPH:
      library.Dist_graph_neighbors_count(handle, &sources, &destinations, &weighted);
      break;
    default:
      return nullptr;
  }
  const auto total = static_cast<std::size_t>(sources) + static_cast<std::size_t>(destinations);
  std::int32_t* const scratch = call.thread().scratch.ranks.get(2 * total + 1);
  if (scratch == nullptr) return nullptr;
  if (topology == MPI_CART) {
    for (int d = 0; d < dimensions; ++d) {
      int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
      library.Cart_shift(handle, d, 1, &before, &after);
      const auto at = static_cast<std::size_t>(d) * 2;
      scratch[at] = before;
      scratch[at + 1] = after;
    }
    for (int i = 0; i < sources; ++i) scratch[destinations + i] = scratch[i];
  } else if (topology == MPI_GRAPH) {
    library.Graph_neighbors(handle, comm.rank, destinations, scratch);
    for (int i = 0; i < sources; ++i) scratch[destinations + i] = scratch[i];
  } else {
    std::int32_t* const weights = scratch + total;
    library.Dist_graph_neighbors(handle, sources, scratch + destinations, weights, destinations, scratch,
                                 weights + sources);
  }
  const TableLock lock;
  auto* const neighbours = static_cast<Neighbours*>(process.pool.take(sizeof(Neighbours)));
  auto* const ranks = static_cast<std::int32_t*>(process.pool.take(total * sizeof(std::int32_t)));
  if (neighbours == nullptr || ranks == nullptr) return nullptr;
  for (std::size_t i = 0; i < total; ++i) ranks[i] = scratch[i];
  *neighbours = {static_cast<std::uint32_t>(destinations), static_cast<std::uint32_t>(sources), ranks};
  comm.neighbours = neighbours;
  return neighbours;
}

// A neighbourhood collective: values = n, n destination world ranks, n bytes, m, m source world ranks, m
// bytes, without the neighbours that are MPI_PROC_NULL. `to`, `from`: bytes for the i-th neighbour.
template <class To, class From>
void append_neighbor(Call& call, CollectiveOp op, MPI_Comm handle, Made made, To to, From from) noexcept {
  Communicator* const comm = modelled(call, handle, made);
  if (comm == nullptr) return;
  const Neighbours* const all = neighbours_of(call, *comm, handle);
  if (all == nullptr) return made.persistent ? void() : record::unmodelled(call);
  std::uint32_t destinations = 0, sources = 0;
  std::uint64_t sent = 0;
  for (std::uint32_t i = 0; i < all->destinations; ++i) {
    if (all->ranks[i] == MPI_PROC_NULL) continue;
    ++destinations;
    sent += to(i);
  }
  for (std::uint32_t i = 0; i < all->sources; ++i) sources += all->ranks[all->destinations + i] != MPI_PROC_NULL;
  const Body body = append(call, op, *comm, 0, sent, false, made, 2 + 2 * destinations + 2 * sources);
  if (!body) return;
  std::uint64_t* values = body.values;
  const auto put = [&](std::uint32_t n, std::uint32_t listed, const std::int32_t* ranks, auto bytes_of) {
    *values = n;
    std::uint64_t* const peers = values + 1;
    std::uint64_t* const bytes = peers + n;
    std::uint32_t k = 0;
    for (std::uint32_t i = 0; i < listed; ++i) {
      if (ranks[i] == MPI_PROC_NULL) continue;
      peers[k] = static_cast<std::uint64_t>(comm->peer_world_rank(ranks[i]));
      bytes[k] = bytes_of(i);
      ++k;
    }
    values = bytes + n;
  };
  put(destinations, all->destinations, all->ranks, to);
  put(sources, all->sources, all->ranks + all->destinations, from);
}

}  // namespace

void start_collective(Call& call, const RequestInfo& info) noexcept {
  PersistentCollective& kept = *info.collective;
  define_communicator(call, *info.comm);
  if (call.counts()) return count_on(call, *info.comm, collectives(*info.comm));
  ring::Record* const record = call.append(EventKind::kIcollective, kept.value_count);
  if (record == nullptr) return;
  fill(*record, kept.op, *info.comm, kept.root, kept.bytes, kept.in_place, info.id);
  memcpy(RingWriter::values_of(record), kept.values(), kept.value_count * sizeof(std::uint64_t));
}

namespace record {

void barrier(Call& call, MPI_Comm comm, Made made) noexcept {
  append_elements(call, CollectiveOp::kBarrier, 0, MPI_Datatype{}, 0, comm, false, made);
}

void bcast(Call& call, std::int64_t count, MPI_Datatype type, int root, MPI_Comm comm, Made made) noexcept {
  append_elements(call, CollectiveOp::kBcast, takes_no_part(root) ? 0 : count, type, root, comm, false, made);
}

void reduce(Call& call, const void* send, const void* recv, std::int64_t count, MPI_Datatype type, int root,
            MPI_Comm comm, Made made) noexcept {
  append_elements(call, CollectiveOp::kReduce, takes_no_part(root) ? 0 : count, type, root, comm,
                  send == MPI_IN_PLACE || recv == MPI_IN_PLACE, made);
}

void reduce_all(Call& call, CollectiveOp op, const void* send, std::int64_t count, MPI_Datatype type, MPI_Comm comm,
                Made made) noexcept {
  append_elements(call, op, count, type, 0, comm, send == MPI_IN_PLACE, made);
}

void gather(Call& call, const void* send, std::int64_t send_count, MPI_Datatype send_type, std::int64_t recv_count,
            MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  std::uint64_t bytes = 0;
  if (is_root(*where, root)) {
    bytes = message_bytes(call.thread(), recv_count, recv_type);
  } else if (!takes_no_part(root)) {
    bytes = message_bytes(call.thread(), send_count, send_type);
  }
  append_plain(call, CollectiveOp::kGather, *where, root, bytes, send == MPI_IN_PLACE, made);
}

void scatter(Call& call, std::int64_t send_count, MPI_Datatype send_type, const void* recv, std::int64_t recv_count,
             MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  std::uint64_t bytes = 0;
  if (is_root(*where, root)) {
    bytes = message_bytes(call.thread(), send_count, send_type);
  } else if (!takes_no_part(root)) {
    bytes = message_bytes(call.thread(), recv_count, recv_type);
  }
  append_plain(call, CollectiveOp::kScatter, *where, root, bytes, recv == MPI_IN_PLACE, made);
}

void all_to_all(Call& call, CollectiveOp op, const void* send, std::int64_t send_count, MPI_Datatype send_type,
                std::int64_t recv_count, MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  const bool in_place = send == MPI_IN_PLACE;
  const std::uint64_t bytes = in_place ? message_bytes(call.thread(), recv_count, recv_type)
                                       : message_bytes(call.thread(), send_count, send_type);
  append_plain(call, op, *where, 0, bytes, in_place, made);
}

void gatherv(Call& call, const void* send, std::int64_t send_count, MPI_Datatype send_type, Counts recv_counts,
             MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  const bool in_place = send == MPI_IN_PLACE;
  if (!is_root(*where, root)) {
    const std::uint64_t bytes = takes_no_part(root) ? 0 : message_bytes(call.thread(), send_count, send_type);
    append_plain(call, CollectiveOp::kGatherv, *where, root, bytes, false, made);
    return;
  }
  const std::uint64_t element = type_bytes(call.thread(), recv_type);
  const std::uint32_t peers = where->peers();
  const std::uint64_t own = where->remote_size != 0 ? 0 : count_bytes(recv_counts[where->rank], element);
  if (const Body body = append(call, CollectiveOp::kGatherv, *where, root, own, in_place, made, peers)) {
    put_bytes(body.values, recv_counts, peers, element);
  }
}

void scatterv(Call& call, Counts send_counts, MPI_Datatype send_type, const void* recv, std::int64_t recv_count,
              MPI_Datatype recv_type, int root, MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  if (!is_root(*where, root)) {
    const std::uint64_t bytes = takes_no_part(root) ? 0 : message_bytes(call.thread(), recv_count, recv_type);
    append_plain(call, CollectiveOp::kScatterv, *where, root, bytes, false, made);
    return;
  }
  const std::uint64_t element = type_bytes(call.thread(), send_type);
  const std::uint32_t peers = where->peers();
  const std::uint64_t own = where->remote_size != 0 ? 0 : count_bytes(send_counts[where->rank], element);
  if (const Body body = append(call, CollectiveOp::kScatterv, *where, root, own, recv == MPI_IN_PLACE, made, peers)) {
    put_bytes(body.values, send_counts, peers, element);
  }
}

void allgatherv(Call& call, const void* send, std::int64_t send_count, MPI_Datatype send_type, Counts recv_counts,
                MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  const bool in_place = send == MPI_IN_PLACE;
  const std::uint64_t element = type_bytes(call.thread(), recv_type);
  const std::uint64_t own =
      in_place ? count_bytes(recv_counts[where->rank], element) : message_bytes(call.thread(), send_count, send_type);
  const std::uint32_t peers = where->peers();
  if (const Body body = append(call, CollectiveOp::kAllgatherv, *where, 0, own, in_place, made, peers)) {
    put_bytes(body.values, recv_counts, peers, element);
  }
}

void alltoallv(Call& call, const void* send, Counts send_counts, MPI_Datatype send_type, Counts recv_counts,
               MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  const bool in_place = send == MPI_IN_PLACE;
  const std::uint64_t recv_element = type_bytes(call.thread(), recv_type);
  const std::uint64_t send_element = in_place ? recv_element : type_bytes(call.thread(), send_type);
  const Counts counts = in_place ? recv_counts : send_counts;
  const std::uint32_t peers = where->peers();
  if (const Body body = append(call, CollectiveOp::kAlltoallv, *where, 0, sum_bytes(counts, peers, send_element),
                               in_place, made, 2 * peers)) {
    put_bytes(body.values, counts, peers, send_element);
    put_bytes(body.values + peers, recv_counts, peers, recv_element);
  }
}

void alltoallw(Call& call, const void* send, Counts send_counts, Types send_types, Counts recv_counts, Types recv_types,
               MPI_Comm comm, Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  const bool in_place = send == MPI_IN_PLACE;
  const Counts counts = in_place ? recv_counts : send_counts;
  const Types types = in_place ? recv_types : send_types;
  const std::uint32_t peers = where->peers();
  Thread& thread = call.thread();
  const Body body = append(call, CollectiveOp::kAlltoallw, *where, 0, 0, in_place, made, 2 * peers);
  if (!body) return;
  std::uint64_t sent = 0;
  for (std::uint32_t i = 0; i < peers; ++i) {
    body.values[i] = message_bytes(thread, counts[i], types[i]);
    body.values[peers + i] = message_bytes(thread, recv_counts[i], recv_types[i]);
    sent += body.values[i];
  }
  *body.bytes = sent;
}

void reduce_scatter(Call& call, const void* send, Counts recv_counts, MPI_Datatype type, MPI_Comm comm,
                    Made made) noexcept {
  Communicator* const where = modelled(call, comm, made);
  if (where == nullptr) return;
  const std::uint64_t element = type_bytes(call.thread(), type);
  const std::uint32_t n = where->size;  // an intercommunicator too: the counts are those of the own group
  if (const Body body = append(call, CollectiveOp::kReduceScatter, *where, 0, sum_bytes(recv_counts, n, element),
                               send == MPI_IN_PLACE, made, n)) {
    put_bytes(body.values, recv_counts, n, element);
  }
}

void neighbor(Call& call, CollectiveOp op, std::int64_t send_count, MPI_Datatype send_type, std::int64_t recv_count,
              MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept {
  const std::uint64_t sent = message_bytes(call.thread(), send_count, send_type);
  const std::uint64_t received = message_bytes(call.thread(), recv_count, recv_type);
  append_neighbor(
      call, op, comm, made, [sent](std::uint32_t) { return sent; }, [received](std::uint32_t) { return received; });
}

void neighbor_allgatherv(Call& call, std::int64_t send_count, MPI_Datatype send_type, Counts recv_counts,
                         MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept {
  const std::uint64_t sent = message_bytes(call.thread(), send_count, send_type);
  Thread& thread = call.thread();
  append_neighbor(
      call, CollectiveOp::kNeighborAllgatherv, comm, made, [sent](std::uint32_t) { return sent; },
      [&](std::uint32_t i) { return message_bytes(thread, recv_counts[i], recv_type); });
}

void neighbor_alltoallv(Call& call, Counts send_counts, MPI_Datatype send_type, Counts recv_counts,
                        MPI_Datatype recv_type, MPI_Comm comm, Made made) noexcept {
  Thread& thread = call.thread();
  append_neighbor(
      call, CollectiveOp::kNeighborAlltoallv, comm, made,
      [&](std::uint32_t i) { return message_bytes(thread, send_counts[i], send_type); },
      [&](std::uint32_t i) { return message_bytes(thread, recv_counts[i], recv_type); });
}

void neighbor_alltoallw(Call& call, Counts send_counts, Types send_types, Counts recv_counts, Types recv_types,
                        MPI_Comm comm, Made made) noexcept {
  Thread& thread = call.thread();
  append_neighbor(
      call, CollectiveOp::kNeighborAlltoallw, comm, made,
      [&](std::uint32_t i) { return message_bytes(thread, send_counts[i], send_types[i]); },
      [&](std::uint32_t i) { return message_bytes(thread, recv_counts[i], recv_types[i]); });
}

}  // namespace record
}  // namespace lbf::capture
