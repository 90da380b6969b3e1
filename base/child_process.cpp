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
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno)};
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
  if (failed != 0) return Error{ErrorCode::kUnavailable, "cannot run " + words.front() + ": " + std::strerror(failed)};
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

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

// What is done to a child that takes longer than it may.
class Patience {
 public:
  Patience(pid_t child, Seconds patience_s)
      : child_(child), is_bounded_(patience_s > 0), next_(Clock::now() + of_clock(patience_s)) {}

  bool was_lost() const { return signals_ > 0; }
  // It is over, or will be at once: its outputs need not be waited for.
  bool is_at_its_end() const { return signals_ > 1 || (signals_ == 1 && has_ended(child_)); }
  // Until something is to be done, for poll().
  int wait_ms() const {
    if (!is_bounded_) return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next_ - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, was_lost() ? kLook_ms : 60'000));
  }
  void look() {
    if (!is_bounded_ || Clock::now() < next_) return;
    ::kill(child_, signals_ == 0 ? SIGTERM : SIGKILL);
    ++signals_;
    next_ += of_clock(kChildGraceS);
  }

 private:
  static constexpr std::int64_t kLook_ms = 20;
  static Clock::duration of_clock(Seconds seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  pid_t child_;
  bool is_bounded_;
  Clock::time_point next_;
  int signals_ = 0;
};

// Until both are closed, or the child is at its end and nothing more is there.
void read_both(ScopedFd& out, ScopedFd& err, Patience& patience, ChildOutput& output) {
  while (out || err) {
    patience.look();
    const bool is_end = patience.is_at_its_end();
    // poll() passes over descriptors below 0.
    std::array<pollfd, 2> waiting{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), is_end ? 0 : patience.wait_ms()) <= 0) {
      if (is_end) return;
      continue;
    }
    if (waiting[0].revents != 0) drain(out, output.out);
    if (waiting[1].revents != 0) drain(err, output.err);
  }
}

// It may have closed both outputs and run on. Its status, as waitpid gives it.
int wait_for(pid_t child, Patience& patience) {
  int status = 0;
  for (;;) {
    patience.look();
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& words, Seconds patience_s,
                              const std::optional<std::vector<std::string>>& environment) {
  Result<Pipe> out = make_pipe();
  if (!out) return out.error();
  Result<Pipe> err = make_pipe();
  if (!err) return err.error();
  const Result<pid_t> child = spawn(words, out->writing.get(), err->writing.get(), environment);
  if (!child) return child.error();
  out->writing.reset();
  err->writing.reset();
  ChildOutput output;
  Patience patience(*child, patience_s);
  read_both(out->reading, err->reading, patience, output);
  const int status = wait_for(*child, patience);
  output.timed_out = patience.was_lost();
  if (WIFEXITED(status)) output.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) output.signal = WTERMSIG(status);
  return output;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace lbf
