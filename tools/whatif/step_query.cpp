// ask_for_steps, see step_query.h.
#include "tools/whatif/step_query.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "report/answer_json.h"

namespace lbf::tools {
namespace {

bool has_no_steps(const std::string& body) {
  const nlohmann::json list = report::json_of_answer(body);
  return list.is_object() && list.contains("steps") && list["steps"].is_array() && list["steps"].empty();
}

}  // namespace

Result<HttpResponse> ask_for_steps(HttpClient& client, const std::string& query) {
  Result<HttpResponse> own = client.request("GET", query);
  if (!own || own->status != 200 || !has_no_steps(own->body)) return own;
  Result<HttpResponse> everybodys = client.request("GET", query + "&all=1");
  if (everybodys && everybodys->status != 200) return own;  // he is no operator
  return everybodys;
}

}  // namespace lbf::tools
