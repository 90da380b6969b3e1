// The relay end to end: ring files in, HTTP requests out, over a real socket.
#include "spank_plugin/relay/relay.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include "base/scoped_fd.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/relay/fake_lbfd.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay::relay_test {
namespace {

// A TCP port of this test's own on which nobody listens: who connects is refused, and no other program gets it.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), generic, length), 0);
    EXPECT_EQ(::getsockname(socket_.get(), generic, &length), 0);
    number_ = ntohs(address.sin_port);
  }
  std::uint16_t number() const { return number_; }
  ScopedFd take_socket() { return std::move(socket_); }

 private:
  ScopedFd socket_;
  std::uint16_t number_ = 0;
};

// FakeLbfd behind a TCP socket: HTTP/1.1, one request per connection.
class HttpServer {
 public:
  explicit HttpServer(FakeLbfd& lbfd, TakenPort port = {})
      : lbfd_(lbfd), port_(port.number()), listener_(port.take_socket()) {
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~HttpServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::uint16_t port() const { return port_; }

 private:
  void run() {
    for (;;) {
      const ScopedFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) return;
      serve(connection.get());
    }
  }
  void serve(int fd) {
    std::string request;
    std::size_t header_end = std::string::npos;
    std::size_t need = 0;
    char buffer[65536];
    while (header_end == std::string::npos || request.size() < need) {
      const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) return;
      request.append(buffer, static_cast<std::size_t>(got));
      if (header_end == std::string::npos && (header_end = request.find("\r\n\r\n")) != std::string::npos) {
        const std::size_t at = request.find("Content-Length: ");
        need = header_end + 4 + (at < header_end ? std::stoull(request.substr(at + 16)) : 0);
      }
    }
    const std::size_t first = request.find(' ');
    const std::size_t second = request.find(' ', first + 1);
    const HttpResponse response = lbfd_.handle(request.substr(0, first), request.substr(first + 1, second - first - 1),
                                               request.substr(header_end + 4));
    const std::string text = "HTTP/1.1 " + std::to_string(response.status) +
                             " x\r\nContent-Length: " + std::to_string(response.body.size()) +
                             "\r\nConnection: close\r\n\r\n" + response.body;
    ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  }

  FakeLbfd& lbfd_;
  const std::uint16_t port_;
  const ScopedFd listener_;
  std::thread thread_;
};

const char* const kTarget = "/v1/steps/test/7/0/0/streams/0";

