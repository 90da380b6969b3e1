// The algorithms, see collective_algorithms.h. Names of the phases as in the literature that
// docs/collectives.md lists.
#include "predictor/match/collective_algorithms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "predictor/match/collective_arithmetic.h"

namespace lbf::collective {
namespace {

constexpr std::uint32_t kKnomialRadix = 4;
constexpr std::uint32_t kMaxLog2Ranks = 32;

// libnbc's trees are built for root 0; another root changes places with rank 0 (the mapping is its own
// inverse).
std::uint32_t swap_with_zero(std::uint32_t rank, std::uint32_t root) {
  if (rank == 0) return root;
  return rank == root ? 0 : rank;
}

// How many numbers in [1, limit) have this bit set.
std::uint64_t count_with_bit(std::uint64_t limit, std::uint64_t bit) {
  const std::uint64_t rest = limit % (2 * bit);
  return limit / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
}

}  // namespace

Blocks::Blocks(std::span<const std::uint64_t> bytes_of_rank) {
  offsets_.resize(bytes_of_rank.size() + 1, 0);
  for (std::size_t rank = 0; rank < bytes_of_rank.size(); ++rank) {
    offsets_[rank + 1] = offsets_[rank] + bytes_of_rank[rank];
  }
}

// ---- trees
// -----------------------------------------------------------------------------------------------------

GroupSteps::Tree GroupSteps::pipeline_tree(std::uint32_t root) const {
  Tree tree;
  const std::uint32_t me = rank_from(root);
  if (me > 0) tree.parent = shifted(me - 1, root);
  if (me + 1 < size_) tree.children.push_back(shifted(me + 1, root));
  return tree;
}

// Level l holds the ranks 2^l - 1 .. 2^(l+1) - 2, counted from the root; the children of r lie 2^l and
// 2^(l+1) further.
GroupSteps::Tree GroupSteps::binary_tree(std::uint32_t root) const {
  Tree tree;
  const std::uint64_t me = rank_from(root);
  const std::uint64_t width = std::bit_floor(me + 1);
  for (const std::uint64_t child : {me + width, me + 2 * width}) {
    if (child < size_) tree.children.push_back(shifted(child, root));
  }
  if (me > 0) {
    const std::uint64_t parent_width = width / 2;
    const std::uint64_t parent_level_end = width - 1;
    std::uint64_t parent = me - parent_width;
    if (parent >= parent_level_end) parent -= parent_width;
    tree.parent = shifted(parent, root);
  }
  return tree;
}

GroupSteps::Tree GroupSteps::in_order_binary_tree() const {
  Tree tree;
  // A subtree holds `count` consecutive ranks from `first`; its root is the last one. Its left child is the
  // rank before the root, with the upper ranks below it; the right child has the lower half.
  std::uint32_t first = 0;
  std::uint32_t count = size_;
  while (true) {
    const std::uint32_t root = first + count - 1;
    const std::uint32_t right_count = count / 2;
    const std::uint32_t left_count = count - 1 - right_count;
    if (rank_ == root) {
      if (left_count > 0 || count == 2) tree.children.push_back(root - 1);
      if (left_count > 0) tree.children.push_back(first + right_count - 1);
      return tree;
    }
    tree.parent = root;
    if (count > 2 && rank_ < first + right_count) {
      count = right_count;
    } else if (count > 2) {
      first += right_count;
      count = left_count;
    } else {
      count = 1;  // two ranks: the first one is the left child
    }
  }
}

GroupSteps::Tree GroupSteps::binomial_tree(std::uint32_t root) const {
  Tree tree;
  const std::uint64_t me = rank_from(root);
  const std::uint64_t above = std::bit_floor(me) * 2;  // me = 0: 0
  if (me > 0) tree.parent = shifted(me - above / 2, root);
  for (std::uint64_t bit = me > 0 ? above : 1; me + bit < size_; bit *= 2) {
    tree.children.push_back(shifted(me + bit, root));
  }
  return tree;
}

GroupSteps::Tree GroupSteps::in_order_binomial_tree(std::uint32_t root) const {
  Tree tree;
  const std::uint64_t me = rank_from(root);
  for (std::uint64_t bit = 1; bit < size_; bit *= 2) {
    if ((me & bit) != 0) {
      tree.parent = shifted(me - bit, root);
      break;
    }
    if (me + bit < size_) tree.children.push_back(shifted(me + bit, root));
  }
  return tree;
}

GroupSteps::Tree GroupSteps::knomial_tree(std::uint32_t root, std::uint32_t radix) const {
  Tree tree;
  const std::uint64_t me = rank_from(root);
  std::uint64_t span = 1;
  while (span < size_) {
    if (me % (radix * span) != 0) {
      tree.parent = shifted(me / (radix * span) * (radix * span), root);
      break;
    }
    span *= radix;
  }
  for (span /= radix; span > 0; span /= radix) {
    for (std::uint32_t child = 1; child < radix; ++child) {
      if (me + span * child < size_) tree.children.push_back(shifted(me + span * child, root));
    }
  }
  return tree;
}

void GroupSteps::down(const Tree& tree, Bytes bytes) {
  if (tree.parent >= 0) recv(static_cast<std::uint32_t>(tree.parent), bytes);
  for (const std::uint32_t child : tree.children) send(child, bytes);
}

void GroupSteps::up(const Tree& tree, Bytes bytes) {
  for (const std::uint32_t child : tree.children) recv(child, bytes);
  if (tree.parent >= 0) send(static_cast<std::uint32_t>(tree.parent), bytes);
}

// ---- barrier
// ---------------------------------------------------------------------------------------------------

void GroupSteps::barrier(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kLinear:
      if (rank_ > 0) {
        exchange(0, 0, 0, 0);
        return;
      }
      for (std::uint32_t peer = 1; peer < size_; ++peer) recv(peer, 0);
      for (std::uint32_t peer = 1; peer < size_; ++peer) send(peer, 0);
      return;
    case Algorithm::kRecursiveDoubling: {
      const std::uint32_t power = std::bit_floor(size_);
      if (rank_ >= power) {  // the ranks above the power of two are represented by rank - power
        exchange(rank_ - power, 0, rank_ - power, 0);
        return;
      }
      if (rank_ < size_ - power) recv(rank_ + power, 0);
      for (std::uint32_t bit = 1; bit < power; bit *= 2) exchange(rank_ ^ bit, 0, rank_ ^ bit, 0);
      if (rank_ < size_ - power) send(rank_ + power, 0);
      return;
    }
    case Algorithm::kTree: {
      const std::uint32_t whole = std::bit_ceil(size_);
      for (std::uint32_t bit = 1; bit < whole; bit *= 2) {
        if (rank_ % bit != 0 || (rank_ ^ bit) >= size_) continue;
        if ((rank_ & bit) == 0) {
          recv(rank_ ^ bit, 0);
        } else {
          send(rank_ ^ bit, 0);
        }
      }
      for (std::uint32_t bit = whole / 2; bit > 0; bit /= 2) {
        if (rank_ % bit != 0 || (rank_ ^ bit) >= size_) continue;
        if ((rank_ & bit) == 0) {
          send(rank_ ^ bit, 0);
        } else {
          recv(rank_ ^ bit, 0);
        }
      }
      return;
    }
    default:
      barrier_dissemination();  // "bruck"
  }
}

