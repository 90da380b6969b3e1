// lbf-task-prolog, lbf-task-epilog: what `lbf-run -- srun ...` has Slurm run before and after each task on
// its node (SLURM_TASK_PROLOG, SLURM_TASK_EPILOG; docs/lbf-run.md). The first task of a step on a node starts
// the node's relay; the last one ends it. Whatever fails, the task runs as if lbf-run were not there.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "cost/first_grant.h"
#include "cost/procedure_limit.h"
#include "tools/run/run_description.h"
#include "tools/run/run_process.h"

namespace lbf::tools {
namespace {

constexpr Seconds kRelayTimeoutS = 25;
constexpr std::chrono::milliseconds kEpilogWait{8000};

std::string rings_of(const TaskStep& step) {
  const char* const base = std::getenv("LBF_RUN_RING_DIR");
  return std::string(base != nullptr ? base : "/dev/shm") + "/lbf-run-" + std::to_string(::getuid()) + "-" + step.name;
}

// Lines that start with "print" are the task's output.
void say(const std::string& what) {
  std::printf("print lbf-run: %s; this step runs without prediction\n", what.c_str());
}

// slurmstepd: parent of the task that runs this prolog.
int slurmstepd_pidfd() {
  std::ifstream stat("/proc/" + std::to_string(::getppid()) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return -1;
  const long parent = std::strtol(text.c_str() + name_end + 4, nullptr, 10);
  if (parent <= 1) return -1;
  return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(parent), 0));
}

// The relay's parent: ends it when the epilog of the last task says so, or when slurmstepd is gone.
[[noreturn]] void keep_relay(const Parts& parts, const std::string& rings, const std::string& server, int stepd) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGTERM}) ::signal(signal, SIG_IGN);
  ::unsetenv("LD_PRELOAD");
  const ScopedFd end(::open((rings + ".end").c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  auto relay = LocalRelay::start(parts, rings, server, cost::relay_arguments(limits_in_environment()));
  pollfd wait[2] = {{end.get(), POLLIN, 0}, {stepd, POLLIN, 0}};
  while (::poll(wait, 2, -1) < 0 && errno == EINTR) {
  }
  if (relay) (void)relay->finish(kRelayTimeoutS);
  for (const char* suffix : {".count", ".end"}) ::unlink((rings + suffix).c_str());
  ::_exit(0);
}

int prolog(const TaskStep& step) {
  const auto parts = find_parts();
  const char* const address = std::getenv("SLURM_LAUNCH_NODE_IPADDR");
  const char* const port = std::getenv("LBF_RUN_PORT");
  if (!parts) return say(parts.error().message), 0;
  if (address == nullptr || port == nullptr) return say("srun's address is not known"), 0;
  const std::string rings = rings_of(step);
  if (::mkdir(rings.c_str(), 0700) == 0) {
    const auto written = write_text(rings + "/step.json", step.description);
    if (!written || ::mkfifo((rings + ".end").c_str(), 0600) != 0) return say("cannot write " + rings), 0;
    const int stepd = slurmstepd_pidfd();
    const pid_t child = ::fork();
    if (child == 0) {
      // Twice, so that slurmstepd never meets it.
      if (::fork() == 0) keep_relay(*parts, rings, "http://" + std::string(address) + ":" + port, stepd);
      ::_exit(0);
    }
    if (child > 0) (void)wait_for_child(child, -1);
    if (stepd >= 0) ::close(stepd);
  } else {
    struct stat status {};
    if (errno != EEXIST || ::lstat(rings.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::getuid()) {
      return say("cannot make " + rings), 0;
    }
  }
  std::string preload = parts->capture;
  if (const char* const old = std::getenv("LD_PRELOAD"); old != nullptr && *old != '\0') {
    // Already there when srun handed on lbf-run's own environment.
    if (std::string_view(old).find(parts->capture) == std::string_view::npos) {
      preload += std::string(":") + old;
    } else {
      preload = old;
    }
  }
  std::printf("export LBF_CAPTURE_DIR=%s\nexport LBF_CAPTURE_GRANT=%llu\nexport LD_PRELOAD=%s\n", rings.c_str(),
              static_cast<unsigned long long>(cost::first_grant(overhead_limit_percent() / 100)), preload.c_str());
  std::printf("export LBF_CAPTURE_RANKS=%zu\n", step.local_tasks);
  const char* const ring_bytes = std::getenv("LBF_RUN_RING_BYTES");
  if (ring_bytes != nullptr) std::printf("export LBF_CAPTURE_RING_BYTES=%s\n", ring_bytes);
  const char* const procedures = std::getenv("LBF_PROCEDURES");
  if (procedures != nullptr && *procedures != '\0' && std::strchr(procedures, '\n') == nullptr) {
    std::printf("export LBF_CAPTURE_PROCEDURES=%s\nexport LBF_CAPTURE_PROCEDURES_LIMIT=%f\n", procedures,
                cost::procedure_limit(overhead_limit_percent() / 100));
  }
  return 0;
}

int epilog(const TaskStep& step) {
  const std::string rings = rings_of(step);
  const ScopedFd count(
      ::open((rings + ".count").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat status {};
  if (!count || ::write(count.get(), "x", 1) != 1 || ::fstat(count.get(), &status) != 0) return 0;
  if (static_cast<std::size_t>(status.st_size) < step.local_tasks) return 0;
  const ScopedFd end(::open((rings + ".end").c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!end || ::write(end.get(), "e", 1) != 1) {
    ::unlink((rings + ".count").c_str());
    return 0;
  }
  // slurmstepd kills what is left of the step when this returns.
  const auto give_up = std::chrono::steady_clock::now() + kEpilogWait;
  while (::access((rings + ".end").c_str(), F_OK) == 0 && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

// The user's own TaskProlog or TaskEpilog, which lbf-run took the place of: its output is this one's.
void run_users(const char* variable) {
  const char* const program = std::getenv(variable);
  if (program == nullptr || *program == '\0') return;
  std::fflush(stdout);
  auto child = start_child({program}, {});
  if (child) (void)wait_for_child(*child, -1);
}

int run(std::string_view name) {
  const bool is_epilog = name.ends_with("-epilog");
  if (is_epilog) run_users("LBF_RUN_USER_TASK_EPILOG");
  const auto step = describe_task_step();
  const int status = !step       ? (is_epilog ? 0 : (say(step.error().message), 0))
                     : is_epilog ? epilog(*step)
                                 : prolog(*step);
  if (!is_epilog) run_users("LBF_RUN_USER_TASK_PROLOG");
  return status;
}

}  // namespace
}  // namespace lbf::tools

int main(int, char** argv) {
  try {
    return lbf::tools::run(argv[0] != nullptr ? argv[0] : "");
  } catch (const std::exception&) {
    return 0;  // the task comes first
  }
}
