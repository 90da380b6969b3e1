// See otf2_collectives.h.
#include "tools/import/otf2_collectives.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "event/collective_op.h"

namespace lbf::tools::otf2 {
namespace {

std::optional<CollectiveOp> operation(std::uint8_t op, const MpiFunction* function) {
  switch (op) {
    case OTF2_COLLECTIVE_OP_BARRIER:
      return CollectiveOp::kBarrier;
    case OTF2_COLLECTIVE_OP_BCAST:
      return CollectiveOp::kBcast;
    case OTF2_COLLECTIVE_OP_GATHER:
      return CollectiveOp::kGather;
    case OTF2_COLLECTIVE_OP_GATHERV:
      return CollectiveOp::kGatherv;
    case OTF2_COLLECTIVE_OP_SCATTER:
      return CollectiveOp::kScatter;
    case OTF2_COLLECTIVE_OP_SCATTERV:
      return CollectiveOp::kScatterv;
    case OTF2_COLLECTIVE_OP_ALLGATHER:
      return CollectiveOp::kAllgather;
    case OTF2_COLLECTIVE_OP_ALLGATHERV:
      return CollectiveOp::kAllgatherv;
    case OTF2_COLLECTIVE_OP_ALLTOALL:
      return CollectiveOp::kAlltoall;
    case OTF2_COLLECTIVE_OP_ALLTOALLV:
      return CollectiveOp::kAlltoallv;
    case OTF2_COLLECTIVE_OP_ALLTOALLW:
      return CollectiveOp::kAlltoallw;
    case OTF2_COLLECTIVE_OP_ALLREDUCE:
      return CollectiveOp::kAllreduce;
    case OTF2_COLLECTIVE_OP_REDUCE:
      return CollectiveOp::kReduce;
    case OTF2_COLLECTIVE_OP_REDUCE_SCATTER:
      return CollectiveOp::kReduceScatter;
    case OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK:
      return CollectiveOp::kReduceScatterBlock;
    case OTF2_COLLECTIVE_OP_SCAN:
      return CollectiveOp::kScan;
    case OTF2_COLLECTIVE_OP_EXSCAN:
      return CollectiveOp::kExscan;
    case OTF2_COLLECTIVE_OP_CREATE_HANDLE:
    case OTF2_COLLECTIVE_OP_CREATE_HANDLE_AND_ALLOCATE:
      // Files are opened by all ranks, too.
      return function == nullptr || function->role == MpiRole::kCommCreate || function->role == MpiRole::kWinCreate
                 ? CollectiveOp::kCommCreate
                 : CollectiveOp::kBarrier;
    case OTF2_COLLECTIVE_OP_DESTROY_HANDLE:
    case OTF2_COLLECTIVE_OP_DESTROY_HANDLE_AND_DEALLOCATE:
    case OTF2_COLLECTIVE_OP_ALLOCATE:
    case OTF2_COLLECTIVE_OP_DEALLOCATE:
      return CollectiveOp::kBarrier;
    default:
      return std::nullopt;
  }
}

bool has_parts(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return true;
    default:
      return false;
  }
}

// What one call's records say, and in which of the ways that writers count.
class Sizes {
 public:
  Sizes(const Record& record, const Communicator& comm, Rank rank, bool is_root, Counts& counts)
      : sent_(record.bytes),
        received_(record.received),
        peers_(comm.peers(rank)),
        place_(comm.place(rank).value_or(0)),
        others_(comm.is_inter() ? 0 : peers_ - 1),
        is_root_(is_root),
        counts_(counts) {}

  bool in_place = false;
  bool fits = true;

  Bytes of(CollectiveOp op, Writer writer) {
    if (op == CollectiveOp::kBarrier) return 0;
    if (op == CollectiveOp::kCommCreate) return 8;  // as the capture records it
    if (writer == Writer::kLbf) return as_exported(op);
    return writer == Writer::kEztrace ? as_called(op) : as_moved(op);
  }

 private:
  // EZTrace: what the call names.
  Bytes as_called(CollectiveOp op) {
    if (has_parts(op)) fits = false;
    return op == CollectiveOp::kBcast || op == CollectiveOp::kScatter ? received_ : sent_;
  }

  // docs/formats/interchange.md, "OTF2": as export_otf2 sums them.
  Bytes as_exported(CollectiveOp op) {
    switch (op) {
      case CollectiveOp::kBcast:
      case CollectiveOp::kScatter:
      case CollectiveOp::kScatterv:
        return received_;
      case CollectiveOp::kAllreduce:
      case CollectiveOp::kAllgather:
      case CollectiveOp::kAllgatherv:
      case CollectiveOp::kAlltoall:
      case CollectiveOp::kReduceScatterBlock:
        return whole(sent_, peers_);
      case CollectiveOp::kReduceScatter:
        return whole(received_, peers_);
      default:
        return sent_;
    }
  }

