// STEP, PREDICTION and what else docs/formats/http-v1.md defines, as JSON text.
#pragma once

#include <nlohmann/json.hpp>

#include "db/accuracy.h"
#include "predictor/daemon/steps/step_run.h"

namespace lbf::daemon {

nlohmann::json step_json(const StepView& step, StepDetail detail);
// PROCEDURES.
nlohmann::json procedures_json(const db::ProcedureReport& report);

// Answers of GET /v1/accuracy and GET /v1/steps/KEY/accuracy.
nlohmann::json accuracy_json(const db::Accuracy& accuracy);
nlohmann::json error_fit_json(const db::ErrorFit& fit);

// Bytes that are not UTF-8 (a user's command line may have them) become U+FFFD.
std::string json_text(const nlohmann::json& value);

}  // namespace lbf::daemon
