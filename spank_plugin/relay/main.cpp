// lbf-relay: one process per node and step, as the job's user, started by the SPANK plugin (docs/relay.md).
// Its exit status and the byte on --status-fd say what became of the step's events.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "base/io_error.h"
#include "base/quoted.h"
#include "base/scoped_fd.h"
#include "spank_plugin/relay/relay.h"

namespace {

using lbf::Error;
using lbf::ErrorCode;
using lbf::Result;
using lbf::relay::Outcome;

std::atomic<bool> g_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);
extern "C" void on_stop_signal(int) {
  g_stop.store(true, std::memory_order_relaxed);
}

constexpr std::size_t kMaxStepBytes = 16 << 20;

Result<std::string> read_file(const std::string& path) {
  // The user may have put something else there: a pipe would be waited for without end.
  const lbf::ScopedFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return lbf::io_error("cannot read " + path);
  if (!S_ISREG(status.st_mode)) return lbf::invalid_input(path + " is not a regular file");
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return lbf::io_error("cannot read " + path);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMaxStepBytes) return lbf::invalid_input(path + " is too long for a step description");
  }
}

// For people: on stderr (which the plugin points at /dev/null) and in the system's log.
void complain(const std::string& message) {
  const std::string line = lbf::on_one_line(message);
  std::fprintf(stderr, "lbf-relay: error: %s\n", line.c_str());
  ::syslog(LOG_WARNING, "%s", line.c_str());
}

char status_byte(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDelivered:
      return 'D';
    case Outcome::kSpooled:
      return 'S';
    default:
      return 'L';
  }
}

// In one piece: whoever waits reads once. The byte first: a plugin of an earlier release reads no more.
void tell_status(int fd, char byte, const std::string& why = {}) {
  if (fd < 0) return;
  constexpr std::size_t kMostWhyBytes = 400;
  const std::string answer = byte + lbf::on_one_line(why.substr(0, kMostWhyBytes));
  [[maybe_unused]] const ssize_t put = ::write(fd, answer.data(), answer.size());
}

int run(int argc, char** argv) {
  lbf::relay::RelayOptions options;
  std::string step_file;
  std::string flush_dir;
  std::string cleanup_dir;
  std::uint64_t spool_limit_mb = 1024;
  double cpu_limit_percent = 0;
  std::uint64_t memory_limit_mb = 32;
  double network_limit_kBps = 0;
  int status_fd = -1;
  CLI::App app(
      "lbf-relay: brings the events of one step on one node to lbfd. Started by the SPANK plugin; by hand "
      "only with --flush-spool.");
  app.set_version_flag("--version", std::string("lbf-relay ") + LBF_VERSION);
  app.add_option("--ring-dir", options.ring_dir, "directory of the event rings");
  app.add_option("--server", options.server, "lbfd: unix:/path/of/socket or http://host:port");
  app.add_option("--step-file", step_file, "step description, JSON");
  app.add_option("--spool-dir", options.spool_dir, "where batches wait while lbfd is away; empty: nowhere");
  app.add_option("--spool-limit-mb", spool_limit_mb, "most that this user's spool files may hold together");
  app.add_option("--cpu-limit-percent", cpu_limit_percent,
                 "the relay's own part of the overhead limit, percent of the program's processor time; 0: any part")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--memory-limit-mb", memory_limit_mb, "what waits in memory at most: batches, and records of threads")
      ->check(CLI::Range(4, 4096));
  app.add_option("--network-limit-kBps", network_limit_kBps, "kilobytes per second to lbfd at most; 0: no limit")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--end-fd", options.end_fd, "the step has ended when it reads end of file or a byte");
  app.add_option(
      "--status-fd", status_fd,
      "gets at the end D (delivered), R (the same with programs of mpirun), S (spooled) or L (lost), and behind "
      "it why, or why nothing was taken");
  app.add_option("--deliver-timeout-s", options.deliver_timeout_s, "after the end of the step; then spool")
      ->check(CLI::Range(0.0, 3600.0));
  auto* flush = app.add_option("--flush-spool", flush_dir, "deliver the spool files in this directory, then exit");
  app.add_option("--abandon", cleanup_dir, "end the stream of a killed relay, remove its ring directory, then exit")
      ->excludes(flush);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "lbf-relay: error: %s; lbf-relay --help lists the options\n", error.what());
    return 2;
  }

  if (!flush_dir.empty()) {
    auto left = lbf::relay::flush_spool(flush_dir, options.server, [](const std::string& server) {
      return lbf::relay::make_request_function(server, lbf::relay::kFlushRequestLimitS);
    });
    if (!left) {
      complain(left.error().message);
      return 1;
    }
    if (*left > 0) complain(std::to_string(*left) + " spool files are left in " + flush_dir);
    return *left == 0 ? 0 : 1;
  }
  if (!cleanup_dir.empty()) {
    auto description = read_file(cleanup_dir + "/step.json");
    auto request_to_end = lbf::relay::make_request_function(options.server);
    Result<void> told;
    if (!description) {
      told = description.error();
    } else if (!request_to_end) {
      told = request_to_end.error();
    } else {
      told = lbf::relay::abandon_stream(*description, *request_to_end);
    }
    if (!told) complain(told.error().message);
    lbf::relay::remove_ring_dir(cleanup_dir);
    tell_status(status_fd, 'L');
    return 0;
  }
  if (options.ring_dir.empty() || options.server.empty() || step_file.empty()) {
    std::fprintf(stderr, "lbf-relay: error: --ring-dir, --server and --step-file are needed (or --flush-spool DIR)\n");
    return 2;
  }
  options.spool_limit_bytes = spool_limit_mb << 20;
  options.cpu_limit = cpu_limit_percent / 100;
  options.memory_limit_bytes = memory_limit_mb << 20;
  options.network_limit_bytes_per_s = network_limit_kBps * 1000;
  // The plugin's descriptors must not reach a child of any library.
  for (const int fd : {options.end_fd, status_fd}) {
    if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }

  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGPIPE, SIGHUP, SIGINT, SIGXFSZ}) sigaction(signal, &action, nullptr);

  Outcome outcome = Outcome::kLost;
  std::string why;
  std::size_t runs = 0;
  auto step = read_file(step_file);
  auto request = lbf::relay::make_request_function(options.server);
  if (!step) {
    why = step.error().message;
  } else if (!request) {
    why = request.error().message;
  } else {
    options.step_description = std::move(*step);
    auto result = lbf::relay::run_relay(options, *request, g_stop);
    if (!result) {
      why = result.error().message;
    } else {
      outcome = result->outcome;
      why = outcome == Outcome::kDelivered ? result->nothing : result->trouble;
      runs = result->runs;
    }
  }
  if (outcome != Outcome::kDelivered && !why.empty()) complain(why);
  lbf::relay::remove_ring_dir(options.ring_dir);
  tell_status(status_fd, outcome == Outcome::kDelivered && runs > 0 ? 'R' : status_byte(outcome), why);
  return outcome == Outcome::kLost ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::openlog("lbf-relay", LOG_PID, LOG_USER);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    complain(error.what());
    return 1;
  }
}
