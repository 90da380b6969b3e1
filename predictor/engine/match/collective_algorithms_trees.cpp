// Blocks, and the trees that several algorithms go by: see collective_algorithms.h. Names of the phases as in
// the literature that docs/collectives.md lists.
#include <algorithm>
#include <bit>

#include "predictor/engine/match/collective_algorithms.h"

namespace lbf::engine::collective {

Blocks::Blocks(std::span<const std::uint64_t> bytes_of_rank) {
  offsets_.resize(bytes_of_rank.size() + 1, 0);
  for (std::size_t rank = 0; rank < bytes_of_rank.size(); ++rank) {
    offsets_[rank + 1] = offsets_[rank] + bytes_of_rank[rank];
  }
}

// ---- trees

GroupSteps::Tree GroupSteps::chain_tree(std::uint32_t root, std::uint32_t chains) const {
  Tree tree;
  const std::uint32_t me = rank_from(root);
  std::uint32_t head = 1;
  for (std::uint32_t left = std::min(chains, size_ - 1); left > 0; --left) {
    const std::uint32_t end = head + (size_ - head + left - 1) / left;
    if (me == 0) tree.children.push_back(shifted(head, root));
    if (head <= me && me < end) {
      tree.parent = shifted(me == head ? 0 : me - 1, root);
      if (me + 1 < end) tree.children.push_back(shifted(me + 1, root));
    }
    head = end;
  }
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
  for (const std::uint32_t child : tree.children) {
    recv(child, bytes);
    combine(bytes);
  }
  if (tree.parent >= 0) send(static_cast<std::uint32_t>(tree.parent), bytes);
}

}  // namespace lbf::engine::collective
