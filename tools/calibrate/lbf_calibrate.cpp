// lbf-calibrate: measures what messages cost on this cluster and writes a network file for lbfd.
//
// Runs the ping-pong program (calibrate_pingpong.c) through srun, between two nodes, inside one, and once
// more between two nodes as streams of several pairs (calibrate_link.h); writes the medians, eager limits and
// the link's rate (docs/formats/network-v1.md; TSE Sec. 2.2: "half of the round trip time").
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/io_error.h"
#include "base/result.h"
#include "base/scoped_fd.h"
#include "predictor/engine/network/network.h"
#include "tools/calibrate/calibrate_table.h"

extern char** environ;

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
constexpr int kMostPairs = 64;           // as in calibrate_link.c
constexpr Seconds kShortestRound = 0.2;  // of the streams
constexpr Seconds kLongestRound = 0.5;
constexpr double kRounds = 6;            // as in calibrate_link.c
constexpr double kRoundsInSeconds = 40;  // of the other measurements: a round is that much shorter
constexpr int kContactPairs = 4;         // ranks on each of the two nodes
constexpr int kContactStarts = 4;
constexpr int kTurnRanks = 4;  // as in calibrate_turn.c
constexpr const char* kEndTogether =
    "--kill-on-bad-exit=1";  // where one rank crashes the others would wait for ever
constexpr std::string_view kNetworksFolder = "/etc/lbf/networks.d";
constexpr std::string_view kPingPongProgram = "lbf-calibrate-pingpong";

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
};

int fail(const Error& error) {
  std::cerr << "lbf-calibrate: error: " << error.message << "\n";
  return error.code == ErrorCode::kInvalidInput ? kExitUsage : kExitFailure;
}

// Says on stderr how far it is, from the third second on.
class Progress {
 public:
  Progress(std::string what, Seconds least_s) : what_(std::move(what)), least_s_(least_s) {}
  ~Progress() {
    if (shown_ && on_terminal_) std::cerr << "\n";
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void samples(std::size_t count) {
    const Seconds elapsed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (elapsed_s < 2 || elapsed_s - last_s_ < (on_terminal_ ? 0.5 : 10.0)) return;
    last_s_ = elapsed_s;
    shown_ = true;
    std::cerr << fmt::format("{}lbf-calibrate: {}: {:.0f} s of at least {:.0f} s, {} samples{}",
                             on_terminal_ ? "\r" : "", what_, elapsed_s, least_s_, count,
                             on_terminal_ ? "  " : "\n")
              << std::flush;
  }

 private:
  std::string what_;
  Seconds least_s_;
  bool on_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  Seconds last_s_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs `command` with stdout into a pipe and stderr as ours; every line of its output goes to `take`.
template <typename Take>
Result<void> run(const std::vector<std::string>& command, Take take) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno)};
  }
  ScopedFd reading(ends[0]);
  ScopedFd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int spawned = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format(
            "cannot run {}: {}: lbf-calibrate measures through Slurm's srun (install slurm-client, or "
            "give --srun \"/path/of/srun ...\")",
            command[0], std::strerror(spawned))};
  }
  writing.reset();

  const auto close_stream = [](FILE* stream) { std::fclose(stream); };
  const std::unique_ptr<FILE, decltype(close_stream)> stream(::fdopen(reading.get(), "r"), close_stream);
  if (!stream) return Error{ErrorCode::kIo, std::string("fdopen: ") + std::strerror(errno)};
  (void)reading.release();
  Result<void> taken;
  char* line = nullptr;
  std::size_t capacity = 0;
  for (ssize_t length = 0; (length = ::getline(&line, &capacity, stream.get())) >= 0;) {
    std::string_view text(line, static_cast<std::size_t>(length));
    while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
    if (taken && !text.empty()) taken = take(text);  // after an error the rest is read and thrown away
  }
  std::free(line);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return taken;
  std::string words;  // up to the program; its arguments tell nothing
  for (const std::string& word : command) {
    words += (words.empty() ? "" : " ") + word;
    if (word.ends_with(kPingPongProgram)) break;
  }
  return Error{
      ErrorCode::kUnavailable,
      fmt::format("'{}' {} {}: its own messages are above; does it work with 'hostname' in place of the "
                  "program?",
                  words, WIFSIGNALED(status) ? "was ended by signal" : "failed with status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))};
}

// Beside this program in a build folder, else where it was installed.
Result<std::string> find_program(const Options& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!options.program.empty()) {
    if (::access(options.program.c_str(), X_OK) == 0 && fs::is_regular_file(options.program, ignored)) {
      return fs::absolute(options.program).string();
    }
    return invalid_input("--program " + options.program + ": no such file, or none that can be run");
  }
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {here, fs::path(LBF_LIBEXEC_DIR)}) {
    if (fs::exists(folder / kPingPongProgram, ignored)) return (folder / kPingPongProgram).string();
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{} is neither in {} nor in {}: is lbf installed completely? (or give "
                           "--program FILE)",
                           kPingPongProgram, here.string(), LBF_LIBEXEC_DIR)};
}