void GroupSteps::barrier_dissemination() {
  for (std::uint32_t distance = 1; distance < size_; distance *= 2) {
    exchange(right(distance), 0, left(distance), 0);
  }
}

// ---- broadcast
// -------------------------------------------------------------------------------------------------

void GroupSteps::bcast(std::uint32_t root, Bytes bytes, Bytes element_bytes) {
  if (size_ < 2) return;
  bcast(choose_intra(library_, CollectiveOp::kBcast, size_, bytes, element_bytes, true).algorithm, root,
        bytes, element_bytes);
}

void GroupSteps::bcast(Algorithm algorithm, std::uint32_t root, Bytes bytes, Bytes element_bytes) {
  switch (algorithm) {
    case Algorithm::kChain:     // the fixed decision gives no number of chains: one
    case Algorithm::kPipeline:  // and no segment size: the vector goes as one segment
      return down(pipeline_tree(root), bytes);
    case Algorithm::kBinaryTree:
      return down(binary_tree(root), bytes);
    case Algorithm::kBinomial:
      return down(binomial_tree(root), bytes);
    case Algorithm::kKnomial:
      return down(knomial_tree(root, kKnomialRadix), bytes);
    case Algorithm::kSplitBinaryTree:
      return bcast_split_binary(root, bytes, element_bytes);
    case Algorithm::kScatterAllgather:
      return bcast_scatter_allgather(root, bytes, element_bytes);
    case Algorithm::kScatterDoublingAllgather:  // MPICH cuts the vector into blocks of bytes
      return bcast_scatter_allgather(root, bytes, 1);
    case Algorithm::kScatterRingAllgather:
      return bcast_scatter_ring(root, bytes);
    case Algorithm::kSubtreeBinomial:
      return bcast_subtree_binomial(root, bytes);
    default:
      return bcast_linear(root, bytes);
  }
}

