// lbf-skeleton: performance skeletons (Sodhi, Subhlok & Xu): the execution signature of a recorded program, a
// C/MPI program of a wanted run time made from it, its runs on nodes as they are now, and what they say of
// the application.
//
// Implements docs/skeletons.md; docs/man/lbf-skeleton.1 has the options. Options and dispatch only:
// skeleton_build, skeleton_run and skeleton_compare do the work.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "report/selection.h"
#include "tools/skeleton/skeleton_build.h"
#include "tools/skeleton/skeleton_compare.h"
#include "tools/skeleton/skeleton_message.h"
#include "tools/skeleton/skeleton_run.h"
#include "tools/support/command_line.h"
#include "tools/support/environment.h"

namespace lbf::tools {
namespace {

constexpr int kMostRepeats = 10'000;

// As the user wrote it.
struct CommandLine {
  std::string job;
  std::string trace;
  std::string time;
  std::string application_time;
  std::vector<std::string> node_lists;
  std::vector<std::uint32_t> node_counts;
  BuildOptions build;
  RunOptions run;
  CompareOptions compare;
};

void add_trace(CLI::App& command, CommandLine& line) {
  command.add_option("TRACE", line.trace,
                     "a text trace, a stored trace (file, or folder of stream-*.lbfw), an OTF2 archive "
                     "(NAME.otf2), or JOB[.STEP] of a job "
                     "that lbfd knows");
  command.add_option("-j,--job", line.job, "JOB[_TASK|+OFFSET][.STEP], asked from lbfd");
  command.add_option("--server", line.build.server, "where lbfd is (default LBF_SERVER or unix:/run/lbf/lbfd.sock)");
}

void add_signature(CLI::App& command, CommandLine& line) {
  command
      .add_option("--max-similarity", line.build.largest_threshold,
                  "largest similarity threshold, 0 (only equal messages) to 0.9 (default 0.2)")
      ->check(CLI::Range(0.0, 0.9));
  command.add_option("--compression", line.build.compression, "wanted compression Q (default K / 2)")
      ->check(CLI::PositiveNumber);
  command.add_option("--factor,-K", line.build.factor, "scaling factor K")
      ->check(CLI::Range(std::uint64_t{1}, kMostFactor));
  command.add_option("--time", line.time, "wanted run time of the skeleton, as in 5s, 500ms or 2m");
}

void add_application_time(CLI::App& command, CommandLine& line) {
  command.add_option("--application-time", line.application_time,
                     "how long the application ran there (default: as recorded)");
}

void add_launcher(CLI::App& command, std::string& launcher, std::string& distribution, double& limit_s,
                  std::string& compiler) {
  command.add_option("--launcher", launcher, "srun, mpirun or mpiexec, with options of it (default srun)");
  command.add_option("--distribution", distribution, "srun's, of ranks over nodes (default block)");
  command.add_option("--limit", limit_s, "seconds after which a run is ended (default 600)")
      ->check(CLI::PositiveNumber);
  command.add_option("--mpicc", compiler, "the compiler of a source (default MPICC or mpicc)");
}

void add_runs(CLI::App& command, CommandLine& line) {
  command.add_option("SKELETON", line.run.skeleton, "a skeleton's source (.c: compiled first) or program")->required();
  command
      .add_option("--on,-w,--nodelist", line.node_lists, "run on these nodes, as in node[1-4]; each --on is a node set")
      ->allow_extra_args(false);
  command.add_option("-N,--nodes", line.node_counts, "run on any so many nodes: each number is a node set")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20));
  command.add_option("--repeat", line.run.repeat, "runs on each node set (default 3)")
      ->check(CLI::Range(1, kMostRepeats));
  add_launcher(command, line.run.launcher, line.run.distribution, line.run.limit_s, line.run.compiler);
  command.add_flag("--json", line.run.json, "print JSON");
}

// "": nothing is wrong. Puts what was written into the commands' options.
std::string understand(CommandLine& line) {
  if (!line.time.empty()) {
    line.build.time_s = parse_duration(line.time);
    if (!(line.build.time_s > 0)) return "--time " + line.time + " is no time: as in 5s, 500ms or 2m";
    if (line.build.factor > 0) return "--time and --factor: give one of them";
  }
  if (!line.application_time.empty()) {
    const double seconds = parse_duration(line.application_time);
    if (!(seconds > 0)) return "--application-time " + line.application_time + " is no time: as in 95s or 2m";
    line.build.application_s = line.run.application_s = seconds;
  }
  for (const std::string& list : line.node_lists) line.run.nodes.push_back({list, 0});
  for (const std::uint32_t count : line.node_counts) line.run.nodes.push_back({"", count});
  if (line.run.reference && line.run.nodes.size() > 1) return "--reference: one node set, that of the recorded run";
  for (const std::string& launcher : {line.run.launcher, line.compare.launcher}) {
    if (const auto parsed = Launcher::parse(launcher); !parsed) return parsed.error().message;
  }
  return {};
}

