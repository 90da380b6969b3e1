// lbf-calibrate: measures what messages cost on this cluster and writes a network file for lbfd.
//
// Runs the ping-pong program (calibrate_pingpong.c) through srun, between two nodes, inside one, and once
// more between two nodes as streams of several pairs (calibrate_link.h); writes the medians, eager limits and
// the link's rate (docs/formats/network-v1.md; TSE Sec. 2.2: "half of the round trip time").
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/network_name.h"
#include "base/result.h"
#include "base/times.h"
#include "base/whole_file.h"
#include "predictor/engine/network/network.h"
#include "tools/calibrate/calibrate_measure.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::tools {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr Seconds kDefaultSeconds = 20;
constexpr Seconds kQuickSeconds = 5;
constexpr int kDefaultRepeats = 20;
constexpr Bytes kDefaultFootprint = Bytes{32} << 20;  // more than second-level caches and TLBs hold
constexpr Bytes kMostFootprint = Bytes{1} << 30;
constexpr int kDefaultPairs = 2;
constexpr int kMostPairs = 64;  // as in calibrate_link.c
constexpr std::string_view kNetworksFolder = "/etc/lbf/networks.d";

struct Options {
  std::string name;
  std::string nodes;
  std::string sizes;
  std::string output;
  std::string srun = "srun";
  std::string program;
  std::string only;
  std::string contention = "nic";
  int pairs = kDefaultPairs;
  int repeats = kDefaultRepeats;
  Bytes footprint = kDefaultFootprint;
  Seconds seconds = kDefaultSeconds;
  bool quick = false;
  bool memory = false;

  bool measures_messages() const { return only != "memory"; }
};

int fail(const Error& error) {
  std::cerr << "lbf-calibrate: error: " << error.message << "\n";
  return error.code == ErrorCode::kInvalidInput ? kExitUsage : kExitFailure;
}

Result<void> check_name(const Options& options) {
  if (!is_network_name(options.name)) {
    return invalid_input("--name '" + options.name + "' must be letters, digits, '-', '_' and '.'");
  }
  if (options.name.starts_with(kNominalPrefix)) {
    return invalid_input("--name '" + options.name +
                         "': names with 'nominal-' are for networks that nobody measured here");
  }
  return {};
}

// Fills in the file to write. What cannot work is known before a minute of measuring.
Result<void> check_output(Options& options) {
  if (options.output.empty() && !options.measures_messages()) options.output = "-";
  if (options.output == "-") return {};
  if (options.output.empty()) options.output = fmt::format("{}/{}.toml", kNetworksFolder, options.name);
  std::error_code ignored;
  if (std::filesystem::is_directory(options.output, ignored)) {
    return invalid_input("--output " + options.output + " is a folder: give a file in it");
  }
  const std::filesystem::path folder = std::filesystem::absolute(options.output).parent_path();
  if (::access(folder.c_str(), W_OK) != 0) {
    return Error{ErrorCode::kPermission, "cannot write into " + folder.string() + ": " + std::strerror(errno) +
                                             ": give --output FILE, or run as root"};
  }
  return {};
}

Result<MeasureOptions> measure_options(const Options& options) {
  MeasureOptions measure;
  auto srun = split_command(options.srun);
  if (!srun) return srun.error();
  if (srun->empty()) return invalid_input("--srun is empty: give a command, for example --srun srun");
  measure.srun = std::move(*srun);
  auto program = find_program(options.measures_messages() ? kPingPongProgram : kNodeProgram, options.program);
  if (!program) return program.error();
  measure.program = std::move(*program);
  if (options.memory) {
    auto node_program = options.measures_messages() ? find_program(kNodeProgram, "") : measure.program;
    if (!node_program) return node_program.error();
    measure.node_program = std::move(*node_program);
  }
  Result<std::vector<Bytes>> sizes = options.sizes.empty() ? default_sizes() : parse_sizes(options.sizes);
  if (!sizes) return sizes.error();
  measure.sizes = std::move(*sizes);
  measure.seconds = options.quick ? kQuickSeconds : options.seconds;
  measure.repeats = options.repeats;
  measure.footprint = options.footprint;
  measure.pairs = options.pairs;
  return measure;
}

// For the end of a network file that has neither table yet.
std::string node_file_part(const Calibration& calibration) {
  std::string about;
  std::string text = fmt::format("# Measured by lbf-calibrate: {}. Append it to a network file.\n", calibration.date);
  const std::string lines = node_about(*calibration.node);
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    about += (lines[at] == '#' ? "" : "# ") + lines.substr(at, end + 1 - at);
    at = end + 1;
  }
  return text + about + node_tables(*calibration.node);
}

