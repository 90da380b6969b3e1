// RowReader: rows of a query, where there are many of them.
//
// sqlite's own statement: tens of thousands of rows are read through it for a long report, and SQLite::Column counts
// the references to its statement with each value.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_handle.h"

namespace lbf::db {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};

// Throws SQLite::Exception. REQUIRES: the connection is the caller's for as long as the object lives.
class RowReader {
 public:
  RowReader(SQLite::Database& connection, const std::string& sql) : connection_(connection.getHandle()) {
    check(sqlite3_prepare_v2(connection_, sql.c_str(), static_cast<int>(sql.size()), statement_.out(), nullptr));
  }
  void bind(int index, std::int64_t value) { check(sqlite3_bind_int64(statement_.get(), index, value)); }
  void bind(int index, double value) { check(sqlite3_bind_double(statement_.get(), index, value)); }
  // REQUIRES: `value` outlives the reading.
  void bind(int index, const std::string& value) {
    check(sqlite3_bind_text(statement_.get(), index, value.data(), static_cast<int>(value.size()), SQLITE_STATIC));
  }
  void reset() { sqlite3_reset(statement_.get()); }
  bool next() {
    const int code = sqlite3_step(statement_.get());
    if (code != SQLITE_DONE && code != SQLITE_ROW) check(code);
    return code == SQLITE_ROW;
  }

  bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::uint32_t u32(int column) const { return static_cast<std::uint32_t>(integer(column)); }
  std::uint64_t u64(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  double number(int column) const { return sqlite3_column_double(statement_.get(), column); }
  bool flag(int column) const { return integer(column) != 0; }
  std::string_view text(int column) const {
    const auto* const data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    if (data == nullptr) return {};
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
  }
  std::optional<double> optional_number(int column) const {
    return is_null(column) ? std::nullopt : std::optional(number(column));
  }
  std::optional<std::uint32_t> optional_u32(int column) const {
    return is_null(column) ? std::nullopt : std::optional(u32(column));
  }
  // A list as JSON; empty where it is none.
  std::vector<std::string> texts(int column) const {
    const auto value = nlohmann::json::parse(text(column), nullptr, false);
    std::vector<std::string> out;
    if (!value.is_array()) return out;
    for (const auto& item : value) {
      if (item.is_string()) out.push_back(item.get_ref<const std::string&>());
    }
    return out;
  }

 private:
  void check(int code) const {
    if (code != SQLITE_OK) throw SQLite::Exception(connection_, code);
  }

  sqlite3* connection_;
  UniqueHandle<sqlite3_stmt*, FinalizeStatement> statement_;
};

}  // namespace lbf::db