  // Score-P: what a rank moves to all ranks, itself too; with MPI_IN_PLACE, which no record names, without itself.
  Bytes as_moved(CollectiveOp op) {
    switch (op) {
      case CollectiveOp::kBcast:
      case CollectiveOp::kScatter:
        return of_root(received_, sent_);
      case CollectiveOp::kReduce:
      case CollectiveOp::kGather:
        return of_root(sent_, received_);
      case CollectiveOp::kGatherv:
        return sent_;
      case CollectiveOp::kScatterv:
        return received_;
      case CollectiveOp::kScan:
        return of_scan();
      case CollectiveOp::kExscan:
        return of_scan_without_itself();
      case CollectiveOp::kAlltoallv:
      case CollectiveOp::kAlltoallw:
        return sent_;
      case CollectiveOp::kReduceScatter:
        return of_all(received_);
      default:
        return of_all(sent_);
    }
  }

  Bytes whole(std::uint64_t sum, std::uint64_t count) {
    if (count == 0 || sum % count != 0) fits = false;
    return fits ? sum / count : 0;
  }
  // Beside its own: what all have to do with the root.
  Bytes of_root(std::uint64_t own, std::uint64_t all) {
    if (!is_root_ || own > 0 || all == 0) return own;
    in_place = others_ > 0 && all % others_ == 0;
    return whole(all, in_place ? others_ : peers_);
  }
  Bytes of_all(std::uint64_t sum) {
    const bool may_be_in_place = others_ > 0 && sum > 0 && sum % others_ == 0;
    in_place = may_be_in_place && sum % peers_ != 0;
    if (may_be_in_place && !in_place) ++counts_.maybe_in_place;
    return whole(sum, in_place ? others_ : peers_);
  }
  Bytes of_scan() {
    const Bytes bytes = received_ / (place_ + 1);
    if (received_ == (place_ + 1) * bytes && sent_ == (peers_ - place_) * bytes) return bytes;
    in_place = true;
    return of_scan_without_itself();
  }
  Bytes of_scan_without_itself() {
    const std::uint64_t above = peers_ - 1 - place_;
    const Bytes bytes = place_ > 0 ? received_ / place_ : above > 0 ? sent_ / above : 0;
    fits = sent_ == above * bytes && received_ == place_ * bytes;
    return bytes;
  }

  std::uint64_t sent_;
  std::uint64_t received_;
  std::uint64_t peers_;
  std::uint64_t place_;
  std::uint64_t others_;  // that MPI_IN_PLACE leaves; 0: it cannot be
  bool is_root_;
  Counts& counts_;
};

// Of what rank FROM sends to all, the part for rank TO: the archive has the sum.
std::uint64_t share(std::uint64_t sum, std::size_t to, std::size_t ranks) {
  return sum / ranks + (to < sum % ranks ? 1 : 0);
}

void set_values(CollectiveOp op, const std::vector<std::uint64_t>& parts, std::size_t place, Held& held) {
  held.values = parts;
  if (op == CollectiveOp::kReduceScatter) held.event.bytes = std::accumulate(parts.begin(), parts.end(), Bytes{0});
  if (op != CollectiveOp::kAlltoallv && op != CollectiveOp::kAlltoallw) return;
  held.values.clear();
  for (std::size_t to = 0; to < parts.size(); ++to) held.values.push_back(share(parts[place], to, parts.size()));
  for (const std::uint64_t sum : parts) held.values.push_back(share(sum, place, parts.size()));
}

Result<Rank> root_of(const Record& record, const Communicator& comm, Rank rank) {
  const bool is_me = record.peer == OTF2_COLLECTIVE_ROOT_SELF;
  if (is_me && comm.is_inter()) return kRootIsMe;
  if (record.peer == OTF2_COLLECTIVE_ROOT_THIS_GROUP) return kRootIsElsewhere;
  const std::uint32_t root = is_me ? *comm.place(rank) : record.peer;
  if (root >= comm.peers(rank)) return invalid_input("root " + std::to_string(root) + " is no rank of it");
  return static_cast<Rank>(root);
}

}  // namespace

