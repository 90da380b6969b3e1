// See step_description.h.
#include "spank_plugin/plugin/step_description.h"

extern "C" {
#include <slurm/slurm.h>
}

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>

#include "base/job_nodes.h"
#include "base/number.h"
#include "protocol/relay_description.h"
#include "spank_plugin/plugin/job_submit.h"

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

  std::string group_of(std::uint32_t other) const {
    return group.substr(0, group.rfind('_') + 1) + std::to_string(other);
  }
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

// `srun a : b`, `srun --het-group=0,1 a`: one MPI_COMM_WORLD, and so one step here, that of its first component.
// SPANK's items are this component's, SLURM_STEP_* the whole step's; srun sorts the step's nodes by name, whichever
// component they are of.
struct WholeStep {
  std::uint32_t job = 0;            // the first component's
  std::optional<HetComponent> het;  // the first one; empty: components within one ordinary job
  std::vector<std::string> nodes;
  std::vector<std::uint32_t> tasks_per_node;
  std::uint32_t tasks = 0;
  std::uint32_t node_index = 0;  // of this node
  std::uint32_t first_task = 0;  // the step's number of this component's task 0
};

// Which component of a heterogeneous job each node is of. Empty: a node is of two, or of none that is known.
std::vector<std::uint32_t> components_of(const std::vector<std::string>& nodes, const SpankHandle& spank,
                                         const HetComponent& het) {
  std::map<std::string, std::uint32_t> component_of;
  for (std::uint32_t offset = 0; offset < kMaxHetComponents; ++offset) {
    const auto list = spank.environment(("SLURM_JOB_NODELIST" + het.group_of(offset)).c_str());
    if (!list) break;
    for (std::string& node : expand_hosts(*list)) {
      if (!component_of.try_emplace(std::move(node), offset).second) return {};
    }
  }
  std::vector<std::uint32_t> components;
  for (const std::string& node : nodes) {
    const auto found = component_of.find(node);
    if (found == component_of.end()) return {};
    components.push_back(found->second);
  }
  return components;
}

// Nothing: the step has no other components. Errors: kNotFound, it has, and Slurm does not tell which of their nodes
// this is.
Result<std::optional<WholeStep>> whole_step(const SpankHandle& spank, const std::optional<HetComponent>& het,
                                            std::uint32_t job, std::uint32_t own_tasks, std::uint32_t own_node) {
  const Error unknown{
      ErrorCode::kNotFound,
      "Slurm does not tell which of the step's nodes this is (a program over several components that share nodes)"};
  const auto tasks = number_of(spank.environment("SLURM_STEP_NUM_TASKS"));
  const auto nodelist = spank.environment("SLURM_STEP_NODELIST");
  const auto own_nodes = spank.item<std::uint32_t>(S_JOB_NNODES);
  if (!tasks || *tasks <= own_tasks || !nodelist || !own_nodes) return std::optional<WholeStep>();
  WholeStep step;
  step.job = job;
  step.tasks = *tasks;
  step.nodes = expand_hosts(*nodelist);
  if (step.nodes.size() <= *own_nodes) return std::optional<WholeStep>();
  const auto per_node = spank.environment("SLURM_STEP_TASKS_PER_NODE");
  if (per_node) step.tasks_per_node = parse_tasks_per_node(*per_node, step.nodes.size());
  const char* name = std::getenv("SLURMD_NODENAME");  // slurmstepd's own, not the job's
  const auto own = std::find(step.nodes.begin(), step.nodes.end(), name == nullptr ? "" : name);
  if (step.tasks_per_node.size() != step.nodes.size() || own == step.nodes.end() ||
      std::find(own + 1, step.nodes.end(), *own) != step.nodes.end()) {
    return unknown;
  }
  step.node_index = static_cast<std::uint32_t>(own - step.nodes.begin());
  std::vector<std::uint32_t> components;
  if (het) {
    components = components_of(step.nodes, spank, *het);
    if (components.empty() || components[step.node_index] != het->offset) return unknown;
    const std::uint32_t first = *std::min_element(components.begin(), components.end());
    step.het = HetComponent{het->leader, first, het->group_of(first)};
    const auto id = number_of(spank.environment(("SLURM_JOB_ID" + step.het->group).c_str()));
    if (!id) return unknown;
    step.job = *id;
  } else {
    // Of an ordinary job's, each component has the nodes behind the one before.
    if (step.node_index < own_node || step.node_index - own_node + *own_nodes > step.nodes.size()) return unknown;
    const std::uint32_t begin = step.node_index - own_node;
    for (std::uint32_t node = 0; node < step.nodes.size(); ++node)
      components.push_back(node < begin ? 0 : node < begin + *own_nodes ? 1 : 2);
  }
  const std::uint32_t own_component = components[step.node_index];
  std::uint64_t before = 0;
  std::uint64_t mine = 0;
  std::uint64_t all = 0;
  for (std::size_t node = 0; node < step.nodes.size(); ++node) {
    if (components[node] < own_component) before += step.tasks_per_node[node];
    if (components[node] == own_component) mine += step.tasks_per_node[node];
    all += step.tasks_per_node[node];
  }
  if (mine != own_tasks || all != step.tasks) return unknown;
  step.first_task = static_cast<std::uint32_t>(before);
  return std::optional<WholeStep>(std::move(step));
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
protocol::StepDescription describe_job(const SpankHandle& spank, std::uint32_t job, const StepConfig& step,
                                       const std::optional<HetComponent>& het) {
  protocol::StepDescription out;
  out.job = job;
  out.restart = restart_count(spank, job);
  const Environment environment = [&spank](const std::string& name) { return spank.environment(name.c_str()); };
  if (const auto submit = known_submit(environment, het ? het->leader : job)) out.submit_s = submit->submit_s;
  out.networks = step.networks;
  out.overhead_limit_percent = step.overhead_limit_percent();
  out.limits = step.limits;
  out.uid = spank.item<uid_t>(S_JOB_UID);
  out.gid = spank.item<gid_t>(S_JOB_GID);
  if (const auto task = array_task(spank)) {
    out.array_job = task->array_job;
    out.array_task = task->task;
  }
  if (het) {
    out.het_job = het->leader;
    out.het_offset = het->offset;
  }
  const auto text_of = [&](const char* variable) { return spank.environment(variable).value_or(""); };
  out.cluster = text_of("SLURM_CLUSTER_NAME");
  out.user = text_of("SLURM_JOB_USER");
  out.account = text_of("SLURM_JOB_ACCOUNT");
  // srun's variable is the list that was asked for.
  const auto asked = known_submit(environment, job);
  out.partition = asked && !asked->partition.empty() ? asked->partition : text_of("SLURM_JOB_PARTITION");
  out.job_name = text_of("SLURM_JOB_NAME");
  out.submit_host = text_of("SLURM_SUBMIT_HOST");
  return out;
}

// That each task was given: OMP_NUM_THREADS (of a list the outermost teams'), else more than one processor. 0: neither.
std::uint32_t threads_per_task(const SpankHandle& spank) {
  if (auto threads = spank.environment("OMP_NUM_THREADS")) {
    if (const auto number = number_of(threads->substr(0, threads->find(',')))) return *number;
  }
  const auto processors = spank.item<std::uint32_t>(S_STEP_CPUS_PER_TASK);
  return processors.value_or(0) > 1 ? *processors : 0;
}

// Of a step whose tasks are the program's ranks: where they are, and the program's words.
void describe_tasks(const SpankHandle& spank, std::uint32_t tasks, std::size_t nodes,
                    const std::optional<HetComponent>& het, const std::optional<WholeStep>& whole,
                    protocol::StepDescription& out) {
  if (const auto local = spank.item<std::uint32_t>(S_JOB_LOCAL_TASK_COUNT)) {
    for (std::uint32_t i = 0; i < *local; ++i) {
      if (const auto id = spank.global_task_id(i))
        out.task_ids.push_back(static_cast<Rank>(*id + (whole ? whole->first_task : 0)));
    }
  }
  std::vector<const char*> per_node_variables{"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};
  const std::string het_per_node = het ? "SLURM_TASKS_PER_NODE" + het->group : std::string();
  if (het) per_node_variables.push_back(het_per_node.c_str());
  for (const char* variable : per_node_variables) {
    const auto per_node = spank.environment(variable);
    if (!per_node) continue;
    auto counts = parse_tasks_per_node(*per_node, nodes);
    // Of several components of a heterogeneous job, or of the job and not of the step: then not this one.
    if (counts.size() != nodes || std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) != tasks) {
      continue;
    }
    out.tasks_per_node = std::move(counts);
    break;
  }
  out.command = spank.arguments();
  out.command_cut = out.command.size() > kMaxArguments;
  if (out.command_cut) out.command.resize(kMaxArguments);
  for (std::string& word : out.command) {
    if (word.size() <= kMaxArgumentBytes) continue;
    word.resize(kMaxArgumentBytes);
    out.command_cut = true;
  }
}

}  // namespace