Result<PingPong> measure(const Options& options, const std::vector<std::string>& srun,
                         const std::string& program, const std::vector<Bytes>& sizes, bool remote,
                         const std::string& nodes) {
  std::vector<std::string> command = srun;
  command.insert(command.end(), {kEndTogether, "-n2", remote ? "-N2" : "-N1"});
  if (remote) {
    command.push_back("--ntasks-per-node=1");
  } else {
    command.push_back("--overcommit");  // a node may have one processor only
  }
  if (!nodes.empty()) command.push_back("--nodelist=" + nodes);
  command.insert(command.end(), {program, std::to_string(static_cast<long>(options.seconds)),
                                 std::to_string(options.repeats), std::to_string(options.footprint)});
  for (const Bytes bytes : sizes) command.push_back(std::to_string(bytes));

  PingPong measured;
  Progress progress(remote ? "remote" : "self-node", options.seconds);
  std::size_t samples = 0;
  auto done = run(command, [&](std::string_view line) {
    auto read = read_pingpong_line(line, measured);
    if (line.starts_with("batch"))
      samples += static_cast<std::size_t>(std::count(line.begin(), line.end(), ' ') - 1);
    progress.samples(samples);
    return read;
  });
  if (!done) return done.error();
  if (!measured.complete || measured.half_round_trips_ns.size() != sizes.size()) {
    return Error{ErrorCode::kUnavailable, "the ping-pong program ended before it had measured all sizes"};
  }
  const bool same_node = measured.nodes[0] == measured.nodes[1];
  if (same_node == remote) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format(
            "srun placed the two ranks on {} and {}: {} was asked for; does --srun bring options that "
            "place tasks?",
            measured.nodes[0], measured.nodes[1], remote ? "one on each of two nodes" : "one node")};
  }
  return measured;
}

Result<LinkRates> measure_link(const Options& options, const std::vector<std::string>& srun,
                               const std::string& program, Bytes message_bytes, Seconds round_s) {
  std::vector<std::string> command = srun;
  // Not --ntasks-per-node: Slurm then wants a processor for each, whatever --overcommit says.
  command.insert(command.end(), {kEndTogether, fmt::format("-n{}", 2 * options.pairs), "-N2", "--overcommit",
                                 "--distribution=cyclic"});
  if (!options.nodes.empty()) command.push_back("--nodelist=" + options.nodes);
  command.insert(command.end(), {program, "link", fmt::format("{:.0f}", round_s * 1e3),
                                 std::to_string(options.pairs), std::to_string(message_bytes)});
  LinkRates measured;
  Progress progress("link", round_s * kRounds);
  std::size_t samples = 0;
  auto done = run(command, [&](std::string_view line) {
    samples += line.starts_with("stream") ? 1 : 0;
    progress.samples(samples);
    return read_link_line(line, measured);
  });
  if (!done) return done.error();
  if (!measured.complete || measured.bytes_per_s.empty()) {
    return Error{ErrorCode::kUnavailable, "the program ended before it had measured the link"};
  }
  return measured;
}

