// What lbf-whatif prints about procedures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/whatif/procedure_question.h"

namespace lbf {

// Tables in the form of TR Figs. 3 and 4; `targets`, `as_it_ran` without scenarios.
std::string procedure_table(const ProcedureAnswer& answer, const std::vector<Target>& targets,
                            const std::vector<Prediction>& as_it_ran);

// Adds the keys `procedures`, `critical_path` and `scenarios` to lbf-whatif's JSON (docs/man/lbf-whatif.1).
void add_procedure_json(const ProcedureAnswer& answer, const std::vector<Prediction>& as_it_ran,
                        nlohmann::ordered_json& root);

}  // namespace lbf
