// lbf-run: `lbf-run -- mpirun -n 4 ./app` predicts as `srun --lbf-predict` does, for a user whose site has no
// plugin, and without Slurm: preload, relays and a private lbfd, no rights needed (docs/lbf-run.md,
// lbf-run(1)).
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http_client.h"
#include "base/io_error.h"
#include "base/quoted.h"
#include "base/static_program.h"
#include "cost/first_grant.h"
#include "cost/procedure_limit.h"
#include "report/step.h"
#include "tools/run/owned_directory.h"
#include "tools/run/run_completion.h"
#include "tools/run/run_daemon.h"
#include "tools/run/run_description.h"
#include "tools/run/run_process.h"
#include "tools/support/command_line.h"
#include "tools/support/message.h"

namespace lbf::tools {
namespace {

constexpr Messages kMessages{"lbf-run"};
constexpr Seconds kRelayTimeoutS = 30;
constexpr std::size_t kMostReports = 20;
constexpr const char* kDefaultRingDir = "/dev/shm";
constexpr const char* kReportWait = "60";  // seconds for lbfd's answer: it may compute beside other work

// What lbf-run was started with as ignored (nohup, a script's background job): the command ignores it, too.
std::vector<int> g_ignored;

volatile sig_atomic_t g_child = 0;
volatile sig_atomic_t g_stop = 0;
extern "C" void pass_on(int signal) {
  if (g_child > 0) ::kill(static_cast<pid_t>(g_child), signal);
}
extern "C" void stop_waiting(int) {
  g_stop = 1;
}

void on_signal(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

std::vector<int> ignored_signals() {
  std::vector<int> ignored;
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) {
    struct sigaction was {};
    if (::sigaction(signal, nullptr, &was) == 0 && was.sa_handler == SIG_IGN) ignored.push_back(signal);
  }
  return ignored;
}

bool is_ignored(int signal) {
  return std::ranges::find(g_ignored, signal) != g_ignored.end();
}

// Ctrl-C is for the command; lbf-run stays to collect and report.
void watch_signals() {
  for (const int signal : {SIGINT, SIGQUIT}) on_signal(signal, SIG_IGN);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) {
    if (!is_ignored(signal)) on_signal(signal, pass_on);
  }
}

struct Options {
  std::string dir;
  std::string networks;
  std::string networks_dir;
  std::string network;
  std::string overhead;
  std::string procedures;
  std::string limits;
  std::string ring_dir;
  std::uint64_t ring_bytes = 0;  // 0: the capture's default
  bool quiet = false;
  std::vector<std::string> command;
};

bool is_ring_size(std::uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= (1U << 16) && bytes <= (1U << 30);
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// $XDG_DATA_HOME/lbf, ~/.local/share/lbf.
std::string default_dir() {
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data == '/') {
    return std::string(data) + "/lbf";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') {
    const passwd* entry = ::getpwuid(::getuid());
    home = entry != nullptr ? entry->pw_dir : "/tmp";
  }
  return std::string(home) + "/.local/share/lbf";
}

// How people name this directory's lbfd in their next command.
std::string again(const Options& options, const std::string& dir) {
  return options.dir.empty() && dir == default_dir() ? "lbf-run -- " : "lbf-run --dir " + shell_word(dir) + " -- ";
}

std::string ring_base(const Options& options) {
  return options.ring_dir.empty() ? kDefaultRingDir : options.ring_dir;
}

// The directory of this node's rings, with the relay's description in it.
Result<OwnedDirectory> make_ring_dir(const std::string& base, const std::string& description) {
  const std::string prefix = "lbf-run-" + std::to_string(::getuid()) + "-";
  remove_leftovers(base, prefix);
  auto dir = OwnedDirectory::make(base, prefix);
  if (!dir) return dir.error();
  if (auto written = write_text(dir->path() + "/step.json", description); !written) {
    ::unlink((dir->path() + "/step.json").c_str());
    ::rmdir(dir->path().c_str());
    return written.error();
  }
  return dir;
}

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

// What the command and everything below it needs. Slurm's own steps get theirs from the task prolog.
void prepare_environment(const Options& options, const Parts& parts, const PrivateDaemon& daemon,
                         const std::string& rings) {
  const char* const old = std::getenv("LD_PRELOAD");
  set("LBF_CAPTURE_DIR", rings);
  set("LBF_RUN_RING_DIR", ring_base(options));
  if (options.ring_bytes != 0) {
    set("LBF_RUN_RING_BYTES", std::to_string(options.ring_bytes));  // for Slurm's tasks: lbf-task-prolog
    set("LBF_CAPTURE_RING_BYTES", std::to_string(options.ring_bytes));
  }
  set("LBF_CAPTURE_GRANT", std::to_string(cost::first_grant(overhead_limit_percent() / 100)));
  if (!options.procedures.empty()) {
    set("LBF_PROCEDURES", options.procedures);  // for Slurm's tasks: lbf-task-prolog
    set("LBF_CAPTURE_PROCEDURES", options.procedures);
    set("LBF_CAPTURE_PROCEDURES_LIMIT", std::to_string(cost::procedure_limit(overhead_limit_percent() / 100)));
  }
  set("LD_PRELOAD", parts.capture + (old != nullptr && *old != '\0' ? std::string(":") + old : ""));
  // Where the site's plugin is there, too, once is enough. A job that the command submits is not lbf-run's: the plugin
  // gives it what the user had.
  if (const char* const users = std::getenv("LBF_PREDICT"); users != nullptr) set("LBF_RUN_USER_PREDICT", users);
  set("LBF_PREDICT", "off");
  if (daemon.port() == 0) return;
  std::string command;
  for (const std::string& word : options.command) command += (command.empty() ? "" : " ") + word;
  constexpr std::size_t kMostCommandBytes =
      4096;  // it is shown to people; a string of the environment may have 128 KiB
  if (command.size() > kMostCommandBytes) command.resize(kMostCommandBytes);
  set("LBF_RUN_COMMAND", command);
  set("LBF_RUN_PORT", std::to_string(daemon.port()));
  for (const auto& [users, slurms, own] :
       {std::tuple{"LBF_RUN_USER_TASK_PROLOG", "SLURM_TASK_PROLOG", &parts.prolog},
        std::tuple{"LBF_RUN_USER_TASK_EPILOG", "SLURM_TASK_EPILOG", &parts.epilog}}) {
    if (const char* const was = std::getenv(slurms); was != nullptr && *was != '\0') set(users, was);
    set(slurms, *own);
  }
}

int run_command(const std::vector<std::string>& words) {
  ChildOptions settings;
  settings.ignored = g_ignored;
  auto child = start_child(words, settings);
  if (!child) return kMessages.fail(child.error());
  g_child = *child;
  const auto status = wait_for_child(*child, -1);
  g_child = 0;
  return status ? *status : kExitFailure;
}

// Steps that did not end before the second `begin`, by the names that lbf-report takes.
std::vector<std::string> steps_since(const PrivateDaemon& daemon, std::time_t begin) {
  auto client = HttpClient::make(daemon.server());
  if (!client) return {};
  const auto answer = client->request("GET", "/v1/steps?brief=1&since=" + std::to_string(begin));
  if (!answer || answer->status != 200) return {};
  const auto steps = report::parse_steps(answer->body);
  std::vector<std::string> names;
  if (!steps) return names;
  for (const report::Step& step : *steps) names.push_back(report::job_id(step));
  return names;
}

// The first program among the words that nothing can be loaded into; empty: none, as far as can be seen.
std::string static_program(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (::access(word.c_str(), X_OK) != 0) continue;
    if (const Result<bool> is_static = is_static_program(word); is_static && *is_static) return word;
  }
  return {};
}

