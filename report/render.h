// The pages that lbf-report prints for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/step.h"

namespace lbf::report {

struct PageStyle {
  std::size_t width = 80;  // columns
  bool header = true;
  bool color = false;
};

// Everything about one step: what ran, a line per target, the facts that say how far to trust it, a closing
// note.
std::string render_step(const Step& step, const PageStyle& style);

// Several answers of lbfd ({"steps":[...]}) as one; a step that is in two of them stands there once; sorted
// by job, step and restart. Errors (kInvalidInput): an answer that is no such object.
Result<std::string> join_answers(const std::vector<std::string>& answers);

// Step `number` of the joined answer, as JSON; "{}" where there is none.
std::string step_text(std::string_view joined, std::size_t number);

}  // namespace lbf::report