// "": there is one TRACE or -j JOB.
std::string find_trace(CommandLine& line) {
  if (line.job.empty() && line.trace.empty())
    return "TRACE is missing: what to make a skeleton from (or -j JOB); --help";
  if (!line.job.empty() && !line.trace.empty()) return "give one of TRACE and -j JOB";
  if (line.job.empty()) {
    line.build.trace = line.trace;
    return {};
  }
  line.build.trace = line.job;
  line.build.named = TraceName::kJob;
  const auto jobs = report::parse_jobs(line.job);
  if (!jobs) return "-j: " + jobs.error().message;
  return jobs->size() == 1 ? "" : "-j takes one job";
}

struct Commands {
  CLI::App* show;
  CLI::App* build;
  CLI::App* run;
  CLI::App* predict;
  CLI::App* compare;
};

void add_show(CLI::App& show, CommandLine& line) {
  add_trace(show, line);
  add_signature(show, line);
  add_application_time(show, line);
  show.add_flag("--json", line.build.json, "print JSON");
}

void add_build(CLI::App& build, CommandLine& line) {
  add_trace(build, line);
  add_signature(build, line);
  add_application_time(build, line);
  build.add_option("-o,--output", line.build.output, "the program (default: standard output)");
  build.add_option("--compile", line.build.program, "compile it into this program, too")->needs("--output");
  build.add_option("--mpicc", line.build.compiler, "the compiler (default MPICC or mpicc)");
}

void add_compare(CLI::App& compare, CommandLine& line) {
  compare.add_option("TRACE", line.compare.trace, "the application's trace, or JOB[.STEP]")->required();
  compare
      .add_option("SKELETON", line.compare.others, "skeletons, captured here through lbf-run, or traces of skeletons")
      ->required();
  compare.add_option("--server", line.compare.server, "where lbfd is");
  compare.add_option("--on,-w,--nodelist", line.compare.nodes.list, "capture on these nodes");
  compare.add_option("-N,--nodes", line.compare.nodes.count, "capture on any so many nodes")
      ->check(CLI::Range(1u, 1u << 20));
  compare.add_option("--least", line.compare.least_percent, "calls below it are one row (default 1 percent)")
      ->check(CLI::Range(0.0, 100.0));
  add_launcher(compare, line.compare.launcher, line.compare.distribution, line.compare.limit_s, line.compare.compiler);
  compare.add_flag("--json", line.compare.json, "print JSON");
}

Commands add_commands(CLI::App& app, CommandLine& line) {
  Commands commands{
      app.add_subcommand("show", "prints the execution signature of a trace"),
      app.add_subcommand("build", "writes the skeleton, a C/MPI program"),
      app.add_subcommand("run", "runs a skeleton on node sets and prints its times"),
      app.add_subcommand("predict", "the application's time on node sets as they are now, by its skeleton"),
      app.add_subcommand("compare", "shares of time in computation and MPI calls: application, skeletons"),
  };
  add_show(*commands.show, line);
  add_build(*commands.build, line);
  add_runs(*commands.run, line);
  commands.run->add_flag("--reference", line.run.reference,
                         "these nodes are where the trace was recorded: keeps the measured scaling ratio");
  add_application_time(*commands.run, line);
  add_runs(*commands.predict, line);
  add_compare(*commands.compare, line);
  return commands;
}

int run(int argc, char** argv) {
  CommandLine line;
  line.build.server = line.compare.server = default_server();
  line.build.compiler = line.run.compiler = line.compare.compiler = from_environment("MPICC", "mpicc");
  CLI::App app{"Performance skeletons: short programs whose run time follows an application's.", "lbf-skeleton"};
  app.set_version_flag("--version", std::string("lbf-skeleton ") + LBF_VERSION);
  app.require_subcommand(1);
  const Commands commands = add_commands(app, line);
  if (const auto status = parse(app, argc, argv, kSkeletonMessages)) return *status;
  if (*commands.show || *commands.build) {
    if (const std::string wrong = find_trace(line); !wrong.empty()) return kSkeletonMessages.fail(kExitUsage, wrong);
  }
  if (const std::string wrong = understand(line); !wrong.empty()) return kSkeletonMessages.fail(kExitUsage, wrong);
  if (*commands.build && line.build.time_s <= 0 && line.build.factor == 0)
    return kSkeletonMessages.fail(kExitUsage, "--time or --factor is missing: how long shall the skeleton run?");
  if (*commands.show) return skeleton_show(line.build);
  if (*commands.build) return skeleton_build(line.build);
  if (*commands.run) return skeleton_run(line.run);
  if (*commands.predict) return skeleton_predict(line.run);
  return skeleton_compare(line.compare);
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  return lbf::tools::run_command(lbf::tools::run, argc, argv, lbf::tools::kSkeletonMessages);
}
