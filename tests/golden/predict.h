// What the golden tests share: a text trace and a target in, what the engine predicts out.
#pragma once

#include <memory>
#include <string>

#include "predictor/engine/metric/predictor.h"

namespace lbf::golden {

struct Outcome {
  engine::Prediction prediction;
  engine::PredictorStats stats;
  Result<void> diagnosis;
};

std::shared_ptr<const engine::Network> network(const std::string& toml);

// Ranks placed ("block", "map=0,0,1" ...) on `nodes` nodes.
engine::Target make_target(Rank ranks, const std::string& placement, std::uint32_t nodes, std::uint32_t cores,
                           std::shared_ptr<const engine::Network> on);

// `trace`: a text trace without its header. Without `on`: network zero.
Outcome predict(const std::string& trace, Rank ranks, const std::string& placement, std::uint32_t nodes,
                std::uint32_t cores, std::shared_ptr<const engine::Network> on = nullptr, double speed = 1.0);
// The same for several targets in one pass.
std::vector<engine::Prediction> predict_all(const std::string& trace, Rank ranks,
                                            const std::vector<engine::Target>& targets,
                                            engine::Clocks clocks = engine::Clocks::kPlain);

}  // namespace lbf::golden
