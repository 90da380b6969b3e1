// Distributions, see layout.h.
#include "advisor/candidate/layout.h"

#include <algorithm>
#include <string>

#include "predictor/engine/replay/target.h"

namespace lbf::advisor {
namespace {

// Deals ranks round robin, `take(node)` for each, until all are dealt.
template <typename Take>
void deal(Rank ranks, std::span<const std::uint32_t> cores, Take take) {
  bool beyond = false;
  Rank rank = 0;
  for (std::uint32_t round = 0; rank < ranks; ++round) {
    bool room = false;
    for (std::uint32_t node = 0; node < cores.size() && rank < ranks; ++node) {
      if (round >= cores[node] && !beyond) continue;
      take(node);
      ++rank;
      room = room || round + 1 < cores[node];
    }
    beyond = beyond || !room;
  }
}

}  // namespace

Result<std::vector<std::uint32_t>> lay_out(std::string_view placement, Rank ranks,
                                           std::span<const std::uint32_t> cores) {
  const auto nodes = static_cast<std::uint32_t>(cores.size());
  if (placement.starts_with("map=")) return invalid_input("a map says itself where ranks are");
  // Also the judge of everything that is wrong.
  Result<std::vector<std::uint32_t>> even = engine::place_ranks(placement, ranks, nodes);
  if (!even || placement.starts_with("plane=")) return even;
  std::vector<std::uint32_t> node_of_rank;
  node_of_rank.reserve(static_cast<std::size_t>(ranks));
  if (placement == "cyclic") {
    deal(ranks, cores, [&](std::uint32_t node) { node_of_rank.push_back(node); });
    return node_of_rank;
  }
  std::vector<std::uint32_t> ranks_of_node(nodes, 0);
  deal(ranks, cores, [&](std::uint32_t node) { ++ranks_of_node[node]; });
  for (std::uint32_t node = 0; node < nodes; ++node) {
    node_of_rank.insert(node_of_rank.end(), ranks_of_node[node], node);
  }
  return node_of_rank;
}

std::uint32_t most_beyond(std::span<const std::uint32_t> node_of_rank, std::span<const std::uint32_t> cores) {
  std::vector<std::uint32_t> ranks_of_node(cores.size(), 0);
  std::uint32_t most = 0;
  for (const std::uint32_t node : node_of_rank) {
    if (++ranks_of_node[node] > cores[node]) most = std::max(most, ranks_of_node[node] - cores[node]);
  }
  return most;
}

}  // namespace lbf::advisor
