// See report_program.h.
#include "spank_plugin/plugin/report_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/http_client.h"
#include "base/scoped_fd.h"

extern char** environ;

namespace lbf::plugin {
namespace {

constexpr long kLongestPollMs = 10;

// posix_spawn's settings, freed at the end.
class Spawn {
 public:
  Spawn() {
    if (::posix_spawn_file_actions_init(&files_) != 0) return;
    ready_ = ::posix_spawnattr_init(&attributes_) == 0;
    if (!ready_) ::posix_spawn_file_actions_destroy(&files_);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
  ~Spawn() {
    if (!ready_) return;
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  // -1: nothing was started.
  pid_t start(const std::string& program, char* const* argv, char* const* envp, int output) {
    if (!ready_) return -1;
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    // Where it cannot answer, the user gets our one line instead of its own.
    ::posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);  // srun blocks signals in its threads
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child = -1;
    return ::posix_spawn(&child, program.c_str(), &files_, &attributes_, argv, envp) == 0 ? child : -1;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
  bool ready_ = false;
};

bool ends_well(pid_t child, long timeout_ms) {
  // Tells its end at once; before Linux 5.3 there is none, which poll() ignores.
  const ScopedFd end(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  long pause_ms = 1;
  for (long waited_ms = 0;; waited_ms += pause_ms, pause_ms = std::min(pause_ms * 2, kLongestPollMs)) {
    int status = 0;
    const pid_t got = ::waitpid(child, &status, WNOHANG);
    if (got == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (got < 0 && errno != EINTR) return false;
    if (waited_ms >= timeout_ms) {
      ::kill(child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return false;
    }
    pollfd wait{end.get(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(pause_ms));
  }
}

bool run(const AdminConfig& admin, std::vector<std::string> words, long timeout_ms, int output) {
  words.insert(words.begin(), admin.report);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  variables.emplace_back(kHttpClientVariable);
  if (::getenv("LBF_SERVER") == nullptr) variables.push_back("LBF_SERVER=" + admin.lbfd);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  const pid_t child = Spawn().start(admin.report, argv.data(), envp.data(), output);
  return child > 0 && ends_well(child, timeout_ms);
}

}  // namespace

std::optional<std::string> output_of_report(const AdminConfig& admin, std::vector<std::string> words, long timeout_ms) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return std::nullopt;
  const ScopedFd read_end(ends[0]);
  ScopedFd write_end(ends[1]);
  // A pipe holds it all: nobody reads before its end.
  if (!run(admin, std::move(words), timeout_ms, write_end.get())) return std::nullopt;
  std::array<char, 65536> bytes;
  const ssize_t got = ::read(read_end.get(), bytes.data(), bytes.size());
  return std::string(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
}

}  // namespace lbf::plugin
