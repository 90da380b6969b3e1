// Barrier and broadcast: see collective_algorithms.h. Names of the phases as in the literature that
// docs/collectives.md lists.
#include <algorithm>
#include <array>
#include <bit>

#include "predictor/engine/match/collective_algorithms.h"
#include "predictor/engine/match/collective_arithmetic.h"

namespace lbf::engine::collective {
namespace {

constexpr std::uint32_t kKnomialRadix = 4;

}  // namespace

// ---- barrier

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

void GroupSteps::bcast(std::uint32_t root, Bytes bytes, Bytes element_bytes) {
  if (size_ < 2) return;
  bcast(choose_intra(library_, CollectiveOp::kBcast, size_, bytes, element_bytes, true).algorithm, root, bytes,
        element_bytes);
}

void GroupSteps::bcast(Algorithm algorithm, std::uint32_t root, Bytes bytes, Bytes element_bytes) {
  switch (algorithm) {
    case Algorithm::kChain:     // the fixed decision gives no number of chains: one
    case Algorithm::kPipeline:  // and no segment size: the vector goes as one segment
      return down(chain_tree(root, 1), bytes);
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
  const bool to_the_end = is_mpich() && nonblocking_;
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
    const std::uint32_t with_partner = size_ - remote_first;  // ranks of my half that had one, from my_first on
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

}  // namespace lbf::engine::collective
