// Networks, graphs and clusters that the advisor's tests are made of.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "advisor/candidate/candidate.h"
#include "advisor/candidate/cluster.h"
#include "advisor/mapping/comm_graph.h"
#include "predictor/engine/network/network.h"

namespace lbf::advisor::test {

inline std::shared_ptr<const engine::Network> network(const std::string& toml) {
  Result<engine::Network> parsed = engine::Network::parse(toml, "test.toml");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return std::make_shared<const engine::Network>(parsed.ok() ? std::move(*parsed) : engine::Network::zero());
}

// 1 s for every message between nodes and 1 s more per 1000 bytes, none within a node.
inline std::shared_ptr<const engine::Network> slow_network(const std::string& more = "") {
  return network(
      "name = \"slow\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n[[path]]\nlocality = "
      "\"remote\"\n"
      "table = [[0, 1000000.0], [1000, 2000000.0], [2000, 3000000.0]]\n" +
      more);
}

struct Flow {
  Rank from;
  Rank to;
  Bytes bytes;
};
inline CommGraph graph_of(Rank ranks, const std::vector<Flow>& flows, Seconds process_s = 0) {
  CommGraphBuilder builder(ranks);
  for (const Flow& flow : flows) builder.add_message(flow.from, flow.to, flow.bytes);
  for (Rank rank = 0; rank < ranks; ++rank) builder.add_process_time(rank, process_s);
  return builder.finish();
}

inline Cluster cluster(const std::string& toml) {
  Result<Cluster> parsed = parse_cluster("lbf_cluster = 1\n" + toml, "test.toml");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? std::move(*parsed) : Cluster{};
}
// n1 to nN with so many cores each.
inline Cluster even_cluster(std::uint32_t nodes, std::uint32_t cores) {
  return cluster("[[node]]\nname = \"n[1-" + std::to_string(nodes) +
                 "]\"\ncores_per_socket = " + std::to_string(cores) + "\n");
}

inline CandidateOptions options(Rank ranks) {
  CandidateOptions made;
  made.ranks = ranks;
  made.networks = {slow_network()};
  return made;
}

}  // namespace lbf::advisor::test