// FOUND: what the relay found of programs that it could not take; empty: nothing.
void print_nothing(const Options& options, const std::string& found) {
  const std::string program = static_program(options.command);
  if (!found.empty()) {
    std::fprintf(stderr, "lbf-run: nothing is predicted: %s\n", found.c_str());
  } else if (!program.empty()) {
    std::fprintf(stderr,
                 "lbf-run: %s is linked statically: nothing can be loaded into it, so nothing of it is "
                 "seen%s; link it "
                 "dynamically\n",
                 program.c_str(), options.procedures.empty() ? "" : ", and its procedures cannot be measured");
  } else {
    std::fprintf(stderr,
                 "lbf-run: no parallel MPI program was seen: no rank was started by mpirun or srun on this machine or "
                 "in this Slurm job, and no process had an MPI library loaded (lbf-run(1), LIMITS)\n");
  }
}

// `earlier`: those of steps_since() before the command.
void print_report(const Options& options, const Parts& parts, const PrivateDaemon& daemon, std::time_t begin,
                  const std::vector<std::string>& earlier, const std::string& nothing) {
  std::vector<std::string> steps = steps_since(daemon, begin);
  std::erase_if(steps, [&](const std::string& step) { return std::ranges::find(earlier, step) != earlier.end(); });
  if (steps.empty()) return print_nothing(options, nothing);
  std::fflush(stderr);
  for (std::size_t i = 0; i < std::min(steps.size(), kMostReports); ++i) {
    ChildOptions settings;
    settings.only_stderr = true;  // stdout is the command's
    auto child = start_child({parts.bin + "/lbf-report", "--brief", "--wait", kReportWait, "-j", steps[i]}, settings);
    if (child) (void)wait_for_child(*child, -1);
  }
  if (steps.size() > kMostReports) std::fprintf(stderr, "lbf-run: and %zu more\n", steps.size() - kMostReports);
  std::fprintf(stderr, "lbf-run: the data are in %s; all predictions: %slbf-report %s-j %s\n", daemon.dir().c_str(),
               again(options, daemon.dir()).c_str(), options.procedures.empty() ? "" : "--procedures ",
               steps.back().c_str());
}

