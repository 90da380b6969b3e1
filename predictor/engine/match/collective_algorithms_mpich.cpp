// Algorithms that only MPICH has, see collective_algorithms.h.
#include <algorithm>
#include <array>
#include <bit>

#include "predictor/engine/match/collective_algorithms.h"
#include "predictor/engine/match/collective_arithmetic.h"

namespace lbf::engine::collective {
namespace {

constexpr std::uint32_t kAlltoallThrottle = 32;  // MPIR_CVAR_ALLTOALL_THROTTLE

// Halving of a vector among 2^k ranks: in step i the partner is the rank that differs in bit i, and each
// keeps the lower or the upper half of the blocks that it had.
struct Halving {
  struct Step {
    std::uint32_t kept_first, kept_last, given_first, given_last;  // blocks
  };
  Halving(std::uint32_t me, std::uint32_t power) {
    std::uint32_t first = 0;
    std::uint32_t last = power;
    for (std::uint32_t bit = 1; bit < power; bit *= 2) {
      const std::uint32_t middle = first + (last - first) / 2;
      const bool keeps_low = (me & bit) == 0;
      all[steps++] = keeps_low ? Step{first, middle, middle, last} : Step{middle, last, first, middle};
      (keeps_low ? last : first) = middle;
    }
  }
  std::array<Step, kMaxLog2Ranks> all{};
  std::uint32_t steps = 0;
};

// Blocks of a vector of `bytes` cut for `parts` ranks, whole elements. What does not divide: one element each
// for the first blocks, or all for the last one.
class Parts {
 public:
  Parts(Bytes bytes, std::uint32_t parts, bool rest_is_last)
      : element_(likely_element_bytes(bytes)),
        elements_(bytes / element_),
        parts_(parts),
        rest_is_last_(rest_is_last) {}
  Bytes range(std::uint32_t first, std::uint32_t last) const { return (before(last) - before(first)) * element_; }

 private:
  Bytes before(std::uint32_t part) const {
    if (part == parts_) return elements_;
    return elements_ / parts_ * part + (rest_is_last_ ? 0 : std::min<Bytes>(part, elements_ % parts_));
  }
  Bytes element_;
  Bytes elements_;
  std::uint32_t parts_;
  bool rest_is_last_;
};

}  // namespace

void GroupSteps::bcast_subtree_binomial(std::uint32_t root, Bytes bytes) {
  const Tree tree = in_order_binomial_tree(root);
  if (tree.parent >= 0) recv(static_cast<std::uint32_t>(tree.parent), bytes);
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) send(*child, bytes);
}

void GroupSteps::bcast_scatter_ring(std::uint32_t root, Bytes bytes) {
  scatter_for_bcast(root, bytes, 1);
  const Bytes each = (bytes + size_ - 1) / size_;
  const auto block = [&](std::uint32_t rank) {
    const Bytes index = (rank + size_ - root) % size_;
    return std::min((index + 1) * each, bytes) - std::min(index * each, bytes);
  };
  for (std::uint32_t step = 0; step + 1 < size_; ++step) {
    exchange(right(1), block(left(step)), left(1), block(left(step + 1)));
  }
}

void GroupSteps::reduce_subtree_binomial(std::uint32_t root, Bytes bytes, bool commutative) {
  const std::uint32_t tree_root = commutative ? root : 0;
  const Tree tree = in_order_binomial_tree(tree_root);
  copy_own_vector(rank_ == root, bytes);
  for (const std::uint32_t child : tree.children) {
    recv(child, bytes);
    combine_with(child, bytes, commutative);
  }
  if (tree.parent >= 0) send(static_cast<std::uint32_t>(tree.parent), bytes);
  if (tree_root == root) return;
  if (rank_ == tree_root) send(root, bytes);
  if (rank_ == root) recv(tree_root, bytes);
}

