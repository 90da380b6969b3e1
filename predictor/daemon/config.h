// lbfd.toml (docs/lbfd.md): what the admin decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predictor/daemon/bounds.h"

namespace lbf::daemon {

enum class Security : std::uint8_t { kPlain, kTls };

// Where lbfd listens: "unix:/path", "tcp:ADDRESS:PORT" ("tcp:[::1]:6820" for IPv6; port 0: any free one), or the same
// with "tls:".
struct ListenAddress {
  std::string unix_path;  // empty: TCP
  std::string host;
  std::uint16_t port = 0;
  Security security = Security::kPlain;

  // Errors: kInvalidInput.
  static Result<ListenAddress> parse(std::string_view text);
  std::string text() const;
};

enum class LogFormat : std::uint8_t { kText, kLogfmt, kJson };

struct ConfigFile;

// What a cluster has of its own: [cluster.NAME], NAME as in its slurm.conf.
struct ClusterConfig {
  std::string networks_dir;  // empty: DaemonConfig's
  std::string network;       // as DaemonConfig's
  std::string topology;      // likewise
};

struct DaemonConfig {
  std::vector<ListenAddress> listen;
  std::string state_dir = "/var/lib/lbf";
  std::string networks_dir = "/etc/lbf/networks.d";
  std::string network;   // the cluster's own; empty: see NetworkCatalog
  std::string topology;  // Slurm's topology.conf or topology.yaml; empty: all nodes are equally far apart
  std::vector<std::string> operators = {"root", "slurm"};  // names or uids
  // PEM files for "tls:" addresses.
  std::string tls_certificate;
  std::string tls_key;
  bool token_over_tcp = false;     // tokens are taken from other hosts without TLS
  std::string metrics_token_file;  // whoever sends its first line may read /metrics; empty: operators alone
  std::string token_file;          // its first line lets in whoever sends it, as lbfd's own user; empty: munge alone
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kText;
  std::chrono::seconds stream_timeout{120};
  std::chrono::milliseconds stream_start_timeout{5000};
  std::uint32_t trace_retention_days = 30;  // 0: kept for ever
  std::uint64_t trace_store_limit_mb = 0;   // 0: no limit
  std::uint32_t step_retention_days = 0;    // in the database; 0: kept for ever
  std::uint64_t step_trace_limit_mb = 0;    // of one step; 0: no limit
  double step_cpu_percent = 10;             // replays of a running step, of its ranks' time; 0: no limit
  std::uint32_t replay_memory_mb = 0;       // of all replays together, an estimate; 0: no limit
  double picture_limit_s = 30;              // of one picture's replay; 0: no limit
  std::uint32_t worker_threads = 4;         // that take batches; as many again answer; no user has more than half
  std::uint32_t replay_threads = 3;
  bool replay_when_idle = false;  // while a program runs: on processors that it leaves idle
  std::uint32_t max_connections = 1024;
  std::uint32_t request_memory_mb = 256;  // of all request bodies at a time

  Bounds bounds;

  // By name. The keys above are for the clusters that have no section.
  std::map<std::string, ClusterConfig, std::less<>> clusters;

  // Errors (kInvalidInput, kNotFound) name file, line or key, and the remedy; unknown keys are errors.
  static Result<DaemonConfig> load(const std::string& path);
  static Result<DaemonConfig> parse(std::string_view toml, const std::string& name);
  static DaemonConfig defaults();
  // The same with all errors, of the file or of its keys.
  static ConfigFile read(const std::string& path);
};

// Some address is one with TLS.
bool has_tls(const DaemonConfig& config);

struct ConfigFile {
  DaemonConfig config;  // defaults where keys are missing or wrong
  std::vector<Error> errors;
};

// "trace", "debug", "info", "warning", "error". Errors: kInvalidInput.
Result<void> check_log_level(const std::string& level);

}  // namespace lbf::daemon
