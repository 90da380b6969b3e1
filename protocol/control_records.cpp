// Control records, see control_records.h.
#include "protocol/control_records.h"

#include "protocol/json_fields.h"

namespace lbf::protocol {
namespace {

using nlohmann::json;

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcessRecord> record) {
  fields.integer("rank", record.rank);
  fields.integer("world_size", record.world_size);
  fields.integer("pid", record.pid);
  fields.integer("node_index", record.node_index);
  fields.integer("slurm_procid", record.slurm_procid);
  fields.text("executable", record.executable);
  fields.text("library", record.library);
  fields.texts_unless_empty("mpi_settings", record.mpi_settings, kMostMpiSettings);
  fields.text("build_id", record.build_id);
  fields.text("script", record.script);
  fields.integer("thread_level", record.thread_level);
  fields.integer("start_realtime_ns", record.start_realtime_ns);
  fields.seconds("init_s", record.init_s);
  fields.integer("cpu_threshold_ns", record.cpu_threshold_ns);
}

json json_of_call(const FunctionTotal& call) {
  return {call.function, call.count, call.total_s};
}

std::optional<FunctionTotal> call_of(const json& entry) {
  if (!entry.is_array() || entry.size() != 3 || !entry[0].is_number_unsigned() || !entry[1].is_number_unsigned() ||
      !entry[2].is_number()) {
    return std::nullopt;
  }
  return FunctionTotal{entry[0].get<std::uint64_t>(), entry[1].get<std::uint64_t>(),
                       std::max(0.0, entry[2].get<double>())};
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<StatsRecord> record) {
  fields.integer("rank", record.rank);
  fields.seconds("elapsed_s", record.elapsed_s);
  fields.items("calls", record.calls, json_of_call, call_of);
  fields.count("failed_polls", record.failed_polls);
  fields.count("lost_records", record.lost_records);
  fields.count("abandoned_calls", record.abandoned_calls);
  fields.count("events_without_communicator", record.events_without_communicator);
  fields.seconds("unread_gap_s", record.unread_gap_s);
  fields.seconds("capture_s", record.capture_s);
  fields.seconds_unless_zero("delayed_s", record.delayed_s);
  fields.seconds_unless_zero("others_s", record.others_s);
  fields.seconds_unless_zero("limited_s", record.limited_s);
  fields.texts_unless_empty("devices", record.devices, kMostDeviceLibraries);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcessEndRecord> record) {
  fields.integer("rank", record.rank);
  fields.text("how", record.how);
  fields.seconds("elapsed_s", record.elapsed_s);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<TaskExitRecord> record) {
  fields.integer("rank", record.rank);
  fields.whole("exit_code", record.exit_code);
  fields.whole("signal", record.signal);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<StepKilledRecord> record) {
  fields.text("by", record.by);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcedureRecord> record) {
  fields.integer("rank", record.rank);
  fields.whole("id", record.id);
  fields.text("name", record.name);
  fields.number_unless_zero("call_ns", record.call_ns);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcedureCandidateRecord> record) {
  fields.integer("rank", record.rank);
  fields.whole("number", record.number);
  fields.whole("of", record.of);
  fields.whole("samples", record.samples);
  fields.whole("own_samples", record.own_samples);
  fields.texts("names", record.names, kMaxRecordNames);
  fields.number_unless_zero("call_ns", record.call_ns);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcedureListRecord> record) {
  fields.integer("rank", record.rank);
  fields.whole("generation", record.list.generation);
  fields.texts("names", record.list.names, kMaxRecordNames);
  fields.text("text", record.list.text);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcedureSamplesRecord> record) {
  fields.integer("rank", record.rank);
  fields.text("name", record.name);
  fields.whole("inclusive", record.inclusive);
  fields.whole("exclusive", record.exclusive);
  fields.whole("of", record.of);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcedureRemarkRecord> record) {
  fields.integer("rank", record.rank);
  fields.text("kind", record.kind);
  fields.text("name", record.name);
  fields.text("text", record.text);
  fields.number_unless_zero("calls_per_s", record.calls_per_s);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<NoteRecord> record) {
  fields.text("text", record.text);
  fields.seconds_unless_zero("stopped_s", record.stopped_s);
}

json json_of_rank(const RankCost& cost) {
  return {cost.rank, cost.direct_s, cost.ideal_s, cost.recorded_calls, cost.counted_calls, cost.program_cpu_s};
}

std::optional<RankCost> rank_cost_of(const json& entry) {
  if (!entry.is_array() || entry.size() != 6) return std::nullopt;
  for (const json& part : entry) {
    if (!part.is_number() || part.get<double>() < 0) return std::nullopt;
  }
  if (!entry[0].is_number_unsigned() || !entry[3].is_number_unsigned() || !entry[4].is_number_unsigned()) {
    return std::nullopt;
  }
  const auto amount = [&](std::size_t i) { return std::min(entry[i].get<double>(), kMostAmount); };
  const auto count = [&](std::size_t i) { return std::min(entry[i].get<std::uint64_t>(), kMostCount); };
  return RankCost{entry[0].get<std::uint64_t>(), amount(1), amount(2), count(3), count(4), amount(5)};
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<PrimitiveTimes> times) {
  fields.seconds("recorded", times.recorded);
  fields.seconds("counted", times.counted);
  fields.seconds("relayed", times.relayed);
  fields.seconds("looked", times.looked);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<CostRecord> record) {
  fields.whole("node_index", record.node_index);
  fields.amount("limit_percent", record.limit_percent);
  fields.text("state", record.state);
  fields.amount("predicted_percent", record.predicted_percent);
  fields.amount("corrected_percent", record.corrected_percent);
  fields.amount_count("windows", record.windows);
  fields.amount("open_s", record.open_s);
  fields.amount("regulated_s", record.regulated_s);
  fields.amount_count("grants_used_up", record.grants_used_up);
  fields.amount("program_cpu_s", record.program_cpu_s);
  fields.amount("direct_s", record.direct_s);
  fields.amount("ideal_s", record.ideal_s);
  fields.amount("recording_s", record.recording_s);
  fields.amount("relay_cpu_s", record.relay_cpu_s);
  fields.amount("held_up_s", record.held_up_s);
  fields.amount("once_capture_s", record.once_capture_s);
  fields.amount("once_relay_s", record.once_relay_s);
  fields.amount("watched_s", record.watched_s);
  fields.amount_count("recorded_calls", record.recorded_calls);
  fields.amount_count("counted_calls", record.counted_calls);
  fields.amount_count("disbelieved", record.disbelieved);
  fields.amount("pressed_s", record.pressed_s);
  fields.object("primitives_ns", record.primitives_ns, [](auto& inner, auto& times) { members(inner, times); });
  fields.amount_count("procedure_calls", record.procedure_calls);
  fields.amount("procedures_s", record.procedures_s);
  fields.items("ranks", record.ranks, json_of_rank, rank_cost_of);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<RelayRecord> record) {
  fields.count("node_index", record.node_index);
  fields.seconds("cpu_s", record.cpu_s);
  fields.count("max_rss_bytes", record.max_rss_bytes);
  fields.count("bytes_sent", record.bytes_sent);
  fields.count("batches", record.batches);
  fields.count("spooled_batches", record.spooled_batches);
  fields.count("lost_batches", record.lost_batches);
  fields.count("discarded_events", record.discarded_events);
  fields.count("processes", record.processes);
  fields.count("processes_left_out", record.processes_left_out);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<ProcessorsRecord> record) {
  fields.whole("node_index", record.node_index);
  fields.whole("processors", record.processors);
  fields.seconds("passed_s", record.passed_s);
  fields.seconds("others_s", record.others_s);
  fields.seconds("stolen_s", record.stolen_s);
  fields.seconds("softirq_s", record.softirq_s);
  fields.seconds("throttled_s", record.throttled_s);
}

template <typename Fields>
void members(Fields& fields, typename Fields::template Of<UnknownRecord> record) {
  fields.integer("rank", record.rank);
}

// The type of each record, as `type` names it.
template <typename Record>
inline constexpr const char* kType = nullptr;
template <>
inline constexpr const char* kType<ProcessRecord> = "process";
template <>
inline constexpr const char* kType<StatsRecord> = "stats";
template <>
inline constexpr const char* kType<ProcessEndRecord> = "process_end";
template <>
inline constexpr const char* kType<TaskExitRecord> = "task_exit";
template <>
inline constexpr const char* kType<StepKilledRecord> = "step_killed";
template <>
inline constexpr const char* kType<ProcedureRecord> = "procedure";
template <>
inline constexpr const char* kType<ProcedureCandidateRecord> = "procedure_candidate";
template <>
inline constexpr const char* kType<ProcedureListRecord> = "procedure_list";
template <>
inline constexpr const char* kType<ProcedureSamplesRecord> = "procedure_samples";
template <>
inline constexpr const char* kType<ProcedureRemarkRecord> = "procedure_remark";
template <>
inline constexpr const char* kType<NoteRecord> = "note";
template <>
inline constexpr const char* kType<CostRecord> = "cost";
template <>
inline constexpr const char* kType<RelayRecord> = "relay";
template <>
inline constexpr const char* kType<ProcessorsRecord> = "processors";

template <typename Record>
std::string encoded(const Record& record) {
  JsonWriter fields;
  members(fields, record);
  json out = fields.take();
  out["type"] = kType<Record>;
  return text_of(out);
}

template <typename Record>
Record decoded(const json& json_record) {
  Record record;
  JsonReader fields(json_record);
  members(fields, record);
  return record;
}

// The record among RECORDS that TYPE names.
template <typename... Records>
ControlRecord decoded_as(const std::string& type, const json& record, const std::variant<UnknownRecord, Records...>*) {
  ControlRecord out = UnknownRecord{type, decoded<UnknownRecord>(record).rank};
  (void)((type == kType<Records> ? (out = decoded<Records>(record), true) : false) || ...);
  return out;
}

}  // namespace

