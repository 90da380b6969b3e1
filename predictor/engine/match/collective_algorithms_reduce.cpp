// Reductions: see collective_algorithms.h. Names of the phases as in the literature that
// docs/collectives.md lists.
#include <algorithm>
#include <array>
#include <bit>

#include "predictor/engine/match/collective_algorithms.h"
#include "predictor/engine/match/collective_arithmetic.h"

namespace lbf::engine::collective {
namespace {}  // namespace

// ---- reduce

void GroupSteps::reduce(std::uint32_t root, Bytes bytes, bool commutative) {
  if (size_ < 2 && !is_mpich()) return;
  const Choice choice =
      choose_intra(library_, CollectiveOp::kReduce, size_, bytes, likely_element_bytes(bytes), commutative);
  if (choice.algorithm == Algorithm::kSubtreeBinomial) return reduce_subtree_binomial(root, bytes, commutative);
  reduce(choice.algorithm, root, bytes);
}

void GroupSteps::reduce(Algorithm algorithm, std::uint32_t root, Bytes bytes) {
  switch (algorithm) {
    case Algorithm::kChain:
    case Algorithm::kPipeline:
      return up(chain_tree(root, 1), bytes);
    case Algorithm::kTwoChains:
      return up(chain_tree(root, 2), bytes);
    case Algorithm::kBinary:
      return up(binary_tree(root), bytes);
    case Algorithm::kBinomial:
      return up(in_order_binomial_tree(root), bytes);
    case Algorithm::kInOrderBinary: {
      const std::uint32_t tree_root = size_ - 1;
      const Tree tree = in_order_binary_tree();
      const bool in_place = local_work_.in_place && rank_ == root;
      if (in_place && root != tree_root) copy(bytes);
      // Its operation does not commute: the rank's own vector comes first.
      if (!tree.children.empty() && !(in_place && root == tree_root)) copy(bytes);
      up(tree, bytes);
      if (tree_root == root) return;
      if (rank_ == root) recv(tree_root, bytes);
      if (rank_ == tree_root) send(root, bytes);
      return;
    }
    case Algorithm::kRabenseifner:
      return reduce_rabenseifner(root, bytes);
    case Algorithm::kReduceScatterGather:
      return reduce_scatter_then_gather(root, bytes);
    default:  // linear: the root combines from the last rank to the first
      if (rank_ != root) return send(root, bytes);
      for (std::uint32_t peer = size_; peer-- > 0;) {
        if (peer != root) recv(peer, bytes);
        if (peer + 1 < size_) combine(bytes);
        if (peer + 1 == size_ && peer == root) copy(bytes);
      }
      if (local_work_.in_place) copy(bytes);
  }
}

void GroupSteps::reduce_swapped_binomial(std::uint32_t root, Bytes bytes, bool commutative) {
  const std::uint32_t tree_root = commutative ? root : 0;
  const std::uint64_t me = swap_with_zero(rank_, tree_root);
  const auto real = [&](std::uint64_t r) { return swap_with_zero(static_cast<std::uint32_t>(r), tree_root); };
  if (local_work_.in_place && rank_ == root) copy(bytes);
  for (std::uint64_t bit = 1; bit < size_; bit *= 2) {
    if ((me & bit) != 0) {
      send(real(me - bit), bytes);
      break;
    }
    if (me + bit < size_) {
      recv(real(me + bit), bytes);
      combine(bytes);
    }
  }
  if (tree_root == root) return;
  if (rank_ == tree_root) send(root, bytes);
  if (rank_ == root) recv(tree_root, bytes);
}

void GroupSteps::reduce_swapped_chain(std::uint32_t root, Bytes bytes, Bytes fragment_bytes) {
  const std::uint32_t me = swap_with_zero(rank_, root);
  const Bytes element = likely_element_bytes(bytes);
  fragment_bytes = length_of_pieces(bytes, fragment_bytes);
  const Bytes fragments = (bytes + fragment_bytes - 1) / fragment_bytes;
  const Bytes each = bytes / element / fragments * element;
  for (Bytes i = 0; i < fragments; ++i) {
    const Bytes part = i + 1 < fragments ? each : bytes - each * i;
    if (me + 1 < size_) {
      recv(swap_with_zero(me + 1, root), part);
      combine(part);
    }
    if (me > 0) send(swap_with_zero(me - 1, root), part);
  }
}

// Rabenseifner: halve the vector and double the distance until each of 2^k ranks has its part of the result.
// The first 2*extra ranks first combine in pairs, half a vector each; the odd one then has no part in the
// rest.
struct GroupSteps::Halves {
  explicit Halves(std::uint32_t size) : group(size, false) {}
  PowerOfTwo group;
  bool takes_part = false;
  std::uint32_t me = 0;  // inner rank
  std::uint32_t steps = 0;
  // Elements that this rank kept and gave away in each step.
  std::array<Bytes, kMaxLog2Ranks> kept{};
  std::array<Bytes, kMaxLog2Ranks> given{};
};

GroupSteps::Halves GroupSteps::reduce_scatter_by_halves(Bytes elements, Bytes element_bytes) {
  Halves halves(size_);
  const PowerOfTwo& group = halves.group;
  halves.steps = static_cast<std::uint32_t>(std::countr_zero(group.power));
  if (group.paired(rank_)) {
    const Bytes low = elements / 2 * element_bytes;
    const Bytes high = (elements - elements / 2) * element_bytes;
    if (rank_ % 2 == 1) {
      exchange(rank_ - 1, low, rank_ - 1, high);
      combine(high);
      send(rank_ - 1, high);
      return halves;
    }
    exchange(rank_ + 1, high, rank_ + 1, low);
    combine(low);
    recv(rank_ + 1, high);
  }
  halves.takes_part = true;
  halves.me = group.inside(rank_);
  Bytes window = elements;
  for (std::uint32_t step = 0; step < halves.steps; ++step) {
    const std::uint32_t peer = group.real(halves.me ^ (1U << step));
    const Bytes low = window / 2;
    halves.kept[step] = rank_ < peer ? low : window - low;
    halves.given[step] = window - halves.kept[step];
    exchange(peer, halves.given[step] * element_bytes, peer, halves.kept[step] * element_bytes);
    combine(halves.kept[step] * element_bytes);
    window = halves.kept[step];
  }
  return halves;
}

void GroupSteps::reduce_rabenseifner(std::uint32_t root, Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  const Bytes elements = bytes / element;
  copy_own_vector(rank_ == root, bytes);
  Halves halves = reduce_scatter_by_halves(elements, element);
  const PowerOfTwo& group = halves.group;
  if (halves.steps == 0) return;
  const bool root_excluded = group.excluded(root);
  const std::uint32_t inner_root = root_excluded ? 0 : group.inside(root);
  if (root_excluded && rank_ == root) {  // the root takes the place of inner rank 0 for the gathering
    Bytes window = elements;
    for (std::uint32_t step = 0; step < halves.steps; ++step) {
      halves.kept[step] = window / 2;
      halves.given[step] = window - window / 2;
      window /= 2;
    }
    recv(0, halves.kept[halves.steps - 1] * element);
    halves.takes_part = true;
    halves.me = 0;
  } else if (root_excluded && halves.takes_part && halves.me == 0) {
    return send(root, halves.kept[halves.steps - 1] * element);
  }
  if (!halves.takes_part) return;
  for (std::uint32_t step = halves.steps; step-- > 0;) {
    const std::uint32_t inner_peer = halves.me ^ (1U << step);
    const std::uint32_t peer = root_excluded && inner_peer == 0 ? root : group.real(inner_peer);
    if (inner_peer >> step == inner_root >> step) return send(peer, halves.kept[step] * element);
    recv(peer, halves.given[step] * element);
  }
}

// ---- allreduce

void GroupSteps::allreduce(Bytes bytes, bool commutative) {
  if (size_ < 2) return;
  allreduce(choose_intra(library_, CollectiveOp::kAllreduce, size_, bytes, likely_element_bytes(bytes), commutative)
                .algorithm,
            bytes, commutative);
}

void GroupSteps::allreduce(Algorithm algorithm, Bytes bytes, bool commutative) {
  switch (algorithm) {
    case Algorithm::kReduceThenBcast:
      reduce(0, bytes, commutative);
      return bcast(0, bytes, likely_element_bytes(bytes));
    case Algorithm::kRecursiveDoubling:
      return allreduce_recursive_doubling(bytes, commutative);
    case Algorithm::kRing:
      return allreduce_ring(bytes);
    case Algorithm::kRabenseifner:
      return allreduce_rabenseifner(bytes);
    case Algorithm::kReduceScatterAllgather:
      return allreduce_scatter_then_allgather(bytes);
    case Algorithm::kBinomial:                              // libnbc
      if (local_work_.in_place && rank_ != 0) copy(bytes);  // the root does it in the reduction
      reduce_swapped_binomial(0, bytes, true);
      return bcast_swapped_binomial(0, bytes);
    default:
      reduce(Algorithm::kLinear, 0, bytes);
      return bcast_linear(0, bytes);
  }
}

void GroupSteps::allreduce_recursive_doubling(Bytes bytes, bool commutative) {
  const PowerOfTwo group(size_, true);
  if (!(is_mpich() && local_work_.in_place)) copy(bytes);
  if (group.excluded(rank_)) return exchange(rank_ + 1, bytes, rank_ + 1, bytes);
  if (group.paired(rank_)) {
    recv(rank_ - 1, bytes);
    combine(bytes);
  }
  const std::uint32_t me = group.inside(rank_);
  // Open MPI has two vectors by turns; the result may end up in the wrong one.
  bool in_result = false;
  for (std::uint32_t bit = 1; bit < group.power; bit *= 2) {
    const std::uint32_t peer = group.real(me ^ bit);
    exchange(peer, bytes, peer, bytes);
    combine_with(peer, bytes, commutative);
    if (rank_ < peer) in_result = !in_result;
  }
  if (group.paired(rank_)) send(rank_ - 1, bytes);
  if (!in_result && !is_mpich()) copy(bytes);
}

// Reduce-scatter around the ring, then allgather around the ring.
void GroupSteps::allreduce_ring(Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  const auto block = [&](std::uint32_t index) { return part_bytes(bytes / element, size_, index, element); };
  copy_unless_in_place(bytes);
  send(right(1), block(rank_));
  for (std::uint32_t step = 1; step + 1 < size_; ++step) {
    recv(left(1), block(left(step)));
    combine(block(left(step)));
    send(right(1), block(left(step)));
  }
  recv(left(1), block(right(1)));
  combine(block(right(1)));
  for (std::uint32_t step = 0; step + 1 < size_; ++step) {
    exchange(right(1), block(left(step + size_ - 1)), left(1), block(left(step)));
  }
}

void GroupSteps::allreduce_swapped_ring(Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  const auto block = [&](std::uint32_t index) { return part_bytes(bytes / element, size_, index, element); };
  for (std::uint32_t step = 0; step < 2 * size_ - 2; ++step) {
    exchange(right(1), block(left(step + size_ - 1)), left(1), block(left(step)));
    if (step + 1 < size_) combine(block(left(step)));
  }
}

void GroupSteps::allreduce_rabenseifner(Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  copy_unless_in_place(bytes);
  const Halves halves = reduce_scatter_by_halves(bytes / element, element);
  if (!halves.takes_part) return recv(rank_ - 1, bytes);
  for (std::uint32_t step = halves.steps; step-- > 0;) {
    const std::uint32_t peer = halves.group.real(halves.me ^ (1U << step));
    exchange(peer, halves.kept[step] * element, peer, halves.given[step] * element);
  }
  if (halves.group.paired(rank_)) send(rank_ + 1, bytes);
}

// ---- reduce_scatter

void GroupSteps::reduce_scatter_recursive_halving(const Blocks& blocks) {
  const PowerOfTwo group(size_, true);
  const Bytes total = blocks.range(0, size_);
  copy(total);
  if (group.excluded(rank_)) {
    send(rank_ + 1, total);
    if (blocks.of(rank_) > 0) recv(rank_ + 1, blocks.of(rank_));
    return;
  }
  receive_from_excluded(group.paired(rank_), total);
  const std::uint32_t me = group.inside(rank_);
  const auto inner_range = [&](std::uint32_t first, std::uint32_t last) {
    return blocks.range(group.first_real(first), group.first_real(last));
  };
  std::uint32_t first = 0;
  for (std::uint32_t half = group.power / 2; half > 0; half /= 2) {
    const std::uint32_t peer = group.real(me ^ half);
    const Bytes low = inner_range(first, first + half);
    const Bytes high = inner_range(first + half, first + 2 * half);
    const bool keeps_low = (me & half) == 0;
    const Bytes sent = keeps_low ? high : low;
    const Bytes received = keeps_low ? low : high;
    if (sent > 0) send(peer, sent);
    if (received > 0) recv(peer, received);
    combine(received);
    if (!keeps_low) first += half;
  }
  copy(blocks.of(rank_));
  if (group.paired(rank_) && blocks.of(rank_ - 1) > 0) send(rank_ - 1, blocks.of(rank_ - 1));
}

void GroupSteps::reduce_scatter_ring(const Blocks& blocks) {
  copy(blocks.range(0, size_));
  send(right(1), blocks.of(left(1)));
  for (std::uint32_t step = 2; step < size_; ++step) {
    recv(left(1), blocks.of(left(step)));
    combine(blocks.of(left(step)));
    send(right(1), blocks.of(left(step)));
  }
  recv(left(1), blocks.of(rank_));
  combine(blocks.of(rank_));
  copy(blocks.of(rank_));
}

// Halving with doubling distance leaves the blocks in bit-reversed order; `blocks_alike`
// (reduce_scatter_block) and a power of two: sorted beforehand in memory, else each block travels to its rank
// at the end.
void GroupSteps::reduce_scatter_butterfly(const Blocks& blocks, bool blocks_alike) {
  const PowerOfTwo group(size_, true);
  const auto bits = static_cast<std::uint32_t>(std::countr_zero(group.power));
  const Bytes total = blocks.range(0, size_);
  copy(total);
  if (group.excluded(rank_)) {
    send(rank_ + 1, total);
    recv(group.real(mirror(rank_ / 2, bits)), blocks.of(rank_));
    return;
  }
  receive_from_excluded(group.paired(rank_), total);
  const std::uint32_t me = group.inside(rank_);
  std::uint32_t first = 0;
  std::uint32_t count = group.power;
  for (std::uint32_t bit = 1; bit < group.power; bit *= 2) {
    const std::uint32_t peer = group.real(me ^ bit);
    count /= 2;
    const bool keeps_low = (me & bit) == 0;
    const std::uint32_t kept = keeps_low ? first : first + count;
    const std::uint32_t given = keeps_low ? first + count : first;
    const Bytes received = blocks.range(group.first_real(kept), group.first_real(kept + count));
    exchange(peer, blocks.range(group.first_real(given), group.first_real(given + count)), peer, received);
    combine(received);
    first = kept;
  }
  if (blocks_alike && group.extra == 0) return copy(blocks.of(rank_));
  const std::uint32_t owner = mirror(me, bits);  // inner rank that my block belongs to; it has mine
  std::uint32_t block = group.first_real(first);
  if (owner < group.extra) {
    send(group.real(owner) - 1, blocks.of(block));
    ++block;
  }
  if (owner != me) {
    const std::uint32_t peer = group.real(owner);
    exchange(peer, blocks.of(block), peer, blocks.of(rank_));
  } else {
    copy(blocks.of(rank_));
  }
}

// Every round doubles the ranks whose vectors are combined; what their own group needs no more stays at home.
// Ranks without a partner are served by those of their half who had one.
void GroupSteps::reduce_scatter_recursive_doubling(const Blocks& blocks) {
  copy(blocks.range(0, size_));
  for (std::uint32_t width = 1; width < size_; width *= 2) {
    const std::uint32_t remote = rank_ ^ width;
    const std::uint32_t my_first = round_down(rank_, width);
    const std::uint32_t remote_first = round_down(remote, width);
    // All blocks but those of the group that starts at `first`.
    const auto outside = [&](std::uint32_t first) {
      return blocks.range(0, std::min(first, size_)) + blocks.range(std::min(first + width, size_), size_);
    };
    const Bytes incoming = outside(remote_first);
    bool has_received = remote < size_;
    if (has_received) exchange(remote, outside(my_first), remote, incoming);
    // MPICH takes this algorithm for operations that do not commute.
    if (remote_first + width <= size_ || remote_first >= size_) {
      if (has_received) combine_with(remote, incoming, false);
      continue;
    }
    const std::uint32_t with_partner = size_ - remote_first;
    for (std::uint32_t bit = width / 2; bit > 0; bit /= 2) {
      const std::uint32_t other = rank_ ^ bit;
      const std::uint32_t limit = round_down(rank_, 2 * bit) + with_partner;
      if (other > rank_ && rank_ < limit && other >= limit) {
        send(other, incoming);
      } else if (other < rank_ && other < limit && rank_ >= limit) {
        recv(other, incoming);
        has_received = true;
      }
    }
    if (has_received) combine_with(remote, incoming, false);
  }
  copy(blocks.of(rank_));
}

void GroupSteps::receive_from_excluded(bool is_paired, Bytes total) {
  if (!is_paired) return;
  recv(rank_ - 1, total);
  combine(total);
}

// ---- scan, exscan

void GroupSteps::scan(Bytes bytes, bool exclusive) {
  const bool is_last = rank_ + 1 == size_;
  if (exclusive) {
    if (rank_ > 0 && (!is_last || nonblocking_)) copy(bytes);  // libnbc's last rank has no use for it
  } else {
    copy_unless_in_place(bytes);
  }
  if (rank_ > 0) {
    recv(rank_ - 1, bytes);
    if (!exclusive || !is_last) combine(bytes);
  }
  if (!is_last) send(rank_ + 1, bytes);
}

}  // namespace lbf::engine::collective
