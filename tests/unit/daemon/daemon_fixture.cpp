// A real lbfd for tests, see daemon_fixture.h.
#include "tests/unit/daemon/daemon_fixture.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include "base/munge_credential.h"
#include "event/wire.h"

namespace lbf::test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

#ifdef __SANITIZE_THREAD__
constexpr int kSlowness = 4;  // lbfd is built so, too
#else
constexpr int kSlowness = 1;
#endif

pid_t spawn(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

// Whether `child` is still running.
bool runs(pid_t child) {
  return ::waitpid(child, nullptr, WNOHANG) == 0;
}

}  // namespace

int RingProgram::ranks() const {
  return std::accumulate(ranks_of_node.begin(), ranks_of_node.end(), 0,
                         [](int sum, const auto& ranks) { return sum + static_cast<int>(ranks.size()); });
}

json RingProgram::description(std::uint32_t node, std::uint32_t job) const {
  json description = {{"cluster", "c"},
                      {"job", job},
                      {"step", 0},
                      {"restart", 0},
                      {"uid", ::getuid()},
                      {"job_name", "ring"},
                      {"node_index", node},
                      {"tasks", ranks()},
                      {"task_ids", ranks_of_node[node]},
                      {"cpus_on_node", 2},
                      {"start_realtime_ns", 1700000000000000000},
                      {"command", {"./ring", "x"}}};
  if (threads_given > 0) description["threads_per_task"] = threads_given;
  for (std::size_t i = 0; i < ranks_of_node.size(); ++i) {
    description["nodes"].push_back("n" + std::to_string(i));
    description["tasks_per_node"].push_back(ranks_of_node[i].size());
  }
  return description;
}

// Rank 0 sends first in each round, every other rank receives from the left and sends to the right.
std::vector<std::string> RingProgram::batches_of(std::uint32_t node) const {
  const int size = ranks();
  std::vector<std::string> out;
  for (int batch = 0; batch < batches; ++batch) {
    BatchEncoder encoder;
    for (const int rank : ranks_of_node[node]) {
      const auto compute = [&](double seconds) {
        Event event;
        event.process_s = seconds;
        const auto ns = static_cast<std::uint64_t>(seconds * 1e9);
        const std::vector<std::uint64_t> values{1, threads, threads * ns, ns, 0};
        if (threads > 0) {
          event.kind = EventKind::kRegions;
          event.values = values;
        }
        encoder.add(rank, event);
      };
      const auto send = [&] {
        Event event;
        event.kind = EventKind::kSend;
        event.function = 1;
        event.peer = (rank + 1) % size;
        event.tag = 5;
        event.bytes = 1000;
        event.call_s = 1e-6;
        encoder.add(rank, event);
      };
      const auto receive = [&] {
        Event event;
        event.kind = EventKind::kRecv;
        event.function = 1;
        event.peer = (rank + size - 1) % size;
        event.tag = 5;
        event.bytes = 1000;
        event.call_s = 1e-5;
        encoder.add(rank, event);
      };
      if (batch == 0) {
        encoder.add_control(json{
            {"type", "process"},
            {"rank", rank},
            {"world_size", size},
            {"pid", 100 + rank},
            {"node_index", node},
            {"slurm_procid", rank},
            {"library", library},
            {"mpi_settings", mpi_settings},
            {"executable", "/home/u/ring"},
            {"build_id", build_id},
            {"init_s", 0.25}}.dump());
      }
      for (int round = 0; round < rounds; ++round) {
        compute(1e-3 * (1 + rank * more_work));
        if (rank == 0 && others_s > 0) {
          Event preempted = event_of_kind(EventKind::kPreempted);
          preempted.off_s = others_s;
          encoder.add(rank, preempted);
        }
        if (rank == 0 || all_send_first) {
          send();
          receive();
        } else {
          receive();
          send();
        }
      }
      json stats = {{"type", "stats"},
                    {"rank", rank},
                    {"elapsed_s", 0.5 + 0.1 * rank + batch},
                    {"calls", {{1, (batch + 1) * rounds, 0.001 * (batch + 1)}}},
                    {"capture_s", 0.001}};
      if (static_cast<std::size_t>(rank) < more_stats.size()) stats.update(more_stats[static_cast<std::size_t>(rank)]);
      encoder.add_control(stats.dump());
      if (batch + 1 == batches) {
        for (const json& record : more_records) encoder.add_control(record.dump());
        const bool killed = rank == killed_rank;
        if (unseen_s > 0) {
          Event close;
          close.kind = EventKind::kWindowClose;
          encoder.add(rank, close);
          encoder.add(rank, skipped_event(SkippedSide::kEverything, 1));
          Event open = window_open_event(1);
          open.call_s = unseen_s;
          encoder.add(rank, open);
        }
        if (!killed) {
          Event exit;
          exit.kind = EventKind::kExit;
          encoder.add(rank, exit);
        }
        encoder.add_control(json{{"type", "process_end"},
                                 {"rank", rank},
                                 {"how", killed ? "killed" : "finalized"},
                                 {"elapsed_s", 0.5 + 0.1 * rank + batch}}
                                .dump());
      }
    }
    if (!cost.is_null()) {
      json record = {{"type", "cost"}, {"node_index", node}};
      record.update(cost);
      encoder.add_control(record.dump());
    }
    if (batch + 1 == batches) {
      encoder.add_control(json{{"type", "relay"}, {"node_index", node}, {"cpu_s", 0.01}, {"bytes_sent", 1}}.dump());
    }
    out.push_back(encoder.finish(node, static_cast<std::uint64_t>(batch) + 1));
  }
  return out;
}

