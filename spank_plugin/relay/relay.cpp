// run_relay, see relay.h.
#include "spank_plugin/relay/relay.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/directory_handle.h"
#include "base/io_error.h"
#include "base/mutex.h"
#include "base/quoted.h"
#include "base/scoped_fd.h"
#include "base/unique_handle.h"
#include "protocol/relay_description.h"
#include "protocol/step_description.h"
#include "protocol/stream_messages.h"
#include "spank_plugin/relay/common_look.h"
#include "spank_plugin/relay/end_signal.h"
#include "spank_plugin/relay/primitive_probe.h"
#include "spank_plugin/relay/run_description.h"
#include "spank_plugin/relay/run_finder.h"
#include "spank_plugin/relay/stream_run.h"
#include "spank_plugin/relay/tick_rate.h"
#include "spank_plugin/relay/uncaptured_program.h"

namespace lbf::relay {
namespace {

constexpr int kMinSleepMs = 5;
constexpr int kMaxSleepMs = 50;
// Rings that hardly fill, of processes with one thread each: a look holds its node up (common_look.h). One that gets
// full all the same closes its capture's window by itself.
constexpr int kQuietSleepMs = 200;
// While no call is recorded there is nothing to drain, and looking costs: the next window is slept towards.
constexpr int kCountingSleepMs = 200;
constexpr int kOffSleepMs = 500;
constexpr int kIdleSleepMs = 1000;  // with nothing to drain: the kernel tells of new rings
// As long as no ring was there the relay looks for programs without one, after this time and then more and more rarely:
// a look reads the environment of all of the user's processes.
constexpr std::uint64_t kFirstLookNs = 1'000'000'000;
// A request must end within the time that the plugin waits for the relay (docs/relay.md, "Ends").
constexpr Seconds kConnectTimeoutS = 1;

Nanoseconds realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::uint64_t ns_of(Seconds seconds) {
  return static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9);
}

}  // namespace

Result<StepIdentity> read_step_identity(const std::string& description) {
  const auto step = protocol::decode_step_description(description);
  if (!step) return step.error();
  StepIdentity identity;
  identity.key = (step->cluster.empty() ? "cluster" : step->cluster) + "/" + std::to_string(*step->job) + "/" +
                 std::to_string(*step->step) + "/" + std::to_string(step->restart.value_or(0));
  if (step->submit_s > 0) identity.key += "/" + std::to_string(step->submit_s);
  identity.stream = step->node_index;
  identity.step_number = *step->step;
  identity.tasks = step->tasks;
  identity.local_tasks = static_cast<std::uint32_t>(step->task_ids.size());
  if (const auto limit = step->overhead_limit_percent) identity.overhead_limit = std::clamp(*limit / 100, 0.0, 1.0);
  return identity;
}

namespace {

// Clients that nobody is asking with. A client is one thread's at a time, and each run of a relay (programs that mpirun
// starts side by side) has a sender of its own.
class IdleClients {
 public:
  std::optional<HttpClient> take() {
    const MutexLock lock(mutex_);
    if (idle_.empty()) return std::nullopt;
    std::optional<HttpClient> client = std::move(idle_.back());
    idle_.pop_back();
    return client;
  }
  void give(HttpClient client) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(client));
  }

 private:
  Mutex mutex_;
  std::vector<HttpClient> idle_ GUARDED_BY(mutex_);
};

}  // namespace

Result<RequestFunction> make_request_function(const std::string& server, Seconds limit_s) {
  HttpClientOptions options;
  options.connect_timeout_s = kConnectTimeoutS;
  options.total_timeout_s = limit_s;
  options.response_limit_bytes = 1 << 20;
  auto client = HttpClient::make(server, options);
  if (!client) return client.error();
  auto clients = std::make_shared<IdleClients>();
  clients->give(std::move(*client));
  return RequestFunction([=](std::string_view method, std::string_view target, std::string_view body,
                             std::string_view type) -> Result<HttpResponse> {
    std::optional<HttpClient> mine = clients->take();
    if (!mine) {
      auto made = HttpClient::make(server, options);
      if (!made) return made.error();
      mine = std::move(*made);
    }
    auto response = mine->request(method, target, body, type);
    clients->give(std::move(*mine));
    return response;
  });
}