void GroupSteps::bcast_linear(std::uint32_t root, Bytes bytes) {
  if (rank_ != root) return recv(root, bytes);
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != root) send(peer, bytes);
  }
}

// Each half of the vector goes down one half of the binary tree; then every rank swaps with one of the other
// half.
void GroupSteps::bcast_split_binary(std::uint32_t root, Bytes bytes, Bytes element_bytes) {
  const Bytes elements = bytes / element_bytes;
  const std::array<Bytes, 2> half{(elements + 1) / 2 * element_bytes, elements / 2 * element_bytes};
  const Tree tree = binary_tree(root);
  const std::uint32_t me = rank_from(root);
  const std::uint32_t side = (me + 1) % 2;  // children keep their parent's parity
  if (rank_ == root) {
    for (std::size_t i = 0; i < tree.children.size(); ++i) send(tree.children[i], half[i]);
  } else {
    down(tree, half[side]);
  }
  const std::uint32_t last = shifted(size_ - 1, root);
  if (size_ % 2 == 0) {  // one rank of the first half has no partner but the root
    if (rank_ == root) return send(last, half[1]);
    if (rank_ == last) return recv(root, half[1]);
  }
  if (rank_ == root) return;
  const std::uint32_t partner = side == 0 ? right(1) : left(1);
  exchange(partner, half[side], partner, half[1 - side]);
}

// Each rank gets its block of a vector, with those of the ranks that it serves. MPICH's non-blocking one has
// a rank other than the root send its first child everything up to the end of the vector.
void GroupSteps::scatter_for_bcast(std::uint32_t root, std::uint64_t elements, Bytes element_bytes) {
  const std::uint64_t block = (elements + size_ - 1) / size_;
  const std::uint32_t me = rank_from(root);
  // Bytes of the blocks first .. last-1; the vector may end before the last block does.
  const auto range = [&](std::uint64_t first, std::uint64_t last) {
    return (std::min(last * block, elements) - std::min(first * block, elements)) * element_bytes;
  };
  const bool to_the_end = library_ == MpiLibrary::kMpich4 && nonblocking_;
  // What `parent` sends to the child `half` further.
  const auto part = [&](std::uint64_t parent, std::uint64_t half) {
    const std::uint64_t serves = parent & (~parent + 1);
    const bool is_first_child = 2 * half >= serves || parent + 2 * half >= size_;
    const bool whole_rest = to_the_end && parent > 0 && is_first_child;
    return range(parent + half, whole_rest ? size_ : parent + 2 * half);
  };

  std::uint64_t span = 1;
  while (span < size_ && (me & span) == 0) span *= 2;
  if (span < size_ && part(me - span, span) > 0) recv(shifted(me - span, root), part(me - span, span));
  for (std::uint64_t half = span / 2; half > 0; half /= 2) {
    if (me + half >= size_) continue;
    if (part(me, half) > 0) send(shifted(me + half, root), part(me, half));
  }
}

