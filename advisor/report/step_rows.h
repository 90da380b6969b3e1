// Steps as rows of values (docs/formats/http-v1.md, ROWS): what lists are made from.
#pragma once

#include <string_view>
#include <vector>

#include "advisor/report/step.h"
#include "base/result.h"

namespace lbf::report {

// The steps of an answer {"keys":[...],"prediction_keys":[...],"rows":[...]}, in its order; what it has no key for is not
// known of them. Keys that are not known here are left out. Errors (kInvalidInput, naming row and key): no such answer,
// a value of another type, a row that is too short or too long, a row without job or step.
Result<std::vector<Step>> parse_rows(std::string_view json);

// All of them, by job, step and restart; a step that is in several only once.
std::vector<Step> merge_steps(std::vector<std::vector<Step>> answers);

}  // namespace lbf::report
