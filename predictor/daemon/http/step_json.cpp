// STEP and PREDICTION as JSON, see step_json.h.
#include "predictor/daemon/http/step_json.h"

namespace lbf::daemon {
namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json calls_json(const std::vector<db::CallRecord>& calls) {
  json list = json::array();
  for (const db::CallRecord& call : calls) list.push_back({call.function, call.calls, call.total_s});
  return list;
}

json prediction_json(const db::PredictionRecord& prediction, bool with_ranks) {
  json out = {
      {"target", prediction.target},
      {"nodes", prediction.nodes},
      {"cores", prediction.cores_per_node},
      {"placement", prediction.placement},
      {"network", prediction.network},
      {"contention", prediction.contention},
      {"speed", prediction.speed},
      {"kind", prediction.kind},
      // A program that would wait for ever has no run time: nobody shall take the time until then for one.
      // The same of one that was not replayed to its end for want of room.
      {"predicted_s", prediction.why_stuck.empty() && prediction.why_deferred.empty() ? json(prediction.predicted_s)
                                                                                      : json(nullptr)},
      {"why_stuck", prediction.why_stuck},
      {"speedup", or_null(prediction.speedup)},
      {"self_error_percent", or_null(prediction.self_error_percent)},
      {"partial", prediction.partial},
      {"progress_s", prediction.progress_s},
      {"measured_at_progress_s", prediction.measured_at_progress_s},
      {"seen_share", prediction.seen_share},
      {"low_s", or_null(prediction.low_s)},
      {"high_s", or_null(prediction.high_s)}};
  if (!prediction.topology.file.empty())
    out["topology"] = {{"file", prediction.topology.file}, {"nodes", prediction.topology.nodes}};
  if (!prediction.why_deferred.empty()) {
    out["why_deferred"] = prediction.why_deferred;
    out["deferred_for_good"] = prediction.deferred_for_good;
  }
  if (prediction.taken_up) out["taken_up"] = true;
  if (with_ranks) out["rank_finish_s"] = prediction.rank_finish_s;
  return out;
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
  json out = {{"limit_percent", or_null(cost.limit_percent)},
              {"predicted_percent", or_null(cost.predicted_percent)},
              {"corrected_percent", or_null(cost.corrected_percent)},
              {"low_percent", or_null(cost.low_percent())},
              {"high_percent", or_null(cost.high_percent())},
              {"state", cost.state},
              {"program_cpu_s", cost.program_cpu_s},
              {"direct_s", cost.direct_s},
              {"ideal_s", cost.ideal_s},
              {"relay_cpu_s", cost.relay_cpu_s},
              {"held_up_s", cost.held_up_s},
              {"once_capture_s", or_null(cost.once_capture_s)},
              {"once_relay_s", or_null(cost.once_relay_s)},
              {"total_low_percent", or_null(cost.total_low_percent())},
              {"total_high_percent", or_null(cost.total_high_percent())},
              {"recorded_calls", cost.recorded_calls},
              {"counted_calls", cost.counted_calls},
              {"disbelieved", cost.disbelieved},
              {"windows", cost.windows},
              {"seen_share", cost.seen_share}};
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
    ranks.push_back({rank.rank, rank.direct_s, rank.ideal_s, rank.recorded_calls, rank.counted_calls,
                     rank.program_cpu_s});
  }
  out["nodes"] = std::move(nodes);
  out["ranks"] = std::move(ranks);
  return out;
}

json percent_or_null(const std::optional<double>& share) {
  return share ? json(100 * *share) : json(nullptr);
}

}  // namespace