// Starts `arguments` of the program on two nodes, the ranks in turn, or (nodes 1) on one, and gives its lines
// to `take`.
template <typename Take>
Result<void> run_ranks(const Options& options, const std::vector<std::string>& srun,
                       const std::string& program, int ranks, int nodes, const std::string& nodelist,
                       std::initializer_list<std::string> arguments, Take take) {
  std::vector<std::string> command = srun;
  command.insert(command.end(), {kEndTogether, fmt::format("-n{}", ranks), fmt::format("-N{}", nodes),
                                 "--overcommit", "--distribution=cyclic"});
  if (!nodelist.empty()) command.push_back("--nodelist=" + nodelist);
  command.push_back(program);
  command.insert(command.end(), arguments);
  Progress progress(*arguments.begin(), options.seconds / kRoundsInSeconds);
  return run(command, [&](std::string_view line) {
    progress.samples(0);
    return take(line);
  });
}

// A start has few first contacts of new ranks: several starts.
Result<Contacts> measure_contacts(const Options& options, const std::vector<std::string>& srun,
                                  const std::string& program) {
  Contacts measured;
  for (int start = 1; start <= kContactStarts; ++start) {
    auto done = run_ranks(options, srun, program, 2 * kContactPairs, 2, options.nodes,
                          {"contact", std::to_string(kContactPairs)},
                          [&](std::string_view line) { return read_contact_line(line, measured); });
    if (!done) return done.error();
    if (measured.complete != start) {
      return Error{ErrorCode::kUnavailable, "the program ended before it had measured first contacts"};
    }
  }
  return measured;
}

Result<Turns> measure_turns(const Options& options, const std::vector<std::string>& srun,
                            const std::string& program, bool remote, const std::string& nodelist) {
  Turns measured;
  auto done = run_ranks(options, srun, program, kTurnRanks, remote ? 2 : 1, nodelist,
                        {"turn", remote ? "remote" : "self"},
                        [&](std::string_view line) { return read_turn_line(line, measured); });
  if (!done) return done.error();
  if (!measured.complete) {
    return Error{ErrorCode::kUnavailable, "the program ended before it had measured what waiting ranks cost"};
  }
  return measured;
}

Result<LocalTimes> measure_local(const Options& options, const std::vector<std::string>& srun,
                                 const std::string& program, const std::vector<Bytes>& sizes,
                                 const std::string& nodelist) {
  std::vector<std::string> command = srun;
  command.insert(command.end(), {"-n1", "-N1"});
  if (!nodelist.empty()) command.push_back("--nodelist=" + nodelist);
  command.insert(command.end(), {program, "local", std::to_string(options.footprint)});
  for (const Bytes bytes : sizes) command.push_back(std::to_string(bytes));
  LocalTimes measured;
  Progress progress("local", 1);
  auto done = run(command, [&](std::string_view line) {
    progress.samples(0);
    return read_local_line(line, measured);
  });
  if (!done) return done.error();
  if (!measured.complete) {
    return Error{ErrorCode::kUnavailable, "the program ended before it had measured copies and reductions"};
  }
  return measured;
}

// All or nothing: readers (lbfd) never see half a file.
Result<void> write_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  {
    std::ofstream file(part, std::ios::trunc);
    file << text << std::flush;
    if (!file) {
      return Error{ErrorCode::kIo,
                   "cannot write " + part + ": " + std::strerror(errno) + ": give --output FILE"};
    }
  }
  (void)::chmod(part.c_str(), 0644);  // lbfd is another user, whatever the umask is
  if (std::rename(part.c_str(), path.c_str()) != 0) {
    return io_error("cannot write " + path);
  }
  return {};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

