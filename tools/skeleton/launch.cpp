#include "tools/skeleton/launch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/child_process.h"
#include "base/hostlist.h"

namespace lbf::tools {
namespace {

constexpr std::size_t kMostNodes = 1U << 20;
constexpr std::size_t kMostQuoted = 300;

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// What it said on either of its outputs.
std::string output_of(const ChildOutput& ended) {
  return ended.err + ended.out;
}

// This process's, with the rate of the work.
std::vector<std::string> environment_with(std::optional<double> rate) {
  constexpr std::string_view kRate = "LBF_SKELETON_RATE=";
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!rate || !std::string_view(*each).starts_with(kRate)) variables.emplace_back(*each);
  }
  if (rate) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.17g", *rate);
    variables.push_back(std::string(kRate) + text.data());
  }
  return variables;
}

// What Open MPI writes before the line that names the signal.
constexpr std::string_view kSignalFollows = "*** Process received signal ***";

// "srun: error: node1: task 0: Segmentation fault": how a rank ended.
bool names_end_of_rank(const std::string& line) {
  return line.starts_with("srun: error: ") && line.find(": task") != std::string::npos;
}

// srun ends the other ranks for the one that failed, and may hear of their end first.
bool names_rank_ended_by_srun(const std::string& line) {
  return line.ends_with(": Killed") || line.ends_with(": Terminated");
}

// The first line that says something (a rule or an empty line does not), or the signal that ended the first
// rank that failed: the others are ended for it, and say what they like. Of an exit code its own words say
// more.
std::string first_words(const std::string& output) {
  std::istringstream lines(output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    const bool says = std::count_if(line.begin(), line.end(), [](unsigned char c) { return std::isalpha(c) != 0; }) > 2;
    if (!says || line.find(kSignalFollows) != std::string::npos) continue;
    const bool ended = names_end_of_rank(line);
    if (first.empty() || (ended && line.find(": Exited with exit code") == std::string::npos)) first = line;
    if (ended && !names_rank_ended_by_srun(line)) break;
  }
  return first.size() > kMostQuoted ? first.substr(0, kMostQuoted) + "..." : first;
}

std::string how_ended(const ChildOutput& ended) {
  if (ended.signal != 0) return "was ended by signal " + std::to_string(ended.signal);
  return "ended with status " + std::to_string(ended.exit_status);
}

std::string with_words(const std::string& what, const std::string& output) {
  const std::string words = first_words(output);
  return words.empty() ? what : what + ": " + words;
}

}  // namespace

std::string RunNodes::text() const {
  if (!list.empty()) return list;
  return count == 0 ? "any nodes" : count == 1 ? "any 1 node" : "any " + std::to_string(count) + " nodes";
}

bool Launcher::is_srun() const {
  return base_name(command.front()) == "srun";
}

Result<Launcher> Launcher::parse(const std::string& text) {
  Launcher launcher;
  launcher.command.clear();
  std::istringstream words(text);
  for (std::string word; words >> word;) launcher.command.push_back(word);
  if (launcher.command.empty()) return invalid_input("--launcher is empty: srun or mpirun, and options of it");
  const std::string name = base_name(launcher.command.front());
  if (name != "srun" && !name.starts_with("mpirun") && !name.starts_with("mpiexec"))
    return invalid_input("--launcher " + name + ": srun, mpirun or mpiexec, and options of it");
  // Where a rank crashes the others would wait for it until the limit; mpirun ends them of itself. An option
  // of the user's own stands behind it, and so is what counts.
  if (launcher.is_srun()) launcher.command.insert(launcher.command.begin() + 1, "--kill-on-bad-exit=1");
  return launcher;
}