// The odd one of each of the first pairs gives all that it has to its neighbour.
void GroupSteps::reduce_scatter_then_gather(std::uint32_t root, Bytes bytes) {
  const PowerOfTwo group(size_, false);
  const Parts parts(bytes, group.power, nonblocking_);
  const bool root_excluded = group.excluded(root);
  bool takes_part = !group.excluded(rank_);
  std::uint32_t me = takes_part ? group.inside(rank_) : 0;
  copy_own_vector(rank_ == root, bytes);
  if (!takes_part) send(rank_ - 1, bytes);
  if (takes_part && group.paired(rank_)) {
    recv(rank_ + 1, bytes);
    combine(bytes);
  }
  const Halving halving(me, group.power);
  for (std::uint32_t i = 0; takes_part && i < halving.steps; ++i) {
    const Halving::Step& step = halving.all[i];
    const std::uint32_t peer = group.real(me ^ (1U << i));
    exchange(peer, parts.range(step.given_first, step.given_last), peer, parts.range(step.kept_first, step.kept_last));
    combine(parts.range(step.kept_first, step.kept_last));
  }

  const std::uint32_t inner_root = root_excluded ? 0 : group.inside(root);
  if (root_excluded && rank_ == root) {  // takes the place of inner rank 0 for the gathering
    recv(0, parts.range(0, 1));
    takes_part = true;
    me = 0;
  } else if (root_excluded && takes_part && me == 0) {
    return send(root, parts.range(0, 1));
  }
  if (!takes_part) return;
  for (std::uint32_t i = halving.steps; i-- > 0;) {
    const Halving::Step& step = halving.all[i];
    const std::uint32_t inner_peer = me ^ (1U << i);
    const std::uint32_t peer = root_excluded && inner_peer == 0 ? root : group.real(inner_peer);
    if (inner_peer >> i == inner_root >> i) return send(peer, parts.range(step.kept_first, step.kept_last));
    recv(peer, parts.range(step.given_first, step.given_last));
  }
}

// The even one of each of the first pairs gives all that it has to its neighbour, and gets the result back.
void GroupSteps::allreduce_scatter_then_allgather(Bytes bytes) {
  const PowerOfTwo group(size_, true);
  copy_unless_in_place(bytes);
  if (group.excluded(rank_)) {
    send(rank_ + 1, bytes);
    return recv(rank_ + 1, bytes);
  }
  if (group.paired(rank_)) {
    recv(rank_ - 1, bytes);
    combine(bytes);
  }
  const Parts parts(bytes, group.power, nonblocking_);
  const std::uint32_t me = group.inside(rank_);
  const Halving halving(me, group.power);
  for (std::uint32_t i = 0; i < halving.steps; ++i) {
    const Halving::Step& step = halving.all[i];
    const std::uint32_t peer = group.real(me ^ (1U << i));
    exchange(peer, parts.range(step.given_first, step.given_last), peer, parts.range(step.kept_first, step.kept_last));
    combine(parts.range(step.kept_first, step.kept_last));
  }
  for (std::uint32_t i = halving.steps; i-- > 0;) {
    const Halving::Step& step = halving.all[i];
    const std::uint32_t peer = group.real(me ^ (1U << i));
    exchange(peer, parts.range(step.kept_first, step.kept_last), peer, parts.range(step.given_first, step.given_last));
  }
  if (group.paired(rank_)) send(rank_ - 1, bytes);
}

void GroupSteps::place_around_end(const Tree& tree, std::uint32_t root, Bytes block_bytes) {
  for (const std::uint32_t child : tree.children) {
    const std::uint32_t inner = (child + size_ - root) % size_;
    const std::uint32_t subtree = std::min(inner, size_ - inner);
    if (child + subtree <= size_) continue;
    copy((size_ - child) * block_bytes);
    copy((child + subtree - size_) * block_bytes);
  }
}

