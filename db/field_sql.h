// Fields in SQL: how values of each type are bound and read, and the statements' lists of columns, from the tables of
// fields in protocol/.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/row_reader.h"
#include "db/statement_values.h"
#include "protocol/field.h"
#include "protocol/prediction_fields.h"
#include "protocol/step_fields.h"

namespace lbf::db {

// What column topology_json holds; nothing known where it holds none.
protocol::Topology topology_of(std::string_view text);
std::string topology_text(const protocol::Topology& topology);

inline void bind_value(SQLite::Statement& statement, int at, const std::string& text) {
  statement.bind(at, text);
}
void bind_value(SQLite::Statement& statement, int at, std::integral auto number) {
  statement.bind(at, static_cast<std::int64_t>(number));
}
inline void bind_value(SQLite::Statement& statement, int at, double number) {
  statement.bind(at, number);
}
inline void bind_value(SQLite::Statement& statement, int at, protocol::StepState state) {
  statement.bind(at, protocol::name_of(state));
}
inline void bind_value(SQLite::Statement& statement, int at, const protocol::Topology& topology) {
  statement.bind(at, topology_text(topology));
}
template <typename T>
requires std::is_arithmetic_v<T> || std::same_as<T, std::string>
void bind_value(SQLite::Statement& statement, int at, const std::vector<T>& list) {
  statement.bind(at, text_of(list));
}
template <typename T>
void bind_value(SQLite::Statement& statement, int at, const std::optional<T>& known) {
  if (known) {
    bind_value(statement, at, *known);
  } else {
    statement.bind(at);
  }
}

// NULL, and lists that are none, leave `out` as a record is made.
inline void read_value(const RowReader& row, int column, std::string& out) {
  out = row.text(column);
}
void read_value(const RowReader& row, int column, std::integral auto& out) {
  out = static_cast<std::remove_reference_t<decltype(out)>>(row.integer(column));
}
inline void read_value(const RowReader& row, int column, double& out) {
  const double number = row.number(column);
  if (number != 0 || !row.is_null(column)) out = number;
}
inline void read_value(const RowReader& row, int column, protocol::StepState& out) {
  out = protocol::state_of_name(row.text(column)).value_or(protocol::StepState::kRunning);
}
inline void read_value(const RowReader& row, int column, protocol::Topology& out) {
  out = topology_of(row.text(column));
}
inline void read_value(const RowReader& row, int column, std::vector<std::string>& out) {
  out = row.texts(column);
}
template <typename Number>
requires std::is_arithmetic_v<Number>
void read_value(const RowReader& row, int column, std::vector<Number>& out) {
  const auto list = nlohmann::json::parse(row.text(column), nullptr, false);
  if (!list.is_array()) return;
  out.reserve(list.size());
  for (const auto& value : list) {
    if (value.is_number()) out.push_back(value.template get<Number>());
  }
}
template <typename T>
void read_value(const RowReader& row, int column, std::optional<T>& out) {
  if (!row.is_null(column)) read_value(row, column, out.emplace());
}

// ", a, b, c": the columns of a table of fields, each as `write(name)` says.
template <typename Table, typename Write>
std::string each_column(const Table& table, const Write& write) {
  std::string out;
  protocol::for_each_field(table, [&](const auto& field) {
    if (field.sql.is_stored()) out.append(", ").append(write(field.sql.column));
  });
  return out;
}

// Binds what is stored of `record` from parameter `at` on; returns the number after the last one.
template <typename Table, typename Record>
int bind_fields(SQLite::Statement& statement, int at, const Table& table, const Record& record) {
  protocol::for_each_field(table, [&](const auto& field) {
    if constexpr (std::is_member_object_pointer_v<decltype(field.member)>) {
      if constexpr (requires { bind_value(statement, at, record.*field.member); }) {
        if (field.sql.is_stored()) bind_value(statement, at++, record.*field.member);
      }
    }
  });
  return at;
}

// A field as it is read from a row.
template <typename Record>
struct ReadField {
  std::string_view name;  // of its column; of what is computed, the key in JSON
  protocol::Sql sql;
  void (*read)(const RowReader& row, int column, Record& out);

  // What a SELECT has of it; `table`: with the dot.
  std::string selected(std::string_view table) const {
    return sql.is_stored() ? std::string(table).append(sql.column) : std::string(sql.expression);
  }
};

// All fields that come from the database, in the order of the table.
template <typename Record, const auto& kTable>
const std::vector<ReadField<Record>>& read_fields() {
  static const std::vector<ReadField<Record>> fields = [] {
    std::vector<ReadField<Record>> out;
    protocol::for_each_number<kTable>([&out](auto number) {
      constexpr const auto& kField = std::get<number()>(kTable);
      if constexpr (kField.sql.is_stored() || !kField.sql.expression.empty()) {
        out.push_back({kField.sql.is_stored() ? kField.sql.column : kField.key, kField.sql,
                       [](const RowReader& row, int column, Record& record) {
                         read_value(row, column, record.*(kField.member));
                       }});
      }
    });
    return out;
  }();
  return fields;
}

// Some of the fields, in columns from `first` on.
template <typename Record>
class FieldReader {
 public:
  void add(const ReadField<Record>& field, std::string_view table, std::string& sql) {
    sql.append(", ").append(field.selected(table));
    reads_.push_back(field.read);
  }
  explicit FieldReader(int first) : first_(first) {}
  void read(const RowReader& row, Record& out) const {
    int column = first_;
    for (const auto read : reads_) read(row, column++, out);
  }
  int end() const { return first_ + static_cast<int>(reads_.size()); }

 private:
  int first_;
  std::vector<void (*)(const RowReader& row, int column, Record& out)> reads_;
};

}  // namespace lbf::db