Result<std::vector<std::string>> Launcher::words(Rank ranks, const RunNodes& nodes) const {
  std::vector<std::string> words = command;
  std::vector<std::string> names;
  if (!nodes.list.empty()) {
    Result<std::vector<std::string>> expanded = expand_hostlist(nodes.list, kMostNodes);
    if (!expanded) return expanded.error();
    names = std::move(*expanded);
  }
  const std::size_t count = names.empty() ? nodes.count : names.size();
  const std::string tasks = std::to_string(ranks);
  if (count > static_cast<std::size_t>(ranks)) {
    return invalid_input(nodes.text() + ": " + std::to_string(count) + " nodes for " + tasks +
                         " ranks; at most one node for each");
  }
  if (is_srun()) {
    if (count > 0) words.push_back("--nodes=" + std::to_string(count));
    words.push_back("--ntasks=" + tasks);
    if (!names.empty()) words.push_back("--nodelist=" + nodes.list);
    words.push_back("--distribution=" + distribution);
    return words;
  }
  if (names.empty() && count > 0) {
    return invalid_input("-N " + std::to_string(count) + ": mpirun takes nodes by name only (--on NODELIST)");
  }
  words.insert(words.end(), {"-n", tasks});
  if (!names.empty()) {
    // Blocks: the first nodes take one more.
    std::string hosts;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t slots =
          static_cast<std::size_t>(ranks) / count + (i < static_cast<std::size_t>(ranks) % count ? 1 : 0);
      hosts += (hosts.empty() ? "" : ",") + names[i] + ":" + std::to_string(slots);
    }
    words.insert(words.end(), {"-host", hosts});
  }
  return words;
}

Result<SkeletonRun> run_skeleton(const std::vector<std::string>& words, const std::string& program,
                                 std::optional<double> rate, Seconds limit_s) {
  std::vector<std::string> all = words;
  // srun and mpirun look a name without a '/' up in PATH.
  all.push_back(program.find('/') == std::string::npos ? "./" + program : program);
  const Result<ChildOutput> ended = run_child(all, limit_s, environment_with(rate));
  if (!ended) {
    return Error{
        ended.error().code,
        ended.error().message + ": is it installed here? (another one: --launcher \"/path/of/srun ...\" or mpirun)"};
  }
  if (ended->timed_out) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.4g", limit_s);
    return Error{ErrorCode::kLimit,
                 "the skeleton did not end within " + std::string(text.data()) + " s, and was ended"};
  }
  const std::string output = output_of(*ended);
  if (!ended->succeeded()) {
    return Error{ErrorCode::kUnavailable, with_words(base_name(words.front()) + " " + how_ended(*ended), output)};
  }
  const std::size_t at = output.find("skeleton_s=");
  SkeletonRun run;
  if (at == std::string::npos ||
      std::sscanf(output.c_str() + at, "skeleton_s=%lf factor=%*u application_s=%*f rate=%lf", &run.seconds,
                  &run.rate) != 2 ||
      !(run.seconds > 0)) {
    return Error{ErrorCode::kUnavailable, with_words("the program did not say how long it ran", output)};
  }
  return run;
}

Result<void> compile_skeleton(const std::string& compiler, const std::string& source, const std::string& program) {
  const Result<ChildOutput> ended = run_child({compiler, "-O2", source, "-o", program}, 0);
  if (!ended) {
    return Error{ended.error().code,
                 ended.error().message + "; " + source +
                     " is written: compile it where MPI is installed, or name a compiler with --mpicc or MPICC"};
  }
  if (ended->succeeded()) return {};
  return invalid_input(with_words(compiler + " could not compile " + source, output_of(*ended)));
}

Result<std::string> program_of(const std::string& skeleton, const std::string& compiler) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(skeleton, error)) {
    return Error{ErrorCode::kNotFound, skeleton + ": no such skeleton (lbf-skeleton build TRACE -o skel.c makes one)"};
  }
  if (!skeleton.ends_with(".c")) {
    if (::access(skeleton.c_str(), X_OK) == 0) return fs::absolute(skeleton).string();
    return invalid_input(skeleton + ": neither a program nor a source (.c)");
  }
  const std::string program = fs::absolute(skeleton.substr(0, skeleton.size() - 2)).string();
  const auto written = fs::last_write_time(skeleton, error);
  if (!error) {
    const auto compiled = fs::last_write_time(program, error);
    if (!error && compiled > written) return program;
  }
  if (Result<void> done = compile_skeleton(compiler, skeleton, program); !done) return done.error();
  return program;
}

}  // namespace lbf::tools
