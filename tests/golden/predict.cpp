#include "tests/golden/predict.h"

#include <gtest/gtest.h>

#include <sstream>

#include "event/text_trace.h"

namespace lbf::golden {
namespace {

std::unique_ptr<engine::Predictor> replay(const std::string& trace, Rank ranks,
                                          const std::vector<engine::Target>& targets,
                                          engine::Clocks clocks = engine::Clocks::kPlain) {
  Result<std::unique_ptr<engine::Predictor>> predictor = engine::Predictor::make(ranks, targets, {}, clocks);
  EXPECT_TRUE(predictor.ok());
  std::istringstream in("lbf-trace 1\nranks " + std::to_string(ranks) + "\n" + trace);
  const auto sink = [&](Rank rank, const Event& event) { return (*predictor)->feed(rank, event); };
  const Result<TraceInfo> read = read_text_trace(in, "golden", sink);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  for (Rank rank = 0; rank < ranks; ++rank) (*predictor)->close(rank);
  return std::move(*predictor);
}

}  // namespace

std::shared_ptr<const engine::Network> network(const std::string& toml) {
  Result<engine::Network> parsed = engine::Network::parse(toml, "golden.toml");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return std::make_shared<const engine::Network>(std::move(*parsed));
}

engine::Target make_target(Rank ranks, const std::string& placement, std::uint32_t nodes, std::uint32_t cores,
                           std::shared_ptr<const engine::Network> on) {
  engine::Target target;
  Result<std::vector<std::uint32_t>> placed = engine::place_ranks(placement, ranks, nodes);
  EXPECT_TRUE(placed.ok());
  target.node_of_rank = *placed;
  target.nodes = nodes;
  target.cores_per_node = cores;
  target.network = on != nullptr ? std::move(on) : std::make_shared<const engine::Network>(engine::Network::zero());
  return target;
}

Outcome predict(const std::string& trace, Rank ranks, const std::string& placement, std::uint32_t nodes,
                std::uint32_t cores, std::shared_ptr<const engine::Network> on, double speed) {
  engine::Target target = make_target(ranks, placement, nodes, cores, std::move(on));
  target.speed = speed;
  const std::unique_ptr<engine::Predictor> predictor = replay(trace, ranks, {target});
  return {predictor->predictions().front(), predictor->stats(), predictor->diagnosis()};
}

std::vector<engine::Prediction> predict_all(const std::string& trace, Rank ranks,
                                            const std::vector<engine::Target>& targets, engine::Clocks clocks) {
  return replay(trace, ranks, targets, clocks)->predictions();
}

}  // namespace lbf::golden