bool is_launcher(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = command.front().substr(command.front().rfind('/') + 1);
  return std::find(std::begin(kLauncherDaemons), std::end(kLauncherDaemons), name) != std::end(kLauncherDaemons);
}

Result<DescribedStep> describe_step(const SpankHandle& spank, const StepConfig& step, StepKind kind) {
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
  std::optional<WholeStep> whole;
  if (kind == StepKind::kProgram) {
    auto found = whole_step(spank, het, *job, *tasks, *node_index);
    if (!found) return found.error();
    whole = std::move(*found);
  }
  const std::vector<std::string> nodes = whole ? whole->nodes : nodes_of_step(spank, het);
  const std::uint32_t own_index = whole ? whole->node_index : *node_index;
  if (own_index >= nodes.size()) return missing("the step's nodes (SLURM_STEP_NODELIST)");

  protocol::RelayDescription description;
  protocol::StepDescription& out = description.step;
  out = whole ? describe_job(spank, whole->job, step, whole->het) : describe_job(spank, *job, step, het);
  out.threads_per_task = threads_per_task(spank);
  const JobNodes job_nodes = nodes_of_job(spank, het, nodes[own_index]);
  // CPUs of this node that the step may use: in slurmstepd S_JOB_NCPUS is what the step's credential has here
  // (--exact and --overcommit too; hardware threads count where Slurm counts them); SLURM_CPUS_ON_NODE is the
  // job's.
  const auto step_cpus = spank.item<std::uint16_t>(S_JOB_NCPUS);
  auto job_cpus = number_of(spank.environment("SLURM_CPUS_ON_NODE"));
  if (!job_cpus && step_cpus) job_cpus = *step_cpus;
  description.mpirun =
      protocol::NodesOfJob{job_nodes.names, static_cast<std::uint32_t>(job_nodes.own), job_cpus.value_or(0)};
  if (kind == StepKind::kProgram) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const std::uint32_t all_tasks = whole ? whole->tasks : *tasks;
    out.start_realtime_ns = static_cast<Nanoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
    out.step = *step_id;
    out.nodes = nodes;
    out.node_index = own_index;
    out.node = nodes[own_index];
    out.tasks = static_cast<Rank>(all_tasks);
    out.cpus_on_node = step_cpus.value_or(0);
    describe_tasks(spank, all_tasks, nodes.size(), het, whole, out);
  }
  return DescribedStep{protocol::encode(description), nodes[own_index]};
}

}  // namespace lbf::plugin
