// run_child, see child_process.h.
#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/scoped_fd.h"

namespace lbf {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  ScopedFd reading;
  ScopedFd writing;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return Error{ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno)};
  return Pipe{ScopedFd(ends[0]), ScopedFd(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> made;
  for (const std::string& word : words) made.push_back(const_cast<char*>(word.c_str()));
  made.push_back(nullptr);
  return made;
}

Result<pid_t> spawn(const std::vector<std::string>& words, int out, int err,
                    const std::optional<std::vector<std::string>>& environment) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  std::vector<char*> arguments = pointers(words);
  std::vector<char*> variables = environment ? pointers(*environment) : std::vector<char*>{};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(),
                                    environment ? variables.data() : environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Error{ErrorCode::kUnavailable, "cannot run " + words.front() + ": " + std::strerror(failed)};
  return child;
}

// What is there now; closes the end of a pipe that nobody writes to any more.
void drain(ScopedFd& from, std::string& into) {
  std::array<char, 1 << 14> block{};
  const ssize_t n = ::read(from.get(), block.data(), block.size());
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) {
    from.reset();
    return;
  }
  const std::size_t room = ChildOutput::kMaxBytes - into.size();
  into.append(block.data(), std::min(static_cast<std::size_t>(n), room));
}

// Until both are closed or the time is over; whether it is.
bool read_both(ScopedFd& out, ScopedFd& err, Clock::time_point deadline, ChildOutput& output) {
  while (out || err) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return true;
    // poll() passes over descriptors below 0.
    std::array<pollfd, 2> waiting{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    const auto wait_ms = static_cast<int>(std::min<std::int64_t>(left.count() + 1, 60'000));
    if (::poll(waiting.data(), waiting.size(), wait_ms) <= 0) continue;
    if (waiting[0].revents != 0) drain(out, output.out);
    if (waiting[1].revents != 0) drain(err, output.err);
  }
  return false;
}

// It may have closed both outputs and run on.
int wait_for(pid_t child, Clock::time_point deadline, ChildOutput& output) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, output.timed_out ? 0 : WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (output.timed_out) continue;
    if (Clock::now() >= deadline) {
      output.timed_out = true;
      ::kill(child, SIGKILL);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& words, Seconds patience_s,
                              const std::optional<std::vector<std::string>>& environment) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience_s));
  Result<Pipe> out = make_pipe();
  if (!out) return out.error();
  Result<Pipe> err = make_pipe();
  if (!err) return err.error();
  const Result<pid_t> child = spawn(words, out->writing.get(), err->writing.get(), environment);
  if (!child) return child.error();
  out->writing.reset();
  err->writing.reset();
  ChildOutput output;
  output.timed_out = read_both(out->reading, err->reading, deadline, output);
  if (output.timed_out) ::kill(*child, SIGKILL);
  const int status = wait_for(*child, deadline, output);
  if (WIFEXITED(status)) output.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) output.signal = WTERMSIG(status);
  return output;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace lbf
