// What lbf-whatif is asked about procedures (docs/procedures.md), as scenarios of one replay.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "predictor/engine/match/procedure_plan.h"
#include "predictor/engine/metric/critical_path.h"
#include "predictor/engine/metric/predictor.h"

namespace CLI {
class App;
}

namespace lbf::tools {

struct ProcedureOptions {
  std::vector<std::string> procedures;  // names or shell patterns
  std::vector<std::string> move;
  std::string to = "receiver";
  double share = 1;                 // of what --move names
  std::vector<std::string> faster;  // NAME=PERCENT
  bool curve = false;
  bool given() const { return !procedures.empty() || !move.empty() || !faster.empty(); }
};

void add_procedure_options(CLI::App& command, ProcedureOptions& options);
// What is wrong with the options, in one line; empty: nothing.
std::string check_procedure_options(const ProcedureOptions& options);

struct ProcedureScenario {
  enum class Kind { kLbf, kZeroing, kAsked, kCurveMoved, kCurveFaster, kCurveAsked };
  Kind kind = Kind::kAsked;
  std::size_t procedure = 0;  // of the question's names; kAsked and kCurveAsked: none
  int percent = 100;          // of the time that is moved or not needed any more
};

struct ProcedureQuestion {
  std::vector<std::string> names;            // procedures looked at, in the plan's order
  std::vector<std::string> left_out;         // meant by a pattern, but switched off while they ran
  std::set<std::string> sampled;             // of `names`: their times are samples'
  std::string asked;                         // what --move and --faster say, in words; empty: nothing
  std::string to;                            // where the curves move to
  std::vector<ProcedureScenario> scenarios;  // by scenario of the plan
  engine::ProcedurePlan plan;
};

// `known`: the trace's procedures by number; `switched_off`: those whose times are a part of what they were, of which
// nothing can be predicted. Errors (kNotFound) list near names; kInvalidInput: too many scenarios, a rank that does not
// exist, a procedure both moved and faster, one that was switched off and is named.
Result<ProcedureQuestion> make_procedure_question(const ProcedureOptions& options,
                                                  const std::vector<std::string>& known, Rank ranks,
                                                  const std::set<std::string>& switched_off = {});

// Names of `known` that `name` may have been meant for, best first.
std::vector<std::string> near_names(const std::string& name, const std::vector<std::string>& known);

// `targets` as they are, then all of them for each scenario.
std::vector<engine::Target> with_scenarios(const std::vector<engine::Target>& targets,
                                           const ProcedureQuestion& question);

struct ProcedureAnswer {
  ProcedureQuestion question;
  std::vector<std::vector<engine::Prediction>> predictions;  // [scenario][target]
  std::vector<engine::ScenarioStats> scenario_stats;
  std::vector<engine::ProcedureStats> procedure_stats;  // by name
  engine::PathProfile path;                             // of the first target
};

}  // namespace lbf::tools
