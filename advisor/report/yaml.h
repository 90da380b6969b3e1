// --yaml: the JSON answer as YAML.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lbf::report {

// Block style, every character outside ASCII escaped as in render_json. Errors (kInvalidInput): not JSON.
Result<std::string> render_yaml(std::string_view json);

}  // namespace lbf::report
