// See cost_record.h.
#include "spank_plugin/relay/cost_record.h"

#include <nlohmann/json.hpp>

#include "event/wire.h"

namespace lbf::relay {
namespace {

constexpr std::size_t kBytesOfRank = 120;  // at most, in the list

}  // namespace

std::string cost_record(const CostFacts& facts, const std::map<Rank, RankCost>& ranks) {
  RankCost all;
  Seconds program_cpu_s = 0;
  auto list = nlohmann::json::array();
  const bool listed = ranks.size() * kBytesOfRank < kMaxControlBytes / 2;
  for (const auto& [rank, cost] : ranks) {
    all.observed.direct_s += cost.observed.direct_s;
    all.observed.ideal_s += cost.observed.ideal_s;
    all.recording_s += cost.recording_s;
    all.recorded_calls += cost.recorded_calls;
    all.counted_calls += cost.counted_calls;
    all.disbelieved += cost.disbelieved;
    all.procedure_calls += cost.procedure_calls;
    all.procedures_s += cost.procedures_s;
    all.once_s += cost.once_s;
    all.watched_s += cost.watched_s;
    program_cpu_s += cost.program_cpu_s();
    if (!listed) continue;
    list.push_back({rank, cost.observed.direct_s, cost.observed.ideal_s, cost.recorded_calls, cost.counted_calls,
                    cost.program_cpu_s()});
  }
  nlohmann::json json{{"type", "cost"},
                      {"node_index", facts.node_index},
                      {"program_cpu_s", program_cpu_s},
                      {"direct_s", all.observed.direct_s},
                      {"ideal_s", all.observed.ideal_s},
                      {"recording_s", all.recording_s},
                      {"relay_cpu_s", facts.relay_cpu_s},
                      {"held_up_s", facts.held_up_s},
                      {"once_capture_s", all.once_s},
                      {"once_relay_s", facts.once_relay_s},
                      {"watched_s", all.watched_s},
                      {"recorded_calls", all.recorded_calls},
                      {"counted_calls", all.counted_calls},
                      {"disbelieved", all.disbelieved},
                      {"pressed_s", facts.pressed_s},
                      {"primitives_ns",
                       {{"recorded", facts.primitives.recorded_s * 1e9},
                        {"counted", facts.primitives.counted_s * 1e9},
                        {"relayed", facts.primitives.relayed_s * 1e9},
                        {"looked", facts.primitives.looked_s * 1e9}}}};
  if (all.procedure_calls > 0 || all.procedures_s > 0) {
    json["procedure_calls"] = all.procedure_calls;
    json["procedures_s"] = all.procedures_s;
  }
  if (facts.control != nullptr) {
    const CostControl& control = *facts.control;
    json["limit_percent"] = 100 * control.limit();
    json["predicted_percent"] = 100 * control.predicted_share();
    json["corrected_percent"] = 100 * control.corrected_share();
    json["state"] = cost::name_of(control.state());
    json["windows"] = control.windows();
    json["open_s"] = control.open_s();
    json["regulated_s"] = control.regulated_s();
    json["grants_used_up"] = control.grants_used_up();
  }
  if (listed) json["ranks"] = std::move(list);
  return json.dump();
}

}  // namespace lbf::relay