namespace {

// All streams of one relay.
class Relay {
 public:
  // Errors: as run_relay().
  static Result<std::unique_ptr<Relay>> make(const RelayOptions& options, const RequestFunction& request);

  void run(const std::atomic<bool>& stop);
  RelayResult finish();

 private:
  struct Run {
    std::unique_ptr<StreamRun> stream;
    std::future<RelayResult> ending;  // valid: its processes have ended, what they left is being delivered
  };
  Relay(const RelayOptions& options, const RequestFunction& request, protocol::RelayStreams description,
        std::shared_ptr<RingDirectory> directory)
      : options_(options),
        request_(request),
        description_(std::move(description)),
        directory_(std::move(directory)),
        finder_(directory_),
        end_signal_(options.end_fd),
        shared_cpu_s_(options.cpu_before_s) {}
  Result<std::unique_ptr<StreamRun>> make_stream(std::string description, std::string run);
  double pass(ClockReading now);
  void start_runs(std::uint64_t now_ns);
  void end_run(Run& run);
  void look_for_uncaptured(std::uint64_t now_ns);
  std::string why_nothing() const;
  bool idle() const;
  template <typename Use>
  void for_each_live_stream(const Use& use);
  void share_cpu();
  int longest_sleep_ms();
  std::uint64_t sleep_until_wake_ns(int sleep_ms);
  std::uint64_t deadline_ns() const { return monotonic_ns() + ns_of(options_.deliver_timeout_s); }

