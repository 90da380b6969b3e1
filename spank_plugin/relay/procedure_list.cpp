// ProcedureList, see procedure_list.h.
#include "spank_plugin/relay/procedure_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lbf::relay {

std::shared_ptr<const ProcedureList> procedure_list_of(const std::string& answer) {
  // Most answers have none; those that do are short.
  if (answer.find("\"procedures\"") == std::string::npos) return nullptr;
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  if (!json.is_object()) return nullptr;
  const auto found = json.find("procedures");
  if (found == json.end() || !found->is_object()) return nullptr;
  const auto generation = found->find("generation");
  const auto names = found->find("names");
  if (generation == found->end() || !generation->is_number_unsigned() || names == found->end() || !names->is_array())
    return nullptr;
  auto list = std::make_shared<ProcedureList>();
  list->generation = generation->get<std::uint64_t>();
  if (list->generation == 0) return nullptr;
  std::size_t bytes = 0;
  for (const auto& item : *names) {
    if (!item.is_string()) return nullptr;
    std::string name = item.get<std::string>();
    const bool printable = std::none_of(name.begin(), name.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
    bytes += name.size() + 1;
    if (name.empty() || !printable || bytes > ring::kMaxProcedureListBytes) return nullptr;
    list->names.push_back(std::move(name));
  }
  if (const auto text = found->find("text"); text != found->end() && text->is_string()) list->text = text->get<std::string>();
  return list;
}

}  // namespace lbf::relay
