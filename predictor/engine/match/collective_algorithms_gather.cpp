// Gather, scatter, allgather, alltoall: see collective_algorithms.h. Names of the phases as in the literature
// that docs/collectives.md lists.
#include <algorithm>
#include <array>
#include <bit>

#include "predictor/engine/match/collective_algorithms.h"
#include "predictor/engine/match/collective_arithmetic.h"

namespace lbf::engine::collective {
namespace {

constexpr Bytes kShortGather = 1024;  // MPIR_CVAR_GATHER_VSMALL_MSG_SIZE

// How many numbers in [1, limit) have this bit set.
std::uint64_t count_with_bit(std::uint64_t limit, std::uint64_t bit) {
  const std::uint64_t rest = limit % (2 * bit);
  return limit / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
}

}  // namespace

// ---- gather, scatter

void GroupSteps::gather(std::uint32_t root, Bytes block_bytes) {
  if (size_ < 2 && !is_mpich()) return;
  gather(choose_intra(library_, CollectiveOp::kGather, size_, block_bytes, 1, true).algorithm, root, block_bytes);
}

void GroupSteps::gather(Algorithm algorithm, std::uint32_t root, Bytes block_bytes) {
  if (algorithm == Algorithm::kBinomial) {
    const Tree tree = in_order_binomial_tree(root);
    const std::uint32_t me = rank_from(root);
    Bytes blocks = 1;
    const bool is_root = me == 0;
    // MPICH: all collect short blocks in memory of their own; long ones leave from where they are.
    const bool is_short = block_bytes < kShortGather;
    if (is_mpich()) {
      if (is_root ? !local_work_.in_place : is_short) copy(block_bytes);
    } else if (me % 2 == 0 && !(is_root && root == 0 && local_work_.in_place)) {
      // Ranks with an odd place have no children; a root other than rank 0 has the blocks in another order
      // first.
      copy(block_bytes);
    }
    for (const std::uint32_t child : tree.children) {
      const std::uint32_t inner = (child + size_ - root) % size_;
      const std::uint32_t subtree = std::min(inner - me, size_ - inner);
      recv(child, subtree * block_bytes);
      blocks += subtree;
    }
    if (tree.parent >= 0) send(static_cast<std::uint32_t>(tree.parent), blocks * block_bytes);
    if (is_mpich()) {
      if (is_root && is_short) place_around_end(tree, root, block_bytes);
    } else if (is_root && root != 0) {
      copy((size_ - root) * block_bytes);
      copy(root * block_bytes);
    }
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
    if (peer == root) {
      if (!synchronised) copy_unless_in_place(block_bytes);
      continue;
    }
    if (synchronised) send(peer, 0);
    recv(peer, block_bytes);
  }
  if (synchronised) copy_unless_in_place(block_bytes);
  for (std::uint32_t peer = 0; synchronised && peer < size_; ++peer) {
    if (peer != root) recv(peer, 0);
  }
}

void GroupSteps::scatter(std::uint32_t root, Bytes block_bytes) {
  if (size_ < 2 && !is_mpich()) return;
  scatter(choose_intra(library_, CollectiveOp::kScatter, size_, block_bytes, 1, true).algorithm, root, block_bytes);
}

void GroupSteps::scatter(Algorithm algorithm, std::uint32_t root, Bytes block_bytes) {
  if (algorithm != Algorithm::kBinomial) return scatter_alike(root, block_bytes);
  const Tree tree = in_order_binomial_tree(root);
  const std::uint32_t me = rank_from(root);
  // A root other than rank 0 brings the blocks into another order first; in place, MPICH's leaves its own.
  if (rank_ == root && root != 0) {
    const std::uint32_t left_out = is_mpich() && local_work_.in_place ? 1 : 0;
    copy(root * block_bytes);
    copy((size_ - root - left_out) * block_bytes);
  }
  if (tree.parent >= 0) {
    const auto parent = static_cast<std::uint32_t>(tree.parent);
    const std::uint32_t inner_parent = (parent + size_ - root) % size_;
    recv(parent, std::min(me - inner_parent, size_ - me) * block_bytes);
  }
  // The others have no children.
  const bool copies_own = me % 2 == 0 && !(me == 0 && local_work_.in_place);
  if (copies_own && !is_mpich()) copy(block_bytes);
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
    const std::uint32_t inner = (*child + size_ - root) % size_;
    send(*child, std::min(inner - me, size_ - inner) * block_bytes);
  }
  if (copies_own && is_mpich()) copy(block_bytes);
}

void GroupSteps::scatter_alike(std::uint32_t root, Bytes block_bytes) {
  if (rank_ != root) return recv(root, block_bytes);
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != root) {
      send(peer, block_bytes);
    } else {
      copy_unless_in_place(block_bytes);
    }
  }
}

void GroupSteps::gather_linear(std::uint32_t root, Bytes mine, std::span<const std::uint64_t> of_rank, bool empty_too) {
  if (rank_ != root) {
    if (mine > 0 || empty_too) send(root, mine);
    return;
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == root) {
      copy_unless_in_place(of_rank[peer]);
    } else if (of_rank[peer] > 0 || empty_too) {
      recv(peer, of_rank[peer]);
    }
  }
}

