// What the files that read lbfd's answers share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/step.h"

namespace lbf::report {

// Where the document is {"steps":[{...},...]} and nothing else, as lbfd writes it: the text of each step. Read one by
// one they use the same memory again and again. nullopt: anything else.
std::optional<std::vector<std::string_view>> texts_of_steps(std::string_view json);

// kInvalidInput: an answer that does not keep to http-v1.
Error answer_error(const std::string& what);

// What lists are ordered by: an array's tasks and a heterogeneous job's components are together and in their own order,
// whatever job ids they have.
using StepOrder = std::array<std::uint64_t, 7>;
StepOrder order_of(const Step& step);
void put_in_order(std::vector<Step>& steps);

}  // namespace lbf::report