// Binomial scatter, then allgather by recursive doubling; ranks that have no partner in a round get the block
// from those of their half who had one.
void GroupSteps::bcast_scatter_allgather(std::uint32_t root, Bytes bytes, Bytes element_bytes) {
  const std::uint64_t elements = bytes / element_bytes;
  const std::uint64_t block = (elements + size_ - 1) / size_;
  const std::uint32_t me = rank_from(root);
  // Bytes of the blocks first .. last-1; the vector may end before the last block does.
  const auto range = [&](std::uint64_t first, std::uint64_t last) {
    return (std::min(last * block, elements) - std::min(first * block, elements)) * element_bytes;
  };

  scatter_for_bcast(root, elements, element_bytes);
  for (std::uint32_t width = 1; width < size_; width *= 2) {
    const std::uint32_t remote = me ^ width;
    const std::uint32_t my_first = round_down(me, width);
    const std::uint32_t remote_first = round_down(remote, width);
    const Bytes incoming = range(remote_first, remote_first + width);
    if (remote < size_) {
      exchange(shifted(remote, root), range(my_first, my_first + width), shifted(remote, root), incoming);
    }
    if (remote_first + width <= size_ || remote_first >= size_) continue;
    const std::uint32_t with_partner =
        size_ - remote_first;  // ranks of my half that had one, from my_first on
    for (std::uint32_t bit = width / 2; bit > 0; bit /= 2) {
      const std::uint32_t other = me ^ bit;
      const std::uint32_t limit = round_down(me, 2 * bit) + with_partner;
      if (other > me && me < limit && other >= limit) {
        send(shifted(other, root), incoming);
      } else if (other < me && other < limit && me >= limit) {
        recv(shifted(other, root), incoming);
      }
    }
  }
}

void GroupSteps::bcast_swapped_binomial(std::uint32_t root, Bytes bytes) {
  const std::uint64_t me = swap_with_zero(rank_, root);
  const auto real = [&](std::uint64_t r) { return swap_with_zero(static_cast<std::uint32_t>(r), root); };
  if (me > 0) recv(real(me - std::bit_floor(me)), bytes);
  for (std::uint64_t bit = 1; me + bit < size_; bit *= 2) {
    if (me < bit) send(real(me + bit), bytes);
  }
}

// ---- reduce
// ----------------------------------------------------------------------------------------------------

void GroupSteps::reduce(std::uint32_t root, Bytes bytes, bool commutative) {
  if (size_ < 2) return;
  const Choice choice =
      choose_intra(library_, CollectiveOp::kReduce, size_, bytes, likely_element_bytes(bytes), commutative);
  if (choice.algorithm == Algorithm::kSubtreeBinomial)
    return reduce_subtree_binomial(root, bytes, commutative);
  reduce(choice.algorithm, root, bytes);
}

void GroupSteps::reduce(Algorithm algorithm, std::uint32_t root, Bytes bytes) {
  switch (algorithm) {
    case Algorithm::kChain:
    case Algorithm::kPipeline:
      return up(pipeline_tree(root), bytes);
    case Algorithm::kBinary:
      return up(binary_tree(root), bytes);
    case Algorithm::kBinomial:
      return up(in_order_binomial_tree(root), bytes);
    case Algorithm::kInOrderBinary: {
      up(in_order_binary_tree(), bytes);
      const std::uint32_t tree_root = size_ - 1;
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
      }
  }
}

void GroupSteps::reduce_swapped_binomial(std::uint32_t root, Bytes bytes, bool commutative) {
  const std::uint32_t tree_root = commutative ? root : 0;
  const std::uint64_t me = swap_with_zero(rank_, tree_root);
  const auto real = [&](std::uint64_t r) { return swap_with_zero(static_cast<std::uint32_t>(r), tree_root); };
  for (std::uint64_t bit = 1; bit < size_; bit *= 2) {
    if ((me & bit) != 0) {
      send(real(me - bit), bytes);
      break;
    }
    if (me + bit < size_) recv(real(me + bit), bytes);
  }
  if (tree_root == root) return;
  if (rank_ == tree_root) send(root, bytes);
  if (rank_ == root) recv(tree_root, bytes);
}

void GroupSteps::reduce_swapped_chain(std::uint32_t root, Bytes bytes, Bytes fragment_bytes) {
  const std::uint32_t me = swap_with_zero(rank_, root);
  const Bytes element = likely_element_bytes(bytes);
  const Bytes fragments = (bytes + fragment_bytes - 1) / fragment_bytes;
  const Bytes each = bytes / element / fragments * element;
  for (Bytes i = 0; i < fragments; ++i) {
    const Bytes part = i + 1 < fragments ? each : bytes - each * i;
    if (me + 1 < size_) recv(swap_with_zero(me + 1, root), part);
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
      send(rank_ - 1, high);
      return halves;
    }
    exchange(rank_ + 1, high, rank_ + 1, low);
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
    window = halves.kept[step];
  }
  return halves;
}

