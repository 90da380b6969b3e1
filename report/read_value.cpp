// See read_value.h.
#include "report/read_value.h"

#include "base/quoted.h"

namespace lbf::report {

using Type = Value::Type;

// A command: the words, or the line that they were joined to (in steps that were stored before words were kept).
Expected put(std::string& out, const Value& value, protocol::Unit unit) {
  if (value.type == Type::kNull) return nullptr;
  if (unit == protocol::Unit::kCommandLine && value.type == Type::kTexts) {
    for (const std::string& word : *value.texts) out.append(out.empty() ? "" : " ").append(shell_word(printable(word)));
    return nullptr;
  }
  if (value.type != Type::kText) return unit == protocol::Unit::kCommandLine ? "a list of texts" : "text";
  out = printable(*value.text);
  return nullptr;
}

Expected put(std::optional<double>& out, const Value& value, protocol::Unit unit) {
  if (value.type == Type::kNull) return nullptr;
  if (value.type != Type::kNumber && value.type != Type::kCount) return "a number";
  const double number = value.type == Type::kNumber ? value.number : static_cast<double>(value.count);
  if (unit == protocol::Unit::kSeconds && !(number >= 0)) return "a time of 0 or more";
  out = number;
  return nullptr;
}

Expected put(double& out, const Value& value, protocol::Unit unit) {
  std::optional<double> known;
  const Expected expected = put(known, value, unit);
  if (known) out = *known;
  return expected;
}

Expected put(bool& out, const Value& value, protocol::Unit) {
  if (value.type == Type::kNull) return nullptr;
  if (value.type != Type::kFlag) return "true or false";
  out = value.flag;
  return nullptr;
}

Expected put(std::vector<std::string>& out, const Value& value, protocol::Unit) {
  if (value.type == Type::kNull) return nullptr;
  if (value.type != Type::kTexts) return "a list of texts";
  for (const std::string& text : *value.texts) out.push_back(printable(text));
  return nullptr;
}

Expected put(protocol::StepState& out, const Value& value, protocol::Unit) {
  const auto state = value.type == Type::kText ? protocol::state_of_name(*value.text) : std::nullopt;
  if (!state) return "running, complete or partial";
  out = *state;
  return nullptr;
}

}  // namespace lbf::report
