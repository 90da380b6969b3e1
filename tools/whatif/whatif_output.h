// What lbf-whatif prints: a table for people, JSON (docs/man/lbf-whatif.1) for programs.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "predictor/daemon/steps/step_cost.h"
#include "predictor/engine/metric/predictor.h"
#include "report/step.h"
#include "tools/whatif/procedure_question.h"
#include "tools/whatif/replay_trust.h"
#include "tools/whatif/sensitivity_answer.h"
#include "tools/whatif/whatif_targets.h"

namespace lbf::tools {

struct WhatIfResult {
  std::string trace;  // as the user named it
  Rank ranks = 0;
  std::vector<engine::Target> targets;
  std::vector<engine::Prediction> predictions;
  std::vector<daemon::StreamCost> costs;  // of the capture
  advisor::Trust trust;
  std::optional<report::TargetPrediction> self;  // of a job: lbfd's prediction of the configuration that ran
  KnownMemory memory;
  engine::MemoryDomains domains_that_ran;  // see domains_that_ran()
  engine::PredictorStats stats;
  engine::MpiRules mpi_rules;
  std::string mpi_note;                       // not empty: the library's own rules are not known here (mpi_rules_note)
  std::optional<ProcedureAnswer> procedures;  // where they were asked for
  std::optional<SensitivityAnswer> sensitivity;  // the same
  std::string why_partial;  // empty: the predictions are whole, or the program would not end on that target
};

// On this target the program would wait for ever, although the trace is whole: there is no run time.
bool is_stuck(const WhatIfResult& result, const engine::Prediction& prediction);
// Why the prediction is not said: too little of the run was seen. Empty: it is, or the target is stuck.
std::string why_unknown(const WhatIfResult& result, const engine::Prediction& prediction);
// How the prediction of target T is said (advisor/trust). Empty: the target is stuck.
std::optional<advisor::Saying> saying_of(const WhatIfResult& result, std::size_t t);
// Predicted, Low and High as a table has them: "12.345678", or "range", "at best", "cannot tell", "stuck"; "-" where
// there is none.
std::array<std::string, 3> shown_time(const std::optional<advisor::Saying>& saying, const char* format);
// What no number has in common: "at best: the network between nodes is not described; to get a number, ...", once each.
std::vector<std::string> why_no_numbers(const WhatIfResult& result);

// Whether TARGET is predicted beside the other programs that had the processors of the run.
bool is_beside_others(const WhatIfResult& result, const engine::Target& target);
// What the predictions make of these programs' time; empty: there was none.
std::string others_note(const WhatIfResult& result);

std::string whatif_json(const WhatIfResult& result);
std::string whatif_table(const WhatIfResult& result);

}  // namespace lbf::tools
