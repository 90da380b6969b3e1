// One rank's part of each collective algorithm of Open MPI and MPICH, as sends and receives.
//
// Place in the event's way: match (half of collective.h; which algorithm is chosen: collective_rules.h).
// The algorithms are those of coll/base, coll/basic and coll/libnbc (collective_algorithms_*.cpp by family)
// and those that only MPICH has (collective_algorithms_mpich.cpp); docs/collectives.md names each one's
// source in the literature. Every function costs O(steps of this rank), v-collectives O(ranks) for their
// prefix sums.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predictor/engine/match/collective.h"
#include "predictor/engine/match/collective_rules.h"

namespace lbf::engine::collective {

// Bytes of the block of each rank, blocks lying one behind the other in rank order.
class Blocks {
 public:
  explicit Blocks(Bytes each) : each_(each) {}
  explicit Blocks(std::span<const std::uint64_t> bytes_of_rank);
  Bytes of(std::uint32_t rank) const { return range(rank, rank + 1); }
  bool are_alike() const { return offsets_.empty(); }
  // Blocks first .. last-1.
  Bytes range(std::uint32_t first, std::uint32_t last) const {
    return offsets_.empty() ? each_ * (last - first) : offsets_[last] - offsets_[first];
  }

 private:
  Bytes each_ = 0;
  std::vector<Bytes> offsets_;  // empty: all blocks are alike
};

// What of a call's copies and reductions (CollectiveStep::kCopy, kReduce) is to be said.
struct LocalWork {
  bool counts = false;    // they are wanted at all
  bool in_place = false;  // the call has MPI_IN_PLACE
};
inline LocalWork local_work_of(const CollectiveCall& call) {
  return {call.local_work, call.in_place};
}

// Appends the steps of `rank` inside one group of `size` ranks. All members of the group must call the same
// functions with the same arguments, except where a parameter says "mine".
class GroupSteps {
 public:
  // `members`: the group's ranks in the communicator; empty: the group is the communicator.
  // `local_group`: CollectiveStep::local_group of every step. `library` chooses where a call consists of
  // others. `nonblocking`: MPICH cuts some vectors otherwise then.
  GroupSteps(std::vector<CollectiveStep>& out, std::uint32_t rank, std::uint32_t size, bool local_group,
             MpiLibrary library, bool nonblocking = false, std::span<const std::uint32_t> members = {},
             LocalWork local_work = {})
      : out_(out),
        rank_(rank),
        size_(size),
        local_group_(local_group),
        library_(library),
        nonblocking_(nonblocking),
        members_(members),
        local_work_(local_work) {}

  void send(std::uint32_t peer, Bytes bytes) {
    out_.push_back({CollectiveStep::Kind::kSend, real_peer(peer), bytes, local_group_});
  }
  void recv(std::uint32_t peer, Bytes bytes) {
    out_.push_back({CollectiveStep::Kind::kRecv, real_peer(peer), bytes, local_group_});
  }
  void exchange(std::uint32_t to, Bytes sent, std::uint32_t from, Bytes received) {
    send(to, sent);
    recv(from, received);
  }
  void copy(Bytes bytes) { local(CollectiveStep::Kind::kCopy, bytes); }
  void combine(Bytes bytes) { local(CollectiveStep::Kind::kReduce, bytes); }
  // What MPI_IN_PLACE saves.
  void copy_unless_in_place(Bytes bytes) {
    if (!local_work_.in_place) copy(bytes);
  }

  // --- whole blocking collectives with the algorithm that the library chooses for them (REQUIRES: bytes > 0;
  // a group of one rank has no messages; MPICH's copies even there)
  void bcast(std::uint32_t root, Bytes bytes, Bytes element_bytes);
  void reduce(std::uint32_t root, Bytes bytes, bool commutative);
  void allreduce(Bytes bytes, bool commutative);
  void gather(std::uint32_t root, Bytes block_bytes);
  void scatter(std::uint32_t root, Bytes block_bytes);

  // --- single algorithms
  void barrier(Algorithm algorithm);
  void barrier_dissemination();
  void bcast(Algorithm algorithm, std::uint32_t root, Bytes bytes, Bytes element_bytes);
  void bcast_linear(std::uint32_t root, Bytes bytes);
  void bcast_swapped_binomial(std::uint32_t root, Bytes bytes);
  void reduce(Algorithm algorithm, std::uint32_t root, Bytes bytes);
  void reduce_swapped_binomial(std::uint32_t root, Bytes bytes, bool commutative);
  void reduce_swapped_chain(std::uint32_t root, Bytes bytes, Bytes fragment_bytes);
  void reduce_rabenseifner(std::uint32_t root, Bytes bytes);
  void allreduce(Algorithm algorithm, Bytes bytes, bool commutative);
  void allreduce_rabenseifner(Bytes bytes);
  void allreduce_swapped_ring(Bytes bytes);
  void gather(Algorithm algorithm, std::uint32_t root, Bytes block_bytes);
  void scatter(Algorithm algorithm, std::uint32_t root, Bytes block_bytes);
  void scatter_alike(std::uint32_t root, Bytes block_bytes);  // linear
  // `mine`: bytes of my block. `of_rank`: bytes of each rank's block, read at the root only. Without
  // `empty_too` no message is sent for an empty block.
  void gather_linear(std::uint32_t root, Bytes mine, std::span<const std::uint64_t> of_rank, bool empty_too);
  void scatter_linear(std::uint32_t root, Bytes mine, std::span<const std::uint64_t> of_rank, bool empty_too);
  void allgather(Algorithm algorithm, const Blocks& blocks);
  void alltoall(Algorithm algorithm, Bytes block_bytes);
  // `sent`, `received`: mine, to and from each rank.
  void alltoallv_pairwise(std::span<const std::uint64_t> sent, std::span<const std::uint64_t> received, bool empty_too);
  void alltoallv_linear(std::span<const std::uint64_t> sent, std::span<const std::uint64_t> received, bool empty_too);
  void alltoallv_in_place(std::span<const std::uint64_t> exchanged, bool empty_too);
  void reduce_scatter_recursive_halving(const Blocks& blocks);
  void reduce_scatter_ring(const Blocks& blocks);
  void reduce_scatter_butterfly(const Blocks& blocks, bool blocks_alike);
  void reduce_scatter_recursive_doubling(const Blocks& blocks);
  void scan(Bytes bytes, bool exclusive);