Result<void> set_collective(const Record& record, Rank rank, const MpiFunction* function, Shared& shared, Held& held) {
  const std::optional<CollectiveOp> op = operation(record.op, function);
  if (!op) return invalid_input("collective operation " + std::to_string(record.op) + " is not known");
  const Communicator* comm = shared.definitions.communicator(record.comm);
  if (comm == nullptr) return invalid_input("communicator " + std::to_string(record.comm) + " is not defined");
  const std::optional<std::uint32_t> place = comm->place(rank);
  if (!place) return invalid_input("is no member of communicator " + std::to_string(record.comm));
  if (has_parts(*op) && comm->is_inter())
    return invalid_input(std::string(name_of(*op)) + " on an intercommunicator: the archive has no sizes of it");
  held.comm = comm;
  held.event.comm = comm->index_of(rank);
  set_op(held.event, *op);
  const bool is_root =
      is_rooted(*op) && (record.peer == OTF2_COLLECTIVE_ROOT_SELF || (!comm->is_inter() && record.peer == *place));
  if (is_rooted(*op)) {
    const Result<Rank> root = root_of(record, *comm, rank);
    if (!root) return root.error();
    held.event.root = *root;
  }
  const Writer writer = shared.definitions.writer;
  Sizes sizes(record, *comm, rank, is_root, shared.counts);
  const Bytes bytes = sizes.of(*op, writer);
  if (!sizes.fits) {
    return invalid_input(std::string(name_of(*op)) + " of " + std::to_string(comm->peers(rank)) +
                         " ranks: " + std::to_string(record.bytes) + " bytes sent and " +
                         std::to_string(record.received) + " received say no count of each rank");
  }
  if (writer == Writer::kOther && record.bytes + record.received > 0) ++shared.counts.foreign_sizes;
  if (*op == CollectiveOp::kAlltoallv || *op == CollectiveOp::kAlltoallw) ++shared.counts.shared_sizes;
  held.event.bytes = bytes;
  held.part = bytes;
  if (sizes.in_place) held.event.flags |= kFlagInPlace;
  return {};
}

Result<bool> Collectives::arrive(Rank rank, Held& held) {
  const CollectiveOp op = collective_op(held.event);
  Calls& calls = calls_[held.event.comm];
  calls.comm = held.comm;
  const std::size_t size = held.comm->size();
  if (!held.arrived) {
    held.number = calls.next[rank]++;
    held.arrived = true;
    const auto index = static_cast<std::size_t>(held.number - calls.first);
    if (index >= calls.open.size()) calls.open.resize(index + 1);
    Call& call = calls.open[index];
    if (call.ranks++ == 0) {
      call.op = op;
      call.root = held.event.root;
      call.first = rank;
      call.bytes = held.event.bytes;
      if (has_parts(op)) call.parts.resize(size);
    }
    if (Result<void> compared = compare(rank, held, call); !compared) return compared.error();
    if (has_parts(op)) call.parts[*held.comm->place(rank)] = held.part;
    const bool is_rooted_part = op == CollectiveOp::kGatherv || op == CollectiveOp::kScatterv;
    const bool needs_parts =
        has_parts(op) && (!is_rooted_part || held.event.root == static_cast<Rank>(*held.comm->place(rank)));
    if (needs_parts) ++call.waiting;
    if (call.ranks == size) {
      for (Rank member : held.comm->members) {
        if (call.waiting > 0 && member != rank) complete_.push_back(member);
      }
    }
    if (!needs_parts) {
      drop_complete(calls);
      return true;
    }
  }
  Call& call = calls.open[static_cast<std::size_t>(held.number - calls.first)];
  if (call.ranks < size) return false;
  set_values(op, call.parts, *held.comm->place(rank), held);
  --call.waiting;
  drop_complete(calls);
  return true;
}

Result<void> Collectives::compare(Rank rank, const Held& held, Call& call) const {
  const CollectiveOp op = collective_op(held.event);
  const auto fail = [&](const std::string& mine, const std::string& theirs) {
    return shared_.error(rank, held.position, std::string(mpi_function_name(held.event.function)),
                         mine + ", but rank " + std::to_string(call.first) + " has " + theirs +
                             " as its collective number " + std::to_string(held.number + 1) +
                             " of this communicator: records are missing");
  };
  if (op != call.op) return fail(std::string(name_of(op)), std::string(name_of(call.op)));
  if (held.comm->is_inter()) return {};
  if (is_rooted(op) && held.event.root != call.root)
    return fail("root " + std::to_string(held.event.root), "root " + std::to_string(call.root));
  if (!has_parts(op) && held.event.bytes != call.bytes) call.fits = false;
  return {};
}

void Collectives::drop_complete(Calls& calls) {
  while (!calls.open.empty()) {
    const Call& call = calls.open.front();
    if (call.ranks < calls.comm->size() || call.waiting > 0) return;
    if (!call.fits && shared_.counts.misfits++ == 0) shared_.counts.first_misfit = name_of(call.op);
    calls.open.pop_front();
    ++calls.first;
  }
}

std::vector<Rank> Collectives::take_complete() {
  return std::exchange(complete_, {});
}

std::string Collectives::stuck() const {
  for (const auto& [comm, calls] : calls_) {
    for (std::size_t i = 0; i < calls.open.size(); ++i) {
      const Call& call = calls.open[i];
      if (call.waiting == 0) continue;
      return std::string(name_of(call.op)) + " number " + std::to_string(calls.first + i + 1) +
             " of a communicator, which rank " + std::to_string(call.first) + " calls, has records of " +
             std::to_string(call.ranks) + " of its " + std::to_string(calls.comm->members.size()) + " ranks";
    }
  }
  return "";
}

}  // namespace lbf::tools::otf2
