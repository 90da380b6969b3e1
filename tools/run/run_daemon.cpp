// See run_daemon.h.
#include "tools/run/run_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/http_client.h"
#include "base/io_error.h"

namespace lbf::tools {
namespace {

constexpr int kMostDirectories = 64;
constexpr Seconds kStopTimeoutS = 15;
constexpr int kStartTries = 200;
constexpr std::chrono::milliseconds kStartPoll{50};

Result<std::string> make_token() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return io_error("getrandom");
  std::string token;
  for (const unsigned char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

std::string read_from(const std::string& path, std::uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// A TOML string.
std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

void link_nominal_networks(const std::string& nominal, const std::string& networks) {
  if (nominal.empty()) return;
  const std::string link = networks + "/nominal";
  std::error_code ignored;
  if (std::filesystem::is_symlink(link, ignored)) std::filesystem::remove(link, ignored);
  std::filesystem::create_directory_symlink(nominal, link, ignored);
}

Result<void> PrivateDaemon::take_dir(const DaemonOptions& options) {
  int tries = 0;
  for (int number = 1;; ++number) {
    dir_ = options.dir + (number == 1 ? "" : "-" + std::to_string(number));
    std::error_code error;
    const bool made = std::filesystem::create_directories(dir_, error);
    if (error) return Error{ErrorCode::kIo, "cannot make " + dir_ + ": " + error.message()};
    // One that was there is its owner's; lbfd's own folder in it is 0700 in any case.
    if (made) ::chmod(dir_.c_str(), 0700);
    const std::string path = dir_ + "/lbf-run.lock";
    lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock_) return io_error("cannot open " + path);
    // Who only asks joins the one that has it; it may be about to start, or to end.
    while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (!options.only_asked) break;
      if (join()) return {};
      if (++tries == kStartTries)
        return Error{ErrorCode::kUnavailable,
                     dir_ +
                         " is in use by another lbf-run whose lbfd does not answer here (on another machine?): wait "
                         "for its end"};
      std::this_thread::sleep_for(kStartPoll);
    }
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
    if (options.dir_was_given || number == kMostDirectories) {
      return Error{ErrorCode::kUnavailable,
                   dir_ + " is in use by another lbf-run: wait for its end, or give another --dir"};
    }
  }
}

// Whether the lbfd of the lbf-run that has the lock answers.
bool PrivateDaemon::join() {
  const std::string where = last_line(read_from(dir_ + "/lbf-run.lock", 0));
  struct stat status {};
  if (::lstat(where.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) return false;
  auto client = HttpClient::make("unix:" + where + "/lbfd.sock");
  if (!client) return false;
  const auto answer = client->request("GET", "/v1/health", {}, "", HttpAuth::kNone);
  if (!answer || answer->status != 200) return false;
  socket_dir_ = where;
  token_ = last_line(read_from(where + "/token", 0));
  lock_.reset();
  return true;
}

Result<PrivateDaemon> PrivateDaemon::start(const Parts& parts, const DaemonOptions& options) {
  PrivateDaemon daemon;
  if (auto taken = daemon.take_dir(options); !taken) return taken.error();
  if (daemon.is_joined()) return daemon;
  auto token = make_token();
  if (!token) return token.error();
  daemon.token_ = std::move(*token);
  // A socket's path may have 107 characters, and a home directory may be on a file system without sockets.
  constexpr const char* kBase = "/tmp";
  constexpr const char* kPrefix = "lbf-run-";
  remove_leftovers(kBase, kPrefix);
  auto socket_dir = OwnedDirectory::make(kBase, kPrefix);
  if (!socket_dir) return socket_dir.error();
  daemon.socket_dir_ = socket_dir->path();
  daemon.owned_socket_dir_ = std::move(*socket_dir);
  if (auto launched = daemon.launch(parts, options); !launched) return launched.error();
  if (auto said = write_text(daemon.dir_ + "/lbf-run.lock", daemon.socket_dir_ + "\n"); !said) return said.error();
  return daemon;
}

Result<void> PrivateDaemon::launch(const Parts& parts, const DaemonOptions& options) {
  std::string networks = options.networks_dir;
  if (networks.empty()) {
    networks = dir_ + "/networks.d";
    if (::access(networks.c_str(), F_OK) != 0 && ::access(kSiteNetworks, R_OK | X_OK) == 0) networks = kSiteNetworks;
    if (networks != kSiteNetworks) {
      ::mkdir(networks.c_str(), 0700);
      link_nominal_networks(parts.nominal, networks);
    }
  }
  const std::string token_file = socket_dir_ + "/token";
  std::string config = "# Written by lbf-run.\nlisten = [" + toml_text(server());
  if (options.tcp) config += ", \"tcp:0.0.0.0:0\"";
  config += "]\n";
  if (options.tcp) config += "token_over_tcp = true\n";  // of this run alone, and there may be no munge
  config += "state_dir = " + toml_text(dir_ + "/state") + "\nnetworks_dir = " + toml_text(networks) +
            "\ntoken_file = " + toml_text(token_file) + "\ntrace_retention_days = 0\nreplay_when_idle = true\n";
  if (options.only_asked) config += "stream_timeout_s = 1\n";
  if (!options.network.empty()) config += "network = " + toml_text(options.network) + "\n";
  for (const auto& [path, text] : {std::pair{token_file, token_ + "\n"}, std::pair{dir_ + "/lbfd.toml", config}}) {
    if (auto written = write_text(path, text); !written) return written;
  }
  const std::string log = dir_ + "/lbfd.log";
  std::error_code ignored;
  const std::uint64_t log_begin = std::filesystem::exists(log, ignored) ? std::filesystem::file_size(log, ignored) : 0;
  ChildOptions child;
  child.own_session = true;
  child.ends_with_parent = true;  // also where lbf-run is killed: else DIR would stay in use
  child.output = log;
  auto pid = start_child({parts.lbfd, "--config", dir_ + "/lbfd.toml"}, child);
  if (!pid) return pid.error();
  pid_ = *pid;
  auto client = HttpClient::make(server());
  if (!client) return client.error();
  for (int i = 0; i < kStartTries; ++i) {
    if (const auto answer = client->request("GET", "/v1/health", {}, "", HttpAuth::kNone);
        answer && answer->status == 200) {
      constexpr std::string_view kListens = "listens on tcp:0.0.0.0:";
      const std::string text = read_from(log, log_begin);
      if (const std::size_t at = text.find(kListens); at != std::string::npos) {
        const std::string_view digits = std::string_view(text).substr(at + kListens.size(), 5);
        std::from_chars(digits.data(), digits.data() + digits.size(), port_);
      }
      if (!options.tcp || port_ != 0) {
        run_in_background(pid_);  // it predicts beside the program, on the program's own processors
        return {};
      }
    }
    if (const auto over = wait_for_child(pid_, 0); over) {
      pid_ = -1;
      return Error{ErrorCode::kUnavailable, "lbfd ended: " + last_line(read_from(log, log_begin)) + " (" + log + ")"};
    }
    std::this_thread::sleep_for(kStartPoll);
  }
  return Error{ErrorCode::kUnavailable, "lbfd does not answer: see " + log};
}

PrivateDaemon::PrivateDaemon(PrivateDaemon&& other) noexcept
    : dir_(std::move(other.dir_)),
      socket_dir_(std::exchange(other.socket_dir_, {})),
      owned_socket_dir_(std::exchange(other.owned_socket_dir_, std::nullopt)),
      token_(std::move(other.token_)),
      port_(other.port_),
      lock_(std::move(other.lock_)),
      pid_(std::exchange(other.pid_, -1)) {}

PrivateDaemon::~PrivateDaemon() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    if (!wait_for_child(pid_, kStopTimeoutS)) {
      ::kill(pid_, SIGKILL);
      (void)wait_for_child(pid_, kStopTimeoutS);
    }
  }
  if (!owned_socket_dir_) return;
  for (const char* name : {"/lbfd.sock", "/token"}) ::unlink((socket_dir_ + name).c_str());
  ::rmdir(socket_dir_.c_str());
}

PrivateDaemon::ProcessorUse PrivateDaemon::processor_use() const {
  clockid_t clock = 0;
  timespec used{};
  if (pid_ <= 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  ProcessorUse use{.cpu_s = static_cast<Seconds>(used.tv_sec) + 1e-9 * static_cast<Seconds>(used.tv_nsec)};
  std::error_code error;
  std::filesystem::directory_iterator task("/proc/" + std::to_string(pid_) + "/task", error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    std::uint64_t ran_ns = 0;
    std::uint64_t delayed_ns = 0;
    if (std::ifstream(task->path() / "schedstat") >> ran_ns >> delayed_ns)
      use.delayed_s += 1e-9 * static_cast<Seconds>(delayed_ns);
  }
  return use;
}

std::uint32_t PrivateDaemon::next_run_number() const {
  const std::string path = dir_ + "/last-run";
  std::uint32_t last = 0;
  std::ifstream(path) >> last;
  (void)write_text(path, std::to_string(last + 1) + "\n");
  return last + 1;
}

}  // namespace lbf::tools
