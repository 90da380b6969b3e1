// lbf-whatif --sensitivity: how each target's time depends on its parameters (docs/engine.md, "Sensitivity").
#pragma once

#include <array>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "predictor/engine/metric/sensitivity.h"

namespace CLI {
class App;
}

namespace lbf::tools {

struct SensitivityOptions {
  std::vector<engine::Parameter> parameters;  // empty: not asked
  engine::FactorRange range{0.1, 10};
  bool given() const { return !parameters.empty(); }
};

void add_sensitivity_options(CLI::App& command, SensitivityOptions& options);

struct SensitivityAnswer {
  SensitivityOptions asked;
  // [target][parameter]; nothing of a target on which the program does not end.
  std::vector<std::vector<engine::SensitivityCurve>> curves;
  std::vector<std::string> procedures;  // that paths tell apart, by their numbers
};

// The predictions of these targets, with their compositions.
using ReplayTargets =
    std::function<Result<std::vector<engine::Prediction>>(const std::vector<engine::Target>& targets)>;
// PREDICTIONS: of TARGETS as they are. Errors: those of REPLAY.
Result<SensitivityAnswer> find_sensitivity(const SensitivityOptions& asked, const std::vector<engine::Target>& targets,
                                           const std::vector<engine::Prediction>& predictions,
                                           const ReplayTargets& replay);

// One target and what it was asked.
struct TargetSensitivity {
  const SensitivityAnswer& answer;
  const engine::Target& target;
  const engine::Prediction& prediction;  // REQUIRES: it has a composition and a path
  const std::vector<engine::SensitivityCurve>& curves;

  // What was captured of the time: shares and percents are of it.
  Seconds seen_s() const;
  double share(engine::Parameter parameter) const;
  // How much longer than now the run takes at a factor, in percent.
  double percent_longer(const engine::SensitivityCurve& curve, double factor) const;
  // "work 81 %, latency 6 % until 12 us"
  std::string bound_by() const;
  // "work 81 %, of which 20 % imbalance: a rank has 61 % on average"; empty: there is no imbalance.
  std::string imbalance() const;

  struct PathRow {
    std::string name;
    std::array<Seconds, engine::kTerms> terms;
    Seconds seconds;  // their sum, without what was not captured
  };
  // The MOST longest shares, and a row "others" of the rest. What is in no call, communicator or procedure is left out.
  // Names of procedures are as the trace has them.
  std::vector<PathRow> path_rows(engine::PathBy by, std::size_t most) const;
};

struct PathGrouping {
  engine::PathBy by;
  const char* words;  // "call"
  const char* key;    // of JSON
};
inline constexpr std::array<PathGrouping, 4> kPathGroupings{
    {{engine::PathBy::kCall, "call", "by_call"},
     {engine::PathBy::kRank, "rank", "by_rank"},
     {engine::PathBy::kCommunicator, "communicator", "by_communicator"},
     {engine::PathBy::kProcedure, "procedure", "by_procedure"}}};

// A parameter that is FACTOR times what it is on the target: "12 us", "850 MB/s", "0.5" of the speed, "x 2".
std::string shown_value(const engine::Target& target, engine::Parameter parameter, double factor);

std::string sensitivity_table(const SensitivityAnswer& answer, const std::vector<engine::Target>& targets,
                              const std::vector<engine::Prediction>& predictions);
// The key `sensitivity` of one prediction (docs/man/lbf-whatif.1).
nlohmann::ordered_json sensitivity_json(const TargetSensitivity& of);

}  // namespace lbf::tools
