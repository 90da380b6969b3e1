// See lbf_run_description.h.
#include "tools/run/run_description.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/hostlist.h"
#include "base/job_nodes.h"
#include "base/number.h"

namespace lbf::tools {
namespace {

constexpr std::size_t kMaxNodes = 65536;
constexpr double kRelayMemoryMb = 32;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::vector<std::string> nodes_in(const char* name) {
  const auto list = variable(name);
  if (!list) return {};
  auto nodes = expand_hostlist(*list, kMaxNodes);
  return nodes ? std::move(*nodes) : std::vector<std::string>();
}

std::string own_name() {
  if (auto name = variable("SLURMD_NODENAME")) return *name;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::uint32_t own_cpus() {
  if (const std::uint32_t cpus = number_in_environment("SLURM_CPUS_ON_NODE"); cpus > 0) return cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return 1;
}

cost::Limits own_limits() {
  const auto text = variable("LBF_OVERHEAD");
  const auto overhead = text ? parse_overhead(*text) : Result<double>(kDefaultOverheadPercent);
  cost::Limits limits;
  limits[cost::Limit::kOverhead] = overhead ? *overhead : kDefaultOverheadPercent;
  limits[cost::Limit::kRelayMemory] = kRelayMemoryMb;
  return limits;
}

nlohmann::json of_job(std::uint32_t job) {
  nlohmann::json json{{"job", job},
                      {"restart", number_in_environment("SLURM_RESTART_COUNT")},
                      {"cluster", variable("SLURM_CLUSTER_NAME").value_or("local")},
                      {"uid", ::getuid()}};
  if (variable("SLURM_ARRAY_TASK_ID") && variable("SLURM_ARRAY_JOB_ID")) {
    json["array_job"] = number_in_environment("SLURM_ARRAY_JOB_ID");
    json["array_task"] = number_in_environment("SLURM_ARRAY_TASK_ID");
  }
  for (const auto& [key, name] :
       {std::pair{"user", "USER"}, std::pair{"account", "SLURM_JOB_ACCOUNT"},
        std::pair{"partition", "SLURM_JOB_PARTITION"}, std::pair{"job_name", "SLURM_JOB_NAME"}}) {
    if (auto value = variable(name)) json[key] = std::move(*value);
  }
  if (const std::uint32_t threads = number_in_environment("OMP_NUM_THREADS"); threads > 0)
    json["threads_per_task"] = threads;
  json["overhead_limit_percent"] = overhead_limit_percent();
  const cost::Limits limits = limits_in_environment();
  for (const cost::Limit limit : cost::kLimitsOfLbfd) {
    if (limits[limit])
      json["limits"][std::string(cost::rule_of(limit).name)] =
          nlohmann::json::parse(cost::shown_number(*limits[limit]));
  }
  auto networks = nlohmann::json::array();
  if (const auto names = variable("LBF_NETWORKS")) {
    for (std::string_view rest = *names; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      if (!name.empty()) networks.push_back(std::string(name));
    }
  }
  json["networks"] = std::move(networks);
  const std::string own = own_name();
  std::vector<std::string> nodes = nodes_of_job(nodes_in("SLURM_JOB_NODELIST"), nodes_in("SLURM_NODELIST"));
  auto found = std::find(nodes.begin(), nodes.end(), own);
  if (found == nodes.end()) {
    nodes = {own};
    found = nodes.begin();
  }
  json["mpirun"] = {{"nodes", nodes}, {"node_index", found - nodes.begin()}, {"cpus_on_node", own_cpus()}};
  return json;
}

std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::uint32_t number_in_environment(const char* name) {
  const auto text = variable(name);
  std::uint32_t value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

Result<double> parse_overhead(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  const auto value = parse_number<double>(text);
  if (!value || *value <= 0 || *value > 100) {
    return invalid_input("the overhead limit must be a percentage above 0, at most 100");
  }
  return *value;
}

double overhead_limit_percent() {
  return limits_in_environment()[cost::Limit::kOverhead].value_or(kDefaultOverheadPercent);
}

cost::Limits limits_in_environment() {
  cost::Limits limits = own_limits();
  if (const auto text = variable("LBF_LIMITS")) {
    if (const auto asked = cost::read_limits(*text)) cost::lower(limits, *asked);
  }
  return limits;
}

Result<std::vector<std::string>> check_limits() {
  std::vector<std::string> lines;
  const auto text = variable("LBF_LIMITS");
  if (!text) return lines;
  const auto asked = cost::read_limits(*text);
  if (!asked) return asked.error();
  if ((*asked)[cost::Limit::kOverhead] == 0.0)
    return invalid_input("overhead_limit=0: nothing would be captured; run the command without lbf-run");
  cost::Limits limits = own_limits();
  for (const cost::Limit limit : cost::lower(limits, *asked)) {
    lines.push_back(std::string(cost::rule_of(limit).name) + "=" + cost::shown_number(*(*asked)[limit]) +
                    ": more than lbf-run's own limit; " + cost::shown_limit(limit, *limits[limit]) + " is used");
  }
  return lines;
}

std::string describe_job(std::uint32_t job) {
  return text_of(of_job(job));
}

Result<TaskStep> describe_task_step() {
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS",
                           "SLURM_GTIDS", "SLURM_NODEID"}) {
    if (!variable(name)) return Error{ErrorCode::kNotFound, std::string(name) + " is not set"};
  }
  const std::uint32_t job = number_in_environment("SLURM_JOB_ID");
  const std::uint32_t step = number_in_environment("SLURM_STEP_ID");
  nlohmann::json json = of_job(job);
  const std::vector<std::string> nodes = nodes_in("SLURM_STEP_NODELIST");
  const std::uint32_t node = number_in_environment("SLURM_NODEID");
  if (node >= nodes.size()) return Error{ErrorCode::kNotFound, "SLURM_NODEID is outside SLURM_STEP_NODELIST"};
  std::vector<std::uint32_t> tasks;
  const std::string ids = *variable("SLURM_GTIDS");
  for (std::string_view rest = ids; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    std::uint32_t id = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), id).ec == std::errc()) tasks.push_back(id);
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  TaskStep out;
  out.local_tasks = std::max<std::size_t>(tasks.size(), 1);
  json["on_demand"] = true;
  json["step"] = step;
  json["nodes"] = nodes;
  json["node_index"] = node;
  json["node"] = nodes[node];
  json["tasks"] = number_in_environment("SLURM_STEP_NUM_TASKS");
  json["task_ids"] = std::move(tasks);
  json["cpus_on_node"] = own_cpus();
  if (auto command = variable("LBF_RUN_COMMAND")) {
    json["command"] = {*command};
    json["command_cut"] = true;  // the launcher's line, not the program's words: nothing that could be typed
                                 // behind another srun
  }
  out.description = text_of(json);
  out.name = std::to_string(job) + "-" + std::to_string(number_in_environment("SLURM_RESTART_COUNT")) + "-" +
             std::to_string(step);
  return out;
}

}  // namespace lbf::tools
