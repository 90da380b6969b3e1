#include "tools/calibrate/calibrate_measure.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/io_error.h"
#include "base/scoped_fd.h"

extern char** environ;

namespace lbf::tools {
namespace {

constexpr Seconds kShortestRound = 0.2;  // of the streams
constexpr Seconds kLongestRound = 0.5;
constexpr double kRounds = 6;            // as in calibrate_link.c
constexpr double kRoundsInSeconds = 40;  // of the other measurements: a round is that much shorter
constexpr int kContactPairs = 4;         // ranks on each of the two nodes
constexpr int kContactStarts = 4;
constexpr int kTurnRanks = 4;                                 // as in calibrate_turn.c
constexpr const char* kEndTogether = "--kill-on-bad-exit=1";  // where one rank crashes the others would wait for ever
constexpr Seconds kNodeSeconds = 15;                          // on a small node

using LineSink = std::function<Result<void>(std::string_view line)>;

// Says on stderr how far it is, from the third second on.
class Progress {
 public:
  Progress(std::string what, Seconds least_s) : what_(std::move(what)), least_s_(least_s) {}
  ~Progress() {
    if (shown_ && on_terminal_) std::cerr << "\n";
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t samples) {
    const Seconds elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (elapsed_s < 2 || elapsed_s - last_s_ < (on_terminal_ ? 0.5 : 10.0)) return;
    last_s_ = elapsed_s;
    shown_ = true;
    std::cerr << fmt::format("{}lbf-calibrate: {}: {:.0f} s of at least {:.0f} s, {} samples{}",
                             on_terminal_ ? "\r" : "", what_, elapsed_s, least_s_, samples, on_terminal_ ? "  " : "\n")
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

// Open MPI crashes in MPI_Init at times, with a message that comes too early (docs/cluster-harness.md): a program that
// ended so before it printed anything is started again.
constexpr int kTries = 3;

// How it ended, if it may have crashed; empty: it did not. STATUS: srun's.
std::string crash_of(int status) {
  constexpr int kEndedBySignal = 128;  // and the signal
  constexpr int kPeerIsGone = 14;      // Open MPI 5: of a rank whose peer crashed, if srun saw that rank first
  if (status > kEndedBySignal) return fmt::format("by signal {}", status - kEndedBySignal);
  return status == kPeerIsGone ? "because a rank was gone" : "";
}

// Runs `command` with stdout into a pipe and stderr as ours; every line of its output goes to `take`.
Result<void> run_lines(const std::vector<std::string>& command, const LineSink& take, int tries = kTries) {
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
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot run {}: {}: lbf-calibrate measures through Slurm's srun (install slurm-client, or "
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
  bool is_silent = true;
  for (ssize_t length = 0; (length = ::getline(&line, &capacity, stream.get())) >= 0;) {
    std::string_view text(line, static_cast<std::size_t>(length));
    while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
    is_silent = false;
    if (taken && !text.empty()) taken = take(text);  // after an error the rest is read and thrown away
  }
  std::free(line);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return taken;
  const std::string crash = WIFEXITED(status) ? crash_of(WEXITSTATUS(status)) : "";
  if (tries > 1 && is_silent && !crash.empty()) {
    std::cerr << fmt::format("lbf-calibrate: the program ended {} before it printed anything: once more\n", crash);
    return run_lines(command, take, tries - 1);
  }
  std::string words;  // up to the program; its arguments tell nothing
  for (const std::string& word : command) {
    words += (words.empty() ? "" : " ") + word;
    if (word.ends_with(kPingPongProgram) || word.ends_with(kNodeProgram)) break;
  }
  return Error{ErrorCode::kUnavailable,
               fmt::format("'{}' {} {}: its own messages are above; does it work with 'hostname' in place of the "
                           "program?",
                           words, WIFSIGNALED(status) ? "was ended by signal" : "failed with status",
                           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))};
}

// Two nodes, the ranks in turn, or one node.
std::vector<std::string> in_turn(int ranks, int nodes) {
  return {kEndTogether, fmt::format("-n{}", ranks), fmt::format("-N{}", nodes), "--overcommit",
          "--distribution=cyclic"};
}

Error ended_early(const std::string& before) {
  return {ErrorCode::kUnavailable, "the program ended before it had measured " + before};
}

}  // namespace

Result<std::string> find_program(std::string_view name, const std::string& asked) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!asked.empty()) {
    if (::access(asked.c_str(), X_OK) == 0 && fs::is_regular_file(asked, ignored)) {
      return fs::absolute(asked).string();
    }
    return invalid_input("--program " + asked + ": no such file, or none that can be run");
  }
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {here, fs::path(LBF_LIBEXEC_DIR)}) {
    if (fs::exists(folder / name, ignored)) return (folder / name).string();
  }
  return Error{ErrorCode::kNotFound, fmt::format("{} is neither in {} nor in {}: is lbf installed completely? (or give "
                                                 "--program FILE)",
                                                 name, here.string(), LBF_LIBEXEC_DIR)};
}

Seconds Measurements::round_s() const {
  return std::clamp(options_.seconds / kRoundsInSeconds, kShortestRound, kLongestRound);
}