void DaemonTest::SetUp() {
  ::chmod(directory_.path().c_str(), 0755);
  start_munged();
  if (IsSkipped()) return;
  write_config();
}

void DaemonTest::start_munged() {
  if (::access("/usr/sbin/munged", X_OK) != 0) GTEST_SKIP() << "munged is not installed";
  std::string seed(1024, 'k');
  for (std::size_t i = 0; i < seed.size(); ++i)
    seed[i] = static_cast<char>(i * 7 + static_cast<std::size_t>(::getpid()));
  const std::string munge_dir = path("munge");
  ::mkdir(munge_dir.c_str(), 0755);
  std::ofstream(munge_dir + "/key", std::ios::binary) << seed;
  ::chmod((munge_dir + "/key").c_str(), 0600);
  const std::string socket = munge_dir + "/socket";
  munged_ = spawn({"/usr/sbin/munged", "--foreground", "--force", "--num-threads=2", "--key-file=" + munge_dir + "/key",
                   "--socket=" + socket, "--pid-file=" + munge_dir + "/pid", "--log-file=" + munge_dir + "/log",
                   "--seed-file=" + munge_dir + "/seed"},
                  munge_dir + "/out");
  ::setenv("LBF_MUNGE_SOCKET", socket.c_str(), 1);
  for (int i = 0; i < 200 && runs(munged_); ++i) {
    if (encode_munge_credential("x").ok()) return;
    std::this_thread::sleep_for(25ms);
  }
  ASSERT_FALSE(runs(munged_)) << "munged runs, but encode_munge_credential fails";
  std::ifstream log(munge_dir + "/out");
  std::stringstream text;
  text << log.rdbuf();
  GTEST_SKIP() << "munged does not start here: " << text.str();
}

void DaemonTest::TearDown() {
  client_.reset();
  if (lbfd_ > 0) stop(SIGKILL);
  if (munged_ > 0) {
    ::kill(munged_, SIGTERM);
    ::waitpid(munged_, nullptr, 0);
  }
  if (HasFailure()) std::cerr << "---- lbfd's log\n" << log();
}