  // --- MPICH's
  void reduce_subtree_binomial(std::uint32_t root, Bytes bytes, bool commutative);
  // The vector goes round in pieces of at most `piece_bytes`; without any for empty blocks.
  void allgatherv_pieces(const Blocks& blocks, Bytes piece_bytes);
  // At most so many messages each way at once as MPICH's throttle says.
  void alltoallv_scattered(std::span<const std::uint64_t> sent, std::span<const std::uint64_t> received,
                           bool empty_too);
  // `copies_back`: what comes is brought into its place afterwards; else what goes is kept aside before.
  void alltoallv_sendrecv_replace(std::span<const std::uint64_t> exchanged, bool copies_back);
  void reduce_scatter_pairwise(const Blocks& blocks);
  void reduce_scatter_noncommutative(Bytes block_bytes);
  void scan_recursive_doubling(Bytes bytes, bool exclusive, bool commutative);

 private:
  void local(CollectiveStep::Kind kind, Bytes bytes) {
    if (local_work_.counts && bytes > 0) out_.push_back({kind, 0, bytes, local_group_});
  }
  bool is_mpich() const { return engine::is_mpich(library_); }
  // MPICH's reductions start with a copy, but where the result's place has the rank's own data.
  void copy_own_vector(bool is_root, Bytes bytes) {
    if (!(is_root && local_work_.in_place)) copy(bytes);
  }
  // What `peer` sent. MPICH has the result in the second operand, which is that of the higher rank where the
  // operation does not commute, and copies it back.
  void combine_with(std::uint32_t peer, Bytes bytes, bool commutative) {
    combine(bytes);
    if (is_mpich() && !commutative && peer > rank_) copy(bytes);
  }
  // Neighbours of this rank in a tree over the group.
  struct Tree {
    std::int64_t parent = -1;  // -1: this rank is the root
    std::vector<std::uint32_t> children;
  };
  // The ranks after the root in CHAINS rows, each as long as the others or one shorter, whose heads are its children.
  Tree chain_tree(std::uint32_t root, std::uint32_t chains) const;
  Tree binary_tree(std::uint32_t root) const;
  Tree in_order_binary_tree() const;  // its root is the last rank
  Tree binomial_tree(std::uint32_t root) const;
  Tree in_order_binomial_tree(std::uint32_t root) const;
  Tree knomial_tree(std::uint32_t root, std::uint32_t radix) const;
  void down(const Tree& tree, Bytes bytes);
  // Every child's vector is combined with the rank's own.
  void up(const Tree& tree, Bytes bytes);
  // At the root of MPICH's gather: the blocks of a child whose ranks go around the end.
  void place_around_end(const Tree& tree, std::uint32_t root, Bytes block_bytes);

  void bcast_split_binary(std::uint32_t root, Bytes bytes, Bytes element_bytes);
  void bcast_scatter_allgather(std::uint32_t root, Bytes bytes, Bytes element_bytes);
  void scatter_for_bcast(std::uint32_t root, std::uint64_t elements, Bytes element_bytes);
  void bcast_subtree_binomial(std::uint32_t root, Bytes bytes);
  void bcast_scatter_ring(std::uint32_t root, Bytes bytes);
  void reduce_scatter_then_gather(std::uint32_t root, Bytes bytes);
  void allreduce_scatter_then_allgather(Bytes bytes);
  void allreduce_recursive_doubling(Bytes bytes, bool commutative);
  void allreduce_ring(Bytes bytes);

  // Of reduce_scatter: the vector of the rank below, which takes no part.
  void receive_from_excluded(bool is_paired, Bytes total);

  // Rabenseifner's first half (see the .cpp).
  struct Halves;
  Halves reduce_scatter_by_halves(Bytes elements, Bytes element_bytes);

  std::uint32_t real_peer(std::uint32_t peer) const { return members_.empty() ? peer : members_[peer]; }
  std::uint32_t rank_from(std::uint32_t root) const { return (rank_ + size_ - root) % size_; }
  std::uint32_t shifted(std::uint64_t virtual_rank, std::uint32_t root) const {
    return static_cast<std::uint32_t>((virtual_rank + root) % size_);
  }
  std::uint32_t right(std::uint32_t distance) const { return (rank_ + distance) % size_; }
  std::uint32_t left(std::uint32_t distance) const { return (rank_ + size_ - distance % size_) % size_; }

  std::vector<CollectiveStep>& out_;
  std::uint32_t rank_;
  std::uint32_t size_;
  bool local_group_;
  MpiLibrary library_;
  bool nonblocking_;
  std::span<const std::uint32_t> members_;
  LocalWork local_work_;
};

}  // namespace lbf::engine::collective