json procedures_json(const db::ProcedureReport& report) {
  json procedures = json::array();
  for (const db::ProcedureRecord& procedure : report.procedures) {
    procedures.push_back({{"name", procedure.name},
                          {"state", procedure.state},
                          {"note", procedure.note},
                          {"ranks", procedure.ranks},
                          {"calls", procedure.calls},
                          {"inclusive_s", procedure.inclusive_s},
                          {"exclusive_s", procedure.exclusive_s},
                          {"critical_path_s", or_null(procedure.critical_path_s)},
                          {"receiver_s", or_null(procedure.receiver_s)},
                          {"sender_s", or_null(procedure.sender_s)},
                          {"zeroed_s", or_null(procedure.zeroed_s)},
                          {"stayed_receiver_s", or_null(procedure.stayed_receiver_s)},
                          {"stayed_sender_s", or_null(procedure.stayed_sender_s)},
                          {"predicted_cost_percent", percent_or_null(procedure.predicted_cost)},
                          {"predicted_from", procedure.predicted_from},
                          {"observed_cost_percent", percent_or_null(procedure.observed_cost)},
                          {"calls_per_s", or_null(procedure.calls_per_s)},
                          {"samples", procedure.samples},
                          {"sampled_s", or_null(procedure.sampled_s)},
                          {"sampled_low_s", or_null(procedure.sampled_low_s)},
                          {"sampled_high_s", or_null(procedure.sampled_high_s)}});
  }
  json out{{"procedures", std::move(procedures)}, {"critical_path", nullptr}, {"why_deferred", report.why_deferred}};
  if (!report.path) return out;
  const db::CriticalPathRecord& path = *report.path;
  json ranks = json::array();
  for (const auto& [rank, rank_s] : path.ranks) ranks.push_back({rank < 0 ? json(nullptr) : json(rank), rank_s});
  out["critical_path"] = {{"as_it_ran_s", path.as_it_ran_s}, {"length_s", path.length_s},
                          {"ends_at", path.ends_at},         {"other_work_s", path.other_work_s},
                          {"mpi_s", path.mpi_s},             {"blocked_s", path.blocked_s},
                          {"unseen_s", path.unseen_s},       {"ranks", std::move(ranks)},
                          {"functions", path.functions},     {"partial", path.partial}};
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
  json out = {{"cluster", record.cluster},
              {"job", record.job},
              {"step", record.step},
              {"restart", record.restart},
              {"array_job", or_null(record.array_job)},
              {"array_task", or_null(record.array_task)},
              {"het_job", or_null(record.het_job)},
              {"het_offset", or_null(record.het_offset)},
              {"user", record.user_name},
              {"uid", record.uid},
              {"account", record.account},
              {"partition", record.partition},
              {"job_name", record.job_name},
              {"command", record.command_words ? json(*record.command_words) : json(record.command)},
              {"command_cut", record.command_cut},
              {"state", db::name_of(record.state)},
              {"why_partial", record.why_partial},
              {"nodes", record.nodes},
              {"ranks", record.ranks},
              {"network", record.network},
              {"start", record.start_s},
              {"end", or_null(record.end_s)},
              {"measured_s", or_null(record.measured_s)},
              {"events", record.events},
              {"messages", record.messages},
              {"collectives", record.collectives},
              {"bytes_on_wire", record.wire_bytes},
              {"bytes_stored", record.stored_bytes},
              {"wildcard_receives", record.wildcard_receives},
              {"mpi_s", record.mpi_s},
              {"unmodelled_s", record.unmodelled_s},
              {"capture_s", record.capture_s},
              {"relay_cpu_s", record.relay_cpu_s},
              {"lbfd_cpu_s", record.lbfd_cpu_s},
              {"lost_events", record.lost_events}};
  out["cost"] = record.cost ? cost_json(*record.cost, detail == StepDetail::kFull) : json(nullptr);
  if (detail != StepDetail::kSummary) {
    out["node_of_rank"] = record.node_of_rank;
    out["unmodelled_calls"] = calls_json(record.unmodelled_calls);
    out["notes"] = record.notes;
  }
  if (detail == StepDetail::kBrief) return out;
  if (detail != StepDetail::kSummary) {
    out["calls"] = calls_json(record.calls);
    out["procedures"] = record.procedures ? procedures_json(*record.procedures) : json(nullptr);
  }
  json predictions = json::array();
  for (const auto& prediction : step.predictions) {
    predictions.push_back(prediction_json(prediction, detail == StepDetail::kFull));
  }
  out["predictions"] = std::move(predictions);
  return out;
}

std::string json_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace lbf::daemon
