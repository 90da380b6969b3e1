#include "report/network_names.h"

#include "report/answer.h"
#include "report/answer_json.h"
#include "report/text.h"

namespace lbf::report {

Result<std::vector<std::string>> parse_networks(std::string_view json) {
  const nlohmann::json document = json_of_answer(json);
  if (!document.is_object() || !document.contains("networks") || !document["networks"].is_array())
    return answer_error("it has no list 'networks'");
  std::vector<std::string> names;
  for (const nlohmann::json& name : document["networks"]) {
    if (!name.is_string()) return answer_error("a network is not a name");
    names.push_back(printable(name.get_ref<const std::string&>()));
  }
  return names;
}

}  // namespace lbf::report
