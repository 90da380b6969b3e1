// RelayDescription, see relay_description.h.
#include "protocol/relay_description.h"

#include <utility>

#include "protocol/json_fields.h"

namespace lbf::protocol {

using nlohmann::json;

std::string encode(const RelayDescription& description) {
  json out = json_of(description.step);
  if (description.on_demand) out["on_demand"] = true;
  if (const auto& job = description.mpirun) {
    json& mpirun = out["mpirun"];
    mpirun = {{"nodes", job->nodes}, {"node_index", job->node_index}};
    if (job->cpus_on_node > 0) mpirun["cpus_on_node"] = job->cpus_on_node;
  }
  return text_of(out);
}

Result<RelayStreams> decode_relay_description(std::string_view text) {
  json description = json::parse(text, nullptr, false);
  if (!description.is_object()) return invalid_input("the step description is not a JSON object");
  RelayStreams out;
  if (const auto found = description.find("mpirun"); found != description.end()) {
    const json of_job = std::move(*found);
    description.erase(found);
    if (!of_job.is_object()) return invalid_input("the step description's 'mpirun' is not an object");
    out.runs = description;
    for (const char* key :
         {"step", "tasks", "tasks_per_node", "task_ids", "start_realtime_ns", "command", "command_cut", "node"}) {
      out.runs.erase(key);
    }
    out.runs.update(of_job);
    out.runs["launcher"] = "mpirun";
  }
  if (const auto found = description.find("on_demand"); found != description.end()) {
    out.on_demand = found->is_boolean() && found->get<bool>() && !out.runs.is_null();
    description.erase(found);
    if (out.runs.is_object()) out.runs.erase("on_demand");
  }
  if (description.contains("step")) {
    out.own = text_of(description);
  } else if (out.runs.is_null()) {
    return invalid_input("the step description has neither 'step' nor 'mpirun'");
  }
  return out;
}

std::string describe_run(const json& runs, const StepDescription& run) {
  json out = json_of(run);
  out.update(runs);
  return text_of(out);
}

}  // namespace lbf::protocol