std::string DaemonTest::log() const {
  std::ifstream file(path("lbfd.log"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void DaemonTest::write_config(const std::string& more) {
  std::filesystem::create_directory(path("networks.d"));
  std::ofstream(path("networks.d/lan.toml"))
      << "name = \"lan\"\n[[path]]\nlocality = \"remote\"\n"
         "table = [[0, 50.0], [1000, 150.0], [100000, 9000.0]]\n"
         "[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0], [100000, 20.0]]\n";
  std::ofstream(path("lbfd.toml")) << "listen = [\"unix:" << socket() << "\"]\nstate_dir = \"" << path("state")
                                   << "\"\nnetworks_dir = \"" << path("networks.d") << "\"\noperators = [\"4242\"]\n"
                                   << more;
}

// Whether it answers; if not, it has ended with `wait_status` (-1: it hangs).
bool DaemonTest::launch(const std::vector<std::string>& more_arguments, int& wait_status) {
  std::vector<std::string> command = {LBFD_COMMAND, "--config", path("lbfd.toml")};
  command.insert(command.end(), more_arguments.begin(), more_arguments.end());
  wait_status = -1;
  lbfd_ = spawn(command, path("lbfd.log"));
  auto client = HttpClient::make("unix:" + socket());
  if (!client) return false;
  client_ = std::make_unique<HttpClient>(std::move(client).value());
  for (int i = 0; i < 400 * kSlowness; ++i) {
    const auto health = client_->request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
    if (health.ok() && health->status == 200) return true;
    if (::waitpid(lbfd_, &wait_status, WNOHANG) == lbfd_) {
      lbfd_ = -1;
      return false;
    }
    std::this_thread::sleep_for(25ms);
  }
  return false;
}

void DaemonTest::start(const std::vector<std::string>& more_arguments) {
  int wait_status = 0;
  ASSERT_TRUE(launch(more_arguments, wait_status)) << "lbfd does not answer: " << log();
}

int DaemonTest::start_and_wait_for_end() {
  int wait_status = 0;
  return launch({}, wait_status) ? -1 : wait_status;
}

int DaemonTest::stop(int signal) {
  int status = 0;
  client_.reset();
  if (lbfd_ <= 0) {  // -1 would be every process
    ADD_FAILURE() << "lbfd is not running: " << log();
    return -1;
  }
  ::kill(lbfd_, signal);
  ::waitpid(lbfd_, &status, 0);
  lbfd_ = -1;
  // It may have ended before, in a thread that nobody asks: a crash, or what a sanitizer found.
  const bool as_told = signal == SIGTERM ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                                         : WIFSIGNALED(status) && WTERMSIG(status) == signal;
  EXPECT_TRUE(as_told) << "lbfd ended by itself, with wait status " << status;
  return status;
}

void DaemonTest::limit_file_size(std::uint64_t bytes) {
  struct rlimit limit {};
  ASSERT_EQ(::prlimit(lbfd_, RLIMIT_FSIZE, nullptr, &limit), 0);
  limit.rlim_cur = bytes;
  ASSERT_EQ(::prlimit(lbfd_, RLIMIT_FSIZE, &limit, nullptr), 0);
}

HttpResponse DaemonTest::request(const std::string& method, const std::string& target, const std::string& body) {
  auto response = client_->request(method, target, body);
  EXPECT_TRUE(response.ok()) << method << " " << target << ": " << (response ? "" : response.error().message);
  return response ? *response : HttpResponse{};
}

json DaemonTest::json_request(const std::string& method, const std::string& target, const std::string& body,
                              int expected_status) {
  const HttpResponse response = request(method, target, body);
  EXPECT_EQ(response.status, expected_status) << method << " " << target << ": " << response.body;
  return json::parse(response.body, nullptr, false);
}

HttpResponse DaemonTest::request_as(uid_t uid, const std::string& method, const std::string& target,
                                    const std::string& body) {
  int result[2];
  EXPECT_EQ(::pipe(result), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(uid) != 0 || ::setuid(uid) != 0) ::_exit(1);
    auto client = HttpClient::make("unix:" + socket());
    std::string text = "0 no client";
    if (client) {
      const auto response = client->request(method, target, body);
      text = response ? std::to_string(response->status) + " " + response->body : "0 " + response.error().message;
    }
    (void)!::write(result[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(result[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(result[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(result[0]);
  ::waitpid(child, nullptr, 0);
  HttpResponse response;
  response.status = std::atoi(text.c_str());
  response.body = text.substr(std::min(text.size(), text.find(' ') + 1));
  return response;
}

std::string DaemonTest::raw_exchange(const std::string& bytes) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket().c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const struct sockaddr*>(&address), sizeof address), 0);
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) break;
    sent += static_cast<std::size_t>(now);
  }
  std::string answer;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  return answer;
}

void DaemonTest::put(const RingProgram& program, std::uint32_t job, std::uint32_t node) {
  json description = program.description(node, job);
  description["cluster"] = cluster_;
  json_request("PUT", stream(job, node), description.dump());
}

void DaemonTest::post(std::uint32_t job, std::uint32_t node, std::uint64_t sequence, const std::string& batch) {
  const json answer = json_request("POST", stream(job, node) + "/batches/" + std::to_string(sequence), batch);
  EXPECT_EQ(answer["next_sequence"], sequence + 1);
}

void DaemonTest::end(std::uint32_t job, std::uint32_t node, std::uint64_t last_sequence) {
  json_request("POST", stream(job, node) + "/end",
               json{{"last_sequence", last_sequence}, {"lost_batches", 0}, {"reason", "step_end"}}.dump());
}

void DaemonTest::send_all(const RingProgram& program, std::uint32_t job) {
  const auto nodes = static_cast<std::uint32_t>(program.ranks_of_node.size());
  for (std::uint32_t node = 0; node < nodes; ++node) put(program, job, node);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    std::uint64_t sequence = 0;
    for (const std::string& batch : program.batches_of(node)) post(job, node, ++sequence, batch);
    end(job, node, sequence);
  }
}

json DaemonTest::wait_for(std::uint32_t job, const std::function<bool(const json&)>& is_reached) {
  json step;
  for (int i = 0; i < 600 * kSlowness; ++i) {
    step = json_request("GET", key(job));
    if (step.is_discarded() || is_reached(step) || HasFailure()) return step;
    std::this_thread::sleep_for(50ms);
  }
  ADD_FAILURE() << "not reached within " << 30 * kSlowness << " s: " << step.dump(1);
  return step;
}

json DaemonTest::wait_until_final(std::uint32_t job) {
  return wait_for(job, [](const json& step) { return step.value("state", "running") != "running"; });
}

}  // namespace lbf::test