void GroupSteps::reduce_rabenseifner(std::uint32_t root, Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  const Bytes elements = bytes / element;
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
// -------------------------------------------------------------------------------------------------

void GroupSteps::allreduce(Bytes bytes, bool commutative) {
  if (size_ < 2) return;
  allreduce(
      choose_intra(library_, CollectiveOp::kAllreduce, size_, bytes, likely_element_bytes(bytes), commutative)
          .algorithm,
      bytes, commutative);
}

void GroupSteps::allreduce(Algorithm algorithm, Bytes bytes, bool commutative) {
  switch (algorithm) {
    case Algorithm::kReduceThenBcast:
      reduce(0, bytes, commutative);
      return bcast(0, bytes, likely_element_bytes(bytes));
    case Algorithm::kRecursiveDoubling:
      return allreduce_recursive_doubling(bytes);
    case Algorithm::kRing:
      return allreduce_ring(bytes);
    case Algorithm::kRabenseifner:
      return allreduce_rabenseifner(bytes);
    case Algorithm::kReduceScatterAllgather:
      return allreduce_scatter_then_allgather(bytes);
    case Algorithm::kBinomial:  // libnbc
      reduce_swapped_binomial(0, bytes, true);
      return bcast_swapped_binomial(0, bytes);
    default:
      reduce(Algorithm::kLinear, 0, bytes);
      return bcast_linear(0, bytes);
  }
}

void GroupSteps::allreduce_recursive_doubling(Bytes bytes) {
  const PowerOfTwo group(size_, true);
  if (group.excluded(rank_)) return exchange(rank_ + 1, bytes, rank_ + 1, bytes);
  if (group.paired(rank_)) recv(rank_ - 1, bytes);
  const std::uint32_t me = group.inside(rank_);
  for (std::uint32_t bit = 1; bit < group.power; bit *= 2) {
    const std::uint32_t peer = group.real(me ^ bit);
    exchange(peer, bytes, peer, bytes);
  }
  if (group.paired(rank_)) send(rank_ - 1, bytes);
}

// Reduce-scatter around the ring, then allgather around the ring.
void GroupSteps::allreduce_ring(Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  const auto block = [&](std::uint32_t index) { return part_bytes(bytes / element, size_, index, element); };
  send(right(1), block(rank_));
  for (std::uint32_t step = 1; step + 1 < size_; ++step) {
    recv(left(1), block(left(step)));
    send(right(1), block(left(step)));
  }
  recv(left(1), block(right(1)));
  for (std::uint32_t step = 0; step + 1 < size_; ++step) {
    exchange(right(1), block(left(step + size_ - 1)), left(1), block(left(step)));
  }
}

void GroupSteps::allreduce_swapped_ring(Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  const auto block = [&](std::uint32_t index) { return part_bytes(bytes / element, size_, index, element); };
  for (std::uint32_t step = 0; step < 2 * size_ - 2; ++step) {
    exchange(right(1), block(left(step + size_ - 1)), left(1), block(left(step)));
  }
}

void GroupSteps::allreduce_rabenseifner(Bytes bytes) {
  const Bytes element = likely_element_bytes(bytes);
  const Halves halves = reduce_scatter_by_halves(bytes / element, element);
  if (!halves.takes_part) return recv(rank_ - 1, bytes);
  for (std::uint32_t step = halves.steps; step-- > 0;) {
    const std::uint32_t peer = halves.group.real(halves.me ^ (1U << step));
    exchange(peer, halves.kept[step] * element, peer, halves.given[step] * element);
  }
  if (halves.group.paired(rank_)) send(rank_ + 1, bytes);
}

// ---- gather, scatter
// -------------------------------------------------------------------------------------------

void GroupSteps::gather(std::uint32_t root, Bytes block_bytes) {
  if (size_ < 2) return;
  gather(choose_intra(library_, CollectiveOp::kGather, size_, block_bytes, 1, true).algorithm, root,
         block_bytes);
}

void GroupSteps::gather(Algorithm algorithm, std::uint32_t root, Bytes block_bytes) {
  if (algorithm == Algorithm::kBinomial) {
    const Tree tree = in_order_binomial_tree(root);
    const std::uint32_t me = rank_from(root);
    Bytes blocks = 1;
    for (const std::uint32_t child : tree.children) {
      const std::uint32_t inner = (child + size_ - root) % size_;
      const std::uint32_t subtree = std::min(inner - me, size_ - inner);
      recv(child, subtree * block_bytes);
      blocks += subtree;
    }
    if (tree.parent >= 0) send(static_cast<std::uint32_t>(tree.parent), blocks * block_bytes);
    return;
  }
  const bool synchronised = algorithm == Algorithm::kLinearSync;
  // Synchronised: the root asks each rank in turn; what is left after the first segment (all of it, by
  // default) follows as a message of its own.
  if (rank_ != root) {
    if (synchronised) recv(root, 0);
    send(root, block_bytes);
    if (synchronised) send(root, 0);
    return;
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == root) continue;
    if (synchronised) send(peer, 0);
    recv(peer, block_bytes);
  }
  for (std::uint32_t peer = 0; synchronised && peer < size_; ++peer) {
    if (peer != root) recv(peer, 0);
  }
}

