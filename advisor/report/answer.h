// What the files that read lbfd's answers share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advisor/report/step.h"
#include "base/result.h"

namespace lbf::report {

// Where the document is {"steps":[{...},...]} and nothing else, as lbfd writes it: the text of each step. Read one by one
// they use the same memory again and again. nullopt: anything else.
std::optional<std::vector<std::string_view>> texts_of_steps(std::string_view json);

// kInvalidInput: an answer that does not keep to http-v1.
Error answer_error(const std::string& what);

// An array's tasks and a heterogeneous job's components together and in their own order, whatever job ids they have.
void put_in_order(std::vector<Step>& steps);

}  // namespace lbf::report
