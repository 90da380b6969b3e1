// lbfd: the predictor daemon (docs/lbfd.md). Wiring only: configuration, database, trace store, steps, HTTP.
#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/scoped_fd.h"
#include "db/database.h"
#include "predictor/daemon/config.h"
#include "predictor/daemon/config_check.h"
#include "predictor/daemon/http/api.h"
#include "predictor/daemon/http/http_server.h"
#include "predictor/daemon/intake/file_io.h"
#include "predictor/daemon/intake/trace_store.h"
#include "predictor/daemon/log_format.h"
#include "predictor/daemon/network_catalog.h"
#include "predictor/daemon/steps/steps.h"
#include "predictor/daemon/token_file.h"
#include "predictor/daemon/users.h"
#include "predictor/engine/network/topology_file.h"

namespace lbf::daemon {
namespace {

namespace asio = boost::asio;

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr std::chrono::seconds kTick{1};
constexpr std::chrono::seconds kStopPatience{2};

int fail(int status, const std::string& message) {
  (void)std::fprintf(stderr, "lbfd: error: %s\n", message.c_str());
  return status;
}

struct Arguments {
  std::string config = "/etc/lbf/lbfd.toml";
  std::vector<std::string> listen;
  std::string state_dir;
  std::string networks_dir;
  std::string log_level;
  bool vacuum = false;
  bool check_config = false;
  std::string retry;  // a step
};

// What the command line says instead of the configuration file.
Result<void> apply(const Arguments& arguments, DaemonConfig& config) {
  if (!arguments.listen.empty()) config.listen.clear();
  for (const std::string& text : arguments.listen) {
    auto address = ListenAddress::parse(text);
    if (!address) return invalid_input("--listen " + address.error().message);
    config.listen.push_back(std::move(address).value());
  }
  // As in the file: where lbfd is started from must not matter.
  for (const auto& [option, given, key] :
       {std::tuple{"--state-dir", &arguments.state_dir, &config.state_dir},
        std::tuple{"--networks-dir", &arguments.networks_dir, &config.networks_dir}}) {
    if (given->empty()) continue;
    if (!given->starts_with('/')) {
      return invalid_input(std::string(option) + " '" + *given + "': must be an absolute path");
    }
    *key = *given;
  }
  if (!arguments.log_level.empty()) {
    if (auto checked = check_log_level(arguments.log_level); !checked) {
      return invalid_input("--log-level " + checked.error().message);
    }
    config.log_level = arguments.log_level;
  }
  return {};
}

// lbfd --check-config: what a start would meet, without one.
int check_configuration(const Arguments& arguments) {
  ConfigFile file = DaemonConfig::read(arguments.config);
  if (const auto applied = apply(arguments, file.config); !applied) return fail(kExitUsage, applied.error().message);
  const ConfigCheck check = check_config(arguments.config, file);
  for (const std::string& line : check.lines) (void)std::printf("%s\n", log_text(line).c_str());
  return check.errors == 0 ? 0 : kExitFailure;
}

// One lbfd per state directory: two writers would break both the log and the database.
Result<ScopedFd> lock_state_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    Error error = system_error("create state_dir", directory, errno);
    if (error.code == ErrorCode::kNotFound) error.message += ": make the directory that it is in";
    return error;
  }
  struct stat status {};
  if (::stat(directory.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::kIo, "state_dir " + directory + " is not a directory: name another one"};
  }
  const std::string path = directory + "/lbfd.lock";
  ScopedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return system_error("open", path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kUnavailable,
                 directory + " is in use by another lbfd: stop it, or give this one another state_dir"};
  }
  return fd;
}

Result<ApiTokens> read_tokens(const DaemonConfig& config) {
  auto user = read_token("token_file", config.token_file);
  if (!user) return user.error();
  auto metrics = read_token("metrics_token_file", config.metrics_token_file);
  if (!metrics) return metrics.error();
  return ApiTokens{std::move(user).value(), std::move(metrics).value(),
                   config.token_over_tcp ? Channel::kOpen : Channel::kPrivate};
}

std::set<uid_t> operator_uids(const std::vector<std::string>& names) {
  std::set<uid_t> uids;
  for (const std::string& name : names) {
    const auto uid = uid_of_user(name);
    if (uid) {
      uids.insert(*uid);
    } else {
      spdlog::warn("operators: {}: left out", uid.error().message);
    }
  }
  return uids;
}

void raise_descriptor_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// lbfd --vacuum: the database without holes; for files that were made before lbfd gave room back by itself.
int vacuum(const DaemonConfig& config) {
  auto lock = lock_state_directory(config.state_dir);
  if (!lock) return fail(kExitFailure, lock.error().message);
  const std::string path = config.state_dir + "/lbf.db";
  if (::access(path.c_str(), F_OK) != 0) return fail(kExitFailure, path + " is not there: nothing to rebuild");
  auto database = db::Database::open(path);
  if (!database) return fail(kExitFailure, database.error().message);
  if (auto done = (*database)->rebuild(); !done) return fail(kExitFailure, done.error().message);
  spdlog::info("{} was written anew", path);
  return 0;
}