// Predictions come after the program where it left lbfd no processor. Ctrl-C ends the wait, not the report.
void complete_predictions(const PrivateDaemon& daemon) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(signal)) on_signal(signal, stop_waiting);
  }
  if (wait_for_predictions(daemon, g_stop) == Completion::kInterrupted)
    std::fprintf(stderr, "lbf-run: predictions are not complete; the next lbf-run in %s completes them\n",
                 daemon.dir().c_str());
  watch_signals();
}

int run_captured(const Options& options) {
  if (!options.overhead.empty()) {
    if (const auto limit = parse_overhead(options.overhead); !limit) {
      return kMessages.fail(kExitUsage, "--overhead " + options.overhead + ": " + limit.error().message);
    }
  }
  if (!options.overhead.empty()) set("LBF_OVERHEAD", options.overhead);
  if (!options.limits.empty()) set("LBF_LIMITS", options.limits);
  if (options.ring_bytes != 0 && !is_ring_size(options.ring_bytes))
    return kMessages.fail(kExitUsage, "--ring-bytes: give a power of two, 65536 to 1073741824");
  if (!options.ring_dir.empty() &&
      (options.ring_dir.front() != '/' || options.ring_dir.find('\n') != std::string::npos))
    return kMessages.fail(kExitUsage, "--ring-dir " + options.ring_dir + ": give an absolute path");
  const std::string program = base_name(options.command.front());
  if (program == "sbatch" || program == "salloc") {
    return kMessages.fail(kExitUsage, program + " only queues: put lbf-run into the job, before its srun or mpirun");
  }
  // lbf-report, lbf-whatif ...: they only ask.
  const bool asks = program.starts_with("lbf-");
  const auto above = asks ? Result(std::vector<std::string>()) : check_limits();
  const char* const limits_from = options.limits.empty() ? "LBF_LIMITS=" : "--limits ";
  if (!above) return kMessages.fail(kExitUsage, limits_from + above.error().message);
  for (const std::string& line : *above) std::fprintf(stderr, "lbf-run: %s%s\n", limits_from, line.c_str());
  auto parts = find_parts();
  if (!parts) return kMessages.fail(parts.error());
  DaemonOptions settings;
  settings.dir = options.dir.empty() ? default_dir() : std::filesystem::absolute(options.dir).string();
  settings.dir_was_given = !options.dir.empty() || asks;
  settings.networks_dir = options.networks_dir.empty() ? "" : std::filesystem::absolute(options.networks_dir).string();
  settings.network = options.network;
  settings.only_asked = asks;
  settings.tcp = !asks && (program == "srun" || std::getenv("SLURM_JOB_ID") != nullptr);
  auto daemon = PrivateDaemon::start(*parts, settings);
  if (!daemon) return kMessages.fail(daemon.error());
  set("LBF_SERVER", daemon->server());
  set("LBF_TOKEN", daemon->token());
  const char* const path = std::getenv("PATH");
  if (asks) set("PATH", parts->bin + (path != nullptr ? std::string(":") + path : ""));
  if (asks) {
    if (!daemon->is_joined()) complete_predictions(*daemon);  // of a run whose lbf-run was killed
    return run_command(options.command);
  }

  if (!options.networks.empty()) set("LBF_NETWORKS", options.networks);
  const std::uint32_t job = number_in_environment("SLURM_JOB_ID");
  auto rings = make_ring_dir(ring_base(options), describe_job(job != 0 ? job : daemon->next_run_number()));
  if (!rings && !options.ring_dir.empty()) return kMessages.fail(rings.error());
  if (!rings) {
    std::fprintf(stderr, "lbf-run: %s: the command runs without prediction; --ring-dir names another place\n",
                 rings.error().message.c_str());
    return run_command(options.command);
  }
  auto relay =
      LocalRelay::start(*parts, rings->path(), daemon->server(), cost::relay_arguments(limits_in_environment()));
  if (!relay) return kMessages.fail(relay.error());
  const std::time_t begin = std::time(nullptr);
  const std::vector<std::string> earlier = steps_since(*daemon, begin);
  const std::optional<std::string> preload =
      std::getenv("LD_PRELOAD") != nullptr ? std::optional<std::string>(std::getenv("LD_PRELOAD")) : std::nullopt;
  prepare_environment(options, *parts, *daemon, rings->path());
  const int status = run_command(options.command);
  ::unsetenv("LBF_CAPTURE_DIR");
  ::unsetenv("LBF_CAPTURE_GRANT");
  ::unsetenv("LBF_CAPTURE_RING_BYTES");
  ::unsetenv("LBF_CAPTURE_PROCEDURES");
  ::unsetenv("LBF_CAPTURE_PROCEDURES_LIMIT");
  preload ? set("LD_PRELOAD", *preload) : static_cast<void>(::unsetenv("LD_PRELOAD"));
  const LocalRelay::Finished finished = relay->finish(kRelayTimeoutS);
  if (!finished.delivered)
    std::fprintf(stderr, "lbf-run: events were lost; the prediction is partial (%s/lbfd.log)\n", daemon->dir().c_str());
  complete_predictions(*daemon);
  if (!options.quiet) print_report(options, *parts, *daemon, begin, earlier, finished.nothing);
  return status;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "lbf-run: runs a command and predicts how long the MPI programs in it would have taken on other node "
      "counts "
      "and networks; a private lbfd keeps the data in a directory of yours.\n"
      "  lbf-run -- mpirun -n 4 ./app\n  lbf-run -- srun -N2 -n4 ./app\n  lbf-run -- lbf-report",
      "lbf-run");
  app.set_version_flag("--version", std::string("lbf-run ") + LBF_VERSION);
  app.add_option("--dir", options.dir, "where the data are kept (default: " + default_dir() + ")");
  app.add_option("--networks", options.networks, "predict for these networks only: A,B");
  app.add_option("--networks-dir", options.networks_dir, "directory of network files (default: DIR/networks.d)");
  app.add_option("--network", options.network, "which of them this machine or cluster has");
  app.add_option("--overhead", options.overhead,
                 "what the capture may cost, percent of the programs' processor time (default: 2)");
  app.add_option("--limits", options.limits,
                 "lower limits: NAME=VALUE[,NAME=VALUE...]; overhead_limit, relay_cpu_limit (percent of the "
                 "programs' processor "
                 "time), relay_memory_limit_mb, network_limit_kBps (1000 bytes per second), step_cpu_percent "
                 "(lbfd's, of the "
                 "ranks' time), step_trace_limit_mb");
  app.add_option("--procedures", options.procedures,
                 "measure these procedures of the programs, names or patterns: F,G, or auto; lbf-report "
                 "--procedures then "
                 "says what if they ran in the other process");
  app.add_option("--ring-dir", options.ring_dir,
                 "where the event rings are, a tmpfs with room (default: " + std::string(kDefaultRingDir) + ")");
  app.add_option("--ring-bytes", options.ring_bytes,
                 "room of one thread's event ring, a power of two, 65536 to 1073741824 (default: 8388608)");
  app.add_flag("-q,--quiet", options.quiet, "no report at the end");
  app.add_option("command", options.command, "command and its arguments; write -- before it");
  app.positionals_at_end();
  app.prefix_command(false);
  // What stands behind "--" is the command's, as it is: CLI11 would take words like "[4,4]" apart.
  char** const end = argv + argc;
  char** const mark = std::find_if(argv + 1, end, [](const char* word) { return std::string_view(word) == "--"; });
  if (const auto status = parse(app, static_cast<int>(mark - argv), argv, kMessages)) return *status;
  if (mark != end) options.command.insert(options.command.end(), mark + 1, end);
  if (options.command.empty())
    return kMessages.fail(kExitUsage, "which command? lbf-run [OPTIONS] -- COMMAND; lbf-run --help lists the options");
  g_ignored = ignored_signals();
  watch_signals();
  return run_captured(options);
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  return lbf::tools::run_command(lbf::tools::run, argc, argv, lbf::tools::kMessages);
}
