// STEP of lists, written as text: a document in memory of each step, as step_json() makes it, took longer than
// everything else of a list.
#pragma once

#include <string>

#include "predictor/daemon/steps/step_run.h"

namespace lbf::daemon {

// Appends what step_json(step, detail) says. With kSummary without what is null, "", false or an empty list: readers
// take what is missing for that (docs/formats/http-v1.md). REQUIRES: `detail` is not kFull, which is for single steps.
void append_step_text(const StepView& step, StepDetail detail, std::string& out);

}  // namespace lbf::daemon
