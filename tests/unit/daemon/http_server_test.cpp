// HttpServer under peers that send nothing, little, or too much: everybody else is served. In this process, with small
// limits and short times; a peer is an address of the loopback network.
#include "predictor/daemon/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/http_client.h"
#include "base/scoped_fd.h"

namespace lbf::daemon::http_server_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kPost = "POST /v1/steps/c/1/0/0/streams/0/batches/1";

// "Munge N" is user N. Requests whose target ends in "slow" wait until release(), "slow-munge" before it is known whose
// they are.
class FakeHandler : public RequestHandler {
 public:
  std::variant<Sender, ApiResponse> authenticate(const RequestHead& head) override {
    const std::string_view text = head.authorization;
    if (!text.starts_with("Munge ")) return error_response(401, "permission", "no credential");
    if (head.target.ends_with("/slow-munge")) wait_for_release();
    return Sender{{static_cast<uid_t>(std::atoi(text.data() + 6)), false}, {}};
  }
  ApiResponse handle(const RequestHead& head, std::string_view body, const Sender&) override {
    if (head.target.ends_with("/large")) return {200, "text/plain", std::string(std::size_t{4} << 20, 'x'), nullptr};
    if (head.target.ends_with("/slow")) wait_for_release();
    return {200, "text/plain", std::to_string(body.size()) + " bytes", nullptr};
  }
  ApiResponse handle_open(const RequestHead&) override { return {200, "text/plain", "ok", nullptr}; }

  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void wait_for_slow(int requests) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= requests; });
  }

 private:
  void wait_for_release() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return released_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  int waiting_ = 0;
};