// lbfd --retry STEP: a step that was set aside is replayed again from the next start on.
int retry(const DaemonConfig& config, const std::string& step) {
  auto lock = lock_state_directory(config.state_dir);
  if (!lock) return fail(kExitFailure, lock.error().message);
  auto traces = TraceStore::open(config.state_dir + "/traces");
  if (!traces) return fail(kExitFailure, traces.error().message);
  const std::vector<StepKey> stored = (*traces)->list();
  const auto key = std::ranges::find(stored, step, &StepKey::text);
  if (key == stored.end()) return fail(kExitFailure, "no trace of step '" + step + "' is stored");
  if (auto done = (*traces)->request_retry(*key); !done) return fail(kExitFailure, done.error().message);
  spdlog::info("step {}: replayed again from the next start of lbfd on", step);
  return 0;
}

// Predictions without switches are better than none: an edit of Slurm's file does not keep lbfd from its work.
// `cluster`: of its section, for the log; empty: of the keys beside the sections.
ClusterMachine load_topology(const std::string& path, const std::string& cluster) {
  ClusterMachine machine;
  if (path.empty()) return machine;
  const std::string key = cluster.empty() ? "topology" : "cluster." + cluster + ".topology";
  auto file = engine::TopologyFile::load(path);
  const auto topology = file ? file->of_partition("") : file.error();
  if (!topology) {
    const std::string what = topology.error().message + ": all nodes are taken to be equally far apart";
    spdlog::warn("{}: {}; mend the file and restart lbfd", key, what);
    if (!file) machine.notes.push_back(what);
  } else if (*topology != nullptr) {
    spdlog::info("{} nodes on {} levels of switches in {}", (*topology)->nodes(), (*topology)->levels(),
                 (*topology)->file());
  }
  if (!file) return machine;
  file->read_neighbours();
  for (const std::string& warning : file->warnings()) spdlog::warn("{}: {}", key, warning);
  machine.topology = std::make_shared<const engine::TopologyFile>(std::move(*file));
  return machine;
}

Result<NetworkCatalog> load_networks(const std::string& directory, const std::string& own, const std::string& cluster) {
  auto networks = NetworkCatalog::load(directory, own);
  const std::string where = cluster.empty() ? "" : "cluster." + cluster + ": ";
  if (!networks) return Error{networks.error().code, where + networks.error().message};
  if (!networks->own_note().empty()) spdlog::warn("{}{}", where, networks->own_note());
  if (::access(directory.c_str(), F_OK) != 0)
    spdlog::warn("{}networks_dir {} is not there: lbf-calibrate writes its files", where, directory);
  return networks;
}

Result<void> load_clusters(const DaemonConfig& config, StepsOptions& options) {
  for (const auto& [name, own] : config.clusters) {
    auto networks = load_networks(own.networks_dir.empty() ? config.networks_dir : own.networks_dir, own.network, name);
    if (!networks) return networks.error();
    ClusterMachine machine = load_topology(own.topology, name);
    machine.networks = std::make_shared<const NetworkCatalog>(std::move(*networks));
    options.clusters.emplace(name, std::move(machine));
  }
  return {};
}

