// run_relay, see relay.h.
#include "spank_plugin/relay/relay.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "base/unique_handle.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/collector.h"
#include "spank_plugin/relay/sender.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {
namespace {

constexpr int kMinSleepMs = 5;
constexpr int kMaxSleepMs = 50;
// A request must end within the time that the plugin waits for the relay (docs/relay.md, "Ends").
constexpr Seconds kRequestTimeoutS = 3;
constexpr Seconds kConnectTimeoutS = 1;

struct CloseDir {
  void operator()(DIR* dir) const noexcept { ::closedir(dir); }
};

std::uint64_t ns_of(Seconds seconds) {
  return static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9);
}

Seconds own_cpu_s(std::uint64_t* max_rss_bytes) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  *max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Sleeps until TIMEOUT_MS have passed or the step ends. True: it has ended.
bool wait_for_end(int end_fd, int timeout_ms) {
  pollfd wait{end_fd, POLLIN, 0};
  if (end_fd < 0) {
    ::poll(nullptr, 0, timeout_ms);
    return false;
  }
  if (::poll(&wait, 1, timeout_ms) <= 0) return false;
  char byte = 0;
  const ssize_t got = ::read(end_fd, &byte, 1);
  return got >= 0 || (errno != EINTR && errno != EAGAIN);
}

template <typename T>
bool take(const nlohmann::json& json, const char* name, T* value) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) return false;
  *value = found->get<T>();
  return true;
}

}  // namespace

Result<StepIdentity> read_step_identity(const std::string& description) {
  const auto json = nlohmann::json::parse(description, nullptr, false);
  std::uint64_t job = 0;
  std::uint64_t step = 0;
  std::uint64_t restart = 0;
  StepIdentity identity;
  if (!json.is_object() || !take(json, "job", &job) || !take(json, "step", &step) ||
      !take(json, "node_index", &identity.stream) || !take(json, "tasks", &identity.tasks) ||
      !json.contains("nodes") || !json["nodes"].is_array()) {
    return invalid_input(
        "the step description lacks job, step, nodes, node_index or tasks (docs/formats/http-v1.md)");
  }
  (void)take(json, "restart", &restart);
  const auto cluster = json.find("cluster");
  identity.key = (cluster != json.end() && cluster->is_string() && !cluster->get<std::string>().empty()
                      ? cluster->get<std::string>()
                      : "cluster") +
                 "/" + std::to_string(job) + "/" + std::to_string(step) + "/" + std::to_string(restart);
  return identity;
}

Result<RequestFunction> make_request_function(const std::string& server) {
  HttpClientOptions options;
  options.connect_timeout_s = kConnectTimeoutS;
  options.total_timeout_s = kRequestTimeoutS;
  options.response_limit_bytes = 1 << 20;
  auto client = HttpClient::make(server, options);
  if (!client) return client.error();
  auto shared = std::make_shared<HttpClient>(std::move(*client));
  return RequestFunction(
      [shared](std::string_view method, std::string_view target, std::string_view body,
               std::string_view type) { return shared->request(method, target, body, type); });
}

Result<RelayResult> run_relay(const RelayOptions& options, const RequestFunction& request,
                              const std::atomic<bool>& stop) {
  auto identity = read_step_identity(options.step_description);
  if (!identity) return identity.error();
  auto collector =
      Collector::make({options.ring_dir, identity->tasks, static_cast<std::int32_t>(identity->stream)});
  if (!collector) return collector.error();
  Sender sender({{identity->key, identity->stream, options.server, options.step_description},
                 options.spool_dir,
                 options.spool_limit_bytes},
                request);
  BatchBuilder builder([&sender](std::unique_ptr<BatchEncoder> batch) { sender.submit(std::move(batch)); });

  TickRate rate(read_clocks());
  int sleep_ms = kMinSleepMs;
  bool ended = false;
  while (!ended && !stop.load(std::memory_order_relaxed)) {
    ended = wait_for_end(options.end_fd, sleep_ms);
    const ClockReading now = read_clocks();
    rate.observe(now);
    if (!rate.ready() || sender.overloaded()) continue;
    if (sender.lost()) builder.discard_events();
    const PassResult pass = collector->pass(now, rate, builder);
    sleep_ms = pass.a_ring_was_full ? kMinSleepMs : std::min(sleep_ms * 2, kMaxSleepMs);
  }
  const std::uint64_t end_ns = monotonic_ns();
  while (!rate.ready()) {  // a step that ended within the first baseline
    ::poll(nullptr, 0, 10);
    rate.observe(read_clocks());
  }
  collector->finish(read_clocks(), rate, builder);
  const DeliveryTotals totals = sender.totals();
  std::uint64_t max_rss_bytes = 0;
  const Seconds cpu_s = own_cpu_s(&max_rss_bytes);
  builder.add_control(nlohmann::json{{"type", "relay"},
                                     {"node_index", identity->stream},
                                     {"cpu_s", cpu_s},
                                     {"max_rss_bytes", max_rss_bytes},
                                     {"bytes_sent", totals.bytes_sent},
                                     {"batches", totals.batches},
                                     {"spooled_batches", totals.spooled_batches},
                                     {"lost_batches", totals.lost_batches},
                                     {"discarded_events", builder.discarded_events()},
                                     {"processes", collector->processes_taken()},
                                     {"processes_left_out", collector->processes_left_out()}}
                          .dump(),
                      monotonic_ns());
  builder.flush();
  constexpr Seconds kStopTimeoutS = 0.5;
  const bool stopped = !ended;
  RelayResult result;
  result.outcome = sender.finish(stopped ? "relay_terminated" : "step_end",
                                 end_ns + ns_of(stopped ? kStopTimeoutS : options.deliver_timeout_s));
  result.trouble = sender.trouble();
  return result;
}

