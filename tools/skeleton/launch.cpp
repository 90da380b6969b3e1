#include "tools/skeleton/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/scoped_fd.h"
#include "predictor/network/hostlist.h"

namespace lbf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostNodes = 1U << 20;
constexpr std::size_t kMostOutput = 1U << 20;  // what a run may say; the rest is read and forgotten
constexpr std::size_t kMostQuoted = 300;
constexpr Seconds kPatienceS = 10;  // between SIGTERM and SIGKILL

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

struct Ended {
  int status = 0;  // as waitpid gives it
  std::string output;
  bool in_time = true;
};

// The child's words until it closes its output, and its status.
class Child {
 public:
  // Errors: kIo; kUnavailable: no such program.
  static Result<Child> start(const std::vector<std::string>& words, std::optional<double> rate) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      return Error{ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno)};
    Child child;
    child.reading_.reset(ends[0]);
    const ScopedFd writing(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDERR_FILENO);
    // posix_spawnp only reads them.
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::string setting;
    std::vector<char*> environment;
    for (char** each = environ; *each != nullptr; ++each) {
      if (!rate || !std::string_view(*each).starts_with("LBF_SKELETON_RATE=")) environment.push_back(*each);
    }
    if (rate) {
      std::array<char, 64> text{};
      std::snprintf(text.data(), text.size(), "LBF_SKELETON_RATE=%.17g", *rate);
      setting = text.data();
      environment.push_back(setting.data());
    }
    environment.push_back(nullptr);
    const int error =
        ::posix_spawnp(&child.pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return Error{ErrorCode::kUnavailable, words.front() + ": " + std::strerror(error)};
    return child;
  }

  Ended finish(Seconds limit_s) {
    Ended ended;
    const Clock::time_point start = Clock::now();
    const auto elapsed_s = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    std::array<char, 4096> buffer{};
    Seconds deadline_s = limit_s;
    for (;;) {
      int wait_ms = -1;
      if (deadline_s > 0) {
        wait_ms = static_cast<int>(std::ceil(std::max(0.0, deadline_s - elapsed_s()) * 1e3));
      }
      pollfd watched{reading_.get(), POLLIN, 0};
      const int ready = ::poll(&watched, 1, wait_ms);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        ::kill(pid_, std::exchange(ended.in_time, false) ? SIGTERM : SIGKILL);
        deadline_s += kPatienceS;
        continue;
      }
      const ssize_t got = ::read(reading_.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      const std::size_t room = kMostOutput - std::min(kMostOutput, ended.output.size());
      ended.output.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
    }
    while (::waitpid(pid_, &ended.status, 0) < 0 && errno == EINTR) {
    }
    return ended;
  }

 private:
  Child() = default;
  pid_t pid_ = -1;
  ScopedFd reading_;
};

// The first line that says something; a rule or an empty line does not.
std::string first_words(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const bool says =
        std::count_if(line.begin(), line.end(), [](unsigned char c) { return std::isalpha(c) != 0; }) > 2;
    if (!says) continue;
    return line.size() > kMostQuoted ? line.substr(0, kMostQuoted) + "..." : line;
  }
  return {};
}

std::string how_ended(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
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
  if (launcher.command.empty())
    return invalid_input("--launcher is empty: srun or mpirun, and options of it");
  const std::string name = base_name(launcher.command.front());
  if (name != "srun" && !name.starts_with("mpirun") && !name.starts_with("mpiexec"))
    return invalid_input("--launcher " + name + ": srun, mpirun or mpiexec, and options of it");
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
  Result<Child> child = Child::start(all, rate);
  if (!child) {
    return Error{child.error().code,
                 child.error().message +
                     ": is it installed here? (another one: --launcher \"/path/of/srun ...\" or mpirun)"};
  }
  const Ended ended = child->finish(limit_s);
  if (!ended.in_time) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.4g", limit_s);
    return Error{ErrorCode::kLimit,
                 "the skeleton did not end within " + std::string(text.data()) + " s, and was ended"};
  }
  if (!WIFEXITED(ended.status) || WEXITSTATUS(ended.status) != 0) {
    return Error{ErrorCode::kUnavailable,
                 with_words(base_name(words.front()) + " " + how_ended(ended.status), ended.output)};
  }
  const std::size_t at = ended.output.find("skeleton_s=");
  SkeletonRun run;
  if (at == std::string::npos ||
      std::sscanf(ended.output.c_str() + at, "skeleton_s=%lf factor=%*u application_s=%*f rate=%lf",
                  &run.seconds, &run.rate) != 2 ||
      !(run.seconds > 0)) {
    return Error{ErrorCode::kUnavailable,
                 with_words("the program did not say how long it ran", ended.output)};
  }
  return run;
}

Result<void> compile_skeleton(const std::string& compiler, const std::string& source,
                              const std::string& program) {
  Result<Child> child = Child::start({compiler, "-O2", source, "-o", program}, {});
  if (!child) {
    return Error{
        child.error().code,
        compiler + ": no such compiler here (" +
            child.error().message.substr(std::min(child.error().message.size(), compiler.size() + 2)) +
            "); " + source +
            " is written: compile it where MPI is installed, or name a compiler with --mpicc or MPICC"};
  }
  const Ended ended = child->finish(0);
  if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0) return {};
  return invalid_input(with_words(compiler + " could not compile " + source, ended.output));
}

Result<std::string> program_of(const std::string& skeleton, const std::string& compiler) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(skeleton, error)) {
    return Error{ErrorCode::kNotFound,
                 skeleton + ": no such skeleton (lbf-skeleton build TRACE -o skel.c makes one)"};
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

}  // namespace lbf