std::vector<std::string> Measurements::command(std::vector<std::string> srun_options, const std::string& nodes,
                                               const std::vector<std::string>& arguments) const {
  std::vector<std::string> words = options_.srun;
  words.insert(words.end(), srun_options.begin(), srun_options.end());
  if (!nodes.empty()) words.push_back("--nodelist=" + nodes);
  words.push_back(options_.program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> Measurements::with_sizes(std::vector<std::string> arguments) const {
  for (const Bytes bytes : options_.sizes) arguments.push_back(std::to_string(bytes));
  return arguments;
}

Result<PingPong> Measurements::ping_pong(Locality locality, const std::string& nodes) const {
  const bool remote = locality == Locality::kRemote;
  // --overcommit: a node may have one processor only.
  const std::vector<std::string> words =
      command({kEndTogether, "-n2", remote ? "-N2" : "-N1", remote ? "--ntasks-per-node=1" : "--overcommit"}, nodes,
              with_sizes({std::to_string(static_cast<long>(options_.seconds)), std::to_string(options_.repeats),
                          std::to_string(options_.footprint)}));
  PingPong measured;
  Progress progress(remote ? "remote" : "self-node", options_.seconds);
  std::size_t samples = 0;
  const auto done = run_lines(words, [&](std::string_view line) {
    auto read = read_pingpong_line(line, measured);
    if (line.starts_with("batch")) samples += static_cast<std::size_t>(std::count(line.begin(), line.end(), ' ') - 1);
    progress.show(samples);
    return read;
  });
  if (!done) return done.error();
  if (!measured.complete || measured.half_round_trips_ns.size() != options_.sizes.size()) {
    return Error{ErrorCode::kUnavailable, "the ping-pong program ended before it had measured all sizes"};
  }
  const bool same_node = measured.nodes[0] == measured.nodes[1];
  if (same_node == remote) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("srun placed the two ranks on {} and {}: {} was asked for; does --srun bring options that "
                             "place tasks?",
                             measured.nodes[0], measured.nodes[1], remote ? "one on each of two nodes" : "one node")};
  }
  return measured;
}

Result<LinkRates> Measurements::link(Bytes message_bytes, Seconds round_s, const std::string& nodes) const {
  LinkRates measured;
  Progress progress("link", round_s * kRounds);
  std::size_t samples = 0;
  // Not --ntasks-per-node: Slurm then wants a processor for each, whatever --overcommit says.
  const auto done = run_lines(command(in_turn(2 * options_.pairs, 2), nodes,
                                      {"link", fmt::format("{:.0f}", round_s * 1e3), std::to_string(options_.pairs),
                                       std::to_string(message_bytes)}),
                              [&](std::string_view line) {
                                samples += line.starts_with("stream") ? 1 : 0;
                                progress.show(samples);
                                return read_link_line(line, measured);
                              });
  if (!done) return done.error();
  if (!measured.complete || measured.bytes_per_s.empty()) return ended_early("the link");
  return measured;
}

// A start has few first contacts of new ranks: several starts.
Result<Contacts> Measurements::contacts(const std::string& nodes) const {
  Contacts measured;
  for (int start = 1; start <= kContactStarts; ++start) {
    Progress progress("contact", options_.seconds / kRoundsInSeconds);
    const auto done =
        run_lines(command(in_turn(2 * kContactPairs, 2), nodes, {"contact", std::to_string(kContactPairs)}),
                  [&](std::string_view line) {
                    progress.show(0);
                    return read_contact_line(line, measured);
                  });
    if (!done) return done.error();
    if (measured.complete != start) return ended_early("first contacts");
  }
  return measured;
}

Result<Turns> Measurements::turns(Locality locality, const std::string& nodes) const {
  const bool remote = locality == Locality::kRemote;
  Turns measured;
  Progress progress("turn", options_.seconds / kRoundsInSeconds);
  const auto done = run_lines(command(in_turn(kTurnRanks, remote ? 2 : 1), nodes, {"turn", remote ? "remote" : "self"}),
                              [&](std::string_view line) {
                                progress.show(0);
                                return read_turn_line(line, measured);
                              });
  if (!done) return done.error();
  if (!measured.complete) return ended_early("what waiting ranks cost");
  return measured;
}

Result<LocalTimes> Measurements::local(const std::string& nodes) const {
  LocalTimes measured;
  Progress progress("local", 1);
  const auto done = run_lines(command({"-n1", "-N1"}, nodes, with_sizes({"local", std::to_string(options_.footprint)})),
                              [&](std::string_view line) {
                                progress.show(0);
                                return read_local_line(line, measured);
                              });
  if (!done) return done.error();
  if (!measured.complete) return ended_early("copies and reductions");
  return measured;
}

// --mem=0: all that there is.
Result<NodeTimes> Measurements::node(const std::string& nodes) const {
  NodeTimes measured;
  Progress progress("memory", kNodeSeconds);
  std::vector<std::string> words = options_.srun;
  for (const char* word : {"-n1", "-N1", "--exclusive", "--mem=0", "--cpu-bind=none"}) words.emplace_back(word);
  if (!nodes.empty()) words.push_back("--nodelist=" + nodes);
  words.push_back(options_.node_program);
  std::size_t samples = 0;
  const auto done = run_lines(words, [&](std::string_view line) {
    samples += line.starts_with("bandwidth") || line.starts_with("team") ? 1 : 0;
    progress.show(samples);
    return read_node_line(line, measured);
  });
  if (!done) return done.error();
  if (!measured.complete || measured.gigabyte_ns.empty()) return ended_early("the memory bandwidth");
  return measured;
}

}  // namespace lbf::tools
