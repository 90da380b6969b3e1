// What the replay of a trace says about how far its predictions may be off, and how they are said: lbf-whatif and
// lbf-advise ask this, where lbfd has the fields of the step (advisor/trust/step_trust.h).
#pragma once

#include <string>

#include "advisor/trust/step_trust.h"
#include "predictor/engine/metric/predictor.h"

namespace lbf::tools {

// FIRST: of the first target. Self-prediction error, outcomes and the network that ran are the caller's to add.
advisor::Trust trust_of_replay(const engine::PredictorStats& stats, const engine::Prediction& first,
                               const engine::MpiRules& rules, const std::string& why_partial);

// SAYING as keys of ENTRY, an object of JSON.
template <typename Json>
void add_saying(const advisor::Saying& saying, Json& entry) {
  const protocol::SayingFields fields = advisor::fields_of(saying);
  protocol::for_each_field(protocol::kSayingTable, [&](const auto& field) {
    const auto& value = fields.*field.member;
    if constexpr (requires { value.has_value(); }) {
      entry[std::string(field.key)] = value ? Json(*value) : Json();
    } else {
      entry[std::string(field.key)] = value;
    }
  });
}

}  // namespace lbf::tools