void GroupSteps::scatter(std::uint32_t root, Bytes block_bytes) {
  if (size_ < 2) return;
  scatter(choose_intra(library_, CollectiveOp::kScatter, size_, block_bytes, 1, true).algorithm, root,
          block_bytes);
}

void GroupSteps::scatter(Algorithm algorithm, std::uint32_t root, Bytes block_bytes) {
  if (algorithm != Algorithm::kBinomial) return bcast_linear(root, block_bytes);
  const Tree tree = in_order_binomial_tree(root);
  const std::uint32_t me = rank_from(root);
  if (tree.parent >= 0) {
    const auto parent = static_cast<std::uint32_t>(tree.parent);
    const std::uint32_t inner_parent = (parent + size_ - root) % size_;
    recv(parent, std::min(me - inner_parent, size_ - me) * block_bytes);
  }
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
    const std::uint32_t inner = (*child + size_ - root) % size_;
    send(*child, std::min(inner - me, size_ - inner) * block_bytes);
  }
}

void GroupSteps::gather_linear(std::uint32_t root, Bytes mine, std::span<const std::uint64_t> of_rank,
                               bool empty_too) {
  if (rank_ != root) {
    if (mine > 0 || empty_too) send(root, mine);
    return;
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != root && (of_rank[peer] > 0 || empty_too)) recv(peer, of_rank[peer]);
  }
}

void GroupSteps::scatter_linear(std::uint32_t root, Bytes mine, std::span<const std::uint64_t> of_rank,
                                bool empty_too) {
  if (rank_ != root) {
    if (mine > 0 || empty_too) recv(root, mine);
    return;
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != root && (of_rank[peer] > 0 || empty_too)) send(peer, of_rank[peer]);
  }
}

// ---- allgather
// -------------------------------------------------------------------------------------------------

void GroupSteps::allgather(Algorithm algorithm, const Blocks& blocks) {
  // `count` blocks from `first` on, around the end.
  const auto around = [&](std::uint32_t first, std::uint32_t count) {
    if (first + count <= size_) return blocks.range(first, first + count);
    return blocks.range(first, size_) + blocks.range(0, first + count - size_);
  };
  switch (algorithm) {
    case Algorithm::kBruck:
      for (std::uint32_t distance = 1; distance < size_; distance *= 2) {
        const std::uint32_t count = std::min(distance, size_ - distance);
        exchange(left(distance), around(rank_, count), right(distance), around(right(distance), count));
      }
      return;
    case Algorithm::kRecursiveDoubling:
      for (std::uint32_t width = 1; width < size_; width *= 2) {
        const std::uint32_t peer = rank_ ^ width;
        const std::uint32_t mine = round_down(rank_, width);
        const std::uint32_t theirs = round_down(peer, width);
        exchange(peer, blocks.range(mine, mine + width), peer, blocks.range(theirs, theirs + width));
      }
      return;
    case Algorithm::kRing:
      for (std::uint32_t step = 0; step + 1 < size_; ++step) {
        exchange(right(1), blocks.of(left(step)), left(1), blocks.of(left(step + 1)));
      }
      return;
    case Algorithm::kNeighbor: {
      // Pairs first swap their blocks, then hand the pair of blocks that came last to the other side.
      const bool even = rank_ % 2 == 0;
      const std::uint32_t partner = even ? right(1) : left(1);
      const std::uint32_t other = even ? left(1) : right(1);
      exchange(partner, blocks.of(rank_), partner, blocks.of(partner));
      std::uint32_t sent_pair = round_down(rank_, 2);
      std::array<std::uint32_t, 2> received_pair{sent_pair, sent_pair};  // from partner, from other
      for (std::uint32_t step = 1; step < size_ / 2; ++step) {
        const bool with_partner = step % 2 == 0;
        std::uint32_t& received = received_pair[with_partner ? 0 : 1];
        const bool upwards = even == with_partner;
        received = (received + (upwards ? 2 : size_ - 2)) % size_;
        const std::uint32_t peer = with_partner ? partner : other;
        exchange(peer, blocks.range(sent_pair, sent_pair + 2), peer, blocks.range(received, received + 2));
        sent_pair = received;
      }
      return;
    }
    default:  // two_proc
      exchange(rank_ ^ 1U, blocks.of(rank_), rank_ ^ 1U, blocks.of(rank_ ^ 1U));
  }
}