class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    end_read_.reset(fds[0]);
    end_write_.reset(fds[1]);
    options_.ring_dir = rings_.path();
    options_.spool_dir = spool_.path();
    options_.end_fd = end_read_.get();
    options_.deliver_timeout_s = 1;
    // The tests before this one in the process.
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    options_.cpu_before_s = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
    options_.step_description = R"({"cluster":"test","job":7,"step":0,"nodes":["n1"],"node_index":0,"tasks":2})";
  }
  void use(std::uint16_t port) {
    options_.server = "http://127.0.0.1:" + std::to_string(port);
    auto client = HttpClient::make(options_.server);
    ASSERT_TRUE(client.ok());
    auto shared = std::make_shared<HttpClient>(std::move(*client));
    // As make_request_function(), but without munge: there may be no munged where tests run.
    request_ = [shared](std::string_view method, std::string_view target, std::string_view body,
                        std::string_view type) { return shared->request(method, target, body, type, HttpAuth::kNone); };
  }
  // A program that writes COUNT sends into its ring and ends.
  void run_program(RingFile& file, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count;) {
      if (file.append(RingFile::record(EventKind::kSend, 2000 + 100 * i, 2050 + 100 * i))) {
        ++i;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    while (!file.append(RingFile::record(EventKind::kExit, 2000 + 100 * count, 2000 + 100 * count))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    file.set_state(ring::ProcessState::kFinalized);
  }
  std::unique_ptr<RingFile> ring() {
    return std::make_unique<RingFile>(rings_.path(), ::getpid(), ::getpid(), 1 << 16);
  }

  test::TemporaryDirectory rings_;
  test::TemporaryDirectory spool_;
  ScopedFd end_read_;
  ScopedFd end_write_;
  RelayOptions options_;
  RequestFunction request_;
  std::atomic<bool> stop_{false};
  FakeLbfd lbfd_;
};

TEST_F(RelayTest, EveryRecordOfTheProgramArrives) {
  HttpServer server(lbfd_);
  use(server.port());
  auto file = ring();
  constexpr std::uint64_t kCount = 50000;
  std::thread program([&] {
    run_program(*file, kCount);
    end_write_.reset();  // end of file: the step has ended
  });
  auto result = run_relay(options_, request_, stop_);
  program.join();
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::kDelivered) << result->trouble;
  const auto decoded = lbfd_.decode(kTarget);
  ASSERT_EQ(decoded.events.size(), kCount + 1);
  Seconds process_s = 0;
  for (const auto& [rank, event] : decoded.events) process_s += event.process_s;
  // From the end of MPI_Init (1000 ns) on, 50 ns before each send, the first after 1000 ns.
  EXPECT_NEAR(process_s, 1000e-9 + 50e-9 * static_cast<double>(kCount), 1e-9);
  EXPECT_EQ(decoded.controls.front()["type"], "process");
  EXPECT_EQ(decoded.controls.back()["type"], "relay");
  EXPECT_GT(decoded.controls.back()["max_rss_bytes"], 0);
  EXPECT_EQ(lbfd_.ends[kTarget]["reason"], "step_end");
  EXPECT_EQ(lbfd_.ends[kTarget]["last_sequence"], lbfd_.batches[kTarget].size());
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
}

// As the senders of programs that mpirun starts side by side in one job.
TEST_F(RelayTest, SeveralSendersAskAtOnce) {
  HttpServer server(lbfd_);
  ::setenv("LBF_TOKEN", "secret", 1);  // instead of munge
  const auto request = make_request_function("http://127.0.0.1:" + std::to_string(server.port()));
  ASSERT_TRUE(request.ok()) << request.error().message;
  std::atomic<int> answers{0};
  std::vector<std::thread> senders;
  constexpr int kSenders = 4;
  constexpr int kRequests = 100;
  for (int i = 0; i < kSenders; ++i) {
    senders.emplace_back([&] {
      for (int k = 0; k < kRequests; ++k) answers += (*request)("GET", kTarget, "", "").ok() ? 1 : 0;
    });
  }
  for (std::thread& sender : senders) sender.join();
  ::unsetenv("LBF_TOKEN");
  EXPECT_EQ(answers, kSenders * kRequests);
}

// While a job runs it is short; --flush-spool waits for an lbfd whose disk is slow.
TEST_F(RelayTest, ARequestEndsAtItsLimit) {
  HttpServer server(lbfd_);
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  lbfd_.answer_after = std::chrono::milliseconds(300);
  ::setenv("LBF_TOKEN", "secret", 1);  // instead of munge
  const auto impatient = (*make_request_function(url, 0.05))("GET", kTarget, "", "");
  const auto patient = (*make_request_function(url, kFlushRequestLimitS))("GET", kTarget, "", "");
  ::unsetenv("LBF_TOKEN");
  EXPECT_FALSE(impatient.ok());
  EXPECT_TRUE(patient.ok());
}

