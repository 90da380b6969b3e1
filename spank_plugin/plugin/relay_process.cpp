// See relay_process.h.
#include "spank_plugin/plugin/relay_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/http_client.h"
#include "protocol/task_ends.h"

namespace lbf::plugin {
namespace {

constexpr int kRelayFd = 3;
constexpr int kExecTimeoutMs = 5000;

std::int64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

pid_t safe_fork() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  return ::_Fork();  // runs no atfork handlers: a lock of another thread may be held for ever in the child
#else
  return ::fork();
#endif
}

// Everything the child needs, made before the fork.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  int socket;
  int error_pipe;
  uid_t uid;
  gid_t gid;
  const gid_t* gids;
  std::size_t gid_count;
};

// The raw calls: glibc's wrappers change the ids of every thread and take locks for it; here is one thread
// only.
#ifdef SYS_setresuid32
constexpr long kSetResUid = SYS_setresuid32;
constexpr long kSetResGid = SYS_setresgid32;
constexpr long kSetGroups = SYS_setgroups32;
#else
constexpr long kSetResUid = SYS_setresuid;
constexpr long kSetResGid = SYS_setresgid;
constexpr long kSetGroups = SYS_setgroups;
#endif

// Becomes the user for good. In user_init the effective ids are the user's already and the real ones root's;
// in task_exit and exit all are root's.
bool become_user(const ChildPlan& plan) {
  if (::getuid() == 0 || ::geteuid() == 0) {
    if (::geteuid() != 0 && ::syscall(kSetResUid, -1, 0, -1) != 0) return false;
    if (::syscall(kSetGroups, plan.gid_count, plan.gids) != 0) return false;
    if (::syscall(kSetResGid, plan.gid, plan.gid, plan.gid) != 0) return false;
    if (::syscall(kSetResUid, plan.uid, plan.uid, plan.uid) != 0) return false;
  }
  uid_t ruid = 0;
  uid_t euid = 0;
  uid_t suid = 0;
  gid_t rgid = 0;
  gid_t egid = 0;
  gid_t sgid = 0;
  if (::getresuid(&ruid, &euid, &suid) != 0 || ::getresgid(&rgid, &egid, &sgid) != 0) return false;
  if (ruid != plan.uid || euid != plan.uid || suid != plan.uid) return false;
  if (rgid != plan.gid || egid != plan.gid || sgid != plan.gid) return false;
  if (plan.uid != 0 && ::syscall(kSetResUid, -1, 0, -1) == 0) return false;  // there must be no way back
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

void close_from(unsigned first) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  rlimit limit{};
  unsigned last = 65536;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < last) last = static_cast<unsigned>(limit.rlim_cur);
  for (unsigned fd = first; fd < last; ++fd) ::close(static_cast<int>(fd));
}

// Descriptors 0, 1, 2: /dev/null. slurmstepd's stderr is the job's by now: a relay that kept it open would
// keep srun waiting. 3: the socket. 4: the error pipe, closed by exec. Nothing else.
bool arrange_descriptors(const ChildPlan& plan) {
  const int socket = ::fcntl(plan.socket, F_DUPFD_CLOEXEC, 16);
  const int error_pipe = ::fcntl(plan.error_pipe, F_DUPFD_CLOEXEC, 16);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (socket < 0 || error_pipe < 0 || null < 0) return false;
  const int high_null = ::fcntl(null, F_DUPFD_CLOEXEC, 16);
  if (high_null < 0) return false;
  for (int fd = 0; fd <= 2; ++fd) {
    if (::dup2(high_null, fd) < 0) return false;
  }
  if (::dup2(socket, kRelayFd) < 0 || ::dup3(error_pipe, kRelayFd + 1, O_CLOEXEC) < 0) return false;
  close_from(kRelayFd + 2);
  return true;
}

// On the pipe: the relay's number, and below 0 why it does not run.
[[noreturn]] void fail(int error_pipe) {
  const int code = -errno;
  [[maybe_unused]] const ssize_t put = ::write(error_pipe, &code, sizeof code);
  ::_exit(127);
}