// ---- alltoall
// --------------------------------------------------------------------------------------------------

void GroupSteps::alltoall(Algorithm algorithm, Bytes block_bytes) {
  switch (algorithm) {
    case Algorithm::kPairwise:
      for (std::uint32_t step = 1; step < size_; ++step) {
        exchange(right(step), block_bytes, left(step), block_bytes);
      }
      return;
    case Algorithm::kModifiedBruck:
      for (std::uint32_t distance = 1; distance < size_; distance *= 2) {
        const Bytes bytes = count_with_bit(size_, distance) * block_bytes;
        exchange(right(distance), bytes, left(distance), bytes);
      }
      return;
    case Algorithm::kTwoProc:
      return exchange(rank_ ^ 1U, block_bytes, rank_ ^ 1U, block_bytes);
    case Algorithm::kPairwiseExchange:
      for (std::uint32_t step = 1; step < size_; ++step) {
        const bool by_xor = std::has_single_bit(size_);
        exchange(by_xor ? rank_ ^ step : right(step), block_bytes, by_xor ? rank_ ^ step : left(step),
                 block_bytes);
      }
      return;
    default:  // linear, linear_sync: all at once, sends downwards from the rank below, receives upwards
      for (std::uint32_t step = 1; step < size_; ++step) send(left(step), block_bytes);
      for (std::uint32_t step = 1; step < size_; ++step) recv(right(step), block_bytes);
  }
}

void GroupSteps::alltoallv_pairwise(std::span<const std::uint64_t> sent,
                                    std::span<const std::uint64_t> received, bool empty_too) {
  for (std::uint32_t step = 1; step < size_; ++step) {
    if (sent[right(step)] > 0 || empty_too) send(right(step), sent[right(step)]);
    if (received[left(step)] > 0 || empty_too) recv(left(step), received[left(step)]);
  }
}

void GroupSteps::alltoallv_linear(std::span<const std::uint64_t> sent,
                                  std::span<const std::uint64_t> received, bool empty_too) {
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && (sent[peer] > 0 || empty_too)) send(peer, sent[peer]);
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && (received[peer] > 0 || empty_too)) recv(peer, received[peer]);
  }
}

void GroupSteps::alltoallv_in_place(std::span<const std::uint64_t> exchanged, bool empty_too) {
  const auto there = [&](std::uint32_t peer) { return exchanged[peer] > 0 || empty_too; };
  for (std::uint32_t step = 1; step <= size_ / 2; ++step) {
    const std::uint32_t up = right(step);
    const std::uint32_t low = left(step);
    if (up != low && there(low)) send(low, exchanged[low]);
    if (up != low && there(up)) recv(up, exchanged[up]);
    if (there(up)) send(up, exchanged[up]);
    if (there(low)) recv(low, exchanged[low]);
  }
}

// ---- reduce_scatter
// --------------------------------------------------------------------------------------------

