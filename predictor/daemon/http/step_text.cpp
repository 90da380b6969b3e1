// STEP of lists, see step_text.h.
#include "predictor/daemon/http/step_text.h"

#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

#include "predictor/daemon/http/field_json.h"
#include "predictor/daemon/http/json_append.h"
#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/http/step_sayings.h"

namespace lbf::daemon {
namespace {

enum class Obvious { kLeftOut, kWritten };  // null, "", false, empty lists

// An object, key by key.
class ObjectWriter {
 public:
  ObjectWriter(std::string& out, Obvious obvious) : out_(out), obvious_(obvious) { out_ += '{'; }
  ~ObjectWriter() { out_ += '}'; }
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  std::string& value(std::string_view name) {
    out_.append(first_ ? "\"" : ",\"").append(name).append("\":");
    first_ = false;
    return out_;
  }
  void add_null(std::string_view name) {
    if (writes_all()) value(name) += "null";
  }
  void add(std::string_view name, const std::string& text) {
    if (writes_all() || !text.empty()) append_json(value(name), text);
  }
  void add(std::string_view name, bool yes) {
    if (writes_all() || yes) value(name) += yes ? "true" : "false";
  }
  void add(std::string_view name, std::integral auto number) { append_json(value(name), number); }
  void add(std::string_view name, double number) {
    if (writes_all() || std::isfinite(number)) append_json(value(name), number);
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
    if (writes_all() || !texts.empty()) append_json(value(name), texts);
  }
  void add(std::string_view name, const std::vector<std::uint32_t>& numbers) {
    add_list(name, numbers, [](std::uint32_t number, std::string& out) { append_json(out, number); });
  }
  void add(std::string_view name, const std::vector<double>& numbers) {
    add_list(name, numbers, [](double number, std::string& out) { append_json(out, number); });
  }
  void add(std::string_view name, protocol::StepState state) { add(name, std::string(protocol::name_of(state))); }
  void add(std::string_view name, const protocol::CommandView& command) {
    if (command.words) {
      add(name, *command.words);
    } else {
      add(name, command.line);
    }
  }
  void add(std::string_view name, const protocol::Topology& topology) {
    ObjectWriter(value(name), obvious_).add_fields(protocol::kTopologyTable, topology, protocol::In::kEverywhere);
  }
  void add(std::string_view name, const std::vector<protocol::CallTotal>& calls) {
    add_list(name, calls, [](const protocol::CallTotal& call, std::string& out) {
      out += '[';
      append_json(out, call.function);
      out += ',';
      append_json(out, call.calls);
      out += ',';
      append_json(out, call.total_s);
      out += ']';
    });
  }
  // Those that a document of `form` has, and of which is_wanted(field) is true.
  template <typename Table, typename Record, typename IsWanted>
  void add_fields(const Table& table, const Record& record, unsigned form, const IsWanted& is_wanted) {
    protocol::for_each_field(table, [&](const auto& field) {
      if (!is_written(field, record, form) || !is_wanted(field)) return;
      use_value(field, record, [&](const auto& known) { add(field.key, known); });
    });
  }
  template <typename Table, typename Record>
  void add_fields(const Table& table, const Record& record, unsigned form) {
    add_fields(table, record, form, [](const auto&) { return true; });
  }
  template <typename Item, typename Append>
  void add_list(std::string_view name, const std::vector<Item>& items, const Append& append) {
    if (items.empty() && !writes_all()) return;
    value(name) += '[';
    for (const Item& item : items) {
      if (&item != &items.front()) out_ += ',';
      append(item, out_);
    }
    out_ += ']';
  }

 private:
  bool writes_all() const { return obvious_ == Obvious::kWritten; }

  std::string& out_;
  const Obvious obvious_;
  bool first_ = true;
};

}  // namespace

void append_step_text(const StepView& step, StepDetail detail, std::string& out) {
  const db::StepRecord& record = step.record;
  const Obvious obvious = detail == StepDetail::kSummary ? Obvious::kLeftOut : Obvious::kWritten;
  ObjectWriter object(out, obvious);
  const unsigned form = form_of(detail);
  const auto is_in_summary = [](const auto& field) { return field.is_in(protocol::In::kSummary); };
  object.add_fields(db::kStepFields, record, form, is_in_summary);
  if (record.cost) {
    ObjectWriter(object.value("cost"), obvious).add_fields(db::kCostFields, *record.cost, form);
  } else {
    object.add_null("cost");
  }
  object.add_fields(db::kStepFields, record, form, [&](const auto& field) { return !is_in_summary(field); });
  if (detail == StepDetail::kBrief) return;
  if (detail != StepDetail::kSummary) {
    // Few steps have any.
    object.value("procedures") += record.procedures ? json_text(procedures_json(*record.procedures)) : "null";
  }
  const StepSayings sayings(step);
  object.add_list("predictions", step.predictions, [&](const db::PredictionRecord& prediction, std::string& text) {
    ObjectWriter written(text, obvious);
    written.add_fields(db::kPredictionFields, prediction, form);
    written.add_fields(protocol::kSayingTable, sayings.of(prediction), form);
  });
}

}  // namespace lbf::daemon
