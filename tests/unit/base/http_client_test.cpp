// HttpClient against a server of a few lines: what goes over the wire, and what is said when nothing answers.
#include "base/http_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "base/crc32c.h"
#include "base/munge_credential.h"
#include "base/scoped_fd.h"
#include "tests/support/temporary_directory.h"

namespace lbf::http_client_test {
namespace {

// Takes one request on a Unix socket and gives one prepared answer.
class OneAnswerServer {
 public:
  explicit OneAnswerServer(std::string answer) : answer_(std::move(answer)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswerServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  OneAnswerServer(const OneAnswerServer&) = delete;
  OneAnswerServer& operator=(const OneAnswerServer&) = delete;

  std::string address() const { return "unix:" + path_; }
  const std::string& request() {
    thread_.join();
    return request_;
  }

 private:
  void serve() {
    const ScopedFd peer(::accept(listener_.get(), nullptr, nullptr));
    if (!peer) return;
    char buffer[4096];
    while (!is_whole()) {
      const ssize_t got = ::read(peer.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      request_.append(buffer, static_cast<std::size_t>(got));
    }
    const ssize_t written = ::write(peer.get(), answer_.data(), answer_.size());
    EXPECT_EQ(written, static_cast<ssize_t>(answer_.size()));
    while (answer_.empty() && ::read(peer.get(), buffer, sizeof buffer) > 0) {  // silent until the client gives up
    }
  }
  bool is_whole() const {
    const std::size_t head = request_.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const std::size_t length = request_.find("Content-Length: ");
    const std::size_t body = length < head ? std::stoul(request_.substr(length + 16)) : 0;
    return request_.size() >= head + 4 + body;
  }

  std::string answer_;
  test::TemporaryDirectory folder_;
  const std::string path_ = folder_.path() + "/s";
  std::string request_;
  ScopedFd listener_;
  std::thread thread_;
};

std::string answer(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

TEST(HttpClient, SendsMethodTargetTypeAndBody) {
  OneAnswerServer server(answer(200, "{\"next_sequence\":8}"));
  auto client = HttpClient::make(server.address());
  ASSERT_TRUE(client.ok());
  const std::string body("a\0b", 3);
  const auto response = client->request("POST", "/v1/steps/c/1/0/0/streams/0/batches/7?x=%20", body,
                                        "application/x-lbf-batch", HttpAuth::kNone);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "{\"next_sequence\":8}");
  const std::string& request = server.request();
  EXPECT_EQ(request.substr(0, request.find("\r\n")), "POST /v1/steps/c/1/0/0/streams/0/batches/7?x=%20 HTTP/1.1");
  EXPECT_NE(request.find("\r\nContent-Type: application/x-lbf-batch\r\n"), std::string::npos);
  EXPECT_EQ(request.find("Authorization"), std::string::npos);
  EXPECT_EQ(request.find("Expect"), std::string::npos);
  EXPECT_TRUE(request.ends_with("\r\n\r\n" + body));
}

TEST(HttpClient, PutWithoutBodySaysSo) {
  OneAnswerServer server(answer(204, ""));
  auto client = HttpClient::make(server.address());
  const auto response = client->request("PUT", "/v1/x", "", "application/json", HttpAuth::kNone);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 204);
  EXPECT_NE(server.request().find("Content-Length: 0\r\n"), std::string::npos);
}

TEST(HttpClient, ErrorStatusIsAnAnswer) {
  OneAnswerServer server(answer(403, R"({"error":"step c/1/0/0 belongs to another user","code":"permission"})"));
  auto client = HttpClient::make(server.address());
  const auto response = client->request("GET", "/v1/steps", {}, {}, HttpAuth::kNone);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 403);
  const Error error = error_of_response(*response);
  EXPECT_EQ(error.code, ErrorCode::kPermission);
  EXPECT_EQ(error.message, "step c/1/0/0 belongs to another user");
}

TEST(HttpClient, NobodyListens) {
  auto client = HttpClient::make("unix:/nonexistent/lbfd.sock");
  ASSERT_TRUE(client.ok());
  const auto response = client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(response.error().message.starts_with("cannot reach lbfd at unix:/nonexistent/lbfd.sock: "))
      << response.error().message;
  EXPECT_TRUE(response.error().message.ends_with(": is it running? (systemctl status lbfd)"));
}

TEST(HttpClient, SilentServerTimesOut) {
  OneAnswerServer server("");
  HttpClientOptions options;
  options.total_timeout_s = 0.2;
  auto client = HttpClient::make(server.address(), options);
  EXPECT_EQ(client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone).error().code, ErrorCode::kUnavailable);
}

TEST(HttpClient, AnswerBeyondTheLimitIsRefused) {
  OneAnswerServer server(answer(200, std::string(1000, 'x')));
  HttpClientOptions options;
  options.response_limit_bytes = 999;
  auto client = HttpClient::make(server.address(), options);
  EXPECT_EQ(client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone).error().code, ErrorCode::kLimit);
}

