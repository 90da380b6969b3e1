// Which of lbfd's values the columns of a list need (docs/formats/http-v1.md, ROWS).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/fields.h"

namespace lbf::report {

// "cluster,job,step,...,predictions.kind": what identifies and orders a step, and what the columns show.
std::string row_keys_of(const std::vector<Column>& columns);
// The same for summarize_overhead().
std::string row_keys_of_overhead();
// The same for Savings.
std::string row_keys_of_savings();
// The same for scaling_of() and families_of().
std::string row_keys_of_scaling();
// With what one_per_job() decides by.
std::string with_key(std::string keys, std::string_view key);

}  // namespace lbf::report