int run(const DaemonConfig& config) {
  if (auto known = check_open_addresses(config); !known) return fail(kExitFailure, known.error().message);
  auto lock = lock_state_directory(config.state_dir);
  if (!lock) return fail(kExitFailure, lock.error().message);
  auto networks = load_networks(config.networks_dir, config.network, {});
  if (!networks) return fail(kExitFailure, networks.error().message);
  StepsOptions options;
  ClusterMachine others = load_topology(config.topology, {});
  options.run.topology = std::move(others.topology);
  options.run.notes = std::move(others.notes);
  if (auto loaded = load_clusters(config, options); !loaded) return fail(kExitFailure, loaded.error().message);
  auto database = db::Database::open(config.state_dir + "/lbf.db");
  if (!database) return fail(kExitFailure, database.error().message);
  auto traces = TraceStore::open(config.state_dir + "/traces");
  if (!traces) return fail(kExitFailure, traces.error().message);
  if ((*database)->created() && !(*traces)->list().empty()) {
    spdlog::warn("{}/lbf.db was not there: the steps whose traces are stored are predicted anew", config.state_dir);
  }

  options.run.stream_start_timeout = config.stream_start_timeout;
  options.stream_timeout = config.stream_timeout;
  options.retention.age = std::chrono::hours(24) * config.trace_retention_days;
  options.retention.limit_bytes = config.trace_store_limit_mb << 20;
  options.step_retention = std::chrono::hours(24) * config.step_retention_days;
  options.replay_threads = config.replay_threads;
  options.bounds = config.bounds;
  options.marks_path = config.state_dir + "/lbfd.replays";
  options.replay_when_idle = config.replay_when_idle;
  options.step_trace_limit_bytes = config.step_trace_limit_mb << 20;
  options.picture_limit_s = config.picture_limit_s;
  options.run.budget.cpu_percent = config.step_cpu_percent;
  options.run.memory = std::make_shared<ReplayMemory>(std::uint64_t{config.replay_memory_mb} << 20);
  Steps steps(**traces, **database, *networks, options);
  steps.recover();

  auto tokens = read_tokens(config);
  if (!tokens) return fail(kExitFailure, tokens.error().message);
  Api api(steps, operator_uids(config.operators), LBF_VERSION, std::move(tokens).value());
  asio::io_context io(1);
  constexpr unsigned kTickThreads = 1;
  asio::thread_pool workers(HttpServer::threads(config.worker_threads) + kTickThreads);
  HttpLimits limits;
  limits.worker_threads = config.worker_threads;
  limits.max_connections = config.max_connections;
  limits.request_memory_bytes = std::uint64_t{config.request_memory_mb} << 20;
  std::optional<HttpServer> server;
  server.emplace(io, workers, api, limits);
  if (has_tls(config)) {
    auto certificate = TlsCertificate::load(config.tls_certificate, config.tls_key);
    if (!certificate) return fail(kExitFailure, certificate.error().message);
    if ((*certificate)->days_left() < 0)
      spdlog::warn("tls_certificate {} is not valid any more", config.tls_certificate);
    server->use_certificate(std::move(certificate).value());
  }
  for (const ListenAddress& address : config.listen) {
    const auto taken = server->listen(address);
    if (!taken) return fail(kExitFailure, taken.error().message);
    spdlog::info("lbfd {} listens on {}", LBF_VERSION, taken->text());
  }

  asio::steady_timer tick(io);
  std::function<void()> next_tick = [&] {
    tick.expires_after(kTick);
    tick.async_wait([&](const boost::system::error_code& error) {
      if (error) return;
      asio::post(workers, [&steps] { steps.tick(); });
      next_tick();
    });
  };
  next_tick();

  asio::signal_set signals(io, SIGTERM, SIGINT);
  asio::steady_timer patience(io);
  signals.async_wait([&](const boost::system::error_code& error, int signal) {
    if (error) return;
    spdlog::info("signal {}: answering what is under way, then ending", signal);
    tick.cancel();
    steps.end_replays();
    patience.expires_after(kStopPatience);
    patience.async_wait([&io](const boost::system::error_code& waited) {
      if (!waited) io.stop();
    });
    server->stop([&io] { io.stop(); });
  });
  io.run();
  workers.join();
  steps.stop();
  spdlog::info("lbfd ended");
  return 0;
}

int run_command(int argc, char** argv) {
  CLI::App app{"lbfd: predicts, while MPI jobs run, how long they would have taken elsewhere"};
  Arguments arguments;
  app.set_version_flag("--version", std::string("lbfd ") + LBF_VERSION);
  app.add_option("--config", arguments.config, "configuration file")->capture_default_str();
  app.add_option("--listen", arguments.listen,
                 "unix:/PATH, tcp:ADDRESS:PORT or tls:ADDRESS:PORT; several times; instead of the file's");
  app.add_option("--state-dir", arguments.state_dir, "where traces and database are kept");
  app.add_option("--networks-dir", arguments.networks_dir, "directory of network files");
  app.add_option("--log-level", arguments.log_level, "trace, debug, info, warning or error");
  app.add_flag("--vacuum", arguments.vacuum,
               "write the database anew, without holes, and end; no lbfd may use it meanwhile");
  app.add_flag("--check-config", arguments.check_config,
               "check the configuration and all that it names, and end; nothing is started or written");
  app.add_option("--retry", arguments.retry,
                 "replay the step CLUSTER/JOB/STEP/RESTART again, which was set aside, and end; lbfd must be stopped");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(kExitUsage, std::string(error.what()) + "; lbfd --help lists the options");
  }
  if (arguments.check_config) return check_configuration(arguments);
  auto config = DaemonConfig::load(arguments.config);
  if (!config) return fail(kExitUsage, config.error().message);
  if (const auto applied = apply(arguments, *config); !applied) return fail(kExitUsage, applied.error().message);

  spdlog::set_default_logger(spdlog::stderr_logger_mt("lbfd"));
  spdlog::set_formatter(make_log_formatter(config->log_format));
  spdlog::set_level(spdlog::level::from_str(config->log_level));
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of the write, not the end of lbfd
  ::umask(0077);
  raise_descriptor_limit();
  if (!arguments.retry.empty()) return retry(*config, arguments.retry);
  return arguments.vacuum ? vacuum(*config) : run(*config);
}

}  // namespace
}  // namespace lbf::daemon

int main(int argc, char** argv) {
  try {
    return lbf::daemon::run_command(argc, argv);
  } catch (const std::exception& exception) {
    return lbf::daemon::fail(lbf::daemon::kExitFailure, exception.what());
  } catch (...) {
    return lbf::daemon::fail(lbf::daemon::kExitFailure, "an exception without a message");
  }
}
