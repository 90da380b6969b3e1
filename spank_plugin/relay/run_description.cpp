// See run_description.h.
#include "spank_plugin/relay/run_description.h"

#include <string_view>
#include <utility>

namespace lbf::relay {
namespace {

constexpr std::size_t kMaxWords = 256;  // as the plugin: for people, not for a parser
constexpr std::size_t kMaxWordBytes = 1024;

}  // namespace

Result<RelayDescription> parse_relay_description(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return invalid_input("the step description is not a JSON object");
  RelayDescription out;
  if (const auto found = json.find("mpirun"); found != json.end()) {
    nlohmann::json of_job = std::move(*found);
    json.erase(found);
    if (!of_job.is_object()) return invalid_input("the step description's 'mpirun' is not an object");
    out.runs = json;
    for (const char* key : {"step", "tasks", "tasks_per_node", "task_ids", "command", "command_cut", "node"}) {
      out.runs.erase(key);
    }
    out.runs.update(of_job);
    out.runs["launcher"] = "mpirun";
  }
  if (const auto found = json.find("on_demand"); found != json.end()) {
    out.on_demand = found->is_boolean() && found->get<bool>() && !out.runs.is_null();
    json.erase(found);
    out.runs.erase("on_demand");
  }
  if (json.contains("step")) {
    out.own = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else if (out.runs.is_null()) {
    return invalid_input("the step description has neither 'step' nor 'mpirun'");
  }
  return out;
}

std::string describe_run(const nlohmann::json& runs, const FoundRun& run) {
  nlohmann::json json = runs;
  json["step"] = step_number_of_run(run.run);
  json["run"] = run.run;
  json["tasks"] = run.world_size;
  json["task_ids"] = run.ranks;
  json["start_realtime_ns"] = run.start_realtime_ns;
  bool cut = run.command.cut;
  auto words = nlohmann::json::array();
  for (std::string_view rest = run.command.words; !rest.empty();) {
    std::string_view word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(word.size() + 1);
    cut |= words.size() == kMaxWords || word.size() > kMaxWordBytes;
    if (words.size() == kMaxWords) break;
    words.push_back(std::string(word.substr(0, kMaxWordBytes)));
  }
  json["command"] = std::move(words);
  if (cut) json["command_cut"] = true;
  // Arguments may hold bytes that are no UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lbf::relay
