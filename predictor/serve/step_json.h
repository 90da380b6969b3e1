// STEP and PREDICTION of docs/formats/http-v1.md, as JSON text.
#pragma once

#include <nlohmann/json.hpp>

#include "predictor/serve/step_run.h"

namespace lbf {

nlohmann::json step_json(const StepView& step, StepDetail detail);

// Bytes that are not UTF-8 (a user's command line may have them) become U+FFFD.
std::string json_text(const nlohmann::json& value);

}  // namespace lbf