int calibrate(const Options& given, const std::string& typed) {
  Options options = given;
  if (options.quick) options.seconds = kQuickSeconds;
  if (!is_network_name(options.name)) {
    return fail(invalid_input("--name '" + options.name + "' must be letters, digits, '-', '_' and '.'"));
  }
  if (options.name.starts_with(engine::kNominalPrefix)) {
    return fail(invalid_input("--name '" + options.name +
                              "': names with 'nominal-' are for networks that nobody measured here"));
  }
  auto srun = split_command(options.srun);
  if (!srun) return fail(srun.error());
  if (srun->empty()) return fail(invalid_input("--srun is empty: give a command, for example --srun srun"));
  auto program = find_program(options);
  if (!program) return fail(program.error());
  Result<std::vector<Bytes>> sizes = options.sizes.empty() ? default_sizes() : parse_sizes(options.sizes);
  if (!sizes) return fail(sizes.error());
  const bool to_stdout = options.output == "-";
  if (options.output.empty()) options.output = fmt::format("{}/{}.toml", kNetworksFolder, options.name);
  std::error_code ignored;
  if (!to_stdout && std::filesystem::is_directory(options.output, ignored)) {
    return fail(invalid_input("--output " + options.output + " is a folder: give a file in it"));
  }
  const std::filesystem::path folder = std::filesystem::absolute(options.output).parent_path();
  if (!to_stdout && ::access(folder.c_str(), W_OK) != 0) {  // known before a minute of measuring
    return fail({ErrorCode::kPermission, "cannot write into " + folder.string() + ": " +
                                             std::strerror(errno) + ": give --output FILE, or run as root"});
  }

  Calibration calibration;
  calibration.name = options.name;
  calibration.date = utc_now();
  calibration.command = typed;
  calibration.footprint_bytes = options.footprint;
  PingPong remote;
  PingPong self_node;
  LinkRates link;
  Contacts contacts;
  Turns remote_turns;
  Turns self_node_turns;
  LocalTimes local;
  std::string one_node = options.nodes;
  if (options.only != "self-node") {
    auto measured = measure(options, *srun, *program, *sizes, true, options.nodes);
    if (!measured) return fail(measured.error());
    remote = std::move(*measured);
    calibration.remote = &remote;
    one_node = remote.nodes[0].substr(0, remote.nodes[0].find('.'));
    if (options.nodes.empty()) one_node.clear();  // host and node names may differ: let Slurm choose again
    auto met = measure_contacts(options, *srun, *program);
    if (!met) return fail(met.error());
    contacts = std::move(*met);
    calibration.contacts = &contacts;
    auto turns = measure_turns(options, *srun, *program, true, options.nodes);
    if (!turns) return fail(turns.error());
    remote_turns = std::move(*turns);
    calibration.remote_turns = &remote_turns;
  }
  if (calibration.remote != nullptr && options.contention != "none") {
    const Seconds round_s = std::clamp(options.seconds / kRoundsInSeconds, kShortestRound, kLongestRound);
    calibration.link_message_bytes = stream_message_bytes(remote, round_s);
    auto measured = measure_link(options, *srun, *program, calibration.link_message_bytes, round_s);
    if (!measured) {
      Error error = measured.error();
      error.message += " (this was what the link carries; --contention none leaves it out)";
      return fail(error);
    }
    link = std::move(*measured);
    calibration.link = &link;
  }
  if (options.nodes.find_first_of(",[") != std::string::npos) {
    one_node = options.nodes.find('[') == std::string::npos ? options.nodes.substr(0, options.nodes.find(','))
                                                            : one_node;
  }
  if (options.only != "remote") {
    auto measured = measure(options, *srun, *program, *sizes, false, one_node);
    if (!measured) return fail(measured.error());
    self_node = std::move(*measured);
    calibration.self_node = &self_node;
    auto turns = measure_turns(options, *srun, *program, false, one_node);
    if (!turns) return fail(turns.error());
    self_node_turns = std::move(*turns);
    calibration.self_node_turns = &self_node_turns;
  }

  auto alone = measure_local(options, *srun, *program, *sizes, one_node);
  if (!alone) return fail(alone.error());
  local = std::move(*alone);
  calibration.local = &local;

  const std::string text = network_file(calibration);
  if (to_stdout) {
    std::cout << text;
    return 0;
  }
  if (auto written = write_file(options.output, text); !written) return fail(written.error());
  const auto eager = [](const PingPong& measured) {
    switch (measured.eager) {
      case PingPong::Eager::kUpToLimit:
        return fmt::format(", eager up to {} B", measured.eager_limit_bytes);
      case PingPong::Eager::kAll:
        return std::string(", always eager");
      case PingPong::Eager::kNotMeasured:
        break;
    }
    return std::string(", eager limit not found: too much noise");
  };
  const auto one_way = [&eager](const PingPong& measured) {
    const auto& [bytes, samples] = *measured.half_round_trips_ns.begin();
    const auto& [most_bytes, most_samples] = *measured.half_round_trips_ns.rbegin();
    return fmt::format("{} B in {:.1f} us, {} B in {:.0f} us{}", bytes, spread_of(samples).median_s * 1e6,
                       most_bytes, spread_of(most_samples).median_s * 1e6, eager(measured));
  };
  std::cout << options.output << "\n";
  if (calibration.remote != nullptr) {
    std::cout << fmt::format("  remote ({} - {}): {}\n", remote.nodes[0], remote.nodes[1], one_way(remote));
  }
  if (calibration.link != nullptr) {
    const LinkBandwidth bandwidth = link_bandwidth(link);
    std::string rates;
    for (const auto& [pairs, bytes_per_s] : bandwidth.median_bytes_per_s) {
      rates += fmt::format("{}{} pair{}: {:.4g}", rates.empty() ? "" : ", ", pairs, pairs == 1 ? "" : "s",
                           bytes_per_s / 1e6);
    }
    std::cout << fmt::format("  link ({} to {}): {:.4g} MB/s{} ({})\n", link.nodes[0], link.nodes[1],
                             bandwidth.bytes_per_s / 1e6, bandwidth.grew ? " or more" : "", rates);
  }
  if (calibration.self_node != nullptr) {
    std::cout << fmt::format("  self-node ({}): {}\n", self_node.nodes[0], one_way(self_node));
  }
  std::cout << fmt::format("  local ({}): {}\n", local.node, local_summary(local));
  return 0;
}

