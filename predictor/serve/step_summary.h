// STEP as lists ask for it (summary=1), written as text: a document in memory of each step, as step_json()
// makes it, took longer than everything else of a list.
#pragma once

#include <string>

#include "predictor/serve/step_run.h"

namespace lbf {

// Appends step_json(step, StepDetail::kSummary) without what is null, "", false or an empty list: readers
// take what is missing for that (docs/formats/http-v1.md).
void append_summary(const StepView& step, std::string& out);

}  // namespace lbf
