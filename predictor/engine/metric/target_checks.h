// What a predictor's targets and plan must be, and what its matcher has to do for them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "predictor/engine/match/procedure_plan.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

// Errors: see Predictor::make; they begin with NAME.
Result<void> check_target(const Target& target, Rank ranks, const std::string& name);
Result<void> check_plan(const ProcedurePlan& plan, Rank ranks);

// Messages up to this size are eager on every target.
Bytes eager_up_to(const std::vector<Target>& targets);
// Does some target need to know which messages are first ones?
bool any_first_message(const std::vector<Target>& targets);
// Does some target know what copies and reductions cost?
bool any_local_cost(const std::vector<Target>& targets);

}  // namespace lbf::engine
