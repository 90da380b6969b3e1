// ProcedureList, see procedure_list.h.
#include "protocol/procedure_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lbf::protocol {

std::string lines_of(const ProcedureList& list) {
  std::string out;
  for (const std::string& name : list.names) out += name + '\n';
  return out;
}

nlohmann::json json_of(const ProcedureList& list) {
  return {{"generation", list.generation}, {"names", list.names}, {"text", list.text}};
}

std::optional<ProcedureList> procedure_list_of(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto generation = json.find("generation");
  const auto names = json.find("names");
  if (generation == json.end() || !generation->is_number_unsigned() || names == json.end() || !names->is_array())
    return std::nullopt;
  ProcedureList list;
  list.generation = generation->get<std::uint64_t>();
  if (list.generation == 0) return std::nullopt;
  std::size_t bytes = 0;
  for (const auto& item : *names) {
    if (!item.is_string()) return std::nullopt;
    std::string name = item.get<std::string>();
    const bool printable =
        std::none_of(name.begin(), name.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
    bytes += name.size() + 1;
    if (name.empty() || !printable || bytes > kMaxProcedureListBytes) return std::nullopt;
    list.names.push_back(std::move(name));
  }
  if (const auto text = json.find("text"); text != json.end() && text->is_string())
    list.text = text->get<std::string>();
  return list;
}

}  // namespace lbf::protocol
