// What lbf-whatif prints about procedures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/whatif/procedure_question.h"

namespace lbf::tools {

// Words to the left, numbers to the right. `words`: how many columns are words. REQUIRES: a row.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t words);
// A procedure's, for a table.
std::string shown_name(const std::string& name);
// "2 nodes, block, network lan"
std::string target_name(const engine::Target& target);

// The program ends, and enough of the run was seen to say when.
bool is_known(const engine::Prediction& prediction);
// How much shorter `changed` is, in percent of the run as it was; nothing where one of them is not known.
std::optional<double> gain_percent(const engine::Prediction& as_it_ran, const engine::Prediction& changed);

// Tables in the form of TR Figs. 3 and 4; `targets`, `as_it_ran` without scenarios.
std::string procedure_table(const ProcedureAnswer& answer, const std::vector<engine::Target>& targets,
                            const std::vector<engine::Prediction>& as_it_ran);

// Adds the keys `procedures`, `critical_path` and `scenarios` to lbf-whatif's JSON (docs/man/lbf-whatif.1).
void add_procedure_json(const ProcedureAnswer& answer, const std::vector<engine::Prediction>& as_it_ran,
                        nlohmann::ordered_json& root);

}  // namespace lbf::tools
