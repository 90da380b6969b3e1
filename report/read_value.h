// Values of JSON as the fields of a record (protocol/field.h): what both forms of lbfd's answers, documents and rows,
// are read with.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "protocol/field.h"
#include "protocol/step_fields.h"
#include "report/text.h"

namespace lbf::report {

// One value as it was read.
struct Value {
  enum class Type { kNull, kFlag, kCount, kNumber, kText, kTexts, kOther };
  Type type = Type::kNull;
  bool flag = false;
  std::uint64_t count = 0;
  double number = 0;
  const std::string* text = nullptr;
  const std::vector<std::string>* texts = nullptr;
};

// nullptr: `out` has the value; else what was expected. Null leaves `out` as it is.
using Expected = const char*;

template <typename T>
inline constexpr bool kIsCount = std::integral<T> && !std::same_as<T, bool>;

template <typename Count>
requires kIsCount<Count> Expected put(std::optional<Count>& out, const Value& value, protocol::Unit) {
  if (value.type == Value::Type::kNull) return nullptr;
  if (value.type != Value::Type::kCount) return "a whole number";
  if (value.count > static_cast<std::uint64_t>(std::numeric_limits<Count>::max()))
    return std::is_signed_v<Count> ? "a whole number below 2^31" : "a whole number below 2^32";
  out = static_cast<Count>(value.count);
  return nullptr;
}

template <typename Count>
requires kIsCount<Count> Expected put(Count& out, const Value& value, protocol::Unit unit) {
  std::optional<Count> known;
  const Expected expected = put(known, value, unit);
  if (known) out = *known;
  return expected;
}

Expected put(std::string& out, const Value& value, protocol::Unit unit);
Expected put(std::optional<double>& out, const Value& value, protocol::Unit unit);
Expected put(double& out, const Value& value, protocol::Unit unit);
Expected put(bool& out, const Value& value, protocol::Unit unit);
Expected put(std::vector<std::string>& out, const Value& value, protocol::Unit unit);
Expected put(protocol::StepState& out, const Value& value, protocol::Unit unit);

}  // namespace lbf::report
