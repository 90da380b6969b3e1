// Mapping problem, see problem.h.
#include "advisor/mapping/problem.h"

#include <algorithm>
#include <utility>

namespace lbf::advisor {
namespace {

// Where times do not tell two places apart (the network `zero`), the nearer one is better. Far below what any
// message takes.
constexpr double kNearerByS = 1e-18;
constexpr double kUniformWithin = 1.5;

double message_s(const engine::PathCost& path, Bytes bytes) {
  return path.flight.at(bytes) + path.send_cpu.at(bytes) + path.recv_cpu.at(bytes);
}

}  // namespace

MappingProblem::MappingProblem(const CommGraph& graph, engine::Target nodes, std::vector<std::uint32_t> capacity)
    : graph_(graph), target_(std::move(nodes)), capacity_(std::move(capacity)), localities_(target_) {
  const std::size_t localities = localities_.count();
  for (Rank rank = 0; rank < graph_.ranks(); ++rank) {
    first_arc_.push_back(cost_.size() / localities);
    for (const Arc& arc : graph_.arcs(rank)) {
      const Bytes size = arc.bytes() / std::max<std::uint64_t>(arc.messages(), 1);
      for (std::size_t locality = 0; locality < localities; ++locality) {
        const double far = locality == engine::Localities::kSelfNode ? 0 : static_cast<double>(locality + 1);
        cost_.push_back(static_cast<double>(arc.messages()) * message_s(localities_.path(locality), size) +
                        kNearerByS * far * static_cast<double>(arc.bytes() + arc.messages()));
      }
    }
  }
}

double MappingProblem::cost(std::span<const std::uint32_t> node_of_rank) const {
  double sum = 0;
  for (Rank rank = 0; rank < ranks(); ++rank) {
    const std::span<const Arc> arcs = graph_.arcs(rank);
    for (std::size_t arc = 0; arc < arcs.size(); ++arc) {
      if (arcs[arc].peer < rank) continue;
      sum += cost(rank, arc, node_of_rank[static_cast<std::size_t>(rank)],
                  node_of_rank[static_cast<std::size_t>(arcs[arc].peer)]);
    }
  }
  return sum;
}

bool MappingProblem::is_uniform() const {
  const auto all = static_cast<std::size_t>(ranks());
  if (graph_.pairs() < all * (all - 1) / 2) return graph_.pairs() == 0;
  Bytes least = ~Bytes{0};
  Bytes most = 0;
  for (Rank rank = 0; rank < ranks(); ++rank) {
    for (const Arc& arc : graph_.arcs(rank)) {
      least = std::min(least, arc.bytes());
      most = std::max(most, arc.bytes());
    }
  }
  return static_cast<double>(most) <= kUniformWithin * static_cast<double>(least);
}

}  // namespace lbf::advisor