  const RelayOptions& options_;
  const RequestFunction& request_;
  protocol::RelayStreams description_;
  std::shared_ptr<RingDirectory> directory_;
  RunFinder finder_;
  EndSignal end_signal_;
  TickRate rate_{read_clocks()};
  PrimitiveCosts primitives_ = measure_primitives();
  Seconds shared_cpu_s_ = 0;        // of the relay's processor time: that has gone to streams
  std::unique_ptr<StreamRun> own_;  // of the step itself; empty: it is none
  std::vector<Run> runs_;
  bool ended_ = false;
  std::uint64_t look_interval_ns_ = kFirstLookNs;
  std::uint64_t next_look_ns_ = monotonic_ns() + kFirstLookNs;
  std::optional<UncapturedProgram> uncaptured_;
};

Result<std::unique_ptr<StreamRun>> Relay::make_stream(std::string description, std::string run) {
  auto identity = read_step_identity(description);
  if (!identity) return identity.error();
  CollectorOptions options;
  options.ring_dir = options_.ring_dir;
  options.tasks = identity->tasks;
  options.node_index = static_cast<std::int32_t>(identity->stream);
  options.directory = directory_;
  options.primitives = primitives_;
  options.longest_record_bytes = options_.memory_limit_bytes / 4;
  if (!description_.runs.is_null()) {
    options.membership = [this, name = std::move(run)](const RingDirectory::Ring& ring) {
      return finder_.membership(ring, name);
    };
  }
  auto collector = Collector::make(std::move(options));
  if (!collector) return collector.error();
  return std::make_unique<StreamRun>(options_, *identity, std::move(description), primitives_, std::move(*collector),
                                     request_);
}

Result<std::unique_ptr<Relay>> Relay::make(const RelayOptions& options, const RequestFunction& request) {
  auto description = protocol::decode_relay_description(options.step_description);
  if (!description) return description.error();
  auto directory = RingDirectory::open(options.ring_dir);
  if (!directory) return directory.error();
  std::unique_ptr<Relay> relay(new Relay(options, request, std::move(*description), std::move(*directory)));
  if (!relay->description_.own.empty() && !relay->description_.on_demand) {
    auto own = relay->make_stream(relay->description_.own, "");
    if (!own) return own.error();
    relay->own_ = std::move(*own);
  }
  return relay;
}

void Relay::start_runs(std::uint64_t now_ns) {
  if (description_.runs.is_null()) return;
  for (const FoundRun& found : finder_.look(now_ns)) {
    auto stream = make_stream(protocol::describe_run(description_.runs, description_of(found)), found.run);
    if (stream) runs_.push_back({std::move(*stream), {}});
  }
  if (description_.on_demand && own_ == nullptr && finder_.saw_others()) {
    auto own = make_stream(description_.own, "");
    if (own) own_ = std::move(*own);
  }
}

void Relay::look_for_uncaptured(std::uint64_t now_ns) {
  if (now_ns < next_look_ns_ || finder_.saw_rings()) return;
  if (auto found = find_uncaptured_program("/proc", options_.ring_dir)) uncaptured_ = std::move(found);
  look_interval_ns_ *= 2;
  next_look_ns_ = monotonic_ns() + look_interval_ns_;
}

std::string Relay::why_nothing() const {
  if (!runs_.empty() || (own_ != nullptr && own_->has_begun())) return {};
  if (finder_.saw_others() && own_ == nullptr)
    return "an MPI program ran without mpirun or srun; start it with one of them, as a single process with -n 1";
  if (finder_.saw_rings()) return own_ == nullptr ? "the MPI program ended before it came out of MPI_Init" : "";
  return uncaptured_ ? describe(*uncaptured_) : "";
}

// On a thread of its own: lbfd may be away, and the next program may be running already.
void Relay::end_run(Run& run) {
  const std::uint64_t until_ns = deadline_ns();
  run.stream->drain_rest(read_clocks(), rate_, until_ns, {});
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  run.ending = std::async(std::launch::async,
                          [stream = run.stream.get(), until_ns] { return stream->finish("step_end", until_ns); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

template <typename Use>
void Relay::for_each_live_stream(const Use& use) {
  if (own_ != nullptr) use(*own_);
  for (Run& run : runs_) {
    if (!run.ending.valid()) use(*run.stream);
  }
}

// What the relay used beside the streams' own time is theirs in equal parts; what it used while there was none (its
// start, waiting) is that of those that come next.
void Relay::share_cpu() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  Seconds common_s = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - shared_cpu_s_;
  std::size_t live = 0;
  if (own_ != nullptr) common_s -= own_->own_cpu_s();
  for (const Run& run : runs_) common_s -= run.stream->own_cpu_s();
  for_each_live_stream([&](StreamRun&) { ++live; });
  if (common_s <= 0 || live == 0) return;
  shared_cpu_s_ += common_s;
  for_each_live_stream([&](StreamRun& stream) { stream.add_common_cpu(common_s / static_cast<double>(live)); });
}

// Between two passes that found nothing.
int Relay::longest_sleep_ms() {
  int sleep_ms = kOffSleepMs;
  bool any = false;
  for_each_live_stream([&](const StreamRun& stream) {
    if (stream.idle()) return;
    any = true;
    const cost::CaptureState state = stream.capture_state();
    if (state == cost::CaptureState::kOpen)
      sleep_ms = std::min(sleep_ms, stream.has_threads() ? kMaxSleepMs : kQuietSleepMs);
    if (state == cost::CaptureState::kCounting) sleep_ms = std::min(sleep_ms, kCountingSleepMs);
  });
  return any && !finder_.waiting() && directory_->watch_fd() >= 0 ? sleep_ms : kMaxSleepMs;
}

// SLEEP_MS, or less where a stream wants a decision before. The longer ones end when other nodes' do.
std::uint64_t Relay::sleep_until_wake_ns(int sleep_ms) {
  constexpr std::uint64_t kLeastNs = 1'000'000;
  const std::uint64_t now_ns = monotonic_ns();
  Nanoseconds sleep_ns = Nanoseconds{sleep_ms} * 1'000'000;
  if (sleep_ms >= kMaxSleepMs) sleep_ns = until_common_look_ns(realtime_ns(), sleep_ns);
  std::uint64_t wake_ns = now_ns + static_cast<std::uint64_t>(sleep_ns);
  if (!finder_.saw_rings()) wake_ns = std::min(wake_ns, next_look_ns_);
  for_each_live_stream([&](const StreamRun& stream) { wake_ns = std::min(wake_ns, stream.wake_ns()); });
  return std::max(wake_ns, now_ns + kLeastNs) - now_ns;
}

// The share that was used of the fullest ring.
double Relay::pass(ClockReading now) {
  start_runs(now.monotonic_ns);
  look_for_uncaptured(now.monotonic_ns);
  share_cpu();
  double fullest = own_ != nullptr ? own_->pass(now, rate_) : 0;
  for (Run& run : runs_) {
    if (run.ending.valid()) continue;
    fullest = std::max(fullest, run.stream->pass(now, rate_));
    if (run.stream->idle()) end_run(run);
  }
  return fullest;
}

bool Relay::idle() const {
  const bool under_way = std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return !run.ending.valid(); });
  return !under_way && !finder_.waiting() && (own_ == nullptr || own_->idle());
}

void Relay::run(const std::atomic<bool>& stop) {
  int sleep_ms = kMinSleepMs;
  while (!ended_ && !stop.load(std::memory_order_relaxed)) {
    // A ring that appears wakes a relay that has nothing to do; otherwise the passes have their own rhythm.
    const bool asleep = sleep_ms > kMaxSleepMs;
    ended_ = end_signal_.wait(asleep ? directory_->watch_fd() : -1, sleep_until_wake_ns(sleep_ms));
    const ClockReading now = read_clocks();
    rate_.observe(now);
    if (!rate_.ready()) {
      start_runs(now.monotonic_ns);  // whose processes they are can be asked only as long as they live
      continue;
    }
    const double fullest = pass(now);
    if (idle() && directory_->watch_fd() >= 0) {
      sleep_ms = kIdleSleepMs;
    } else {
      const int longest_ms = longest_sleep_ms();
      sleep_ms =
          asleep && longest_ms <= kMaxSleepMs ? kMinSleepMs : next_sleep_ms(sleep_ms, fullest, kMinSleepMs, longest_ms);
    }
  }
  while (!rate_.ready()) {  // a step that ended within the first baseline
    ::poll(nullptr, 0, 1);
    rate_.observe_last(read_clocks());
  }
}

RelayResult Relay::finish() {
  // A run whose ranks came out of MPI_Init just before the end.
  start_runs(monotonic_ns());
  constexpr Seconds kStopTimeoutS = 0.5;
  const std::string reason = ended_ ? "step_end" : "relay_terminated";
  const std::uint64_t until_ns = monotonic_ns() + ns_of(ended_ ? options_.deliver_timeout_s : kStopTimeoutS);
  share_cpu();
  const std::string nothing = why_nothing();
  if (own_ && !nothing.empty()) own_->note(nothing);
  if (own_) own_->drain_rest(read_clocks(), rate_, until_ns, end_signal_.task_ends());
  for (Run& run : runs_) {
    if (!run.ending.valid()) run.stream->drain_rest(read_clocks(), rate_, until_ns, end_signal_.task_ends());
  }
  RelayResult result{Outcome::kDelivered, {}, {}, 0};
  const auto add = [&result](RelayResult one) {
    if (one.outcome <= result.outcome) return;  // worse is higher
    result = std::move(one);
  };
  if (own_) add(own_->finish(reason, until_ns));
  for (Run& run : runs_) add(run.ending.valid() ? run.ending.get() : run.stream->finish(reason, until_ns));
  result.nothing = nothing;
  result.runs = runs_.size();
  return result;
}

}  // namespace