void GroupSteps::scatter_linear(std::uint32_t root, Bytes mine, std::span<const std::uint64_t> of_rank,
                                bool empty_too) {
  if (rank_ != root) {
    if (mine > 0 || empty_too) recv(root, mine);
    return;
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == root) {
      copy_unless_in_place(of_rank[peer]);
    } else if (of_rank[peer] > 0 || empty_too) {
      send(peer, of_rank[peer]);
    }
  }
}

// ---- allgather

void GroupSteps::allgather(Algorithm algorithm, const Blocks& blocks) {
  // `count` blocks from `first` on, around the end.
  const auto around = [&](std::uint32_t first, std::uint32_t count) {
    if (first + count <= size_) return blocks.range(first, first + count);
    return blocks.range(first, size_) + blocks.range(0, first + count - size_);
  };
  const bool is_bruck = algorithm == Algorithm::kBruck;
  // Open MPI: blocks that are alike are in order from the rank's own on, and are turned round in the end.
  const bool turns = is_bruck && !is_mpich() && blocks.are_alike() && rank_ != 0;
  // MPICH collects in memory of the rank's own, and brings all blocks into their places in the end.
  const bool collects = is_mpich() && (is_bruck || (algorithm == Algorithm::kRecursiveDoubling && !blocks.are_alike()));
  const bool starts_with_copy = turns || collects || !local_work_.in_place;
  if (algorithm != Algorithm::kTwoProc && starts_with_copy) copy(blocks.of(rank_));
  switch (algorithm) {
    case Algorithm::kBruck:
      for (std::uint32_t distance = 1; distance < size_; distance *= 2) {
        const std::uint32_t count = std::min(distance, size_ - distance);
        exchange(left(distance), around(rank_, count), right(distance), around(right(distance), count));
      }
      if (turns || collects) {
        copy(blocks.range(rank_, size_));
        copy(blocks.range(0, rank_));
      }
      if (turns) copy(blocks.range(rank_, size_));
      return;
    case Algorithm::kRecursiveDoubling:
      for (std::uint32_t width = 1; width < size_; width *= 2) {
        const std::uint32_t peer = rank_ ^ width;
        const std::uint32_t mine = round_down(rank_, width);
        const std::uint32_t theirs = round_down(peer, width);
        exchange(peer, blocks.range(mine, mine + width), peer, blocks.range(theirs, theirs + width));
      }
      if (collects) {  // the own block is there already in place
        copy(blocks.range(0, rank_));
        copy_unless_in_place(blocks.of(rank_));
        copy(blocks.range(rank_ + 1, size_));
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
      copy_unless_in_place(blocks.of(rank_));
  }
}

// ---- alltoall

void GroupSteps::alltoall(Algorithm algorithm, Bytes block_bytes) {
  switch (algorithm) {
    case Algorithm::kPairwise:
      for (std::uint32_t step = 1; step < size_; ++step) {
        exchange(right(step), block_bytes, left(step), block_bytes);
      }
      return copy(block_bytes);
    case Algorithm::kModifiedBruck:
      copy((size_ - rank_) * block_bytes);
      copy(rank_ * block_bytes);
      for (std::uint32_t distance = 1; distance < size_; distance *= 2) {
        const Bytes bytes = count_with_bit(size_, distance) * block_bytes;
        if (is_mpich()) copy(bytes);
        exchange(right(distance), bytes, left(distance), bytes);
        if (!is_mpich()) copy(bytes);
      }
      if (is_mpich()) copy(size_ * block_bytes);
      return copy(size_ * block_bytes);
    case Algorithm::kTwoProc:
      exchange(rank_ ^ 1U, block_bytes, rank_ ^ 1U, block_bytes);
      return copy(block_bytes);
    case Algorithm::kPairwiseExchange:
      copy(block_bytes);
      for (std::uint32_t step = 1; step < size_; ++step) {
        const bool by_xor = std::has_single_bit(size_);
        exchange(by_xor ? rank_ ^ step : right(step), block_bytes, by_xor ? rank_ ^ step : left(step), block_bytes);
      }
      return;
    default:  // linear, linear_sync: all at once, sends downwards from the rank below, receives upwards
      copy(block_bytes);
      for (std::uint32_t step = 1; step < size_; ++step) send(left(step), block_bytes);
      for (std::uint32_t step = 1; step < size_; ++step) recv(right(step), block_bytes);
  }
}

void GroupSteps::alltoallv_pairwise(std::span<const std::uint64_t> sent, std::span<const std::uint64_t> received,
                                    bool empty_too) {
  copy(sent[rank_]);
  for (std::uint32_t step = 1; step < size_; ++step) {
    if (sent[right(step)] > 0 || empty_too) send(right(step), sent[right(step)]);
    if (received[left(step)] > 0 || empty_too) recv(left(step), received[left(step)]);
  }
}

void GroupSteps::alltoallv_linear(std::span<const std::uint64_t> sent, std::span<const std::uint64_t> received,
                                  bool empty_too) {
  copy_unless_in_place(sent[rank_]);
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
    copy(exchanged[up]);  // what goes up is kept aside
    if (up != low && there(low)) send(low, exchanged[low]);
    if (up != low && there(up)) recv(up, exchanged[up]);
    if (there(up)) send(up, exchanged[up]);
    if (there(low)) recv(low, exchanged[low]);
  }
}

}  // namespace lbf::engine::collective