// Where inside one node is measured: a node of the list, or of those that the measurement between two had.
std::string one_node_of(const Options& options, const std::optional<PingPong>& remote) {
  const std::string& nodes = options.nodes;
  if (nodes.find('[') == std::string::npos && nodes.find(',') != std::string::npos)
    return nodes.substr(0, nodes.find(','));
  if (!remote) return nodes;
  // Host and node names may differ: where Slurm chose, let it choose again.
  return nodes.empty() ? "" : remote->nodes[0].substr(0, remote->nodes[0].find('.'));
}

Result<void> measure_remote(const Options& options, const Measurements& measurements, Calibration& calibration) {
  const auto keep = [](auto measured, auto& into) -> Result<void> {
    if (!measured) return measured.error();
    into = std::move(*measured);
    return {};
  };
  if (auto done = keep(measurements.ping_pong(Locality::kRemote, options.nodes), calibration.remote); !done)
    return done;
  if (auto done = keep(measurements.contacts(options.nodes), calibration.contacts); !done) return done;
  if (auto done = keep(measurements.turns(Locality::kRemote, options.nodes), calibration.remote_turns); !done)
    return done;
  if (options.contention == "none") return {};
  const Seconds round_s = measurements.round_s();
  calibration.link_message_bytes = stream_message_bytes(*calibration.remote, round_s);
  auto measured = measurements.link(calibration.link_message_bytes, round_s, options.nodes);
  if (!measured) {
    Error error = measured.error();
    error.message += " (this was what the link carries; --contention none leaves it out)";
    return error;
  }
  calibration.link = std::move(*measured);
  return {};
}

Result<Calibration> measure_messages(const Options& options, const Measurements& measurements) {
  Calibration calibration;
  if (options.only != "self-node") {
    if (auto done = measure_remote(options, measurements, calibration); !done) return done.error();
  }
  const std::string one_node = one_node_of(options, calibration.remote);
  if (options.only != "remote") {
    auto measured = measurements.ping_pong(Locality::kSelfNode, one_node);
    if (!measured) return measured.error();
    calibration.self_node = std::move(*measured);
    auto turns = measurements.turns(Locality::kSelfNode, one_node);
    if (!turns) return turns.error();
    calibration.self_node_turns = std::move(*turns);
  }
  auto alone = measurements.local(one_node);
  if (!alone) return alone.error();
  calibration.local = std::move(*alone);
  return calibration;
}

Result<Calibration> measure_all(const Options& options, const Measurements& measurements) {
  Result<Calibration> calibration =
      options.measures_messages() ? measure_messages(options, measurements) : Calibration{};
  if (!calibration || !options.memory) return calibration;
  auto node = measurements.node(one_node_of(options, calibration->remote));
  if (!node) return node.error();
  calibration->node = std::move(*node);
  if (const std::string warning = node_warning(*calibration->node); !warning.empty())
    std::cerr << "lbf-calibrate: warning: " << warning << "\n";
  return calibration;
}

std::string eager_words(const PingPong& measured) {
  switch (measured.eager) {
    case PingPong::Eager::kUpToLimit:
      return fmt::format(", eager up to {} B", measured.eager_limit_bytes);
    case PingPong::Eager::kAll:
      return ", always eager";
    case PingPong::Eager::kNotMeasured:
      break;
  }
  return ", eager limit not found: too much noise";
}

std::string one_way(const PingPong& measured) {
  const auto& [bytes, samples] = *measured.half_round_trips_ns.begin();
  const auto& [most_bytes, most_samples] = *measured.half_round_trips_ns.rbegin();
  return fmt::format("{} B in {:.1f} us, {} B in {:.0f} us{}", bytes, spread_of(samples).median_s * 1e6, most_bytes,
                     spread_of(most_samples).median_s * 1e6, eager_words(measured));
}