void GroupSteps::allgatherv_pieces(const Blocks& blocks, Bytes piece_bytes) {
  copy_unless_in_place(blocks.of(rank_));
  // Where one direction stands: the block that is on its way, and what of it has gone.
  struct Cursor {
    std::uint32_t block;
    Bytes done = 0;
    Bytes left_over;
  };
  Cursor out{rank_, 0, blocks.range(0, size_) - blocks.of(right(1))};
  Cursor in{left(1), 0, blocks.range(0, size_) - blocks.of(rank_)};
  const auto next = [&](Cursor& cursor) {
    const Bytes rest = blocks.of(cursor.block) - cursor.done;
    const Bytes piece = cursor.left_over > 0 ? std::min(rest, piece_bytes) : 0;
    cursor.left_over -= piece;
    cursor.done += piece;
    if (cursor.done == blocks.of(cursor.block)) {
      cursor.done = 0;
      cursor.block = (cursor.block + size_ - 1) % size_;
    }
    return piece;
  };
  while (out.left_over > 0 || in.left_over > 0) {
    const Bytes sent = next(out);
    const Bytes received = next(in);
    if (sent > 0) send(right(1), sent);
    if (received > 0) recv(left(1), received);
  }
}

void GroupSteps::alltoallv_scattered(std::span<const std::uint64_t> sent, std::span<const std::uint64_t> received,
                                     bool empty_too) {
  copy(sent[rank_]);  // a message to itself, in the library
  for (std::uint32_t first = 0; first < size_; first += kAlltoallThrottle) {
    const std::uint32_t last = std::min(size_ - first, kAlltoallThrottle) + first;
    for (std::uint32_t step = std::max(first, 1U); step < last; ++step) {
      if (sent[left(step)] > 0 || empty_too) send(left(step), sent[left(step)]);
    }
    for (std::uint32_t step = std::max(first, 1U); step < last; ++step) {
      if (received[right(step)] > 0 || empty_too) recv(right(step), received[right(step)]);
    }
  }
}

// The blocking ones exchange with themselves, too.
void GroupSteps::alltoallv_sendrecv_replace(std::span<const std::uint64_t> exchanged, bool copies_back) {
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) {
      if (!nonblocking_ && library_ == MpiLibrary::kMpich4) {
        copy(exchanged[peer]);  // kept aside
        copy(exchanged[peer]);  // the message
      }
      continue;
    }
    if (!copies_back) copy(exchanged[peer]);
    exchange(peer, exchanged[peer], peer, exchanged[peer]);
    if (copies_back) copy(exchanged[peer]);
  }
}

void GroupSteps::reduce_scatter_pairwise(const Blocks& blocks) {
  copy_unless_in_place(blocks.of(rank_));
  for (std::uint32_t step = 1; step < size_; ++step) {
    exchange(right(step), blocks.of(right(step)), left(step), blocks.of(rank_));
    combine(blocks.of(rank_));
  }
  if (local_work_.in_place && rank_ > 0) copy(blocks.of(rank_));  // to the start of the vector
}

// REQUIRES: a power of two of ranks.
void GroupSteps::reduce_scatter_noncommutative(Bytes block_bytes) {
  Bytes half = block_bytes * size_;
  copy(half);
  for (std::uint32_t bit = 1; bit < size_; bit *= 2) {
    half /= 2;
    exchange(rank_ ^ bit, half, rank_ ^ bit, half);
    combine(half);
  }
  copy(block_bytes);
}

// Each rank has two vectors: of all ranks that it heard of, and the result, of those below it.
void GroupSteps::scan_recursive_doubling(Bytes bytes, bool exclusive, bool commutative) {
  if (!exclusive) copy_unless_in_place(bytes);
  copy(bytes);
  bool has_result = !exclusive;
  for (std::uint32_t bit = 1; bit < size_; bit *= 2) {
    const std::uint32_t peer = rank_ ^ bit;
    if (peer >= size_) continue;
    exchange(peer, bytes, peer, bytes);
    combine_with(peer, bytes, commutative);
    if (peer > rank_) continue;
    if (has_result) {
      combine(bytes);
    } else {
      copy(bytes);
    }
    has_result = true;
  }
}

}  // namespace lbf::engine::collective