std::string encode(const ProcessRecord& record) {
  return encoded(record);
}
std::string encode(const StatsRecord& record) {
  return encoded(record);
}
std::string encode(const ProcessEndRecord& record) {
  return encoded(record);
}
std::string encode(const TaskExitRecord& record) {
  return encoded(record);
}
std::string encode(const StepKilledRecord& record) {
  return encoded(record);
}
std::string encode(const ProcedureRecord& record) {
  return encoded(record);
}
std::string encode(const ProcedureCandidateRecord& record) {
  return encoded(record);
}
std::string encode(const ProcedureListRecord& record) {
  return encoded(record);
}
std::string encode(const ProcedureSamplesRecord& record) {
  return encoded(record);
}
std::string encode(const ProcedureRemarkRecord& record) {
  return encoded(record);
}
std::string encode(const NoteRecord& record) {
  return encoded(record);
}
std::string encode(const CostRecord& record) {
  return encoded(record);
}
std::string encode(const RelayRecord& record) {
  return encoded(record);
}
std::string encode(const ProcessorsRecord& record) {
  return encoded(record);
}

Result<ControlRecord> decode_control(std::string_view text) {
  const json record = json::parse(text, nullptr, false);
  const auto type = record.is_object() ? record.find("type") : record.end();
  if (type == record.end() || !type->is_string())
    return invalid_input("a control record is not a JSON object with a 'type'");
  return decoded_as(type->get<std::string>(), record, static_cast<const ControlRecord*>(nullptr));
}

std::optional<std::int64_t> rank_of(const ControlRecord& record) {
  return std::visit(
      [](const auto& one) -> std::optional<std::int64_t> {
        if constexpr (requires { one.rank; }) return one.rank;
        return std::nullopt;
      },
      record);
}

}  // namespace lbf::protocol
