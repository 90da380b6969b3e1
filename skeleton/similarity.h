// Clustering similar exchanges (Sodhi, Subhlok & Xu, Sec. 4.2, "Clustering similar execution events").
//
// What has no measure (the kind of call, peer, root, tag, communicator, requests) must agree, as in the
// paper. Message sizes are the dimensions: the dissimilarity of two exchanges is the largest relative
// difference |a - b| / max(a, b) of the sizes of their operations, 0 to 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skeleton/exchanges.h"
#include "skeleton/operation.h"

namespace lbf::skeleton {

// The distinct exchanges of a trace: the string of symbols at similarity threshold 0.
struct DistinctExchanges {
  std::vector<std::uint32_t> symbol;     // by exchange
  std::vector<std::uint32_t> exemplar;   // by symbol: its first exchange
  std::vector<std::uint64_t> count;      // by symbol
  std::vector<std::uint64_t> structure;  // by symbol: hash of everything but the sizes
  std::vector<double> size_sum;          // by symbol: of all its message sizes
};

class Similarity {
 public:
  // REQUIRES: the arguments outlive this.
  Similarity(const ProgramTrace& trace, const OperationLinks& links, const Exchanges& exchanges);

  DistinctExchanges distinct() const;

  // Symbols (in the order of first occurrence) -> clusters: each joins the most similar cluster below
  // `threshold`, or else makes one (Table 2, step 2). At most kMostCompared clusters with about the same sum
  // of sizes are looked at. Cluster numbers rise in the order of first occurrence. `threshold` 0: each
  // symbol is its own cluster.
  std::vector<std::uint32_t> cluster(const DistinctExchanges& distinct, double threshold) const;
  static constexpr int kMostCompared = 64;

  // The sizes of an exchange: the bytes of each operation, and those for each peer of a v-collective. What
  // receives get is their sends' to say: kZero leaves it out.
  enum class OfReceives : std::uint8_t { kAsRecorded, kZero };
  void sizes(std::uint32_t exchange, OfReceives of_receives, std::vector<Bytes>& sizes) const;

  Rank rank_of(OperationId id) const { return rank_of_[id]; }
  const Operation& operation(OperationId id) const {
    const std::size_t rank = static_cast<std::size_t>(rank_of_[id]);
    return trace_.ranks[rank][id - links_.first_of_rank[rank]];
  }

 private:
  bool same(std::uint32_t a, std::uint32_t b) const;

  const ProgramTrace& trace_;
  const OperationLinks& links_;
  const Exchanges& exchanges_;
  std::vector<Rank> rank_of_;  // by operation
};

// Whether the values of this operation are sizes of messages.
bool has_sizes(const Operation& operation);

}  // namespace lbf::skeleton
