// lbf-whatif: how long a recorded program would take elsewhere. Reads a text trace, a stored trace or a job's
// trace from lbfd, predicts every combination of node count, placement and network in one pass.
//
// Implements design.md section 6 (the options and JSON keys are a contract).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "predictor/metric/predictor.h"
#include "tools/whatif_output.h"
#include "tools/whatif_targets.h"
#include "tools/whatif_trace.h"

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;
constexpr std::chrono::seconds kQuietTime{2};
constexpr std::chrono::milliseconds kProgressInterval{250};

std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

int complain(int status, const std::string& what) {
  std::fprintf(stderr, "lbf-whatif: %s\n", what.c_str());
  return status;
}

// One line on a terminal, once it takes long enough for somebody to wonder.
class Progress {
 public:
  void show(double share) {
    if (!terminal_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < kQuietTime || now - last_ < kProgressInterval) return;
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "\rlbf-whatif: %3.0f %% replayed", 100.0 * share);
    std::fflush(stderr);
  }
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r%30s\r", "");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

int run(int argc, char** argv) {
  lbf::WhatIfOptions options;
  options.networks_dir = from_environment("LBF_NETWORKS_DIR", "/etc/lbf/networks.d");
  std::string server = from_environment("LBF_SERVER", "unix:/run/lbf/lbfd.sock");
  std::string trace_name;
  bool json = false;

  CLI::App app{"How long a recorded program would take on other nodes, placements and networks.",
               "lbf-whatif"};
  app.set_version_flag("--version", std::string("lbf-whatif ") + LBF_VERSION);
  app.add_option("TRACE", trace_name,
                 "a text trace, a stored trace (file, or folder of stream-*.lbfw), or JOBID[.STEP] of a job "
                 "that lbfd knows")
      ->required();
  app.add_option("--nodes", options.nodes, "node counts, as in 2,4 (default with map=...: those it names)")
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 24));
  app.add_option("--cores", options.cores, "processors per node (default 1)")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--placement", options.placements,
                 "block, cyclic, plane=K or map=N0,N1,... (may be repeated; default block)")
      ->allow_extra_args(false);
  app.add_option("--network", options.networks, "names or files, as in zero,lan-100 (default zero)")
      ->delimiter(',');
  app.add_option("--speed", options.speed, "of each processor, relative to the one that ran (default 1)")
      ->check(CLI::PositiveNumber);
  app.add_option("--contention", options.contention, "none, bus or nic (default: what the network file says)")
      ->check(CLI::IsMember({"none", "bus", "nic"}));
  app.add_option("--networks-dir", options.networks_dir,
                 "where networks are looked up by name (default LBF_NETWORKS_DIR or /etc/lbf/networks.d)");
  app.add_option("--server", server, "where lbfd is (default LBF_SERVER or unix:/run/lbf/lbfd.sock)");
  app.add_flag("--json", json, "print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return complain(kUsage, std::string(error.what()) + " (lbf-whatif --help shows the options)");
  }
  for (const std::string& placement : options.placements) {
    if (options.nodes.empty() && !placement.starts_with("map=")) {
      return complain(kUsage,
                      "--nodes is missing: how many nodes? (only --placement map=... says it itself)");
    }
  }

  lbf::Result<std::unique_ptr<lbf::WhatIfTrace>> trace = lbf::open_trace(trace_name, server);
  if (!trace) return complain(kFailure, trace.error().message);
  lbf::WhatIfResult result;
  result.trace = trace_name;
  result.ranks = (*trace)->ranks();
  lbf::Result<std::vector<lbf::Target>> targets = lbf::make_targets(options, result.ranks);
  if (!targets) return complain(kFailure, targets.error().message);
  result.targets = *targets;
  lbf::Result<std::unique_ptr<lbf::Predictor>> predictor =
      lbf::Predictor::make(result.ranks, std::move(*targets));
  if (!predictor) return complain(kFailure, predictor.error().message);
  {
    Progress progress;
    const auto sink = [&](lbf::Rank rank, const lbf::Event& event) {
      return (*predictor)->feed(rank, event);
    };
    const lbf::Result<void> read = (*trace)->read(sink, [&](double share) { progress.show(share); });
    if (!read) return complain(kFailure, read.error().message);
    for (lbf::Rank rank = 0; rank < result.ranks; ++rank) (*predictor)->close(rank);
    (*predictor)->advance();
  }
  if (const lbf::Result<void> whole = (*predictor)->diagnosis(); !whole) {
    result.why_partial = whole.error().message;
    complain(0, "the prediction is partial: " + result.why_partial);
  }
  result.predictions = (*predictor)->predictions();
  result.stats = (*predictor)->stats();
  const std::string text = json ? lbf::whatif_json(result) : lbf::whatif_table(result);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return complain(kFailure, "cannot write the result");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return complain(kFailure, error.what());
  }
}
