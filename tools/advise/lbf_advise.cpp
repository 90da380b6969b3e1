// lbf-advise: what to type next time. A recorded run and the cluster's nodes in; the placement that serves
// the objective best, what it gains, why, and the flags of srun that ask for it, out.
//
// Place in the event's way: stored or text trace -> match -> replay -> *advisor* -> terminal.
// docs/advisor.md.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "advisor/candidate/cluster_source.h"
#include "advisor/candidate/start_source.h"
#include "base/http_client.h"
#include "base/whole_file.h"
#include "report/accuracy.h"
#include "report/selection.h"
#include "report/step.h"
#include "report/text.h"
#include "tools/advise/advise_output.h"
#include "tools/advise/advise_ranks.h"
#include "tools/advise/advise_session.h"
#include "tools/advise/batch_script.h"
#include "tools/advise/probe.h"
#include "tools/support/command_line.h"
#include "tools/support/environment.h"
#include "tools/support/inventory_program.h"
#include "tools/support/message.h"
#include "tools/support/progress.h"
#include "tools/whatif/step_query.h"
#include "tools/whatif/whatif_targets.h"

namespace lbf::tools {
namespace {

constexpr Messages kMessages{"lbf-advise"};

// As the user wrote it.
struct CommandLine {
  std::vector<std::string> traces;
  std::string job;
  std::string objective = "time";
  double node_hours_limit = 0;
  double deadline_s = 0;
  std::string cluster;
  bool refresh = false;
  std::vector<std::string> partitions;
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> networks;
  std::string contention;
  std::vector<std::string> placements{"block", "cyclic", "plane", "map"};
  std::uint64_t memory_per_rank_mib = 0;
  bool overcommit = false;
  std::string waiting = "yield";
  std::uint32_t ran_nodes = 0;
  std::string ran_placement = "block";
  std::uint32_t ran_cores = 0;
  std::string ran_network;
  std::string ran_cluster;  // as lbfd knows it
  double budget_s = 5;
  std::uint32_t replay_threads = default_replay_threads();
  std::string mpi_library;
  std::string networks_dir = from_environment("LBF_NETWORKS_DIR", "/etc/lbf/networks.d");
  std::string server = default_server();
  bool when = false;
  std::string time_limit;
  bool probe = false;
  double probe_budget_node_s = 0;
  std::string launcher = "srun";
  bool flags = false;
  std::string script;
  std::string output;
  std::string host_file;
  bool json = false;
};

void add_options(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", std::string("lbf-advise ") + LBF_VERSION);
  app.add_option("TRACE", line.traces,
                 "a text trace, a stored trace (file, or folder of stream-*.lbfw), an OTF2 archive (NAME.otf2), or "
                 "JOB[_TASK|+OFFSET][.STEP] of a job that lbfd knows; with --ranks several of one program");
  app.add_option("-j,--job", line.job, "JOB[_TASK|+OFFSET][.STEP], asked from lbfd; with --ranks further ones, too");
  app.add_option("--objective", line.objective, "time or node-hours (default time)")
      ->check(CLI::IsMember({"time", "node-hours"}));
  app.add_option("--node-hours-limit", line.node_hours_limit, "candidates that need more are not advised")
      ->check(CLI::PositiveNumber);
  app.add_option("--deadline", line.deadline_s, "seconds; candidates that take longer are not advised")
      ->check(CLI::PositiveNumber);
  app.add_option("--cluster", line.cluster, "a cluster file (JSON, or TOML) instead of what Slurm says");
  app.add_flag("--refresh", line.refresh, "ask Slurm now, not what it said within the last ten minutes");
  app.add_option("--partition", line.partitions, "only these (default: all that are up)")
      ->allow_extra_args(false)
      ->delimiter(',');
  app.add_option("--nodes", line.nodes, "only these node counts (default: chosen)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 18));
  app.add_option(
         "--ranks", line.ranks,
         "these rank counts: replays of what the runs that -j JOB,JOB names, or of JOB's family in the last 7 days, "
         "have in common, or else their laws")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Range(1u, 65536u));
  app.add_option("--network", line.networks,
                 "names or files of the networks that the nodes may use (default: the one that ran)")
      ->allow_extra_args(false)
      ->delimiter(',');
  app.add_option("--contention", line.contention, "none, bus or nic (default: what the network file says)")
      ->check(CLI::IsMember({"none", "bus", "nic"}));
  app.add_option("--placement", line.placements, "kinds to try: block, cyclic, plane, map (default all)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::IsMember({"block", "cyclic", "plane", "map"}));
  app.add_option("--mem-per-rank", line.memory_per_rank_mib, "MiB that each rank needs");
  app.add_flag("--overcommit", line.overcommit, "also more ranks than processors on a node");
  app.add_option("--waiting", line.waiting, "what a rank does that waits: yield, block or spin (default yield)")
      ->check(CLI::IsMember({"yield", "block", "spin"}));
  app.add_option("--ran-nodes", line.ran_nodes, "nodes of the run, where the trace does not say")
      ->check(CLI::Range(1u, 1u << 18));
  app.add_option("--ran-placement", line.ran_placement, "placement of the run (default block)");
  app.add_option("--ran-cores", line.ran_cores, "processors per node of the run (default: one for each rank)")
      ->check(CLI::Range(1u, 1u << 16));
  app.add_option("--ran-network", line.ran_network, "network of the run (default: the first of --network)");
  app.add_option("--budget", line.budget_s, "seconds of processor time (default 5)")->check(CLI::PositiveNumber);
  add_replay_threads_option(app, line.replay_threads);
  app.add_option("--mpi-library", line.mpi_library, "whose algorithms the collectives follow")
      ->check(CLI::IsMember(engine::mpi_library_names()));
  app.add_option("--networks-dir", line.networks_dir,
                 "where networks are looked up by name (default LBF_NETWORKS_DIR or /etc/lbf/networks.d)");
  app.add_option("--server", line.server, "where lbfd is (default LBF_SERVER or unix:/run/lbf/lbfd.sock)");
  app.add_flag("--when", line.when,
               "rank by the end: Slurm's own start estimate (srun --test-only) plus the predicted time");
  app.add_option("--time", line.time_limit,
                 "with --when: the jobs' time limit, as srun takes it (default: from the predicted time)");
  app.add_flag("--probe", line.probe, "measure the best placements with a performance skeleton, and let that decide");
  app.add_option("--probe-budget", line.probe_budget_node_s,
                 "node-seconds that probes may take (default, and at most: the site's limit, else 600)")
      ->check(CLI::PositiveNumber)
      ->needs("--probe");
  app.add_option("--launcher", line.launcher, "of the probes: srun and options of it (default srun)")->needs("--probe");
  app.add_flag("--flags", line.flags, "print the flags of srun and nothing else");
  app.add_option("--script", line.script, "print this batch script with #SBATCH lines that ask for what is advised");
  app.add_option("-o,--output", line.output, "with --script: write it here, which may be the script itself")
      ->needs("--script");
  app.add_option("--hostfile", line.host_file,
                 "where the host file of what needs one is written (with --flags default ./lbf-advise.hosts)");
  app.add_flag("--json", line.json, "print JSON");
}

Result<advisor::Cluster> read_cluster(const CommandLine& line) {
  if (!line.cluster.empty()) return advisor::cluster_file(line.cluster)->read();
  advisor::SlurmSourceOptions options;
  options.program = inventory_program();
  options.cache_file = advisor::cluster_cache_file();
  advisor::SlurmSourceOptions anew = options;
  anew.cache_for_s = 0;
  if (line.refresh) return advisor::slurm_cluster(anew)->read();
  Result<advisor::Cluster> cluster = advisor::slurm_cluster(options)->read();
  if (!cluster) return cluster;
  // A partition that is new is no wrong name.
  const bool knows_all = std::all_of(line.partitions.begin(), line.partitions.end(),
                                     [&](const std::string& name) { return cluster->find_partition(name) != nullptr; });
  return knows_all ? std::move(cluster) : advisor::slurm_cluster(anew)->read();
}

Result<std::shared_ptr<const engine::Network>> network_named(const CommandLine& line, const std::string& name) {
  Result<std::shared_ptr<const engine::Network>> found = find_network(name, line.networks_dir);
  if (!found || line.contention.empty()) return found;
  auto changed = std::make_shared<engine::Network>(**found);
  changed->set_contention(line.contention == "bus"   ? engine::Contention::kBus
                          : line.contention == "nic" ? engine::Contention::kNic
                                                     : engine::Contention::kNone);
  return std::shared_ptr<const engine::Network>(std::move(changed));
}

// How far predictions from this step's program, and of the site, were off. An older lbfd does not know it:
// then nothing is.
void ask_for_errors(HttpClient& client, const report::Step& step, AdviseOptions& options) {
  const Result<HttpResponse> answer = client.request("GET", "/v1/steps/" + report::key_of(step) + "/accuracy");
  if (!answer || answer->status != 200) return;
  const auto fit = report::parse_error_fit(answer->body);
  if (!fit) return;
  options.program = {fit->program.outcomes, fit->program.p90_percent.value_or(0)};
  options.site = {fit->site.outcomes, fit->site.p90_percent.value_or(0)};
}

// Node-seconds for probes: what the site allows, or less. Errors: the site's file is damaged, or allows none.
Result<double> probe_budget(const CommandLine& line) {
  const Result<double> limit = probe_limit_node_s();
  if (!limit) return limit.error();
  if (*limit <= 0) return Error{ErrorCode::kPermission, "--probe: this site allows no probes"};
  return line.probe_budget_node_s > 0 ? std::min(line.probe_budget_node_s, *limit) : *limit;
}

// What lbfd knows of the run: its network, its processors and how long it took.
Result<void> ask_for_run(CommandLine& line, AdviseOptions& options) {
  RunDescription& ran = options.ran;
  const auto jobs = report::parse_jobs(line.job);
  if (!jobs) return jobs.error();
  if (jobs->size() != 1) return invalid_input("-j takes one job");
  Result<HttpClient> client = HttpClient::make(line.server);
  if (!client) return client.error();
  Result<HttpResponse> answer = ask_for_steps(*client, "/v1/steps?summary=1&" + report::query_of(jobs->front()));
  if (!answer) return answer.error();
  if (answer->status != 200) return error_of_response(*answer);
  const Result<std::vector<report::Step>> steps = report::parse_steps(answer->body);
  if (!steps) return steps.error();
  // Which step it is, when there are several, open_trace says.
  if (steps->empty()) return {};
  const report::Step& step = steps->back();
  if (line.ran_network.empty()) line.ran_network = step.network;
  ran.partition = step.partition;
  line.ran_cluster = step.cluster;
  if (!step.running()) ran.measured_s = step.measured_s;
  if (const report::TargetPrediction* const self = step.self(); self != nullptr && line.ran_cores == 0)
    ran.cores = self->cores_per_node;
  ask_for_errors(*client, step, options);
  return {};
}

Result<void> find_networks(CommandLine& line, const advisor::Cluster& cluster, AdviseOptions& options) {
  auto& candidates = options.candidates;
  bool all_say = true;
  for (const advisor::Partition& partition : cluster.partitions) {
    if (partition.network.empty()) {
      all_say = false;
      continue;
    }
    auto found = network_named(line, partition.network);
    if (!found) return Error{found.error().code, "partition " + partition.name + ": " + found.error().message};
    candidates.known_networks.push_back(std::move(*found));
  }
  if (!line.ran_network.empty()) {
    auto found = network_named(line, line.ran_network);
    if (!found) return found.error();
    options.ran.network = std::move(*found);
    if (line.networks.empty()) candidates.networks.push_back(options.ran.network);
  }
  for (const std::string& name : line.networks) {
    auto found = network_named(line, name);
    if (!found) return found.error();
    candidates.networks.push_back(std::move(*found));
  }
  if (candidates.networks.empty() && !all_say)
    return invalid_input(
        "which network is between the nodes? --network NAME|FILE (of lbf-calibrate, or nominal-...), or the "
        "key "
        "network of the partitions in the cluster file");
  return {};
}

AdviseOptions session_options(const CommandLine& line) {
  AdviseOptions options;
  const auto tries = [&](const char* kind) {
    return std::find(line.placements.begin(), line.placements.end(), kind) != line.placements.end();
  };
  options.candidates.node_counts = line.nodes;
  options.candidates.partitions = line.partitions;
  options.candidates.memory_per_rank_mib = line.memory_per_rank_mib;
  options.candidates.overcommit = line.overcommit;
  options.candidates.block = tries("block");
  options.candidates.cyclic = tries("cyclic");
  options.candidates.plane = tries("plane");
  options.candidates.waiting = *engine::parse_waiting(line.waiting);
  options.maps = tries("map") && line.script.empty();
  options.objective.goal = line.objective == "time" ? advisor::Goal::kTime : advisor::Goal::kNodeHours;
  if (line.node_hours_limit > 0) options.objective.node_hours_limit = line.node_hours_limit;
  if (line.deadline_s > 0) options.objective.deadline_s = line.deadline_s;
  options.budget_s = line.budget_s;
  options.sensitivity = !line.flags && line.script.empty();
  if (line.ran_nodes > 0) options.ran.nodes = line.ran_nodes;
  if (line.ran_cores > 0) options.ran.cores = line.ran_cores;
  options.ran.placement = line.ran_placement;
  return options;
}

// Options that do not go together, and what is said of them.
struct Conflict {
  bool (*is_there)(const CommandLine& line);
  const char* says;
};
constexpr Conflict kConflicts[] = {
    {[](const CommandLine& l) { return l.traces.empty() == l.job.empty(); },
     "give one of TRACE and -j JOB; lbf-advise --help"},
    {[](const CommandLine& l) { return !l.ranks.empty() && l.job.empty() && l.traces.size() < 2; },
     "--ranks needs -j JOB, or traces of runs with two rank counts and more"},
    {[](const CommandLine& l) { return l.ranks.empty() && l.traces.size() > 1; },
     "one TRACE, or --ranks P and runs with several rank counts"},
    {[](const CommandLine& l) { return !l.ranks.empty() && (l.probe || !l.script.empty()); },
     "--ranks: a skeleton, and the batch script, have the ranks that ran; leave out --probe and --script"},
    {[](const CommandLine& l) { return !l.time_limit.empty() && !l.when; }, "--time goes with --when"},
    {[](const CommandLine& l) { return !l.time_limit.empty() && !advisor::parse_time_limit(l.time_limit); },
     "--time: MINUTES[:SECONDS], HOURS:MINUTES:SECONDS or DAYS-HOURS[:MINUTES[:SECONDS]], as srun takes it"},
    {[](const CommandLine& l) { return l.when && l.objective != "time"; },
     "--when ranks by the end; --node-hours-limit keeps it within a budget"},
    {[](const CommandLine& l) { return l.flags + l.json + !l.script.empty() > 1; },
     "--flags, --json and --script exclude each other"},
    {[](const CommandLine& l) {
       return !l.script.empty() && std::ranges::all_of(l.placements, [](const auto& one) { return one == "map"; });
     },
     "--script: a computed mapping needs a host file, which #SBATCH lines cannot ask for: --flags writes it"},
    {[](const CommandLine& l) { return l.host_file.find_first_of(" \t\n") != std::string::npos; },
     "--hostfile: a path with blanks cannot be among the flags of srun"},
};

Result<void> write_host_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return {};
  return Error{ErrorCode::kIo, path + ": cannot write the host file (another place: --hostfile)"};
}

// Says what it is about where no advice is printed.
void say_why_no_advice(const AdviseResult& result) {
  if (result.schedule && result.schedule->known == 0)
    std::fprintf(stderr, "lbf-advise: Slurm does not say when any of them would start: by predicted time alone\n");
  if (!result.advice.chosen)
    std::fprintf(stderr, "lbf-advise: no advice: %s\n", report::printable(result.advice.why_not).c_str());
  if (!result.advice.unmeasured.empty())
    std::fprintf(stderr, "lbf-advise: not advised: %s\n", report::printable(result.advice.unmeasured).c_str());
}

// `script`: what the file has.
Result<std::string> changed_script(const CommandLine& line, const std::string& script, const AdviseResult& result) {
  if (!result.advice.chosen) return script;
  const advisor::Ranked& chosen = result.ranking.ranked[*result.advice.chosen];
  const engine::Target& target = chosen.candidate.target;
  const std::vector<std::uint32_t> counts = advisor::ranks_of_nodes(target);
  const ScriptAdvice advice{.flags = advise_flags(result, "./lbf-advise.hosts"),
                            .ranks = result.ranks,
                            .ranks_per_node = *std::ranges::max_element(counts),
                            .cores = advisor::least_cores(target),
                            .predicted_s = chosen.time_s};
  Result<ChangedScript> changed = change_script(script, line.script, advice);
  if (!changed) return changed.error();
  for (const std::string& change : changed->changes)
    std::fprintf(stderr, "lbf-advise: %s\n", report::printable(change).c_str());
  for (const std::string& note : changed->notes) kMessages.note(note);
  return std::move(changed->text);
}

int print_script(const CommandLine& line, const std::string& script, const AdviseResult& result) {
  say_why_no_advice(result);
  const Result<std::string> text = changed_script(line, script, result);
  if (!text) return kMessages.fail(text.error());
  if (line.output.empty()) return kMessages.write(*text, "script");
  struct stat of_script {};
  const bool has_mode = ::stat(line.script.c_str(), &of_script) == 0;  // before: it may be the output
  if (const Result<void> written = write_whole_file(line.output, *text); !written)
    return kMessages.fail(written.error());
  if (has_mode) (void)::chmod(line.output.c_str(), of_script.st_mode & 07777);
  return 0;
}

int print_advice(const CommandLine& line, const AdviseResult& result, AdvisePrint print) {
  const std::string hosts = advise_host_file(result);
  // srun takes a node list with a '/' for a file.
  print.host_file = line.host_file.empty() ? "./lbf-advise.hosts" : line.host_file;
  if (print.host_file.find('/') == std::string::npos) print.host_file = "./" + print.host_file;
  print.host_file_written = !hosts.empty() && (line.flags || !line.host_file.empty());
  if (print.host_file_written) {
    if (const Result<void> written = write_host_file(print.host_file, hosts); !written)
      return kMessages.fail(written.error());
  }
  std::string text;
  if (line.flags) {
    text = advise_flags(result, print.host_file) + "\n";
    say_why_no_advice(result);
  } else {
    text = line.json ? advise_json(result, print) : advise_text(result, print);
  }
  return kMessages.write(text);
}

// The other runs of the program: those that lbfd knows, whose laws OPTIONS.other_counts get, or the further traces.
Result<std::vector<ProgramRun>> find_runs(const CommandLine& line, const std::vector<report::JobSelector>& jobs,
                                          const advisor::Cluster& cluster, Rank ran, AdviseOptions& options) {
  std::vector<ProgramRun> runs;
  for (std::size_t i = 1; i < line.traces.size(); ++i) {
    Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(line.traces[i], line.server);
    if (!trace) return trace.error();
    runs.push_back({line.traces[i], [held = std::make_shared<std::unique_ptr<WhatIfTrace>>(std::move(*trace))] {
                      return Result<std::unique_ptr<WhatIfTrace>>(std::move(*held));
                    }});
  }
  if (line.job.empty()) return runs;
  Result<HttpClient> client = HttpClient::make(line.server);
  if (!client) return client.error();
  const Result<std::vector<report::Step>> steps = ask_for_runs(*client, jobs);
  if (!steps) return steps.error();
  for (OtherCount& other : options.other_counts) {
    const std::vector<std::uint32_t> count{static_cast<std::uint32_t>(other.ranks)};
    const Result<report::ScalingAnswer> laws = report::scaling_of(*steps, {advisor::Problem::kSame, count});
    take_law(laws, cluster, options.candidates, other);
    if (&other != &options.other_counts.front() || !laws) continue;
    for (const std::string& note : laws->notes) kMessages.note(note);
  }
  return runs_to_learn_from(*steps, ran, line.server);
}

// What is known of the rank counts that were asked for, but of that of FIRST.
Result<void> add_other_counts(const CommandLine& line, const std::vector<report::JobSelector>& jobs,
                              const std::string& name, WhatIfTrace& first, const advisor::Cluster& cluster,
                              const MakePasses& make_passes, AdviseOptions& options) {
  options.rank_counts = line.ranks;
  for (const std::uint32_t count : std::set(line.ranks.begin(), line.ranks.end())) {
    if (static_cast<Rank>(count) != first.ranks()) options.other_counts.emplace_back().ranks = static_cast<Rank>(count);
  }
  if (options.other_counts.empty()) return {};
  const Result<std::vector<ProgramRun>> runs = find_runs(line, jobs, cluster, first.ranks(), options);
  if (!runs) return runs.error();
  for (const std::string& note : take_traces(name, first, *runs, make_passes, options.other_counts))
    kMessages.note(note);
  return {};
}

// Asks lbfd and Slurm, replays, and with --probe measures. `print` gets what the output says of all this.
Result<AdviseResult> find_advice(CommandLine& line, AdvisePrint& print) {
  AdviseOptions options = session_options(line);
  const Result<double> probe_node_s = line.probe ? probe_budget(line) : Result<double>(0.0);
  if (!probe_node_s) return probe_node_s.error();
  const advisor::Objective objective = options.objective;
  std::vector<report::JobSelector> runs;  // the first one is advised
  if (!line.ranks.empty() && !line.job.empty()) {
    Result<std::vector<report::JobSelector>> jobs = report::parse_jobs(line.job);
    if (!jobs) return jobs.error();
    runs = std::move(*jobs);
    print.trace = line.job = text_of(runs.front());
  }
  Result<std::unique_ptr<WhatIfTrace>> trace =
      line.job.empty() ? open_trace(print.trace, line.server) : open_job_trace(print.trace, line.server);
  if (!trace) return trace.error();
  if (!line.job.empty()) {
    if (const Result<void> asked = ask_for_run(line, options); !asked) return asked.error();
  }
  const Result<advisor::Cluster> cluster = read_cluster(line);
  if (!cluster) return cluster.error();
  for (const std::string& note : cluster->notes) kMessages.note(note);
  if (!line.ran_cluster.empty() && !cluster->cluster_name.empty() && line.ran_cluster != cluster->cluster_name) {
    kMessages.note("it ran on cluster " + line.ran_cluster + ", the advice is for the nodes of " +
                   cluster->cluster_name);
  }
  if (const Result<void> found = find_networks(line, *cluster, options); !found) return found.error();
  std::optional<Progress> progress(std::in_place, "lbf-advise", "of this pass replayed");
  const MakePasses make_passes = [&](std::unique_ptr<WhatIfTrace> of) {
    return std::make_shared<AdviseTrace>(std::move(of), line.mpi_library, line.replay_threads,
                                         [&](double share) { progress->show(share); });
  };
  if (!line.ranks.empty()) {
    const Result<void> done = add_other_counts(line, runs, print.trace, **trace, *cluster, make_passes, options);
    if (!done) return done.error();
  }
  print.objective = objective.text();
  print.cluster = cluster->source;
  print.budget_s = options.budget_s;

  std::unique_ptr<advisor::StartSource> slurm;
  Progress asking("lbf-advise", "of the questions to Slurm");
  if (line.when) {
    slurm = advisor::srun_start_source();
    options.starts = {slurm.get(), line.time_limit, [&](double share) { asking.show(share); }};
  }
  const std::shared_ptr<AdviseTrace> passes = make_passes(std::move(*trace));
  print.mpi_note = passes->mpi_note();
  Result<AdviseResult> result = advise(*passes, *cluster, std::move(options));
  progress.reset();
  for (const std::string& note : passes->notes()) kMessages.warn(note);
  if (!result || !line.probe || result->seen.is_too_little()) return result;
  const ProbeOptions how{print.trace, line.server, line.launcher, from_environment("MPICC", "mpicc"), *probe_node_s};
  if (const Result<void> done = probe(*result, objective, how); !done) return done.error();
  return result;
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app{"Which placement serves a recorded program best, and the flags of srun that ask for it.", "lbf-advise"};
  add_options(app, line);
  if (const auto status = parse(app, argc, argv, kMessages)) return *status;
  for (const Conflict& conflict : kConflicts) {
    if (conflict.is_there(line)) return kMessages.fail(kExitUsage, conflict.says);
  }
  AdvisePrint print;
  print.trace = line.traces.empty() ? line.job : line.traces.front();
  std::string script;
  if (!line.script.empty()) {
    std::ifstream file(line.script, std::ios::binary);
    script.assign(std::istreambuf_iterator<char>(file), {});
    if (!file.is_open() || file.bad()) return kMessages.fail(kExitFailure, line.script + ": cannot be read");
  }
  const Result<AdviseResult> result = find_advice(line, print);
  if (!result) return kMessages.fail(result.error());
  if (!line.script.empty()) return print_script(line, script, *result);
  return print_advice(line, *result, std::move(print));
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  return lbf::tools::run_command(lbf::tools::run, argc, argv, lbf::tools::kMessages);
}