TEST(HttpClient, WhatIsSaidOfAnErrorIsNoMegabytes) {
  OneAnswerServer server(answer(500, std::string((1 << 20) + 1, 'x')));
  auto client = HttpClient::make(server.address());
  const auto response = client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kLimit);
  EXPECT_NE(response.error().message.find("with more than 1048576 bytes"), std::string::npos)
      << response.error().message;
}

TEST(HttpClient, ABodyInPiecesGoesToItsSink) {
  OneAnswerServer server(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
  auto client = HttpClient::make(server.address());
  std::string body;
  const auto response =
      client->request("GET", "/v1/steps", {}, {}, HttpAuth::kNone, [&body](std::string_view piece) { body += piece; });
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(body, "hello!");
}

TEST(HttpClient, WhatIsRefusedDoesNotGoToTheSink) {
  OneAnswerServer server(answer(403, R"({"error":"no","code":"permission"})"));
  auto client = HttpClient::make(server.address());
  bool called = false;
  const auto response =
      client->request("GET", "/v1/steps", {}, {}, HttpAuth::kNone, [&called](std::string_view) { called = true; });
  ASSERT_TRUE(response.ok());
  EXPECT_FALSE(called);
  EXPECT_EQ(error_of_response(*response).message, "no");
}

TEST(HttpClient, AnAnswerThatIsCutIsAnError) {
  for (const std::string cut : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
                                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.1 20"}) {
    OneAnswerServer server(cut);
    auto client = HttpClient::make(server.address());
    const auto response = client->request("GET", "/v1/steps", {}, {}, HttpAuth::kNone);
    ASSERT_FALSE(response.ok()) << cut;
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  }
}

TEST(HttpClient, AnswerWithoutALengthEndsWithTheConnection) {
  OneAnswerServer server("HTTP/1.0 200 OK\r\n\r\nall of it");
  auto client = HttpClient::make(server.address());
  const auto response = client->request("GET", "/v1/steps", {}, {}, HttpAuth::kNone);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "all of it");
}

