#include "advisor/report/yaml.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

namespace lbf::report {
namespace {

using Json = nlohmann::json;

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    if (value.empty()) out << YAML::Flow;
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    // Lists of numbers (times of ranks, nodes of ranks) on one line.
    bool plain = true;
    for (const Json& item : value) plain = plain && item.is_primitive();
    if (plain) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const Json& item : value) emit(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    // Quoted always: "1e3", "no" and "2026-11-22" are texts here.
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // numbers with all their digits; true, false
  }
}

}  // namespace

Result<std::string> render_yaml(std::string_view json) {
  const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return invalid_input("lbfd answered something that is not JSON");
  YAML::Emitter out;
  out.SetOutputCharset(YAML::EscapeNonAscii);
  emit(out, document);
  return std::string("---\n") + out.c_str() + '\n';
}

}  // namespace lbf::report