// Rings whose counters and control words are looked at while the relay runs.
class RelayCostTest : public RelayTest {
 protected:
  void use_limit(double percent) {
    options_.step_description =
        R"({"cluster":"test","job":7,"step":0,"nodes":["n1"],"node_index":0,"tasks":2,"task_ids":[0],)"
        R"("overhead_limit_percent":)" +
        std::to_string(percent) + "}";
  }
  static void put_recorded(RingFile& file, std::uint64_t executions, std::uint64_t ns_each) {
    const std::size_t at = offsetof(ring::Header, recorded);
    file.put(at + offsetof(ring::PrimitiveCounter, sampled_ticks), executions * ns_each);
    file.put(at + offsetof(ring::PrimitiveCounter, sampled), executions);
    file.put(at + offsetof(ring::PrimitiveCounter, ideal_ticks_256), ns_each * 256 / 2);
    file.put(at + offsetof(ring::PrimitiveCounter, executions), executions);
  }
  static ring::CaptureOrder order_in(const RingFile& file) {
    return static_cast<ring::CaptureOrder>(file.get<std::uint32_t>(offsetof(ring::Header, order)));
  }
  static std::uint64_t grant_in(const RingFile& file) { return file.get<std::uint64_t>(offsetof(ring::Header, grant)); }
  // WHAT holds within 5 s.
  static bool wait_for(const std::function<bool()>& what) {
    for (int i = 0; i < 500; ++i) {
      if (what()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  // Runs the relay while SCRIPT goes on; then the program ends, and the step. Its control records.
  std::vector<nlohmann::json> run_with(RingFile& file, const std::function<void()>& script) {
    HttpServer server(lbfd_);
    use(server.port());
    std::thread program([&] {
      script();
      run_program(file, 10);
      end_write_.reset();
    });
    auto result = run_relay(options_, request_, stop_);
    program.join();
    EXPECT_TRUE(result.ok() && result->outcome == Outcome::kDelivered);
    return lbfd_.decode(kTarget).controls;
  }
  static nlohmann::json last_cost(const std::vector<nlohmann::json>& controls) {
    nlohmann::json cost;
    for (const auto& control : controls) {
      if (control["type"] == "cost") cost = control;
    }
    return cost;
  }
};

TEST_F(RelayCostTest, TheCostIsReportedAndCallsAreGranted) {
  use_limit(50);
  lbfd_.expected_calls_per_s = 20'000;
  auto file = ring();
  file->put(offsetof(ring::Header, recording_window), std::uint32_t{1});
  put_recorded(*file, 1000, 100);
  const auto cost = last_cost(run_with(*file, [&] {
    EXPECT_TRUE(wait_for([&] { return grant_in(*file) > 1000; }));
    EXPECT_EQ(order_in(*file), ring::CaptureOrder::kOpen);
    EXPECT_EQ(file->get<std::uint32_t>(offsetof(ring::Header, window)), 1u);
    // This process is the program; its processor time is counted in clock ticks of 10 ms.
    const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 20;
    while (std::clock() < until) {
    }
  }));
  ASSERT_TRUE(cost.is_object());
  EXPECT_DOUBLE_EQ(cost["limit_percent"].get<double>(), 50);
  EXPECT_EQ(cost["state"], "open");
  EXPECT_EQ(cost["recorded_calls"], 1000);
  EXPECT_NEAR(cost["direct_s"].get<double>(), 100e-6, 1e-9);
  EXPECT_NEAR(cost["ideal_s"].get<double>(), 50e-6, 1e-9);
  EXPECT_GT(cost["relay_cpu_s"].get<double>(), 0);
  EXPECT_EQ(cost["held_up_s"], 0) << "a rank that is alone holds nobody up";
  EXPECT_GT(cost["program_cpu_s"].get<double>(), 0);
  EXPECT_EQ(cost["windows"], 1);
  EXPECT_EQ(cost["disbelieved"], 0);
  ASSERT_EQ(cost["ranks"].size(), 1u);
  EXPECT_EQ(cost["ranks"][0][0], 0);
  EXPECT_EQ(cost["ranks"][0][3], 1000);
  EXPECT_GT(cost["predicted_percent"].get<double>(), 0);
}

TEST_F(RelayCostTest, TheHistoryOfTheProgramIsTheExpectation) {
  use_limit(50);
  lbfd_.expected_calls_per_s = 20'000;
  lbfd_.expected_relay_share = 0.004;
  auto file = ring();
  file->put(offsetof(ring::Header, recording_window), std::uint32_t{1});
  put_recorded(*file, 1000, 100);  // it calls before lbfd has answered
  const auto cost = last_cost(run_with(*file, [&] {
    EXPECT_TRUE(wait_for([&] { return grant_in(*file) > 0 && lbfd_.has_heard_of(kTarget); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // some decisions
  }));
  const auto& once = cost["primitives_ns"];
  const double share_per_call = (once["recorded"].get<double>() + once["relayed"].get<double>()) * 1e-9;
  EXPECT_NEAR(cost["predicted_percent"].get<double>(), 100 * (20'000 * share_per_call + 0.004), 1e-6);
  EXPECT_GT(once["looked"].get<double>(), 0);
}

TEST_F(RelayCostTest, WhatIsSpentOnceIsApart) {
  use_limit(50);
  auto file = ring();
  file->put(offsetof(ring::Header, recording_window), std::uint32_t{1});
  file->put(offsetof(ring::Header, once_cpu_ns), std::uint64_t{7'000'000});
  const auto controls = run_with(*file, [&] { EXPECT_TRUE(wait_for([&] { return grant_in(*file) > 0; })); });
  const auto cost = last_cost(controls);
  EXPECT_NEAR(cost["once_capture_s"].get<double>(), 0.007, 1e-12);
  EXPECT_NEAR(cost["direct_s"].get<double>(), 0, 1e-12);
  const double relay_once_s = cost["once_relay_s"].get<double>();
  EXPECT_GT(relay_once_s, 0) << "the probe of its primitives at least";
  for (const auto& control : controls) {
    if (control["type"] != "relay") continue;
    EXPECT_GE(control["cpu_s"].get<double>(), relay_once_s + cost["relay_cpu_s"].get<double>() - 1e-9)
        << "the whole of it";
  }
}

TEST_F(RelayCostTest, WhatCostsTooMuchIsClosed) {
  use_limit(10);
  auto file = ring();
  file->put(offsetof(ring::Header, recording_window), std::uint32_t{1});
  const auto cost = last_cost(run_with(*file, [&] {
    EXPECT_TRUE(wait_for([&] { return grant_in(*file) > 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::uint64_t calls = 0;
    EXPECT_TRUE(wait_for([&] {
      put_recorded(*file, calls += 100'000, 150);  // more than the thread has time for
      return order_in(*file) == ring::CaptureOrder::kCounting;
    }));
  }));
  EXPECT_EQ(cost["state"], "counting");
}

TEST_F(RelayCostTest, ALimitOfZeroTurnsItOff) {
  use_limit(0);
  auto file = ring();
  const auto cost = last_cost(
      run_with(*file, [&] { EXPECT_TRUE(wait_for([&] { return order_in(*file) == ring::CaptureOrder::kOff; })); }));
  EXPECT_EQ(cost["state"], "off");
}

TEST_F(RelayCostTest, WithoutALimitNothingIsRegulatedButAllIsReported) {
  auto file = ring();
  put_recorded(*file, 1'000'000, 1000);
  const auto cost = last_cost(run_with(*file, [&] { std::this_thread::sleep_for(std::chrono::milliseconds(400)); }));
  EXPECT_EQ(grant_in(*file), 0u);
  EXPECT_EQ(order_in(*file), ring::CaptureOrder::kOpen);
  EXPECT_FALSE(cost.contains("limit_percent"));
  EXPECT_NEAR(cost["direct_s"].get<double>(), 1, 1e-6);
}

TEST_F(RelayCostTest, ANetworkLimitDelaysAndLosesNothing) {
  use_limit(50);
  options_.network_limit_bytes_per_s = 10'000;
  options_.deliver_timeout_s = 1;
  auto file = ring();
  HttpServer server(lbfd_);
  use(server.port());
  const auto begin = std::chrono::steady_clock::now();
  std::thread program([&] {
    // Times that do not compress well.
    for (std::uint64_t i = 0, at = 2000; i < 30'000;) {
      at += (i * 2654435761U) % 100'003;
      while (!file->append(RingFile::record(EventKind::kSend, at, at + (i * 40503U) % 9973))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ++i;
    }
    run_program(*file, 0);
    end_write_.reset();
  });
  auto result = run_relay(options_, request_, stop_);
  program.join();
  const double passed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_TRUE(result.ok());
  // Too slow to deliver all in time: the rest waits in the spool.
  EXPECT_EQ(result->outcome, Outcome::kSpooled);
  std::size_t sent = 0;
  std::size_t longest = 0;
  for (const std::size_t bytes : lbfd_.batch_bytes(kTarget)) {
    sent += bytes;
    longest = std::max(longest, bytes);
  }
  EXPECT_LE(static_cast<double>(sent), 10'000 * (passed_s + 1) + static_cast<double>(longest));
  const RequestFactory factory = [this](const std::string&) -> Result<RequestFunction> { return request_; };
  auto left = flush_spool(spool_.path(), "", factory);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(lbfd_.decode(kTarget).events.size(), 30'001u);
  EXPECT_EQ(lbfd_.ends[kTarget]["lost_batches"], 0);
}

// The plugin knows how tasks ended, and which of them is the rank's process the relay does.
TEST_F(RelayTest, HowATaskEndedReachesLbfd) {
  HttpServer server(lbfd_);
  use(server.port());
  auto file = ring();
  std::thread program([&] {
    EXPECT_TRUE(file->append(RingFile::record(EventKind::kSend, 2000, 2050)));
    // In pieces, as a socket may give it.
    for (const std::string& piece :
         {"task " + std::to_string(::getpid()), std::string(" 1792\ntask 1 9\nkil"), std::string("led scancel\ne")}) {
      EXPECT_EQ(::write(end_write_.get(), piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  auto result = run_relay(options_, request_, stop_);
  program.join();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::kDelivered) << result->trouble;
  std::vector<nlohmann::json> ends;
  for (const nlohmann::json& record : lbfd_.decode(kTarget).controls) {
    const std::string type = record["type"];
    if (type == "process_end" || type == "step_killed" || type == "task_exit") ends.push_back(record);
  }
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_EQ(ends[0]["how"], "killed");
  EXPECT_EQ(ends[1], (nlohmann::json{{"type", "step_killed"}, {"by", "scancel"}}));
  EXPECT_EQ(ends[2], (nlohmann::json{{"type", "task_exit"}, {"rank", 0}, {"exit_code", 7}}));
}

TEST_F(RelayTest, LbfdComesUpInTheMiddle) {
  TakenPort port;
  use(port.number());
  auto file = ring();
  std::unique_ptr<HttpServer> server;
  std::thread program([&] {
    run_program(*file, 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server = std::make_unique<HttpServer>(lbfd_, std::move(port));
    ASSERT_EQ(::write(end_write_.get(), "e", 1), 1);
  });
  RelayOptions options = options_;
  options.deliver_timeout_s = 5;
  auto result = run_relay(options, request_, stop_);
  program.join();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::kDelivered) << result->trouble;
  EXPECT_EQ(lbfd_.decode(kTarget).events.size(), 1001U);
}

TEST_F(RelayTest, WithoutLbfdEverythingWaitsForTheNextRelay) {
  TakenPort port;
  use(port.number());
  auto file = ring();
  run_program(*file, 100);
  end_write_.reset();
  auto result = run_relay(options_, request_, stop_);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::kSpooled);
  EXPECT_THAT(result->trouble, testing::HasSubstr("cannot reach lbfd"));
  ASSERT_EQ(list_spool_files(spool_.path()).size(), 1U);

  // The next step of the user on this node: lbfd is back.
  HttpServer server(lbfd_, std::move(port));
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  const ScopedFd read_end(fds[0]);
  ScopedFd write_end(fds[1]);
  RelayOptions next = options_;
  next.end_fd = read_end.get();
  next.step_description = R"({"cluster":"test","job":8,"step":0,"nodes":["n1"],"node_index":0,"tasks":2})";
  std::thread ender([&] {  // until it has delivered what the first one left
    for (int i = 0; i < 2000 && !std::filesystem::is_empty(spool_.path()); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    write_end.reset();
  });
  auto second = run_relay(next, request_, stop_);
  ender.join();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->outcome, Outcome::kDelivered);
  EXPECT_EQ(lbfd_.decode(kTarget).events.size(), 101U);
  EXPECT_EQ(lbfd_.ends[kTarget]["lost_batches"], 0);
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
}

// lbf-relay --flush-spool
class FlushSpoolTest : public RelayTest {
 protected:
  FlushSpoolTest() {
    factory_ = [this](const std::string& server) -> Result<RequestFunction> {
      servers_.push_back(server);
      auto client = HttpClient::make(server);
      if (!client) return client.error();
      auto shared = std::make_shared<HttpClient>(std::move(*client));
      return RequestFunction(
          [shared](std::string_view method, std::string_view target, std::string_view body, std::string_view type) {
            return shared->request(method, target, body, type, HttpAuth::kNone);
          });
    };
  }
  // What a relay leaves that never reached its lbfd. Returns that one's port.
  TakenPort leave_a_spool_file() {
    TakenPort port;
    use(port.number());
    auto file = ring();
    run_program(*file, 100);
    end_write_.reset();
    auto result = run_relay(options_, request_, stop_);
    EXPECT_TRUE(result.ok() && result->outcome == Outcome::kSpooled);
    EXPECT_EQ(list_spool_files(spool_.path()).size(), 1U);
    return port;
  }
  RequestFactory factory_;
  std::vector<std::string> servers_;
};

TEST_F(FlushSpoolTest, DeliversToTheServerOfTheFile) {
  TakenPort port = leave_a_spool_file();
  auto unreachable = flush_spool(spool_.path(), "", factory_);
  ASSERT_TRUE(unreachable.ok());
  EXPECT_EQ(*unreachable, 1);
  EXPECT_EQ(list_spool_files(spool_.path()).size(), 1U);

  HttpServer server(lbfd_, std::move(port));
  auto left = flush_spool(spool_.path(), "", factory_);
  ASSERT_TRUE(left.ok()) << left.error().message;
  EXPECT_EQ(*left, 0);
  EXPECT_EQ(lbfd_.decode(kTarget).events.size(), 101U);
  EXPECT_EQ(lbfd_.ends[kTarget]["reason"], "step_end");
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
}

TEST_F(FlushSpoolTest, DeliversToAnotherServerAndTwiceIsOnce) {
  leave_a_spool_file();
  const std::string path = list_spool_files(spool_.path()).at(0);
  const std::string copy =
      path.substr(0, path.size() - std::string(kSpoolSuffix).size()) + "2" + std::string(kSpoolSuffix);
  std::filesystem::copy_file(path, copy);
  HttpServer server(lbfd_);
  auto left = flush_spool(spool_.path(), "http://127.0.0.1:" + std::to_string(server.port()), factory_);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(*left, 0);
  EXPECT_EQ(lbfd_.decode(kTarget).events.size(), 101U);
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
}

TEST_F(FlushSpoolTest, WhatLbfdRefusesForGoodIsRemovedWhatIsDamagedOrInUseStays) {
  leave_a_spool_file();
  const std::string path = list_spool_files(spool_.path()).at(0);
  std::ofstream(spool_.path() + "/damaged" + std::string(kSpoolSuffix)) << "LBFSPL01 and no more";
  HttpServer server(lbfd_);
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  {
    auto in_use = SpoolFile::open(path);
    ASSERT_TRUE(in_use.ok());
    auto left = flush_spool(spool_.path(), url, factory_);
    ASSERT_TRUE(left.ok());
    EXPECT_EQ(*left, 2);
  }
  lbfd_.refuse_batch = 1;
  auto left = flush_spool(spool_.path(), url, factory_);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(*left, 1);  // the damaged one: somebody should look at it
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(flush_spool(spool_.path() + "/nowhere", url, factory_).ok());
}

TEST_F(FlushSpoolTest, RootDeliversEachFileAsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may";
  leave_a_spool_file();
  constexpr uid_t kNobody = 65534;
  const std::string path = list_spool_files(spool_.path()).at(0);
  ASSERT_EQ(::chmod(spool_.path().c_str(), 01777), 0);
  ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
  HttpServer server(lbfd_);
  RequestFactory as_owner = [this](const std::string& url) -> Result<RequestFunction> {
    if (::geteuid() != kNobody) return Error{ErrorCode::kUnavailable, "not the owner"};
    return factory_(url);
  };
  auto left = flush_spool(spool_.path(), "http://127.0.0.1:" + std::to_string(server.port()), as_owner);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(*left, 0);
  EXPECT_EQ(lbfd_.decode(kTarget).events.size(), 101U);
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
}

TEST_F(RelayTest, AStopSignalSpoolsAtOnce) {
  const TakenPort nobodys;
  use(nobodys.number());
  auto file = ring();
  run_program(*file, 10);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop_ = true;
  });
  options_.deliver_timeout_s = 60;
  auto result = run_relay(options_, request_, stop_);
  stopper.join();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::kSpooled);
}

TEST_F(RelayTest, BadDescriptionsAreRefused) {
  for (const char* bad : {"", "[]", "{}", R"({"job":"7","step":0,"nodes":[],"node_index":0,"tasks":2})",
                          R"({"job":7,"step":0,"node_index":0,"tasks":2})"}) {
    EXPECT_FALSE(read_step_identity(bad).ok()) << bad;
  }
  auto identity =
      read_step_identity(R"({"cluster":"c","job":12,"step":3,"restart":1,"nodes":["a","b"],"node_index":1,"tasks":4})");
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->key, "c/12/3/1");
  const auto with_submit = read_step_identity(
      R"({"cluster":"c","job":12,"step":3,"restart":1,"submit":1700000000,"nodes":["a"],"node_index":0,"tasks":4})");
  ASSERT_TRUE(with_submit.ok());
  EXPECT_EQ(with_submit->key, "c/12/3/1/1700000000");
  EXPECT_EQ(identity->stream, 1U);
  EXPECT_EQ(identity->tasks, 4);
}

TEST_F(RelayTest, TheStreamOfAKilledRelayIsEndedAsPartial) {
  HttpServer server(lbfd_);
  use(server.port());
  auto ended = abandon_stream(options_.step_description, request_);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(lbfd_.ends[kTarget],
            (nlohmann::json{{"last_sequence", 0}, {"lost_batches", 1}, {"reason", "relay_killed"}}));
  EXPECT_FALSE(abandon_stream("{}", request_).ok());
}

TEST_F(RelayTest, RemoveRingDirTakesOnlyWhatTheRelayMade) {
  test::TemporaryDirectory other;
  std::ofstream(other.path() + "/step.json") << "{}";
  std::ofstream(other.path() + "/1.1.ring") << "x";
  std::ofstream(other.path() + "/precious.txt") << "x";
  remove_ring_dir(other.path());
  EXPECT_FALSE(std::filesystem::exists(other.path() + "/1.1.ring"));
  EXPECT_TRUE(std::filesystem::exists(other.path() + "/precious.txt"));
}

}  // namespace
}  // namespace lbf::relay::relay_test