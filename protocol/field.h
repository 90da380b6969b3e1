// A field of a record that lbfd stores and sends: everything that is said of it, once. The tables of fields are in
// prediction_fields.h, cost_fields.h and step_fields.h. SQL (db/field_sql.h), JSON (predictor/daemon/http), the readers
// of lbf-report (report/read_value.h), its columns (report/fields.cpp) and docs/formats/http-v1.md are made from them.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lbf::protocol {

// Who has the record. lbfd knows every value. A reader of its answers knows those that the answer has.
enum class Side { kLbfd, kReader };

// A value that lbfd always knows.
template <Side kSide, typename T>
using Known = std::conditional_t<kSide == Side::kLbfd, T, std::optional<T>>;

// What it is before anybody has set it.
template <Side kSide, typename T>
constexpr Known<kSide, T> at_first(T value) {
  if constexpr (kSide == Side::kLbfd) {
    return value;
  } else {
    return std::nullopt;
  }
}

enum class Unit {
  kNone,
  kCount,
  kBytes,
  kSeconds,       // never negative
  kEpochSeconds,  // since 1970
  kPercent,
  kShare,  // 0 to 1
  kFactor,
  kNodes,        // names of nodes
  kCommandLine,  // one text, or its words
};

// Where a field is found: in documents by their detail (daemon::StepDetail), in ROWS.
struct In {
  static constexpr unsigned kBrief = 1;
  static constexpr unsigned kSummary = 2;
  static constexpr unsigned kList = 4;
  static constexpr unsigned kFull = 8;
  static constexpr unsigned kRows = 16;
  static constexpr unsigned kDocuments = kBrief | kSummary | kList | kFull;
  static constexpr unsigned kEverywhere = kDocuments | kRows;
};

// When a document has it. ROWS always have it.
enum class When {
  kAlways,
  kDeferred,  // the target is deferred
  kSet,       // it is neither false nor 0 nor empty
  kKnown,     // always; null unless the prediction is known
  kSeen,      // always; null where too little of the run was seen
};

// Where a value is stored: in a column of the record's table, or in an expression of SQL. Empty: it is not stored.
struct Sql {
  std::string_view column;
  std::string_view expression;

  constexpr Sql() = default;
  constexpr Sql(const char* name) : column(name) {}  // NOLINT: a name stands for its column
  constexpr bool is_stored() const { return !column.empty(); }
};
constexpr Sql computed(const char* expression) {
  Sql sql;
  sql.expression = expression;
  return sql;
}
inline constexpr Sql kNotStored;

enum class Align { kRight, kLeft };

// A column of lbf-report that shows this field and nothing else.
struct ReportColumn {
  std::string_view name;
  unsigned width = 0;
  Align align = Align::kRight;
};
inline constexpr ReportColumn kNoColumn;
inline constexpr const char* kNoKey = "";  // not in JSON

template <typename Member>
struct Field {
  Member member;         // pointer to a member, or to a function without arguments for what is computed
  std::string_view key;  // in JSON
  Sql sql;
  Unit unit;
  ReportColumn column;
  std::string_view meaning;  // for http-v1.md; empty: the key says it
  unsigned in = In::kEverywhere;
  When when = When::kAlways;

  constexpr bool is_in(unsigned form) const { return (in & form) != 0 && !key.empty(); }
};

// For clang before 17, which deduces nothing of an aggregate by itself.
template <typename Member>
Field(Member, std::string_view, Sql, Unit, ReportColumn, std::string_view, unsigned = In::kEverywhere,
      When = When::kAlways) -> Field<Member>;

// Calls use(field) for each field of a table, in its order.
template <typename Table, typename Use>
constexpr void for_each_field(const Table& table, Use&& use) {
  std::apply([&use](const auto&... field) { (use(field), ...); }, table);
}

// The same with use(std::integral_constant) for the number of each field, where the field is wanted as a constant.
template <const auto& kTable, typename Use>
constexpr void for_each_number(Use&& use) {
  [&use]<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    (use(std::integral_constant<std::size_t, kNumbers>{}), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(kTable)>>>{});
}

}  // namespace lbf::protocol
