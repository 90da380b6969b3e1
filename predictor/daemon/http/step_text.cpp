// STEP of lists, see step_text.h.
#include "predictor/daemon/http/step_text.h"

#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

#include "predictor/daemon/http/json_append.h"
#include "predictor/daemon/http/step_json.h"

namespace lbf::daemon {
namespace {

enum class Obvious { kLeftOut, kWritten };  // null, "", false, empty lists

// An object, key by key.
class ObjectWriter {
 public:
  ObjectWriter(std::string& out, Obvious obvious) : out_(out), all_(obvious == Obvious::kWritten) { out_ += '{'; }
  ~ObjectWriter() { out_ += '}'; }
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  std::string& value(std::string_view name) {
    out_.append(first_ ? "\"" : ",\"").append(name).append("\":");
    first_ = false;
    return out_;
  }
  void add_null(std::string_view name) {
    if (all_) value(name) += "null";
  }
  void add(std::string_view name, const std::string& text) {
    if (all_ || !text.empty()) append_json(value(name), text);
  }
  void add(std::string_view name, bool yes) {
    if (all_ || yes) value(name) += yes ? "true" : "false";
  }
  void add(std::string_view name, std::integral auto number) { append_json(value(name), number); }
  void add(std::string_view name, double number) {
    if (all_ || std::isfinite(number)) append_json(value(name), number);
  }
  template <typename T>
  void add(std::string_view name, const std::optional<T>& known) {
    if (known) {
      add(name, *known);
    } else {
      add_null(name);
    }
  }
  void add(std::string_view name, const std::vector<std::string>& texts) {
    if (all_ || !texts.empty()) append_json(value(name), texts);
  }
  void add(std::string_view name, const std::vector<std::uint32_t>& numbers) {
    add_list(name, numbers, [](std::uint32_t number, std::string& out) { append_json(out, number); });
  }
  void add(std::string_view name, const std::vector<db::CallRecord>& calls) {
    add_list(name, calls, [](const db::CallRecord& call, std::string& out) {
      out += '[';
      append_json(out, call.function);
      out += ',';
      append_json(out, call.calls);
      out += ',';
      append_json(out, call.total_s);
      out += ']';
    });
  }
  template <typename Item, typename Append>
  void add_list(std::string_view name, const std::vector<Item>& items, const Append& append) {
    if (items.empty() && !all_) return;
    value(name) += '[';
    for (const Item& item : items) {
      if (&item != &items.front()) out_ += ',';
      append(item, out_);
    }
    out_ += ']';
  }