class Peer {
 public:
  // As the peer 127.0.0.NUMBER.
  Peer(int number, std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    struct sockaddr_in address {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7f000000U + static_cast<unsigned>(number));
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof address), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t now = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (now <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(now));
    }
  }
  // What comes until the server closes, or until it contains `end`.
  std::string read(std::string_view end = {}) {
    std::string text;
    std::array<char, 4096> buffer{};
    while (end.empty() || text.find(end) == std::string::npos) {
      struct pollfd wait {
        fd_.get(), POLLIN, 0
      };
      if (::poll(&wait, 1, 20'000) != 1) {
        ADD_FAILURE() << "nothing came for 20 s after: " << text.substr(0, 200);
        break;
      }
      const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  bool is_open() {
    struct pollfd wait {
      fd_.get(), POLLIN, 0
    };
    return ::poll(&wait, 1, 0) == 0;
  }

 private:
  ScopedFd fd_;
};

class HttpServerTest : public testing::Test {
 protected:
  ~HttpServerTest() override {
    handler_.release();
    asio::post(io_, [this] { io_.stop(); });
    if (thread_.joinable()) thread_.join();
    workers_->join();
    server_.reset();
  }

  void start() {
    workers_.emplace(HttpServer::threads(limits_.worker_threads));
    server_.emplace(io_, *workers_, handler_, limits_);
    const auto taken = server_->listen({"", "127.0.0.1", 0});
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    port_ = taken->port;
    thread_ = std::thread([this] { io_.run(); });
  }

  Peer connect(int number) { return {number, port_}; }
  static std::string request(const std::string& line, int user, std::size_t body_bytes, const char* more = "") {
    std::string text = line + " HTTP/1.1\r\nHost: x\r\n" + more;
    if (user > 0) text += "Authorization: Munge " + std::to_string(user) + "\r\n";
    if (body_bytes > 0) text += "Content-Length: " + std::to_string(body_bytes) + "\r\n";
    return text + "\r\n";
  }
  // A request of its own connection, and its answer.
  std::string exchange(int peer, const std::string& line, int user, const std::string& body = {}) {
    Peer made = connect(peer);
    made.send(request(line, user, body.size(), "Connection: close\r\n") + body);
    return made.read();
  }
  void expect_served(int peer, int user) {
    EXPECT_THAT(exchange(peer, "GET /v1/health", 0), HasSubstr("ok"));
    EXPECT_THAT(exchange(peer, "GET /v1/steps", user), HasSubstr("0 bytes"));
    EXPECT_THAT(exchange(peer, kPost, user, std::string(300'000, 'x')), HasSubstr("300000 bytes"));
  }

  HttpLimits limits_;
  FakeHandler handler_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::optional<asio::thread_pool> workers_;
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// 17 announced bodies of 16 MiB without a credential took all memory for bodies: nobody was served for 59 s, health
// included.
TEST_F(HttpServerTest, AnnouncedBodiesHoldNobodyUp) {
  limits_.request_memory_bytes = Bytes{17} << 20;
  start();
  std::vector<Peer> peers;
  for (int i = 0; i < 17; ++i) {
    peers.push_back(connect(2));
    peers.back().send(request(kPost, 0, 16 << 20));
    peers.push_back(connect(2));
    peers.back().send(request(kPost, 5, 16 << 20) + "x");
  }
  EXPECT_THAT(peers[0].read("\r\n"), StartsWith("HTTP/1.1 401"));
  expect_served(2, 5);
  expect_served(1, 6);
}

TEST_F(HttpServerTest, BodiesThatDoNotMoveEnd) {
  limits_.body_timeout = 100ms;
  limits_.body_bytes_per_s = 1 << 20;
  start();
  Peer silent = connect(1);
  Peer slow = connect(1);
  silent.send(request(kPost, 5, 1000));
  slow.send(request(kPost, 5, 100'000) + std::string(1000, 'x'));
  std::thread dripping([&] {
    for (int i = 0; i < 200 && slow.is_open(); ++i) {
      slow.send("x");
      std::this_thread::sleep_for(10ms);
    }
  });
  EXPECT_EQ(silent.read(), "");
  dripping.join();
  EXPECT_FALSE(slow.is_open());
}

// More than all memory for bodies, from one user who sends all but the end of each.
TEST_F(HttpServerTest, HalfSentBodiesOfAUserDoNotTakeTheOthersMemory) {
  limits_.request_memory_bytes = Bytes{64} << 20;
  limits_.body_timeout = 300ms;
  start();
  std::vector<Peer> peers;
  std::vector<std::thread> senders;
  for (int i = 0; i < 3; ++i) peers.push_back(connect(2));
  for (Peer& peer : peers) {
    senders.emplace_back([&peer] {
      peer.send(request(kPost, 5, 16 << 20));
      peer.send(std::string((16 << 20) - 1, 'x'));
    });
  }
  expect_served(1, 6);
  for (std::thread& sender : senders) sender.join();
  expect_served(1, 5);  // they ended
}

// 1,024 silent connections kept everybody else out for 75 s.
TEST_F(HttpServerTest, SilentConnectionsKeepNobodyOut) {
  limits_.max_connections = 8;
  start();
  std::vector<Peer> silent;
  for (int peer = 2; peer <= 7; ++peer) {
    for (int i = 0; i < 3; ++i) {
      silent.push_back(connect(peer));
      if (i == 1) silent.back().send("GET /v1/health HTTP/1.1\r\nX: ");
    }
  }
  for (int i = 0; i < 3; ++i) expect_served(1, 5);
  EXPECT_EQ(silent.front().read(), "");
}

TEST_F(HttpServerTest, HeadersThatDoNotComeEnd) {
  limits_.header_timeout = 100ms;
  start();
  Peer silent = connect(1);
  Peer slow = connect(1);
  Peer kept = connect(1);
  kept.send(request("GET /v1/health", 0, 0));
  EXPECT_THAT(kept.read("ok"), StartsWith("HTTP/1.1 200"));
  slow.send("GET /v1/health HTTP/1.1\r\n");
  for (int i = 0; i < 200 && slow.is_open(); ++i) {
    slow.send("X: y\r\n");
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(slow.is_open());
  EXPECT_EQ(silent.read(), "");
  // A connection that served before may be idle for longer, a relay's between two batches.
  kept.send(request("GET /v1/health", 0, 0));
  EXPECT_THAT(kept.read("ok"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, APeerHasAPartOfTheConnections) {
  limits_.max_connections = 8;
  start();
  Peer first = connect(2);
  Peer second = connect(2);
  first.send(request("GET /v1/slow", 5, 0));
  second.send(request("GET /v1/slow", 5, 0));
  handler_.wait_for_slow(2);
  EXPECT_EQ(connect(2).read(), "");
  EXPECT_THAT(exchange(1, "GET /v1/health", 0), HasSubstr("ok"));
  handler_.release();
  EXPECT_THAT(first.read("bytes"), HasSubstr("0 bytes"));
}

TEST_F(HttpServerTest, AUserHasAPartOfTheWorkersAndOfTheRequests) {
  limits_.worker_threads = 2;
  limits_.max_connections = 16;
  start();
  std::vector<Peer> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(connect(2 + i));
    peers.back().send(request(std::string(kPost) + "/slow", 5, 1) + "x");
  }
  handler_.wait_for_slow(1);
  expect_served(1, 6);
  EXPECT_THAT(exchange(1, "GET /v1/steps", 5), StartsWith("HTTP/1.1 503"));
  handler_.release();
  for (Peer& peer : peers) EXPECT_THAT(peer.read("bytes"), HasSubstr("1 bytes"));
  expect_served(1, 5);
}

TEST_F(HttpServerTest, ASlowMungeOfOnePeerDoesNotHoldUpTheOthers) {
  limits_.worker_threads = 2;
  start();
  std::vector<Peer> peers;
  for (const std::string line : {"GET /v1", "POST /v1"}) {
    for (int i = 0; i < 3; ++i) {
      peers.push_back(connect(2));
      peers.back().send(request(line + "/slow-munge", 5, line == "GET /v1" ? 0 : 1));
    }
  }
  handler_.wait_for_slow(2);
  expect_served(1, 5);
}

TEST_F(HttpServerTest, AnswersThatNobodyReadsGiveTheirPlacesUp) {
  limits_.max_connections = 4;
  limits_.stalled_after = 50ms;
  start();
  std::vector<Peer> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(connect(2 + i));
    peers.back().send(request("GET /v1/large", 5 + i, 0));
  }
  for (Peer& peer : peers) (void)peer.read("xxx");  // and no more of it
  EXPECT_THAT(exchange(1, "GET /v1/health", 0), HasSubstr("ok"));
}

// What a relay notices of a connection that was ended between two batches.
TEST_F(HttpServerTest, AClientWhoseIdleConnectionWasEndedDoesNotNotice) {
  limits_.max_connections = 4;  // one for each peer
  start();
  auto client = HttpClient::make("http://127.0.0.1:" + std::to_string(port_));
  ASSERT_TRUE(client.ok());
  for (int i = 0; i < 20; ++i) {
    const auto health = client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
    ASSERT_TRUE(health.ok()) << health.error().message;
    EXPECT_EQ(health->status, 200);
    EXPECT_THAT(exchange(1, "GET /v1/health", 0), HasSubstr("ok"));  // the client's goes
  }
}

TEST_F(HttpServerTest, EndsIdleConnectionsAndAnswersWhatIsUnderWay) {
  start();
  Peer idle = connect(1);
  Peer busy = connect(1);
  busy.send(request("GET /v1/slow", 5, 0));
  handler_.wait_for_slow(1);
  asio::post(io_, [this] { server_->stop([this] { io_.stop(); }); });
  EXPECT_EQ(idle.read(), "");
  handler_.release();
  EXPECT_THAT(busy.read(), HasSubstr("0 bytes"));
  thread_.join();
}

}  // namespace
}  // namespace lbf::daemon::http_server_test
