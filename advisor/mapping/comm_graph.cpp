// Communication graph, see comm_graph.h.
#include "advisor/mapping/comm_graph.h"

#include <algorithm>
#include <numeric>

namespace lbf::advisor {
namespace {

constexpr std::uint64_t key_of(Rank from, Rank to) {
  return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
}

}  // namespace

Seconds CommGraph::total_process_s() const {
  return std::accumulate(process_s_.begin(), process_s_.end(), 0.0);
}

std::uint32_t CommGraph::most_threads() const {
  std::uint32_t most = 0;
  for (const RegionTotal& regions : regions_) most = std::max(most, regions.threads);
  return most;
}

Seconds CommGraph::least_s(Rank rank, std::uint32_t threads) const {
  const RegionTotal& in = regions(rank);
  if (in.threads == 0) return process_s(rank);
  return process_s(rank) - in.ran_s + in.alone_s + in.divided_s / (threads != 0 ? threads : in.threads);
}

Seconds CommGraph::work_s(Rank rank) const {
  return least_s(rank, 1);
}

CommGraphBuilder::CommGraphBuilder(Rank ranks)
    : process_s_(static_cast<std::size_t>(ranks)),
      regions_(process_s_.size()),
      blocked_s_(static_cast<std::size_t>(ranks)) {}

void CommGraphBuilder::add_message(Rank from, Rank to, Bytes bytes) {
  if (from == to) return;
  Flow& flow = flows_[key_of(from, to)];
  flow.bytes += bytes;
  ++flow.messages;
}

void CommGraphBuilder::add_regions(Rank rank, const RegionTotal& regions) {
  RegionTotal& total = regions_[static_cast<std::size_t>(rank)];
  total.ran_s += regions.ran_s;
  total.alone_s += regions.alone_s;
  total.divided_s += regions.divided_s;
  total.threads = std::max(total.threads, regions.threads);
}

CommGraph CommGraphBuilder::finish() const {
  CommGraph graph;
  graph.process_s_ = process_s_;
  graph.regions_ = regions_;
  graph.blocked_s_ = blocked_s_;
  std::vector<std::vector<Arc>> arcs(process_s_.size());
  for (const auto& [key, flow] : flows_) {
    const auto from = static_cast<Rank>(key >> 32);
    const auto to = static_cast<Rank>(key & 0xffffffffU);
    graph.bytes_ += flow.bytes;
    graph.messages_ += flow.messages;
    const auto back = flows_.find(key_of(to, from));
    const Flow in = back == flows_.end() ? Flow{} : back->second;
    arcs[static_cast<std::size_t>(from)].push_back({to, flow.bytes, in.bytes, flow.messages, in.messages});
    if (back == flows_.end()) arcs[static_cast<std::size_t>(to)].push_back({from, 0, flow.bytes, 0, flow.messages});
  }
  graph.first_.push_back(0);
  for (std::vector<Arc>& of_rank : arcs) {
    std::sort(of_rank.begin(), of_rank.end(), [](const Arc& a, const Arc& b) { return a.peer < b.peer; });
    graph.arcs_.insert(graph.arcs_.end(), of_rank.begin(), of_rank.end());
    graph.first_.push_back(graph.arcs_.size());
  }
  return graph;
}

}  // namespace lbf::advisor