Result<RelayResult> run_relay(const RelayOptions& options, const RequestFunction& request,
                              const std::atomic<bool>& stop) {
  auto relay = Relay::make(options, request);
  if (!relay) return relay.error();
  (*relay)->run(stop);
  return (*relay)->finish();
}

Result<void> abandon_stream(const std::string& description, const RequestFunction& request) {
  auto parsed = protocol::decode_relay_description(description);
  if (!parsed) return parsed.error();
  // The streams of programs that mpirun started have no other word of theirs than their relay's: lbfd ends
  // them when they have been silent for stream_timeout_s.
  if (parsed->own.empty()) return {};
  auto identity = read_step_identity(parsed->own);
  if (!identity) return identity.error();
  const std::string target = stream_target({identity->key, identity->stream, "", ""});
  auto opened = request("PUT", target, parsed->own, "application/json");
  if (!opened) return opened.error();
  if (opened->status != 200) return error_of_response(*opened);
  const std::uint64_t next = protocol::decode_stream_answer(opened->body).next_sequence;
  if (next == 0) return Error{ErrorCode::kInternal, "lbfd answered without next_sequence"};
  const std::string end = protocol::encode(protocol::StreamEnd{next - 1, 1, "relay_killed"});
  auto ended = request("POST", target + "/end", end, "application/json");
  if (!ended) return ended.error();
  if (ended->status != 200) return error_of_response(*ended);
  return {};
}

