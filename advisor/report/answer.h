// What the files that read lbfd's answers share.
#pragma once

#include <string>
#include <vector>

#include "advisor/report/step.h"
#include "base/result.h"

namespace lbf::report {

// kInvalidInput: an answer that does not keep to http-v1.
Error answer_error(const std::string& what);

// An array's tasks and a heterogeneous job's components together and in their own order, whatever job ids they have.
void put_in_order(std::vector<Step>& steps);

}  // namespace lbf::report