// Async-signal-safe from here to exec.
[[noreturn]] void run_child(const ChildPlan& plan) {
  const pid_t relay = safe_fork();
  if (relay < 0) fail(plan.error_pipe);
  if (relay > 0) ::_exit(::write(plan.error_pipe, &relay, sizeof relay) == static_cast<ssize_t>(sizeof relay) ? 0 : 1);
  // A session of its own: signals to the step's process group or terminal are not meant for the relay.
  ::setsid();
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!become_user(plan)) {
    errno = EPERM;
    fail(plan.error_pipe);
  }
  ::umask(077);
  if (::chdir("/") != 0) fail(plan.error_pipe);
  if (!arrange_descriptors(plan)) fail(plan.error_pipe);
  ::execve(plan.program, plan.argv, plan.envp);
  fail(kRelayFd + 1);
}

}  // namespace

Result<RelayProcess> RelayProcess::start(const std::string& program, const std::vector<std::string>& arguments,
                                         const UserIdentity& user) {
  const auto cannot = [&program](const char* what, int code) {
    return Error{ErrorCode::kIo, "cannot start " + program + ": " + what + ": " + std::strerror(code)};
  };
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (const char* word : {"--end-fd", "3", "--status-fd", "3"}) words.emplace_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Not the user's environment: LD_PRELOAD and the like are for his program.
  std::vector<std::string> variables{"PATH=/usr/bin:/bin", "LC_ALL=C", kHttpClientVariable};
  for (const char* name : {"LBF_MUNGE_SOCKET", "LBF_CA_FILE"}) {
    if (const char* value = ::secure_getenv(name)) variables.push_back(std::string(name) + '=' + value);
  }
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return cannot("socketpair", errno);
  ScopedFd ours(sockets[0]);
  ScopedFd theirs(sockets[1]);
  int pipes[2];
  if (::pipe2(pipes, O_CLOEXEC) != 0) return cannot("pipe", errno);
  const ScopedFd error_read(pipes[0]);
  ScopedFd error_write(pipes[1]);

  const ChildPlan plan{program.c_str(),
                       argv.data(),
                       envp.data(),
                       theirs.get(),
                       error_write.get(),
                       user.uid,
                       user.gid,
                       user.supplementary_gids.data(),
                       user.supplementary_gids.size()};
  const pid_t child = safe_fork();
  if (child < 0) return cannot("fork", errno);
  if (child == 0) run_child(plan);
  theirs.reset();
  error_write.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }

  // Closed by exec: end of file means that the relay runs.
  pid_t pid = 0;
  for (;;) {
    pollfd wait{error_read.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, kExecTimeoutMs);
    if (ready < 0 && errno == EINTR) continue;
    int word = 0;
    if (ready <= 0 || ::read(error_read.get(), &word, sizeof word) != static_cast<ssize_t>(sizeof word)) break;
    if (word < 0) return cannot(word == -EPERM ? "privileges" : "exec", -word);
    pid = word;
  }
  return RelayProcess(std::move(ours), pid);
}

void RelayProcess::signal_end(std::string lines) noexcept {
  if (!socket_) return;
  // Not more than the socket is sure to take at once: a part would hide the byte behind it.
  constexpr std::size_t kMostBytes = 32 << 10;
  if (lines.size() > kMostBytes) lines.clear();
  // A byte, not a close: a child that some thread of slurmstepd has just forked may hold the socket, too.
  lines += protocol::kStepEnds;
  [[maybe_unused]] const ssize_t put = ::send(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

RelayOutcome RelayProcess::wait(Seconds timeout_s) {
  const std::int64_t deadline_ms = monotonic_ms() + static_cast<std::int64_t>(timeout_s * 1000);
  while (socket_) {
    const std::int64_t left_ms = deadline_ms - monotonic_ms();
    pollfd wait{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, left_ms > 0 ? static_cast<int>(left_ms) : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return RelayOutcome::kStillBusy;
    std::array<char, kMostAnswerBytes> answer;
    const ssize_t got = ::recv(socket_.get(), answer.data(), answer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    socket_.reset();
    if (got <= 0) return RelayOutcome::kDied;
    // A user's process wrote it, and it may come into root's log.
    why_.assign(answer.data() + 1, static_cast<std::size_t>(got) - 1);
    std::replace_if(
        why_.begin(), why_.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    if (answer[0] == 'D') return RelayOutcome::kDelivered;
    if (answer[0] == 'R') return RelayOutcome::kDeliveredRuns;
    return answer[0] == 'S' ? RelayOutcome::kSpooled : RelayOutcome::kLost;
  }
  return RelayOutcome::kDied;
}

}  // namespace lbf::plugin