void remove_ring_dir(const std::string& dir) {
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  const DirectoryHandle handle(::fdopendir(fd));
  if (!handle) {
    ::close(fd);
    return;
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(handle.get())) {
    const std::string_view name = entry->d_name;
    // Whoever is killed while he makes his ring leaves ".PID.TID.new".
    const bool is_unfinished = name.starts_with('.') && name.ends_with(".new");
    if (name.ends_with(".ring") || is_unfinished || name == "step.json") names.emplace_back(name);
  }
  for (const std::string& name : names) ::unlinkat(fd, name.c_str(), 0);
  ::rmdir(dir.c_str());
}

namespace {

void complain(const Error& error) {
  std::fprintf(stderr, "lbf-relay: error: %s\n", on_one_line(error.message).c_str());
}

// All of this process's user's files. Returns how many are left.
int flush_own_files(const std::vector<std::string>& paths, const std::string& server,
                    const RequestFactory& make_request) {
  int left = 0;
  for (const std::string& path : paths) {
    auto file = SpoolFile::open(path);
    if (!file) {
      complain(file.error());
      ++left;
      continue;
    }
    auto request = make_request(server.empty() ? file->header().server : server);
    if (!request) {
      complain(request.error());
      ++left;
      continue;
    }
    SpoolDelivery delivery(std::move(*file), *request);
    for (;;) {
      auto done = delivery.deliver_next();
      if (!done) {
        complain(done.error());
        if (done.error().code == ErrorCode::kUnavailable) ++left;
        break;
      }
      if (*done) break;
    }
  }
  return left;
}

// The child of root that became a user is that user's to stop, and the lbfd that his file names may be one that never
// ends an answer: CHILD is killed after LIMIT_S. Whether it ended well.
bool wait_for_child(pid_t child, Seconds limit_s) {
  constexpr int kIntervalMs = 10;
  const std::uint64_t deadline_ns = monotonic_ns() + ns_of(limit_s);
  int code = 0;
  for (pid_t ended = 0; ended != child;) {
    ended = ::waitpid(child, &code, WNOHANG);
    if (ended < 0 && errno != EINTR) return false;
    if (ended == child) break;
    if (monotonic_ns() >= deadline_ns) ::kill(child, SIGKILL);
    ::poll(nullptr, 0, kIntervalMs);
  }
  return WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

// Long enough for a slow network.
Seconds flush_limit_s(Bytes file_bytes) {
  constexpr Seconds kLeastS = 60;
  constexpr double kLeastBytesPerS = 1e6;
  return kLeastS + static_cast<double>(file_bytes) / kLeastBytesPerS;
}

// The user's own group: a file's group may be one that its owner is not in.
bool become_owner(const struct stat& file) {
  const passwd* const user = ::getpwuid(file.st_uid);
  constexpr gid_t kNobody = 65534;
  const gid_t group = user != nullptr ? user->pw_gid : kNobody;
  return ::setgroups(1, &group) == 0 && ::setresgid(group, group, group) == 0 &&
         ::setresuid(file.st_uid, file.st_uid, file.st_uid) == 0;
}

}  // namespace

Result<int> flush_spool(const std::string& dir, const std::string& server, const RequestFactory& make_request) {
  if (::access(dir.c_str(), R_OK | X_OK) != 0) {
    return io_error("cannot read spool directory " + dir);
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
      if (!become_owner(status)) ::_exit(1);
      ::_exit(flush_own_files({path}, server, make_request) == 0 ? 0 : 1);
    }
    if (!wait_for_child(child, flush_limit_s(static_cast<Bytes>(status.st_size)))) ++left;
  }
  return left;
}

}  // namespace lbf::relay
