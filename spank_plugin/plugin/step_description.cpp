// See step_description.h.
#include "spank_plugin/plugin/step_description.h"

extern "C" {
#include <slurm/slurm.h>
}

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/job_nodes.h"
#include "base/number.h"

namespace lbf::plugin {
namespace {

constexpr std::size_t kMaxArguments = 256;  // of the command line: for people, not for a parser
constexpr std::size_t kMaxArgumentBytes = 1024;
constexpr std::uint32_t kMaxHetComponents = 128;  // Slurm's own limit
// Open MPI 4, Open MPI 5 (PRRTE), MPICH and its children (Hydra).
constexpr const char* kLauncherDaemons[] = {"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy"};

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

std::optional<std::uint32_t> number_of(const std::optional<std::string>& text) {
  return text ? parse_number<std::uint32_t>(*text) : std::nullopt;
}

// Which component of a heterogeneous job this is. SPANK has no item for it; the environment has the job id of
// every component, under the name that Slurm's version gives it.
struct HetComponent {
  std::uint32_t leader = 0;  // job id of component 0, which stands for the whole job
  std::uint32_t offset = 0;
  std::string group;  // "_HET_GROUP_1": what the component's variables end with
};

std::optional<HetComponent> het_component(const SpankHandle& spank, std::uint32_t job) {
  for (const char* kind : {"HET", "PACK"}) {
    const auto size = number_of(spank.environment((std::string("SLURM_") + kind + "_SIZE").c_str()));
    const std::string group = std::string("_") + kind + "_GROUP_";
    const auto id_of = [&](std::uint32_t offset) {
      return number_of(spank.environment(("SLURM_JOB_ID" + group + std::to_string(offset)).c_str()));
    };
    const auto leader = id_of(0);
    if (!leader) continue;
    for (std::uint32_t offset = 0; offset < std::min(size.value_or(0), kMaxHetComponents); ++offset) {
      // A job that was submitted from inside another one inherits that one's variables: the id tells.
      if (id_of(offset) == job) return HetComponent{*leader, offset, group + std::to_string(offset)};
    }
  }
  return std::nullopt;
}

struct ArrayTask {
  std::uint32_t array_job = 0;
  std::uint32_t task = 0;
};

// slurmstepd takes the items of a step from SLURM_ARRAY_* in its environment. A job that was submitted from
// inside an array's task has those of that task; its batch step says so (docs/formats/environment.md).
std::optional<ArrayTask> array_task(const SpankHandle& spank) {
  const auto array_job = spank.item<std::uint32_t>(S_JOB_ARRAY_ID);
  const auto task = spank.item<std::uint32_t>(S_JOB_ARRAY_TASK_ID);
  if (!array_job || *array_job == 0 || !task || *task == NO_VAL || *task == INFINITE) return std::nullopt;
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  if (job && number_of(spank.environment(kNotInArrayVariable)) == job) return std::nullopt;
  return ArrayTask{*array_job, *task};
}

// The nodes of this component's part of the step. SLURM_STEP_NODELIST has those of all components that the
// step runs in; empty: not known.
std::vector<std::string> nodes_of_step(const SpankHandle& spank, const std::optional<HetComponent>& het) {
  auto nodelist = spank.environment("SLURM_STEP_NODELIST");
  if (!nodelist) nodelist = spank.environment("SLURM_NODELIST");
  std::vector<std::string> nodes = nodelist ? expand_hosts(*nodelist) : std::vector<std::string>();
  const auto count = spank.item<std::uint32_t>(S_JOB_NNODES);
  if (!het || !count || nodes.size() == *count) return nodes;
  const auto own = spank.environment(("SLURM_JOB_NODELIST" + het->group).c_str());
  nodes = own ? expand_hosts(*own) : std::vector<std::string>();
  if (nodes.size() != *count) nodes.clear();
  return nodes;
}

// The nodes of the whole job (of this component of it), and which of them this is.
struct JobNodes {
  std::vector<std::string> names;
  std::size_t own = 0;
};

JobNodes nodes_of_job(const SpankHandle& spank, const std::optional<HetComponent>& het, const std::string& own) {
  auto nodelist = spank.environment(("SLURM_JOB_NODELIST" + (het ? het->group : std::string())).c_str());
  if (!nodelist) nodelist = spank.environment("SLURM_JOB_NODELIST");
  JobNodes job;
  if (nodelist) job.names = expand_hosts(*nodelist);
  if (const auto wider = spank.environment("SLURM_NODELIST"); wider && !het) {
    job.names = lbf::nodes_of_job(std::move(job.names), expand_hosts(*wider));
  }
  const auto found = std::find(job.names.begin(), job.names.end(), own);
  if (found == job.names.end()) return {{own}, 0};
  job.own = static_cast<std::size_t>(found - job.names.begin());
  return job;
}

std::uint32_t restart_count(const SpankHandle& spank, std::uint32_t job) {
  if (const auto told = spank.environment(kRestartVariable)) {
    const std::size_t colon = told->find(':');
    if (colon != std::string::npos && number_of(told->substr(0, colon)) == job) {
      return number_of(told->substr(colon + 1)).value_or(0);
    }
  }
  const auto item = spank.item<std::uint32_t>(S_SLURM_RESTART_COUNT);
  if (item && *item > 0) return *item;
  return number_of(spank.environment("SLURM_RESTART_COUNT")).value_or(0);
}

// What is the same for the step and for every program that mpirun starts in it.
nlohmann::json describe_job(const SpankHandle& spank, std::uint32_t job, const StepConfig& step,
                            const std::optional<HetComponent>& het) {
  nlohmann::json json{{"job", job},
                      {"restart", restart_count(spank, job)},
                      {"networks", step.networks},
                      {"overhead_limit_percent", step.overhead_limit_percent()}};
  for (const cost::Limit limit : cost::kLimitsOfLbfd) {
    if (const auto& value = step.limits[limit])
      json["limits"][std::string(cost::rule_of(limit).name)] = nlohmann::json::parse(cost::shown_number(*value));
  }
  if (const auto uid = spank.item<uid_t>(S_JOB_UID)) json["uid"] = *uid;
  if (const auto gid = spank.item<gid_t>(S_JOB_GID)) json["gid"] = *gid;
  if (const auto task = array_task(spank)) {
    json["array_job"] = task->array_job;
    json["array_task"] = task->task;
  }
  if (het) {
    json["het_job"] = het->leader;
    json["het_offset"] = het->offset;
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
  return json;
}

// Of a step whose tasks are the program's ranks: where they are, and the program's words.
void describe_tasks(const SpankHandle& spank, std::uint32_t tasks, std::size_t nodes,
                    const std::optional<HetComponent>& het, nlohmann::json& json) {
  if (const auto local = spank.item<std::uint32_t>(S_JOB_LOCAL_TASK_COUNT)) {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t i = 0; i < *local; ++i) {
      if (const auto id = spank.global_task_id(i)) ids.push_back(*id);
    }
    json["task_ids"] = std::move(ids);
  }
  std::vector<const char*> per_node_variables{"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};
  const std::string het_per_node = het ? "SLURM_TASKS_PER_NODE" + het->group : std::string();
  if (het) per_node_variables.push_back(het_per_node.c_str());
  for (const char* variable : per_node_variables) {
    const auto per_node = spank.environment(variable);
    if (!per_node) continue;
    auto counts = parse_tasks_per_node(*per_node, nodes);
    // Of several components of a heterogeneous job, or of the job and not of the step: then not this one.
    if (counts.size() != nodes ||
        std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) != tasks) {
      continue;
    }
    json["tasks_per_node"] = std::move(counts);
    break;
  }
  auto command = spank.arguments();
  bool cut = command.size() > kMaxArguments;
  if (cut) command.resize(kMaxArguments);
  for (std::string& word : command) {
    if (word.size() <= kMaxArgumentBytes) continue;
    word.resize(kMaxArgumentBytes);
    cut = true;
  }
  if (cut) json["command_cut"] = true;
  json["command"] = std::move(command);
}

}  // namespace

bool is_launcher(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = command.front().substr(command.front().rfind('/') + 1);
  return std::find(std::begin(kLauncherDaemons), std::end(kLauncherDaemons), name) != std::end(kLauncherDaemons);
}

Result<StepDescription> describe_step(const SpankHandle& spank, const StepConfig& step, StepKind kind) {
  const auto missing = [](const char* what) {
    return Error{ErrorCode::kNotFound, std::string("Slurm does not tell ") + what};
  };
  const auto job = spank.item<std::uint32_t>(S_JOB_ID);
  const auto step_id = spank.item<std::uint32_t>(S_JOB_STEPID);
  if (!job || !step_id) return missing("the job's and the step's number");
  const auto tasks = spank.item<std::uint32_t>(S_JOB_TOTAL_TASK_COUNT);
  const auto node_index = spank.item<std::uint32_t>(S_JOB_NODEID);
  if ((!tasks && kind == StepKind::kProgram) || !node_index) return missing("the step's tasks");
  const auto het = het_component(spank, *job);
  const std::vector<std::string> nodes = nodes_of_step(spank, het);
  if (*node_index >= nodes.size()) return missing("the step's nodes (SLURM_STEP_NODELIST)");

  nlohmann::json json = describe_job(spank, *job, step, het);
  const JobNodes job_nodes = nodes_of_job(spank, het, nodes[*node_index]);
  // CPUs of this node that the step may use: in slurmstepd S_JOB_NCPUS is what the step's credential has here
  // (--exact and --overcommit too; hardware threads count where Slurm counts them); SLURM_CPUS_ON_NODE is the
  // job's.
  const auto step_cpus = spank.item<std::uint16_t>(S_JOB_NCPUS);
  auto job_cpus = number_of(spank.environment("SLURM_CPUS_ON_NODE"));
  if (!job_cpus && step_cpus) job_cpus = *step_cpus;
  nlohmann::json mpirun{{"nodes", job_nodes.names}, {"node_index", job_nodes.own}};
  if (job_cpus) mpirun["cpus_on_node"] = *job_cpus;
  if (kind == StepKind::kProgram) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    json["start_realtime_ns"] = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
    json["step"] = *step_id;
    json["nodes"] = nodes;
    json["node_index"] = *node_index;
    json["node"] = nodes[*node_index];
    json["tasks"] = *tasks;
    if (step_cpus) json["cpus_on_node"] = *step_cpus;
    describe_tasks(spank, *tasks, nodes.size(), het, json);
  }
  json["mpirun"] = std::move(mpirun);
  // Arguments may hold bytes that are no UTF-8.
  return StepDescription{json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                         nodes[*node_index]};
}

}  // namespace lbf::plugin
