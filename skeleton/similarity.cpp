#include "skeleton/similarity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace lbf::skeleton {
namespace {

class Hash {
 public:
  void add(std::uint64_t value) {
    value_ = (value_ ^ value) * 0x9E3779B97F4A7C15ULL;
    value_ ^= value_ >> 32;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x2545F4914F6CDD1DULL;
};

bool is_collective(const Operation& operation) {
  return operation.kind == OperationKind::kCollective || operation.kind == OperationKind::kIcollective;
}

void add_structure(Hash& hash, const Operation& operation) {
  hash.add(static_cast<std::uint64_t>(operation.kind) | std::uint64_t{operation.flags} << 8 |
           static_cast<std::uint64_t>(operation.op) << 16 | std::uint64_t{operation.comm} << 32);
  hash.add(static_cast<std::uint32_t>(operation.peer) | std::uint64_t{static_cast<std::uint32_t>(operation.tag)} << 32);
  hash.add(static_cast<std::uint32_t>(operation.root) | std::uint64_t{operation.slot} << 32);
  hash.add(operation.values_count);
}

bool same_structure(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.flags == b.flags && a.op == b.op && a.peer == b.peer && a.tag == b.tag &&
         a.comm == b.comm && a.root == b.root && a.slot == b.slot && a.values_count == b.values_count;
}

// 0 (equal) to 1.
double dissimilarity(const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double low = static_cast<double>(std::min(a[i], b[i]));
    const double high = static_cast<double>(std::max(a[i], b[i]));
    if (high > 0) largest = std::max(largest, (high - low) / high);
  }
  return largest;
}

}  // namespace

bool has_sizes(const Operation& operation) {
  return is_collective(operation) && operation.values_count > 0;
}

Similarity::Similarity(const ProgramTrace& trace, const OperationLinks& links, const Exchanges& exchanges)
    : trace_(trace), links_(links), exchanges_(exchanges) {
  rank_of_.reserve(links.begin.size() - 1);
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    rank_of_.insert(rank_of_.end(), trace.ranks[rank].size(), static_cast<Rank>(rank));
  }
}

void Similarity::sizes(std::uint32_t exchange, OfReceives of_receives, std::vector<Bytes>& sizes) const {
  sizes.clear();
  for (const OperationId id : exchanges_.of(exchange)) {
    const Operation& each = operation(id);
    sizes.push_back(is_receive(each.kind) && of_receives == OfReceives::kZero ? 0 : each.bytes);
    if (!has_sizes(each)) continue;
    for (const std::uint64_t bytes : trace_.values_of(each)) sizes.push_back(bytes);
  }
}

// Exactly equal: structure and sizes.
bool Similarity::same(std::uint32_t a, std::uint32_t b) const {
  const auto left = exchanges_.of(a);
  const auto right = exchanges_.of(b);
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Operation& x = operation(left[i]);
    const Operation& y = operation(right[i]);
    if (rank_of(left[i]) != rank_of(right[i]) || !same_structure(x, y)) return false;
    if (x.bytes != y.bytes && !is_receive(x.kind)) return false;
    const auto p = trace_.values_of(x);
    const auto q = trace_.values_of(y);
    if (!std::equal(p.begin(), p.end(), q.begin(), q.end())) return false;
  }
  return true;
}

DistinctExchanges Similarity::distinct() const {
  DistinctExchanges result;
  result.symbol.resize(exchanges_.size());
  std::unordered_multimap<std::uint64_t, std::uint32_t> known;
  for (std::uint32_t e = 0; e < exchanges_.size(); ++e) {
    Hash structure;
    Hash sizes;
    double sum = 0;
    for (const OperationId id : exchanges_.of(e)) {
      const Operation& each = operation(id);
      structure.add(static_cast<std::uint32_t>(rank_of(id)));
      add_structure(structure, each);
      if (!is_receive(each.kind)) {
        sizes.add(each.bytes);
        sum += static_cast<double>(each.bytes);
      }
      for (const std::uint64_t value : trace_.values_of(each)) {
        if (has_sizes(each)) {
          sizes.add(value);
          sum += static_cast<double>(value);
        } else {
          structure.add(value);
        }
      }
    }
    Hash both = structure;
    both.add(sizes.value());
    const auto [begin, end] = known.equal_range(both.value());
    const auto found =
        std::find_if(begin, end, [&](const auto& entry) { return same(result.exemplar[entry.second], e); });
    if (found != end) {
      result.symbol[e] = found->second;
      ++result.count[found->second];
      continue;
    }
    result.symbol[e] = static_cast<std::uint32_t>(result.exemplar.size());
    known.emplace(both.value(), result.symbol[e]);
    result.exemplar.push_back(e);
    result.count.push_back(1);
    result.structure.push_back(structure.value());
    result.size_sum.push_back(sum);
  }
  return result;
}

std::vector<std::uint32_t> Similarity::cluster(const DistinctExchanges& distinct, double threshold) const {
  const std::size_t symbols = distinct.exemplar.size();
  std::vector<std::uint32_t> cluster_of(symbols);
  if (threshold <= 0) {
    for (std::uint32_t s = 0; s < symbols; ++s) cluster_of[s] = s;
    return cluster_of;
  }
  struct Known {
    std::uint32_t cluster;
    std::uint32_t leader;  // the symbol that made it
  };
  // Clusters of each structure by the sum of their leaders' sizes: where all sizes differ by less than a
  // share, so do the sums.
  std::unordered_map<std::uint64_t, std::multimap<double, Known>> clusters;
  std::uint32_t made = 0;
  std::vector<Bytes> mine;
  std::vector<Bytes> other;
  for (std::uint32_t s = 0; s < symbols; ++s) {
    auto& alike = clusters[distinct.structure[s]];
    const double sum = distinct.size_sum[s];
    double nearest = threshold;
    const Known* join = nullptr;
    int compared = 0;
    if (!alike.empty()) sizes(distinct.exemplar[s], OfReceives::kZero, mine);
    for (auto at = alike.lower_bound(sum * (1 - threshold));
         at != alike.end() && at->first * (1 - threshold) <= sum && compared < kMostCompared; ++at, ++compared) {
      sizes(distinct.exemplar[at->second.leader], OfReceives::kZero, other);
      if (other.size() != mine.size()) continue;
      const double difference = dissimilarity(mine, other);
      if (difference < nearest || (difference <= 0 && join == nullptr)) {
        nearest = difference;
        join = &at->second;
      }
    }
    if (join != nullptr) {
      cluster_of[s] = join->cluster;
    } else {
      cluster_of[s] = made++;
      alike.emplace(sum, Known{cluster_of[s], s});
    }
  }
  return cluster_of;
}

}  // namespace lbf::skeleton