void GroupSteps::reduce_scatter_recursive_halving(const Blocks& blocks) {
  const PowerOfTwo group(size_, true);
  const Bytes total = blocks.range(0, size_);
  if (group.excluded(rank_)) {
    send(rank_ + 1, total);
    if (blocks.of(rank_) > 0) recv(rank_ + 1, blocks.of(rank_));
    return;
  }
  if (group.paired(rank_)) recv(rank_ - 1, total);
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
    if (!keeps_low) first += half;
  }
  if (group.paired(rank_) && blocks.of(rank_ - 1) > 0) send(rank_ - 1, blocks.of(rank_ - 1));
}

void GroupSteps::reduce_scatter_ring(const Blocks& blocks) {
  send(right(1), blocks.of(left(1)));
  for (std::uint32_t step = 2; step < size_; ++step) {
    recv(left(1), blocks.of(left(step)));
    send(right(1), blocks.of(left(step)));
  }
  recv(left(1), blocks.of(rank_));
}

// Halving with doubling distance leaves the blocks in bit-reversed order; `blocks_alike`
// (reduce_scatter_block) and a power of two: sorted beforehand in memory, else each block travels to its rank
// at the end.
void GroupSteps::reduce_scatter_butterfly(const Blocks& blocks, bool blocks_alike) {
  const PowerOfTwo group(size_, true);
  const auto bits = static_cast<std::uint32_t>(std::countr_zero(group.power));
  const Bytes total = blocks.range(0, size_);
  if (group.excluded(rank_)) {
    send(rank_ + 1, total);
    recv(group.real(mirror(rank_ / 2, bits)), blocks.of(rank_));
    return;
  }
  if (group.paired(rank_)) recv(rank_ - 1, total);
  const std::uint32_t me = group.inside(rank_);
  std::uint32_t first = 0;
  std::uint32_t count = group.power;
  for (std::uint32_t bit = 1; bit < group.power; bit *= 2) {
    const std::uint32_t peer = group.real(me ^ bit);
    count /= 2;
    const bool keeps_low = (me & bit) == 0;
    const std::uint32_t kept = keeps_low ? first : first + count;
    const std::uint32_t given = keeps_low ? first + count : first;
    exchange(peer, blocks.range(group.first_real(given), group.first_real(given + count)), peer,
             blocks.range(group.first_real(kept), group.first_real(kept + count)));
    first = kept;
  }
  if (blocks_alike && group.extra == 0) return;
  const std::uint32_t owner = mirror(me, bits);  // inner rank that my block belongs to; it has mine
  std::uint32_t block = group.first_real(first);
  if (owner < group.extra) {
    send(group.real(owner) - 1, blocks.of(block));
    ++block;
  }
  if (owner != me) {
    const std::uint32_t peer = group.real(owner);
    exchange(peer, blocks.of(block), peer, blocks.of(rank_));
  }
}

// Every round doubles the ranks whose vectors are combined; what their own group needs no more stays at home.
// Ranks without a partner are served by those of their half who had one.
void GroupSteps::reduce_scatter_recursive_doubling(const Blocks& blocks) {
  for (std::uint32_t width = 1; width < size_; width *= 2) {
    const std::uint32_t remote = rank_ ^ width;
    const std::uint32_t my_first = round_down(rank_, width);
    const std::uint32_t remote_first = round_down(remote, width);
    // All blocks but those of the group that starts at `first`.
    const auto outside = [&](std::uint32_t first) {
      return blocks.range(0, std::min(first, size_)) + blocks.range(std::min(first + width, size_), size_);
    };
    const Bytes incoming = outside(remote_first);
    if (remote < size_) exchange(remote, outside(my_first), remote, incoming);
    if (remote_first + width <= size_ || remote_first >= size_) continue;
    const std::uint32_t with_partner = size_ - remote_first;
    for (std::uint32_t bit = width / 2; bit > 0; bit /= 2) {
      const std::uint32_t other = rank_ ^ bit;
      const std::uint32_t limit = round_down(rank_, 2 * bit) + with_partner;
      if (other > rank_ && rank_ < limit && other >= limit) {
        send(other, incoming);
      } else if (other < rank_ && other < limit && rank_ >= limit) {
        recv(other, incoming);
      }
    }
  }
}

// ---- scan, exscan
// ----------------------------------------------------------------------------------------------

void GroupSteps::scan(Bytes bytes) {
  if (rank_ > 0) recv(rank_ - 1, bytes);
  if (rank_ + 1 < size_) send(rank_ + 1, bytes);
}

}  // namespace lbf::collective
