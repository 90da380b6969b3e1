// expand_collective: checks the arguments, asks for the algorithm, has it spelled out. See collective.h.
#include "predictor/engine/match/collective.h"

#include <algorithm>
#include <string>
#include <vector>

#include "event/collective_op.h"
#include "predictor/engine/match/collective_algorithms.h"
#include "predictor/engine/match/collective_expand.h"
#include "predictor/engine/match/collective_rules.h"

namespace lbf::engine {
namespace {

using collective::Algorithm;
using collective::Blocks;
using collective::Choice;
using collective::expand_alike;
using collective::expand_neighbours;
using collective::GroupSteps;
using collective::kMpiRoot;
using collective::sum;
using collective::Values;

constexpr Bytes kIreduceFragmentBytes = 8 * 1024;

// The library returns at once from these when there is nothing to do.
bool returns_when_empty(const CollectiveCall& call) {
  // One group of an intercommunicator may have nothing for the other and still get something.
  if (call.remote_size > 0 && (call.op == CollectiveOp::kAllgather || call.op == CollectiveOp::kAlltoall)) return false;
  if (is_mpich(call.library)) {
    const bool sends_empty = call.op == CollectiveOp::kBcast || call.op == CollectiveOp::kAllreduce;
    return call.op != CollectiveOp::kBarrier && !has_byte_counts(call.op) && !(call.nonblocking && sends_empty);
  }
  switch (call.op) {
    case CollectiveOp::kBcast:
    case CollectiveOp::kReduce:
    case CollectiveOp::kAllreduce:
    case CollectiveOp::kReduceScatterBlock:
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
      return true;
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
    case CollectiveOp::kAllgather:
    case CollectiveOp::kAlltoall:
      return !call.nonblocking;
    default:
      return false;
  }
}

// How many values the call must bring; more are an error as well.
std::size_t values_needed(const CollectiveCall& call) {
  const bool inter = call.remote_size > 0;
  const std::size_t peers = inter ? call.remote_size : call.size;
  const bool at_root = inter ? call.root == kMpiRoot : call.root == static_cast<Rank>(call.rank);
  switch (call.op) {
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
      return at_root ? peers : 0;
    case CollectiveOp::kAllgatherv:
      return peers;
    case CollectiveOp::kReduceScatter:
      return call.size;
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return 2 * peers;
    default:
      return 0;
  }
}

Error bad_call(const CollectiveCall& call, const std::string& why) {
  return invalid_input("collective " + std::to_string(static_cast<int>(call.op)) + " on rank " +
                       std::to_string(call.rank) + " of " + std::to_string(call.size) + ": " + why);
}

// Neighbour collectives: n, n destinations, n byte counts, m, m sources, m byte counts.
struct Neighbours {
  Values destinations, sent, sources, received;
  bool complete = false;
};

Neighbours split_neighbours(Values values) {
  Neighbours result;
  for (const bool outgoing : {true, false}) {
    if (values.empty() || values[0] > (values.size() - 1) / 2) return result;
    const std::size_t count = values[0];
    (outgoing ? result.destinations : result.sources) = values.subspan(1, count);
    (outgoing ? result.sent : result.received) = values.subspan(1 + count, count);
    values = values.subspan(1 + 2 * count);
  }
  result.complete = values.empty();
  return result;
}

// Open MPI's blocking neighbour collectives have a tag for each direction of a cartesian topology. There the
// neighbours are the same in both lists, and one that is above and below is there twice in a row. (So it may
// be in a graph, where messages pair in order, as in coll/libnbc and in MPICH they always do. What a receive
// expects is all that differs: the sender says how long the message is.)
bool pairs_by_direction(const CollectiveCall& call, const Neighbours& neighbours) {
  if (is_mpich(call.library) || call.nonblocking) return false;
  return std::equal(neighbours.sources.begin(), neighbours.sources.end(), neighbours.destinations.begin(),
                    neighbours.destinations.end());
}

// MPI_PROC_NULL of Open MPI (-2), in 32 or 64 bits.
bool is_nobody(std::uint64_t rank) {
  return rank == static_cast<std::uint64_t>(-2) || rank == static_cast<std::uint32_t>(-2);
}

// Algorithms multiply sizes by ranks, and cut vectors into pieces.
Result<void> check_bytes(const CollectiveCall& call) {
  constexpr Bytes kMost = Bytes{1} << 44;  // no memory holds more
  const bool one_for_each = call.op == CollectiveOp::kGather || call.op == CollectiveOp::kScatter ||
                            call.op == CollectiveOp::kAllgather || call.op == CollectiveOp::kAlltoall ||
                            call.op == CollectiveOp::kReduceScatterBlock;
  const Bytes ranks = std::max(call.size, call.remote_size);
  const auto too_many = [](Values list) {
    Bytes total = 0;
    return std::ranges::any_of(list, [&total](std::uint64_t bytes) {
      if (bytes > kMost - total) return true;
      total += bytes;
      return false;
    });
  };
  bool is_possible = call.bytes <= (one_for_each ? kMost / ranks : kMost);
  if (is_neighbour(call.op)) {
    const Neighbours neighbours = split_neighbours(call.values);
    is_possible &= !too_many(neighbours.sent) && !too_many(neighbours.received);
  } else if (values_needed(call) > 0) {
    is_possible &= !too_many(call.values);
  }
  return is_possible ? Result<void>() : bad_call(call, "an impossible number of bytes");
}

Result<void> check(const CollectiveCall& call) {
  if (call.size == 0 || call.rank >= call.size) return bad_call(call, "no such rank");
  if (static_cast<int>(call.op) >= kCollectiveOpCount) return bad_call(call, "no such operation");
  const bool inter = call.remote_size > 0;
  if (inter && (is_neighbour(call.op) || call.op == CollectiveOp::kScan || call.op == CollectiveOp::kExscan)) {
    return bad_call(call, "not defined on an intercommunicator");
  }
  if (is_rooted(call.op)) {
    const bool special = inter && (call.root == kMpiRoot || call.root == -1 || call.root == -2);
    const std::uint32_t roots = inter ? call.remote_size : call.size;
    if (!special && (call.root < 0 || static_cast<std::uint32_t>(call.root) >= roots)) {
      return bad_call(call, "root " + std::to_string(call.root) + " is not in the communicator");
    }
  }
  if (is_neighbour(call.op)) {
    const Neighbours neighbours = split_neighbours(call.values);
    if (!neighbours.complete) return bad_call(call, "the list of neighbours is broken");
    for (const Values peers : {neighbours.destinations, neighbours.sources}) {
      for (const std::uint64_t peer : peers) {
        if (peer >= call.size && !is_nobody(peer)) {
          return bad_call(call, "neighbour " + std::to_string(peer) + " is not in the communicator");
        }
      }
    }
  } else if (call.values.size() < values_needed(call)) {
    return bad_call(call, "needs " + std::to_string(values_needed(call)) + " byte counts, has " +
                              std::to_string(call.values.size()));
  }
  return check_bytes(call);
}

// coll/tuned and coll/basic, on an intracommunicator.
void expand_blocking(const CollectiveCall& call, Algorithm algorithm, GroupSteps& steps) {
  const auto root = static_cast<std::uint32_t>(call.root);
  const Values sent = call.values.first(std::min<std::size_t>(call.size, call.values.size()));
  const Values received = call.values.subspan(sent.size());
  switch (call.op) {
    case CollectiveOp::kBarrier:
      return steps.barrier(algorithm);
    case CollectiveOp::kBcast:
      return steps.bcast(algorithm, root, call.bytes, collective::likely_element_bytes(call.bytes));
    case CollectiveOp::kAlltoall:
      if (algorithm == Algorithm::kInPlace) {
        const std::vector<std::uint64_t> all_alike(call.size, call.bytes);
        return steps.alltoallv_in_place(all_alike, false);
      }
      return steps.alltoall(algorithm, call.bytes);
    case CollectiveOp::kReduceScatterBlock:
      switch (algorithm) {
        case Algorithm::kRecursiveDoubling:
          return steps.reduce_scatter_recursive_doubling(Blocks(call.bytes));
        case Algorithm::kRecursiveHalving:
          return steps.reduce_scatter_recursive_halving(Blocks(call.bytes));
        case Algorithm::kButterfly:
          return steps.reduce_scatter_butterfly(Blocks(call.bytes), true);
        default:
          steps.reduce(0, call.bytes * call.size, call.commutative);
          return steps.scatter(0, call.bytes);
      }
    case CollectiveOp::kReduceScatter:
      if (sum(sent) == 0) return;
      switch (algorithm) {
        case Algorithm::kRecursiveHalving:
          return steps.reduce_scatter_recursive_halving(Blocks(sent));
        case Algorithm::kRing:
          return steps.reduce_scatter_ring(Blocks(sent));
        case Algorithm::kButterfly:
          return steps.reduce_scatter_butterfly(Blocks(sent), false);
        default:
          steps.reduce(0, sum(sent), call.commutative);
          return steps.scatter_linear(0, sent[call.rank], sent, false);
      }
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
      return steps.scan(call.bytes, call.op == CollectiveOp::kExscan);
    case CollectiveOp::kAllgatherv:
      if (sum(sent) == 0) return;
      if (algorithm == Algorithm::kDefault) {
        steps.gather_linear(0, sent[call.rank], sent, false);
        return steps.bcast(0, sum(sent), sum(sent));  // sent as one element of an indexed datatype
      }
      return steps.allgather(algorithm, Blocks(sent));
    case CollectiveOp::kAlltoallv:
      if (algorithm == Algorithm::kInPlace) return steps.alltoallv_in_place(received, false);
      // From 5.0.3 on nothing goes to those who get nothing.
      if (algorithm == Algorithm::kPairwise) {
        return steps.alltoallv_pairwise(sent, received, call.library == MpiLibrary::kOpenMpi4);
      }
      return steps.alltoallv_linear(sent, received, call.library == MpiLibrary::kOpenMpi4);
    case CollectiveOp::kAlltoallw:
      if (algorithm == Algorithm::kInPlace) return steps.alltoallv_in_place(received, false);
      return steps.alltoallv_linear(sent, received, false);
    default:
      return expand_alike(call, algorithm, steps);
  }
}

// coll/libnbc, on an intracommunicator.
void expand_nonblocking(const CollectiveCall& call, Algorithm algorithm, GroupSteps& steps) {
  const auto root = static_cast<std::uint32_t>(call.root);
  const Values sent = call.values.first(std::min<std::size_t>(call.size, call.values.size()));
  const Values received = call.values.subspan(sent.size());
  switch (call.op) {
    case CollectiveOp::kBarrier:
      return steps.barrier_dissemination();
    case CollectiveOp::kBcast:
      if (algorithm == Algorithm::kLinear) return steps.bcast_linear(root, call.bytes);
      return steps.bcast_swapped_binomial(root, call.bytes);
    case CollectiveOp::kReduce:
      if (algorithm == Algorithm::kRabenseifner) return steps.reduce_rabenseifner(root, call.bytes);
      if (algorithm == Algorithm::kBinomial) {
        return steps.reduce_swapped_binomial(root, call.bytes, call.commutative);
      }
      return steps.reduce_swapped_chain(root, call.bytes, kIreduceFragmentBytes);
    case CollectiveOp::kAllreduce:
      if (algorithm == Algorithm::kRing) return steps.allreduce_swapped_ring(call.bytes);
      return steps.allreduce(algorithm, call.bytes, call.commutative);
    case CollectiveOp::kGather: {
      const std::vector<std::uint64_t> all_alike(call.rank == root ? call.size : 0, call.bytes);
      return steps.gather_linear(root, call.bytes, all_alike, true);
    }
    case CollectiveOp::kScatter:
      return steps.scatter_alike(root, call.bytes);
    case CollectiveOp::kAllgather:
    case CollectiveOp::kAlltoall: {
      const std::vector<std::uint64_t> all_alike(call.size, call.bytes);
      if (algorithm == Algorithm::kInPlace) return steps.alltoallv_in_place(all_alike, true);
      return steps.alltoallv_linear(all_alike, all_alike, true);
    }
    case CollectiveOp::kReduceScatterBlock: {
      const std::vector<std::uint64_t> all_alike(call.rank == 0 ? call.size : 0, call.bytes);
      steps.reduce_swapped_binomial(0, call.bytes * call.size, true);
      return steps.scatter_linear(0, call.bytes, all_alike, true);
    }
    case CollectiveOp::kReduceScatter:
      if (sum(sent) == 0) return;
      steps.reduce_swapped_binomial(0, sum(sent), true);
      return steps.scatter_linear(0, sent[call.rank], sent, true);
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
      return steps.scan(call.bytes, call.op == CollectiveOp::kExscan);
    case CollectiveOp::kGatherv:
      return steps.gather_linear(root, call.bytes, call.values, true);
    case CollectiveOp::kScatterv:
      return steps.scatter_linear(root, call.bytes, call.values, true);
    case CollectiveOp::kAllgatherv:
      steps.copy_unless_in_place(sent[call.rank]);
      for (std::uint32_t step = 1; step < call.size; ++step) {
        steps.send((call.rank + step) % call.size, sent[call.rank]);
      }
      for (std::uint32_t step = 1; step < call.size; ++step) {
        const std::uint32_t peer = (call.rank + call.size - step) % call.size;
        steps.recv(peer, sent[peer]);
      }
      return;
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      if (algorithm == Algorithm::kInPlace) return steps.alltoallv_in_place(received, false);
      return steps.alltoallv_linear(sent, received, false);
    default:
      return expand_neighbours(call, steps);
  }
}

void expand_chosen(const CollectiveCall& call, Algorithm algorithm, std::span<const std::uint32_t> members,
                   std::vector<CollectiveStep>& out) {
  if (is_mpich(call.library)) return collective::expand_mpich(call, algorithm, members, out);
  if (call.remote_size > 0) return collective::expand_inter_openmpi(call, algorithm, out);
  GroupSteps steps(out, call.rank, call.size, false, call.library, call.nonblocking, members,
                   collective::local_work_of(call));
  return call.nonblocking ? expand_nonblocking(call, algorithm, steps) : expand_blocking(call, algorithm, steps);
}

// The only rank of a communicator gives its data to itself.
void alone(const CollectiveCall& call, std::vector<CollectiveStep>& out) {
  // MPICH goes through its algorithms even so.
  if (is_mpich(call.library) && call.op != CollectiveOp::kCommCreate) {
    return collective::expand_inside(call, {}, out);
  }
  GroupSteps steps(out, 0, 1, false, call.library, call.nonblocking, {}, collective::local_work_of(call));
  switch (call.op) {
    case CollectiveOp::kReduce:
    case CollectiveOp::kAllreduce:
    case CollectiveOp::kScan:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
    case CollectiveOp::kAllgather:
    case CollectiveOp::kAlltoall:
    case CollectiveOp::kReduceScatterBlock:
      return steps.copy_unless_in_place(call.bytes);
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return steps.copy_unless_in_place(call.values.front());
    default:
      if (is_neighbour(call.op)) expand_neighbours(call, steps);
  }
}

}  // namespace

void collective::expand_inside(const CollectiveCall& call, std::span<const std::uint32_t> members,
                               std::vector<CollectiveStep>& out) {
  const bool has_nothing_to_do = call.size == 1 && !is_mpich(call.library);
  if (has_nothing_to_do || (call.bytes == 0 && returns_when_empty(call))) return;
  expand_chosen(call, choose(call).algorithm, members, out);
}

void collective::expand_alike(const CollectiveCall& call, Algorithm algorithm, GroupSteps& steps) {
  const auto root = static_cast<std::uint32_t>(call.root);
  switch (call.op) {
    case CollectiveOp::kReduce:
      return steps.reduce(algorithm, root, call.bytes);
    case CollectiveOp::kAllreduce:
      return steps.allreduce(algorithm, call.bytes, call.commutative);
    case CollectiveOp::kGather:
      return steps.gather(algorithm, root, call.bytes);
    case CollectiveOp::kScatter:
      return steps.scatter(algorithm, root, call.bytes);
    case CollectiveOp::kAllgather:
      return steps.allgather(algorithm, Blocks(call.bytes));
    case CollectiveOp::kGatherv:
      return steps.gather_linear(root, call.bytes, call.values, false);
    case CollectiveOp::kScatterv:
      return steps.scatter_linear(root, call.bytes, call.values, false);
    default:
      return expand_neighbours(call, steps);
  }
}

void collective::expand_neighbours(const CollectiveCall& call, GroupSteps& steps) {
  const Neighbours neighbours = split_neighbours(call.values);
  const auto real = [&](std::uint64_t peer) { return peer < call.size && peer != call.rank; };
  for (std::size_t i = 0; i < neighbours.destinations.size(); ++i) {
    if (neighbours.destinations[i] == call.rank) steps.copy(neighbours.sent[i]);
  }
  for (std::size_t i = 0; i < neighbours.destinations.size(); ++i) {
    if (!real(neighbours.destinations[i])) continue;
    steps.send(static_cast<std::uint32_t>(neighbours.destinations[i]), neighbours.sent[i]);
  }
  const Values sources = neighbours.sources;
  const bool by_direction = pairs_by_direction(call, neighbours);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!real(sources[i])) continue;
    // Both sides of a dimension of two: what the neighbour sent down comes from above.
    const bool first = by_direction && i + 1 < sources.size() && sources[i] == sources[i + 1];
    const bool second = by_direction && !first && i > 0 && sources[i] == sources[i - 1];
    const std::size_t other_side = first ? i + 1 : second ? i - 1 : i;
    steps.recv(static_cast<std::uint32_t>(sources[i]), neighbours.received[other_side]);
  }
}

Result<CollectiveSteps> expand_collective(const CollectiveCall& call, std::vector<CollectiveStep>& out) {
  if (auto checked = check(call); !checked) return checked.error();
  if (call.remote_size == 0 && call.size == 1) {
    alone(call, out);
    return CollectiveSteps{};
  }
  if (call.op == CollectiveOp::kCommCreate) return CollectiveSteps{!collective::expand_creation(call, out)};
  if (call.bytes == 0 && returns_when_empty(call)) return CollectiveSteps{};

  const Choice choice = collective::choose(call);
  if (collective::goes_by_nodes(choice.algorithm)) {
    collective::expand_by_nodes(call, out);
  } else {
    expand_chosen(call, choice.algorithm, {}, out);
  }
  return CollectiveSteps{choice.unsure};
}

const char* collective_algorithm_name(const CollectiveCall& call) {
  if (!check(call)) return "invalid";
  if (call.remote_size == 0 && call.size == 1) return "none";
  if (call.op == CollectiveOp::kCommCreate) return "agreement";
  if (call.bytes == 0 && returns_when_empty(call)) return "none";
  return collective::algorithm_name(collective::choose(call).algorithm);
}

}  // namespace lbf::engine
