// STEP and PREDICTION as JSON, see step_json.h.
#include "predictor/daemon/http/step_json.h"

#include "predictor/daemon/http/field_json.h"
#include "predictor/daemon/http/step_sayings.h"

namespace lbf::daemon {
namespace {

using nlohmann::json;

template <typename T>
json json_of(const T& value) {
  return value;
}
json json_of(protocol::StepState state) {
  return protocol::name_of(state);
}
json json_of(const protocol::CommandView& command) {
  return command.words ? json(*command.words) : json(command.line);
}
json json_of(const std::vector<protocol::CallTotal>& calls) {
  json list = json::array();
  for (const protocol::CallTotal& call : calls) list.push_back({call.function, call.calls, call.total_s});
  return list;
}
template <typename T>
json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : json(nullptr);
}
template <typename T>
json or_null(const std::optional<T>& value) {
  return json_of(value);
}
json json_of(const protocol::Topology& topology);

template <typename Table, typename Record>
json fields_json(const Table& table, const Record& record, unsigned form) {
  json out = json::object();
  protocol::for_each_field(table, [&](const auto& field) {
    if (!is_written(field, record, form)) return;
    use_value(field, record, [&](const auto& value) { out[std::string(field.key)] = json_of(value); });
  });
  return out;
}

json json_of(const protocol::Topology& topology) {
  return fields_json(protocol::kTopologyTable, topology, protocol::In::kFull);
}

// Without outcomes there are no errors.
json errors_json(const db::ErrorSummary& errors) {
  json out = {{"outcomes", errors.outcomes}};
  const bool none = errors.outcomes == 0;
  out["median_percent"] = none ? json(nullptr) : json(errors.median_percent);
  out["p90_percent"] = none ? json(nullptr) : json(errors.p90_percent);
  out["worst_percent"] = none ? json(nullptr) : json(errors.worst_percent);
  return out;
}

json named_json(const char* key, const std::vector<db::NamedSummary>& groups) {
  json list = json::array();
  for (const db::NamedSummary& group : groups) {
    json one = errors_json(group.errors);
    one[key] = group.name;
    list.push_back(std::move(one));
  }
  return list;
}

json cost_json(const db::CostRecord& cost, bool with_parts) {
  json out = fields_json(db::kCostFields, cost, protocol::In::kFull);
  if (!with_parts) return out;
  json nodes = json::array();
  for (const db::NodeCostRecord& node : cost.nodes) {
    nodes.push_back({{"node_index", node.node},
                     {"state", node.state},
                     {"program_cpu_s", node.program_cpu_s},
                     {"direct_s", node.direct_s},
                     {"ideal_s", node.ideal_s},
                     {"relay_cpu_s", node.relay_cpu_s},
                     {"held_up_s", node.held_up_s},
                     {"once_capture_s", or_null(node.once_capture_s)},
                     {"once_relay_s", or_null(node.once_relay_s)},
                     {"windows", node.windows},
                     {"open_s", node.open_s},
                     {"regulated_s", node.regulated_s},
                     {"pressed_s", node.pressed_s}});
  }
  json ranks = json::array();
  for (const db::RankCostRecord& rank : cost.ranks) {
    ranks.push_back(
        {rank.rank, rank.direct_s, rank.ideal_s, rank.recorded_calls, rank.counted_calls, rank.program_cpu_s});
  }
  out["nodes"] = std::move(nodes);
  out["ranks"] = std::move(ranks);
  return out;
}

}  // namespace

json procedures_json(const db::ProcedureReport& report) {
  json procedures = json::array();
  for (const db::ProcedureRecord& procedure : report.procedures) {
    procedures.push_back(fields_json(db::kProcedureFields, procedure, protocol::In::kFull));
  }
  json out{{"procedures", std::move(procedures)}, {"critical_path", nullptr}, {"why_deferred", report.why_deferred}};
  if (!report.path) return out;
  const db::CriticalPathRecord& path = *report.path;
  json ranks = json::array();
  for (const auto& [rank, rank_s] : path.ranks) ranks.push_back({rank < 0 ? json(nullptr) : json(rank), rank_s});
  json of_path = fields_json(protocol::kCriticalPathTable, path, protocol::In::kFull);
  of_path["ranks"] = std::move(ranks);
  of_path["functions"] = path.functions;
  out["critical_path"] = std::move(of_path);
  return out;
}

json accuracy_json(const db::Accuracy& accuracy) {
  json programs = json::array();
  for (const db::ProgramSummary& program : accuracy.by_program) {
    json one = errors_json(program.errors);
    one["program"] = program.program;
    one["name"] = program.name;
    one["build_id"] = program.build_id;
    one["ranks"] = program.ranks;
    programs.push_back(std::move(one));
  }
  return {{"all", errors_json(accuracy.all)},
          {"by_distance", named_json("distance", accuracy.by_distance)},
          {"by_program", std::move(programs)},
          {"by_month", named_json("month", accuracy.by_month)},
          {"by_week", named_json("week", accuracy.by_week)}};
}

json error_fit_json(const db::ErrorFit& fit) {
  return {{"program", errors_json(fit.program)}, {"site", errors_json(fit.site)}};
}

json step_json(const StepView& step, StepDetail detail) {
  const db::StepRecord& record = step.record;
  const unsigned form = form_of(detail);
  json out = fields_json(db::kStepFields, record, form);
  out["cost"] = record.cost ? cost_json(*record.cost, detail == StepDetail::kFull) : json(nullptr);
  if (detail == StepDetail::kBrief) return out;
  if (detail != StepDetail::kSummary)
    out["procedures"] = record.procedures ? procedures_json(*record.procedures) : json(nullptr);
  json predictions = json::array();
  const StepSayings sayings(step);
  for (const auto& prediction : step.predictions) {
    predictions.push_back(fields_json(db::kPredictionFields, prediction, form));
    predictions.back().update(fields_json(protocol::kSayingTable, sayings.of(prediction), form));
  }
  out["predictions"] = std::move(predictions);
  return out;
}

std::string json_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace lbf::daemon
