// See step_description.h.
#include "spank_plugin/plugin/step_description.h"

extern "C" {
#include <slurm/slurm.h>
}

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

namespace lbf::plugin {
namespace {

constexpr std::size_t kMaxArguments = 256;  // of the command line: for people, not for a parser
constexpr std::size_t kMaxArgumentBytes = 1024;

// Slurm's own expansion of "node[1-3,7]".
std::vector<std::string> expand_hosts(const std::string& text) {
  std::vector<std::string> nodes;
  const auto list = slurm_hostlist_create(text.c_str());
  if (list == nullptr) return nodes;
  while (char* host = slurm_hostlist_shift(list)) {
    const std::unique_ptr<char, decltype(&std::free)> owned(host, &std::free);
    nodes.emplace_back(host);
  }
  slurm_hostlist_destroy(list);
  return nodes;
}

template <typename T>
void put_number(nlohmann::json& json, const char* key, const std::optional<std::string>& text) {
  if (!text) return;
  T value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size()) json[key] = value;
}

}  // namespace

Result<StepDescription> describe_step(const SpankHandle& spank, const StepConfig& step) {
  const auto missing = [](const char* what) {
    return Error{ErrorCode::kNotFound, std::string("Slurm does not tell ") + what};
  };
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  const auto step_id = spank.item<std::uint32_t>(S_JOB_STEPID);
  if (!job || !step_id) return missing("the job's and the step's number");
  const auto tasks = spank.item<std::uint32_t>(S_JOB_TOTAL_TASK_COUNT);
  const auto node_index = spank.item<std::uint32_t>(S_JOB_NODEID);
  if (!tasks || !node_index) return missing("the step's tasks");
  auto nodelist = spank.environment("SLURM_STEP_NODELIST");
  if (!nodelist) nodelist = spank.environment("SLURM_NODELIST");
  const std::vector<std::string> nodes = nodelist ? expand_hosts(*nodelist) : std::vector<std::string>();
  if (*node_index >= nodes.size()) return missing("the step's nodes (SLURM_STEP_NODELIST)");

  nlohmann::json json{{"job", *job},
                      {"step", *step_id},
                      {"restart", spank.item<std::uint32_t>(S_SLURM_RESTART_COUNT).value_or(0)},
                      {"nodes", nodes},
                      {"node_index", *node_index},
                      {"node", nodes[*node_index]},
                      {"tasks", *tasks},
                      {"networks", step.networks},
                      {"overhead_limit_percent", step.overhead_limit_percent}};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  json["start_realtime_ns"] = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  if (const auto uid = spank.item<uid_t>(S_JOB_UID)) json["uid"] = *uid;
  if (const auto gid = spank.item<gid_t>(S_JOB_GID)) json["gid"] = *gid;
  if (const auto array_job = spank.item<std::uint32_t>(S_JOB_ARRAY_ID); array_job && *array_job != 0) {
    json["array_job"] = *array_job;
    const auto array_task = spank.item<std::uint32_t>(S_JOB_ARRAY_TASK_ID);
    if (array_task && *array_task != NO_VAL) json["array_task"] = *array_task;
  }
  // CPUs of this node that the step may use, where Slurm says it; S_JOB_NCPUS is the job's on this node.
  if (const auto cpus = spank.item<std::uint16_t>(S_JOB_NCPUS)) json["cpus_on_node"] = *cpus;
  if (const auto local = spank.item<std::uint32_t>(S_JOB_LOCAL_TASK_COUNT)) {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t i = 0; i < *local; ++i) {
      if (const auto id = spank.global_task_id(i)) ids.push_back(*id);
    }
    json["task_ids"] = std::move(ids);
  }
  auto per_node = spank.environment("SLURM_STEP_TASKS_PER_NODE");
  if (!per_node) per_node = spank.environment("SLURM_TASKS_PER_NODE");
  if (per_node) {
    auto counts = parse_tasks_per_node(*per_node, nodes.size());
    if (counts.size() == nodes.size()) json["tasks_per_node"] = std::move(counts);
  }
  const auto put_text = [&](const char* key, const char* variable) {
    if (auto value = spank.environment(variable); value && !value->empty()) json[key] = std::move(*value);
  };
  put_text("cluster", "SLURM_CLUSTER_NAME");
  put_text("user", "SLURM_JOB_USER");
  put_text("account", "SLURM_JOB_ACCOUNT");
  put_text("partition", "SLURM_JOB_PARTITION");
  put_text("job_name", "SLURM_JOB_NAME");
  put_text("submit_host", "SLURM_SUBMIT_HOST");
  put_number<std::uint32_t>(json, "het_job", spank.environment("SLURM_HET_JOB_ID"));
  put_number<std::uint32_t>(json, "het_offset", spank.environment("SLURM_HET_JOB_OFFSET"));
  auto command = spank.arguments();
  if (command.size() > kMaxArguments) command.resize(kMaxArguments);
  for (std::string& word : command) {
    if (word.size() > kMaxArgumentBytes) word.resize(kMaxArgumentBytes);
  }
  json["command"] = std::move(command);
  // Arguments may hold bytes that are no UTF-8.
  return StepDescription{json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                         nodes[*node_index]};
}

}  // namespace lbf::plugin