void print_summary(const Calibration& calibration) {
  if (calibration.remote) {
    std::cout << fmt::format("  remote ({} - {}): {}\n", calibration.remote->nodes[0], calibration.remote->nodes[1],
                             one_way(*calibration.remote));
  }
  if (calibration.link) {
    const LinkBandwidth bandwidth = link_bandwidth(*calibration.link);
    std::string rates;
    for (const auto& [pairs, bytes_per_s] : bandwidth.median_bytes_per_s) {
      rates += fmt::format("{}{} pair{}: {:.4g}", rates.empty() ? "" : ", ", pairs, pairs == 1 ? "" : "s",
                           bytes_per_s / 1e6);
    }
    std::cout << fmt::format("  link ({} to {}): {:.4g} MB/s{} ({})\n", calibration.link->nodes[0],
                             calibration.link->nodes[1], bandwidth.bytes_per_s / 1e6, bandwidth.grew ? " or more" : "",
                             rates);
  }
  if (calibration.self_node) {
    std::cout << fmt::format("  self-node ({}): {}\n", calibration.self_node->nodes[0],
                             one_way(*calibration.self_node));
  }
  if (calibration.local)
    std::cout << fmt::format("  local ({}): {}\n", calibration.local->node, local_summary(*calibration.local));
  if (calibration.node)
    std::cout << fmt::format("  memory ({}): {}\n", calibration.node->node, node_summary(*calibration.node));
}

int calibrate(Options& options, const std::string& typed) {
  if (options.measures_messages()) {
    if (const Result<void> checked = check_name(options); !checked) return fail(checked.error());
  }
  Result<MeasureOptions> measure = measure_options(options);
  if (!measure) return fail(measure.error());
  if (const Result<void> checked = check_output(options); !checked) return fail(checked.error());
  Result<Calibration> calibration = measure_all(options, Measurements(std::move(*measure)));
  if (!calibration) return fail(calibration.error());
  calibration->name = options.name;
  calibration->date = utc_timestamp(std::time(nullptr));
  calibration->command = typed;
  calibration->footprint_bytes = options.footprint;
  const std::string text = options.measures_messages() ? network_file(*calibration) : node_file_part(*calibration);
  if (options.output == "-") {
    std::cout << text;
    return 0;
  }
  // lbfd is another user.
  if (auto written = write_whole_file(options.output, text, Readers::kEverybody); !written)
    return fail({ErrorCode::kIo, written.error().message + ": give --output FILE"});
  std::cout << options.output << "\n";
  print_summary(*calibration);
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Measures what messages cost between two nodes and inside one, through srun, and writes a network "
      "file."};
  app.name("lbf-calibrate");
  app.set_version_flag("--version", std::string("lbf-calibrate ") + LBF_VERSION);
  app.add_option("--name", options.name, "name of the network, as reports will show it");
  app.add_option("--nodes,--nodelist,-w", options.nodes,
                 "the two nodes, as srun's --nodelist (default: Slurm chooses)");
  app.add_option("--sizes", options.sizes, "message sizes in bytes, with K or M: 0,64,4K,1M (default: 0 to 4M)");
  app.add_option("--repeats", options.repeats, "least samples of each size")
      ->check(CLI::Range(1, 4000))
      ->capture_default_str();
  app.add_option("--footprint", options.footprint,
                 "bytes, with K or M, of the buffers that messages leave from and arrive in by turns; 0: always the "
                 "same one, which stays in the cache")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(Bytes{0}, kMostFootprint))
      ->default_str("32M");
  app.add_option("--seconds", options.seconds, "time for each of the two measurements")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_flag("--quick", options.quick, "5 seconds instead");
  app.add_option("--only", options.only, "measure one of the two; memory: as --memory, and no messages")
      ->check(CLI::IsMember({"remote", "self-node", "memory"}));
  app.add_flag("--memory", options.memory,
               "measure memory bandwidth, and the start of OpenMP threads, on one node, which has to be idle");
  app.add_option("--pairs", options.pairs,
                 "ranks of each node that stream at the same time, to see what its link carries")
      ->check(CLI::Range(1, kMostPairs))
      ->capture_default_str();
  app.add_option("--contention", options.contention, "nic: messages of one node share its link; none: leave that out")
      ->check(CLI::IsMember({"nic", "none"}))
      ->capture_default_str();
  app.add_option("--output,-o", options.output, "file to write, - for stdout (default: /etc/lbf/networks.d/NAME.toml)");
  app.add_option("--srun", options.srun, "how to start srun, with its options for this site")->capture_default_str();
  app.add_option("--program", options.program, "the ping-pong program, on a path that all nodes see");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(invalid_input(std::string(error.what()) + "; lbf-calibrate --help lists the options"));
  }
  ::setenv("LBF_PREDICT", "off", 1);  // what is measured is not to be captured
  options.memory = options.memory || !options.measures_messages();
  if (options.name.empty() && options.measures_messages()) {
    return fail(invalid_input("--name is missing: what the network is called in reports; lbf-calibrate --help"));
  }
  std::string typed;
  for (int i = 0; i < argc; ++i) typed += (i > 0 ? " " : "") + std::string(argv[i]);
  return calibrate(options, typed);
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  return lbf::tools::run(argc, argv);
}