// lbfd closes connections that were idle for long, without being asked.
TEST(HttpClient, AConnectionThatWasClosedMeanwhileIsMadeAnew) {
  test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/s";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const ScopedFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  int connections = 0;
  std::thread server([&] {
    // Keeps the connection, as far as it says; two requests, then it has enough.
    for (const int requests : {2, 1}) {
      const ScopedFd peer(::accept(listener.get(), nullptr, nullptr));
      ++connections;
      for (int i = 0; i < requests; ++i) {
        std::string request;
        char byte = 0;
        while (!request.ends_with("\r\n\r\n") && ::read(peer.get(), &byte, 1) == 1) request += byte;
        const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        EXPECT_EQ(::write(peer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
      }
    }
  });
  auto client = HttpClient::make("unix:" + path);
  for (int i = 0; i < 3; ++i) {
    const auto response = client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
    EXPECT_TRUE(response.ok()) << (response.ok() ? "" : response.error().message);
  }
  server.join();
  EXPECT_EQ(connections, 2);
}

TEST(HttpClient, ReachesTcpByNameAndByAddress) {
  const ScopedFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(listener.get(), 2), 0);
  socklen_t bytes = sizeof any;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&any), &bytes), 0);
  const std::string port = std::to_string(ntohs(any.sin_port));
  std::thread server([&] {
    for (int i = 0; i < 2; ++i) {
      const ScopedFd peer(::accept(listener.get(), nullptr, nullptr));
      char buffer[4096];
      std::string request;
      while (!request.ends_with("\r\n\r\n")) {
        const ssize_t got = ::read(peer.get(), buffer, sizeof buffer);
        if (got <= 0) break;
        request.append(buffer, static_cast<std::size_t>(got));
      }
      EXPECT_NE(request.find(":" + port + "\r\n"), std::string::npos) << "Host says the port";
      const std::string text = answer(200, "x");
      EXPECT_EQ(::write(peer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
  });
  for (const char* host : {"localhost", "127.0.0.1"}) {
    auto client = HttpClient::make(std::string("http://") + host + ":" + port);
    ASSERT_TRUE(client.ok());
    const auto response = client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
    EXPECT_TRUE(response.ok()) << (response.ok() ? "" : response.error().message);
  }
  server.join();
}

TEST(HttpClient, AddressesAreChecked) {
  for (const char* good : {"unix:/run/lbf/lbfd.sock", "http://localhost:7420", "http://10.0.0.1:1/", "https://h:1"}) {
    EXPECT_TRUE(HttpClient::make(good).ok()) << good;
  }
  for (const char* bad : {"", "unix:", "unix:lbfd.sock", "http://", "https://", "ftp://x:1", "x:1", "http://x:1/v1",
                          "http://u@x:1", "http://x y"}) {
    const auto client = HttpClient::make(bad);
    ASSERT_FALSE(client.ok()) << bad;
    EXPECT_NE(client.error().message.find("'" + std::string(bad) + "'"), std::string::npos) << client.error().message;
  }
}

TEST(ErrorOfResponse, FallsBackToTheStatus) {
  EXPECT_EQ(error_of_response({404, "<html>"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(error_of_response({500, "[1]"}).code, ErrorCode::kInternal);
  EXPECT_NE(error_of_response({503, ""}).message.find("503"), std::string::npos);
  EXPECT_EQ(error_of_response({400, R"({"error":"full","code":"limit"})"}).code, ErrorCode::kLimit);
}

TEST(MungePayload, TiesTheCredentialToTheRequest) {
  EXPECT_EQ(munge_payload_of_request("GET", "/v1/steps?job=1", ""), "GET /v1/steps?job=1 0 00000000");
  EXPECT_EQ(munge_payload_of_request("POST", "/x", "123456789"), "POST /x 9 e3069283");
}

TEST(MungeCredential, SaysWhoAndIsGoodOnce) {
  const auto credential = encode_munge_credential("GET /v1/steps 0 00000000");
  if (!credential.ok() && credential.error().code == ErrorCode::kUnavailable) {
    GTEST_SKIP() << credential.error().message;
  }
  ASSERT_TRUE(credential.ok()) << credential.error().message;
  const auto identity = decode_munge_credential(*credential);
  ASSERT_TRUE(identity.ok()) << identity.error().message;
  EXPECT_EQ(identity->uid, ::getuid());
  EXPECT_EQ(identity->gid, ::getgid());
  EXPECT_EQ(identity->payload, "GET /v1/steps 0 00000000");
  const auto again = decode_munge_credential(*credential);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kPermission);
  EXPECT_EQ(decode_munge_credential("MUNGE:nonsense:").error().code, ErrorCode::kInvalidInput);
}

TEST(MungeCredential, OtherSocketIsUsedAndMissed) {
  ::setenv("LBF_MUNGE_SOCKET", "/nonexistent/munge.socket", 1);
  const auto credential = encode_munge_credential("x");
  ::unsetenv("LBF_MUNGE_SOCKET");
  ASSERT_FALSE(credential.ok());
  EXPECT_EQ(credential.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(credential.error().message.find("is munged running?"), std::string::npos);
}

}  // namespace
}  // namespace lbf::http_client_test