int main_of(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Measures what messages cost between two nodes and inside one, through srun, and writes a network "
      "file."};
  app.name("lbf-calibrate");
  app.set_version_flag("--version", std::string("lbf-calibrate ") + LBF_VERSION);
  app.add_option("--name", options.name, "name of the network, as reports will show it");
  app.add_option("--nodes,--nodelist,-w", options.nodes,
                 "the two nodes, as srun's --nodelist (default: Slurm chooses)");
  app.add_option("--sizes", options.sizes,
                 "message sizes in bytes, with K or M: 0,64,4K,1M (default: 0 to 4M)");
  app.add_option("--repeats", options.repeats, "least samples of each size")
      ->check(CLI::Range(1, 4000))
      ->capture_default_str();
  app.add_option(
         "--footprint", options.footprint,
         "bytes, with K or M, of the buffers that messages leave from and arrive in by turns; 0: always the "
         "same one, which stays in the cache")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(Bytes{0}, kMostFootprint))
      ->default_str("32M");
  app.add_option("--seconds", options.seconds, "time for each of the two measurements")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_flag("--quick", options.quick, "5 seconds instead");
  app.add_option("--only", options.only, "measure one of the two")
      ->check(CLI::IsMember({"remote", "self-node"}));
  app.add_option("--pairs", options.pairs,
                 "ranks of each node that stream at the same time, to see what its link carries")
      ->check(CLI::Range(1, kMostPairs))
      ->capture_default_str();
  app.add_option("--contention", options.contention,
                 "nic: messages of one node share its link; none: leave that out")
      ->check(CLI::IsMember({"nic", "none"}))
      ->capture_default_str();
  app.add_option("--output,-o", options.output,
                 "file to write, - for stdout (default: /etc/lbf/networks.d/NAME.toml)");
  app.add_option("--srun", options.srun, "how to start srun, with its options for this site")
      ->capture_default_str();
  app.add_option("--program", options.program, "the ping-pong program, on a path that all nodes see");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(invalid_input(std::string(error.what()) + "; lbf-calibrate --help lists the options"));
  }
  ::setenv("LBF_PREDICT", "off", 1);  // what is measured is not to be captured
  if (options.name.empty()) {
    return fail(
        invalid_input("--name is missing: what the network is called in reports; lbf-calibrate --help"));
  }
  std::string typed;
  for (int i = 0; i < argc; ++i) typed += (i > 0 ? " " : "") + std::string(argv[i]);
  return calibrate(options, typed);
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  return lbf::tools::main_of(argc, argv);
}