Result<void> abandon_stream(const std::string& description, const RequestFunction& request) {
  auto identity = read_step_identity(description);
  if (!identity) return identity.error();
  const std::string target = stream_target({identity->key, identity->stream, "", ""});
  auto opened = request("PUT", target, description, "application/json");
  if (!opened) return opened.error();
  if (opened->status != 200) return error_of_response(*opened);
  const auto json = nlohmann::json::parse(opened->body, nullptr, false);
  std::uint64_t next = 0;
  if (!json.is_object() || !take(json, "next_sequence", &next) || next == 0) {
    return Error{ErrorCode::kInternal, "lbfd answered without next_sequence"};
  }
  const nlohmann::json end{{"last_sequence", next - 1}, {"lost_batches", 1}, {"reason", "relay_killed"}};
  auto ended = request("POST", target + "/end", end.dump(), "application/json");
  if (!ended) return ended.error();
  if (ended->status != 200) return error_of_response(*ended);
  return {};
}

void remove_ring_dir(const std::string& dir) {
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  const UniqueHandle<DIR*, CloseDir> handle(::fdopendir(fd));
  if (!handle) {
    ::close(fd);
    return;
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(handle.get())) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(".ring") || name == "step.json") names.emplace_back(name);
  }
  for (const std::string& name : names) ::unlinkat(fd, name.c_str(), 0);
  ::rmdir(dir.c_str());
}

namespace {

// All of this process's user's files. Returns how many are left.
int flush_own_files(const std::vector<std::string>& paths, const std::string& server,
                    const RequestFactory& make_request) {
  int left = 0;
  for (const std::string& path : paths) {
    auto file = SpoolFile::open(path);
    if (!file) {
      std::fprintf(stderr, "lbf-relay: error: %s\n", file.error().message.c_str());
      ++left;
      continue;
    }
    auto request = make_request(server.empty() ? file->header().server : server);
    if (!request) {
      std::fprintf(stderr, "lbf-relay: error: %s\n", request.error().message.c_str());
      ++left;
      continue;
    }
    SpoolDelivery delivery(std::move(*file), *request);
    for (;;) {
      auto done = delivery.step();
      if (!done) {
        std::fprintf(stderr, "lbf-relay: error: %s\n", done.error().message.c_str());
        if (done.error().code == ErrorCode::kUnavailable) ++left;
        break;
      }
      if (*done) break;
    }
  }
  return left;
}

}  // namespace

Result<int> flush_spool(const std::string& dir, const std::string& server,
                        const RequestFactory& make_request) {
  if (::access(dir.c_str(), R_OK | X_OK) != 0) {
    return Error{ErrorCode::kIo, "cannot read spool directory " + dir + ": " + std::strerror(errno)};
  }
  const std::vector<std::string> paths = list_spool_files(dir);
  if (::geteuid() != 0) return flush_own_files(paths, server, make_request);
  // Root hands each file to a child that is its owner: lbfd knows a step's user by who sends it, and nothing
  // that a user wrote is read with root's rights.
  int left = 0;
  for (const std::string& path : paths) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) continue;
    const pid_t child = ::fork();
    if (child < 0) return Error{ErrorCode::kIo, std::string("fork: ") + std::strerror(errno)};
    if (child == 0) {
      if (::setgroups(1, &status.st_gid) != 0 ||
          ::setresgid(status.st_gid, status.st_gid, status.st_gid) != 0 ||
          ::setresuid(status.st_uid, status.st_uid, status.st_uid) != 0) {
        ::_exit(1);
      }
      ::_exit(flush_own_files({path}, server, make_request) == 0 ? 0 : 1);
    }
    int code = 0;
    while (::waitpid(child, &code, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(code) || WEXITSTATUS(code) != 0) ++left;
  }
  return left;
}

}  // namespace lbf::relay
