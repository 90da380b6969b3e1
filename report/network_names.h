// The networks that lbfd has, as `lbf-report --networks` prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf::report {

// Of the answer to GET /v1/networks. Errors: kInvalidInput.
Result<std::vector<std::string>> parse_networks(std::string_view json);

}  // namespace lbf::report
