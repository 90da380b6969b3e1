// Rows, see step_rows.h.
#include "predictor/daemon/http/step_rows.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "predictor/daemon/http/field_json.h"
#include "predictor/daemon/http/json_append.h"

namespace lbf::daemon {

// A key of ROWS. Those of predictions are without "predictions.".
template <typename Record>
struct RowColumn {
  std::string name;
  std::vector<std::string_view> sources;  // what is read for it (db::ListValues)
  void (*append)(const Record& record, std::string& out);
};

namespace {

constexpr std::string_view kOfPredictions = "predictions.";

template <typename T>
void append(std::string& out, const T& value) {
  append_json(out, value);
}
void append(std::string& out, bool yes) {
  out += yes ? "true" : "false";
}
void append(std::string& out, protocol::StepState state) {
  append_json(out, std::string(protocol::name_of(state)));
}
void append(std::string& out, const protocol::CommandView& command) {
  if (command.words) {
    append_json(out, *command.words);
  } else {
    append_json(out, command.line);
  }
}
template <typename T>
void append(std::string& out, const std::optional<T>& value) {
  if (value) {
    append(out, *value);
  } else {
    out += "null";
  }
}

template <typename Field>
std::vector<std::string_view> sources_of(const Field& field) {
  if (field.unit == protocol::Unit::kCommandLine) return {"command", "command_json"};
  if (field.when == protocol::When::kKnown)
    return {field.sql.column, "why_stuck", "why_deferred", "seen_share", "low_s", "high_s"};
  if (field.when == protocol::When::kSeen) return {field.sql.column, "seen_share", "low_s", "high_s"};
  return {field.sql.is_stored() ? field.sql.column : field.key};
}

// The fields of `kTable` that ROWS have.
template <typename Record, const auto& kTable>
void add_columns(std::vector<RowColumn<Record>>& columns) {
  protocol::for_each_number<kTable>([&columns](auto number) {
    constexpr const auto& kField = std::get<number()>(kTable);
    using Value = std::remove_cvref_t<std::invoke_result_t<decltype(kField.member), const Record&>>;
    if constexpr (kField.is_in(protocol::In::kRows) && !std::is_same_v<Value, protocol::Topology>) {
      columns.push_back({std::string(kField.key), sources_of(kField), [](const Record& record, std::string& out) {
                           use_value(kField, record, [&out](const auto& value) { append(out, value); });
                         }});
    }
  });
}

// The same of a part of the record: `part.KEY`. null where there is no part.
template <typename Record, auto kPart, const auto& kTable>
void add_columns_of_part(std::string_view part, std::string_view source, std::vector<RowColumn<Record>>& columns) {
  protocol::for_each_number<kTable>([&](auto number) {
    constexpr const auto& kField = std::get<number()>(kTable);
    if constexpr (kField.is_in(protocol::In::kRows)) {
      columns.push_back(
          {std::string(part) + '.' + std::string(kField.key), {source}, [](const Record& record, std::string& out) {
             if constexpr (requires { (record.*kPart).has_value(); }) {
               if (record.*kPart) {
                 append(out, std::invoke(kField.member, *(record.*kPart)));
               } else {
                 out += "null";
               }
             } else {
               append(out, std::invoke(kField.member, record.*kPart));
             }
           }});
    }
  });
}

const std::vector<RowColumn<db::StepRecord>>& step_columns() {
  static const std::vector<RowColumn<db::StepRecord>> columns = [] {
    std::vector<RowColumn<db::StepRecord>> out;
    add_columns<db::StepRecord, db::kStepFields>(out);
    add_columns_of_part<db::StepRecord, &db::StepRecord::cost, db::kCostFields>("cost", "cost", out);
    return out;
  }();
  return columns;
}

const std::vector<RowColumn<db::PredictionRecord>>& prediction_columns() {
  static const std::vector<RowColumn<db::PredictionRecord>> columns = [] {
    std::vector<RowColumn<db::PredictionRecord>> out;
    add_columns<db::PredictionRecord, db::kPredictionFields>(out);
    add_columns_of_part<db::PredictionRecord, &db::PredictionRecord::topology, protocol::kTopologyTable>(
        "topology", "topology_json", out);
    return out;
  }();
  return columns;
}

// false: no column of that name, or it is in `chosen` already.
template <typename Column>
bool choose(const std::vector<Column>& columns, std::string_view name, std::vector<const Column*>& chosen) {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [name](const Column& column) { return column.name == name; });
  if (found == columns.end() || std::find(chosen.begin(), chosen.end(), &*found) != chosen.end()) return false;
  chosen.push_back(&*found);
  return true;
}

template <typename Column>
void append_names(const std::vector<const Column*>& columns, std::string& out) {
  out += '[';
  for (const Column* const column : columns) {
    if (column != columns.front()) out += ',';
    append_json(out, column->name);
  }
  out += ']';
}

template <typename Column>
void add_sources(const std::vector<const Column*>& columns, std::vector<std::string_view>& sources) {
  for (const Column* const column : columns) {
    for (const std::string_view source : column->sources) {
      if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
    }
  }
}

}  // namespace

db::ListValues RowColumns::values() const {
  db::ListValues out;
  add_sources(step, out.step);
  add_sources(prediction, out.prediction);
  return out;
}

Result<RowColumns> parse_rows(std::string_view names) {
  RowColumns out;
  while (true) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const bool known = name.starts_with(kOfPredictions)
                           ? choose(prediction_columns(), name.substr(kOfPredictions.size()), out.prediction)
                           : choose(step_columns(), name, out.step);
    if (!known) {
      return invalid_input("rows: '" + std::string(name.substr(0, 40)) +
                           "' is there twice, or no key of rows: docs/formats/http-v1.md lists them");
    }
    if (comma == std::string_view::npos) return out;
    names.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> all_row_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& column : step_columns()) out.push_back(column.name);
    for (const auto& column : prediction_columns()) out.push_back(std::string(kOfPredictions) + column.name);
    return out;
  }();
  return {names.begin(), names.end()};
}

void append_rows_head(const RowColumns& columns, std::string& out) {
  out += "{\"keys\":";
  append_names(columns.step, out);
  out += ",\"prediction_keys\":";
  append_names(columns.prediction, out);
  out += ",\"rows\":[";
}

void append_row(const db::ListedStep& step, const RowColumns& columns, std::string& out) {
  char separator = '[';
  for (const auto* const column : columns.step) {
    out += std::exchange(separator, ',');
    column->append(step.record, out);
  }
  if (!columns.prediction.empty()) {
    out += std::exchange(separator, ',');
    out += '[';
    for (const db::PredictionRecord& prediction : step.predictions) {
      separator = '[';
      if (&prediction != &step.predictions.front()) out += ',';
      for (const auto* const column : columns.prediction) {
        out += std::exchange(separator, ',');
        column->append(prediction, out);
      }
      out += ']';
    }
    out += ']';
  }
  out += ']';
}

}  // namespace lbf::daemon
