// See lbf_run_process.h.
#include "tools/run/run_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "base/io_error.h"
#include "base/quoted.h"

namespace lbf::tools {
namespace {

constexpr const char* kCaptureName = "liblbf_capture.so";
constexpr int kLeastUrgent = 19;

std::string first_that_is(const std::vector<std::string>& paths, int mode) {
  for (const std::string& path : paths) {
    if (::access(path.c_str(), mode) == 0) return path;
  }
  return {};
}

}  // namespace

Result<Parts> find_parts() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return io_error("cannot read /proc/self/exe");
  const std::string program(self.data(), static_cast<std::size_t>(length));
  Parts parts;
  const std::string own = program.substr(0, program.rfind('/'));
  const std::string bin = own.ends_with("/libexec/lbf") ? LBF_BIN_DIR : own;
  const std::string libexec = LBF_LIBEXEC_DIR;
  parts.bin = bin;
  parts.lbfd = first_that_is({bin + "/lbfd", LBF_SBIN_DIR "/lbfd"}, X_OK);
  parts.relay = first_that_is({bin + "/lbf-relay", libexec + "/lbf-relay"}, X_OK);
  parts.prolog = first_that_is({bin + "/lbf-task-prolog", libexec + "/lbf-task-prolog"}, X_OK);
  parts.epilog = first_that_is({bin + "/lbf-task-epilog", libexec + "/lbf-task-epilog"}, X_OK);
  parts.capture = first_that_is({bin + "/../lib/" + kCaptureName, std::string(LBF_LIB_DIR) + "/" + kCaptureName}, R_OK);
  parts.nominal = first_that_is({bin + "/../networks.d/nominal", std::string(kSiteNetworks) + "/nominal"}, X_OK);
  for (const auto& [name, path] :
       {std::pair{"lbfd", &parts.lbfd}, std::pair{"lbf-relay", &parts.relay}, std::pair{kCaptureName, &parts.capture},
        std::pair{"lbf-task-prolog", &parts.prolog}, std::pair{"lbf-task-epilog", &parts.epilog}}) {
    if (path->empty()) {
      return Error{ErrorCode::kNotFound, std::string(name) + " is neither beside " + program +
                                             " nor installed: install lbf's daemon and tools together"};
    }
  }
  std::array<char, PATH_MAX> real{};
  if (::realpath(parts.capture.c_str(), real.data()) != nullptr) parts.capture = real.data();
  if (parts.capture.find_first_of(": \t\n") != std::string::npos) {
    return invalid_input(parts.capture +
                         ": LD_PRELOAD cannot hold a path with a blank or a colon: put lbf somewhere else");
  }
  return parts;
}

Result<pid_t> start_child(const std::vector<std::string>& words, const ChildOptions& options) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ScopedFd output;
  if (!options.output.empty()) {
    output.reset(::open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!output) return io_error("cannot write " + options.output);
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return io_error("fork");
  if (child > 0) return child;
  if (options.own_session) {
    ::setsid();
    const int null = ::open("/dev/null", O_RDONLY);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
  }
  if (options.ends_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(128 + SIGTERM);  // it ended before it could be watched
  }
  if (output) {
    ::dup2(output.get(), STDOUT_FILENO);
    ::dup2(output.get(), STDERR_FILENO);
  }
  if (options.only_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (options.passed_fd >= 0 && ::dup2(options.passed_fd, 3) < 0) ::_exit(127);
  if (options.passed_fd == 3) ::fcntl(3, F_SETFD, 0);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  for (const int signal : options.ignored) ::signal(signal, SIG_IGN);
  ::execvp(argv[0], argv.data());
  const int code = errno == ENOENT ? 127 : 126;
  const std::string complaint = "lbf-run: error: cannot run " + words[0] + ": " + std::strerror(errno) + "\n";
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, complaint.data(), complaint.size());
  ::_exit(code);
}

void run_in_background(pid_t child) {
  ::setpriority(PRIO_PGRP, static_cast<id_t>(child), kLeastUrgent);
  // A session of its own is a group of its own to the scheduler, among which this nice value counts.
  std::ofstream("/proc/" + std::to_string(child) + "/autogroup") << kLeastUrgent;
}

Result<int> wait_for_child(pid_t child, Seconds timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  for (;;) {
    int status = 0;
    const pid_t got = ::waitpid(child, &status, timeout_s < 0 ? 0 : WNOHANG);
    if (got == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (got < 0 && errno != EINTR) return io_error("waitpid");
    if (timeout_s >= 0 && std::chrono::duration<double>(Clock::now() - begun).count() >= timeout_s) {
      return Error{ErrorCode::kUnavailable, "still running"};
    }
    if (timeout_s >= 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Result<LocalRelay> LocalRelay::start(const Parts& parts, const std::string& ring_dir, const std::string& server,
                                     const std::vector<std::string>& limits) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return io_error("socketpair");
  const ScopedFd relays(ends[0]);
  ScopedFd ours(ends[1]);
  ChildOptions options;
  options.own_session = true;
  options.passed_fd = relays.get();
  options.output = "/dev/null";
  std::vector<std::string> words{parts.relay,
                                 "--ring-dir",
                                 ring_dir,
                                 "--server",
                                 server,
                                 "--step-file",
                                 ring_dir + "/step.json",
                                 "--end-fd",
                                 "3",
                                 "--status-fd",
                                 "3",
                                 "--deliver-timeout-s",
                                 "20"};
  words.insert(words.end(), limits.begin(), limits.end());
  auto pid = start_child(words, options);
  if (!pid) return pid.error();
  return LocalRelay(*pid, std::move(ours));
}

LocalRelay::Finished LocalRelay::finish(Seconds timeout_s) {
  ::shutdown(end_.get(), SHUT_WR);
  const auto status = wait_for_child(pid_, timeout_s);
  Finished out;
  out.delivered = status && *status == 0;
  std::array<char, 1024> answer;
  const ssize_t got = ::recv(end_.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  if (got > 1) out.nothing = on_one_line({answer.data() + 1, static_cast<std::size_t>(got) - 1});
  return out;
}

Result<void> write_text(const std::string& path, const std::string& text) {
  const ScopedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return io_error("cannot write " + path);
  }
  return {};
}

}  // namespace lbf::tools