 private:
  std::string& out_;
  const bool all_;
  bool first_ = true;
};

void append_prediction(const db::PredictionRecord& prediction, Obvious obvious, std::string& out) {
  ObjectWriter object(out, obvious);
  object.add("target", prediction.target);
  object.add("nodes", prediction.nodes);
  object.add("cores", prediction.cores_per_node);
  object.add("placement", prediction.placement);
  object.add("network", prediction.network);
  object.add("contention", prediction.contention);
  object.add("speed", prediction.speed);
  object.add("kind", prediction.kind);
  const bool ends = prediction.why_stuck.empty() && prediction.why_deferred.empty();
  object.add("predicted_s", ends ? std::optional(prediction.predicted_s) : std::nullopt);
  object.add("why_stuck", prediction.why_stuck);
  object.add("speedup", prediction.speedup);
  object.add("self_error_percent", prediction.self_error_percent);
  object.add("partial", prediction.partial);
  object.add("progress_s", prediction.progress_s);
  object.add("measured_at_progress_s", prediction.measured_at_progress_s);
  object.add("seen_share", prediction.seen_share);
  object.add("low_s", prediction.low_s);
  object.add("high_s", prediction.high_s);
  if (!prediction.topology.file.empty()) {
    ObjectWriter topology(object.value("topology"), obvious);
    topology.add("file", prediction.topology.file);
    topology.add("nodes", prediction.topology.nodes);
  }
  if (!prediction.why_deferred.empty()) {
    object.add("why_deferred", prediction.why_deferred);
    object.add("deferred_for_good", prediction.deferred_for_good);
  }
  if (prediction.taken_up) object.add("taken_up", true);
}

void append_cost(const db::CostRecord& cost, Obvious obvious, std::string& out) {
  ObjectWriter object(out, obvious);
  object.add("limit_percent", cost.limit_percent);
  object.add("predicted_percent", cost.predicted_percent);
  object.add("corrected_percent", cost.corrected_percent);
  object.add("low_percent", cost.low_percent());
  object.add("high_percent", cost.high_percent());
  object.add("state", cost.state);
  object.add("program_cpu_s", cost.program_cpu_s);
  object.add("direct_s", cost.direct_s);
  object.add("ideal_s", cost.ideal_s);
  object.add("relay_cpu_s", cost.relay_cpu_s);
  object.add("held_up_s", cost.held_up_s);
  object.add("once_capture_s", cost.once_capture_s);
  object.add("once_relay_s", cost.once_relay_s);
  object.add("total_low_percent", cost.total_low_percent());
  object.add("total_high_percent", cost.total_high_percent());
  object.add("recorded_calls", cost.recorded_calls);
  object.add("counted_calls", cost.counted_calls);
  object.add("disbelieved", cost.disbelieved);
  object.add("windows", cost.windows);
  object.add("seen_share", cost.seen_share);
}

}  // namespace

void append_step_text(const StepView& step, StepDetail detail, std::string& out) {
  const db::StepRecord& record = step.record;
  const Obvious obvious = detail == StepDetail::kSummary ? Obvious::kLeftOut : Obvious::kWritten;
  ObjectWriter object(out, obvious);
  object.add("cluster", record.cluster);
  object.add("job", record.job);
  object.add("step", record.step);
  object.add("restart", record.restart);
  object.add("array_job", record.array_job);
  object.add("array_task", record.array_task);
  object.add("het_job", record.het_job);
  object.add("het_offset", record.het_offset);
  object.add("user", record.user_name);
  object.add("uid", record.uid);
  object.add("account", record.account);
  object.add("partition", record.partition);
  object.add("job_name", record.job_name);
  if (record.command_words) {
    object.add("command", *record.command_words);
  } else {
    object.add("command", record.command);
  }
  object.add("command_cut", record.command_cut);
  object.add("state", std::string(db::name_of(record.state)));
  object.add("why_partial", record.why_partial);
  object.add("nodes", record.nodes);
  object.add("ranks", record.ranks);
  object.add("network", record.network);
  object.add("start", record.start_s);
  object.add("end", record.end_s);
  object.add("measured_s", record.measured_s);
  object.add("events", record.events);
  object.add("messages", record.messages);
  object.add("collectives", record.collectives);
  object.add("bytes_on_wire", record.wire_bytes);
  object.add("bytes_stored", record.stored_bytes);
  object.add("wildcard_receives", record.wildcard_receives);
  object.add("mpi_s", record.mpi_s);
  object.add("unmodelled_s", record.unmodelled_s);
  object.add("capture_s", record.capture_s);
  object.add("relay_cpu_s", record.relay_cpu_s);
  object.add("lbfd_cpu_s", record.lbfd_cpu_s);
  object.add("lost_events", record.lost_events);
  if (record.cost) {
    append_cost(*record.cost, obvious, object.value("cost"));
  } else {
    object.add_null("cost");
  }
  if (detail != StepDetail::kSummary) {
    object.add("node_of_rank", record.node_of_rank);
    object.add("unmodelled_calls", record.unmodelled_calls);
    object.add("notes", record.notes);
  }
  if (detail == StepDetail::kBrief) return;
  if (detail != StepDetail::kSummary) {
    object.add("calls", record.calls);
    // Few steps have any.
    object.value("procedures") += record.procedures ? json_text(procedures_json(*record.procedures)) : "null";
  }
  object.add_list("predictions", step.predictions, [obvious](const db::PredictionRecord& prediction, std::string& text) {
    append_prediction(prediction, obvious, text);
  });
}

}  // namespace lbf::daemon
