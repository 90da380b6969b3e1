// Reasons, see reasons.h.
#include "advisor/advice/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "advisor/advice/how.h"

namespace lbf::advisor {
namespace {

constexpr std::size_t kMostReasons = 3;
constexpr double kNoticeable = 0.02;  // share of the whole; less is not worth a sentence
constexpr std::size_t kMostRanges = 4;

struct Reason {
  double weight = 0;  // share of the whole that it is about
  std::string text;
};

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string size_text(double bytes) {
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", bytes / (1 << 20));
  if (bytes >= 1 << 10) return fmt::format("{:.1f} KiB", bytes / (1 << 10));
  return fmt::format("{:.0f} bytes", bytes);
}

// Bytes that travel between nodes, before and after.
void add_traffic(const Ranked& chosen, const Ranked& now, const CommGraph& graph, std::vector<Reason>& reasons) {
  const engine::Target& then_target = chosen.candidate.target;
  const engine::Target& now_target = now.candidate.target;
  const NodeTraffic then_traffic = traffic_of(then_target.node_of_rank, then_target.nodes, graph);
  const NodeTraffic now_traffic = traffic_of(now_target.node_of_rank, now_target.nodes, graph);
  const double all = static_cast<double>(graph.bytes());
  const double before = share(static_cast<double>(now_traffic.between), all);
  const double after = share(static_cast<double>(then_traffic.between), all);
  if (before - after < kNoticeable) return;
  reasons.push_back({before - after, fmt::format("{:.0f} % of the bytes travel between nodes instead of {:.0f} %",
                                                 100 * after, 100 * before)});
}

// Ranks that come together on one node and exchange the most of what crossed nodes before.
void add_group(const Ranked& chosen, const Ranked& now, const CommGraph& graph, std::vector<Reason>& reasons) {
  const engine::Target& target = chosen.candidate.target;
  const std::vector<std::uint32_t>& before = now.candidate.target.node_of_rank;
  std::vector<Bytes> inside(target.nodes, 0);
  std::vector<Bytes> crossed(target.nodes, 0);
  for (Rank rank = 0; rank < graph.ranks(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    for (const Arc& arc : graph.arcs(rank)) {
      const auto peer = static_cast<std::size_t>(arc.peer);
      if (target.node_of_rank[at] != target.node_of_rank[peer]) continue;
      inside[target.node_of_rank[at]] += arc.bytes_out;
      if (before[at] != before[peer]) crossed[target.node_of_rank[at]] += arc.bytes_out;
    }
  }
  const auto most = std::max_element(crossed.begin(), crossed.end());
  const auto node = static_cast<std::uint32_t>(most - crossed.begin());
  const double all = static_cast<double>(graph.bytes());
  if (share(static_cast<double>(*most), all) < kNoticeable) return;
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < graph.ranks(); ++rank) {
    if (target.node_of_rank[static_cast<std::size_t>(rank)] == node) ranks.push_back(rank);
  }
  std::string text = fmt::format("ranks {} exchange {:.0f} % of the bytes", ranges(ranks, kMostRanges),
                                 100 * share(static_cast<double>(inside[node]), all));
  text += target.nodes > 1 ? "; on one node they leave the link to the others" : "; on one node they need no link";
  reasons.push_back({share(static_cast<double>(*most), all), std::move(text)});
}

// Work of the busiest processor.
void add_load(const Ranked& chosen, const Ranked& now, std::vector<Reason>& reasons) {
  const Seconds after = chosen.bound.processors_s;
  const Seconds before = now.bound.processors_s;
  const double less = share(before - after, now.time_s);
  if (less < kNoticeable) return;
  reasons.push_back(
      {less, fmt::format("the busiest processor has {:.3g} s of work instead of {:.3g} s", after, before)});
}

// Bytes through the busiest link, where links are shared.
void add_links(const Ranked& chosen, const Ranked& now, std::vector<Reason>& reasons) {
  const Seconds after = chosen.bound.links_s;
  const Seconds before = now.bound.links_s;
  const double less = share(before - after, now.time_s);
  if (less < kNoticeable) return;
  reasons.push_back({less, fmt::format("the busiest link is needed for {:.3g} s instead of {:.3g} s", after, before)});
}

void add_network(const Ranked& chosen, const Ranked& now, const CommGraph& graph, std::vector<Reason>& reasons) {
  const engine::Network& then_network = *chosen.candidate.target.network;
  const engine::Network& now_network = *now.candidate.target.network;
  if (graph.messages() == 0 || then_network.name() == now_network.name()) return;
  const Bytes mean = graph.bytes() / graph.messages();
  const auto time_s = [mean](const engine::Network& network) {
    const engine::PathCost& path = network.path(engine::kUnknownHops);
    return path.flight.at(mean) + path.send_cpu.at(mean) + path.recv_cpu.at(mean);
  };
  reasons.push_back(
      {1, fmt::format("a message of the mean size, {}, takes {:.3g} us between nodes on {}, {:.3g} us on {}",
                      size_text(static_cast<double>(mean)), 1e6 * time_s(then_network), then_network.name(),
                      1e6 * time_s(now_network), now_network.name())});
}

void add_nodes(const Ranked& chosen, const Ranked& now, std::vector<Reason>& reasons) {
  const std::uint32_t after = chosen.candidate.target.nodes;
  const std::uint32_t before = now.candidate.target.nodes;
  if (after >= before || chosen.node_hours() >= now.node_hours()) return;
  reasons.push_back({1 - chosen.node_hours() / now.node_hours(),
                     fmt::format("it needs {} node{} instead of {} for {:.3g} s instead of {:.3g} s", after,
                                 after == 1 ? "" : "s", before, chosen.time_s, now.time_s)});
}

}  // namespace

std::vector<std::string> reasons(const Ranked& chosen, const Ranked& now, const CommGraph& graph) {
  std::vector<Reason> found;
  add_group(chosen, now, graph, found);
  add_traffic(chosen, now, graph, found);
  add_load(chosen, now, found);
  add_links(chosen, now, found);
  add_network(chosen, now, graph, found);
  add_nodes(chosen, now, found);
  std::stable_sort(found.begin(), found.end(), [](const Reason& a, const Reason& b) { return a.weight > b.weight; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < found.size() && i < kMostReasons; ++i) texts.push_back(std::move(found[i].text));
  return texts;
}

}  // namespace lbf::advisor
