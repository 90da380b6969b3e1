// What is not a proper request: no or wrong credentials, too long, not HTTP, slow; and lbfd's start and end.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/munge_credential.h"
#include "tests/support/command.h"
#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::http_protocol_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class HttpProtocol : public DaemonTest {
 protected:
  std::string get(const std::string& target, const std::string& credential) {
    std::string header = "GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    if (!credential.empty()) header += "Authorization: Munge " + credential + "\r\n";
    return raw_exchange(header + "\r\n");
  }
};

TEST_F(HttpProtocol, CredentialsAreNeededAndGoodForOneRequest) {
  start();
  EXPECT_THAT(get("/v1/health", ""), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(get("/v1/steps", ""), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(get("/v1/steps", "nonsense"), StartsWith("HTTP/1.1 401"));
  const std::string good = *encode_munge_credential(munge_payload_of_request("GET", "/v1/steps", ""));
  EXPECT_THAT(get("/v1/steps", good), StartsWith("HTTP/1.1 200"));
  const std::string replayed = get("/v1/steps", good);
  EXPECT_THAT(replayed, StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(replayed, HasSubstr("eplay"));
  const std::string other = *encode_munge_credential(munge_payload_of_request("GET", "/v1/steps?all=1", ""));
  EXPECT_THAT(get("/v1/steps", other), StartsWith("HTTP/1.1 401"));
  const std::string bare = *encode_munge_credential("");
  EXPECT_THAT(get("/v1/steps", bare), StartsWith("HTTP/1.1 401"));
}

TEST_F(HttpProtocol, ABodyThatIsNotTheCredentialsIsRefused) {
  start();
  const std::string credential =
      *encode_munge_credential(munge_payload_of_request("POST", "/v1/steps/c/1/0/0/streams/0/end", "{}"));
  const std::string answer = raw_exchange(
      "POST /v1/steps/c/1/0/0/streams/0/end HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n"
      "Authorization: Munge " +
      credential + "\r\n\r\n[]");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401"));
}

TEST_F(HttpProtocol, TooLongIsRefusedBeforeItIsRead) {
  start();
  const std::string head = "HTTP/1.1\r\nHost: x\r\nAuthorization: Munge x\r\nContent-Length: ";
  EXPECT_THAT(raw_exchange("POST /v1/steps/c/1/0/0/streams/0/batches/1 " + head + "99999999999\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(raw_exchange("POST /v1/steps/c/1/0/0/streams/0/end " + head + "100000\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(raw_exchange("GET /v1/steps " + head + "5\r\n\r\nhello"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(raw_exchange("GET /v1/steps HTTP/1.1\r\nX: " + std::string(100000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(raw_exchange("POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
              StartsWith("HTTP/1.1 411"));
}

// Without one nobody gets memory for 16 MiB.
TEST_F(HttpProtocol, TheCredentialIsReadBeforeTheBody) {
  start();
  const std::string target = "/v1/steps/c/1/0/0/streams/0/batches/1";
  const auto announce = [&](const std::string& credential) {
    return raw_exchange("POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\nAuthorization: Munge " +
                        credential + "\r\n\r\n");
  };
  EXPECT_THAT(announce("x"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(announce(*encode_munge_credential(munge_payload_of_request("POST", target, "shorter"))),
              StartsWith("HTTP/1.1 401"));
}

TEST_F(HttpProtocol, TargetsHaveBounds) {
  start();
  std::string parameters;
  for (int i = 0; i < 65; ++i) parameters += "&a" + std::to_string(i);
  EXPECT_THAT(get("/v1/steps?" + parameters, "x"), StartsWith("HTTP/1.1 400"));
  const std::string parts = "/v1/steps" + std::string(5000, '/');
  EXPECT_THAT(get(parts, *encode_munge_credential(munge_payload_of_request("GET", parts, ""))),
              StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpProtocol, WhatIsNotHttpDoesNoHarm) {
  start();
  EXPECT_THAT(raw_exchange("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(get("/elsewhere", "x"), StartsWith("HTTP/1.1 404"));
  EXPECT_EQ(json_request("GET", "/v1/health")["status"], "ok");
}

TEST_F(HttpProtocol, ListensOnTcpToo) {
  start({"--listen", "unix:" + socket(), "--listen", "tcp:127.0.0.1:0"});
  const std::string text = log();
  const std::size_t at = text.find("tcp:127.0.0.1:");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string port = std::to_string(std::atoi(text.c_str() + at + 14));
  auto client = HttpClient::make("http://127.0.0.1:" + port);
  ASSERT_TRUE(client.ok());
  const auto answer = client->request("GET", "/v1/steps");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
}

TEST_F(HttpProtocol, EndsWellOnSigterm) {
  start();
  const RingProgram program;
  put(program, 7, 0);
  const int status = stop(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(std::filesystem::exists(socket()));
  start();
  EXPECT_EQ(json_request("GET", key(7))["state"], "running");
}

class LbfdStart : public DaemonTest {
 protected:
  // Runs lbfd until it ends by itself; its exit status and what it said.
  std::pair<int, std::string> run(const std::string& arguments) {
    const test::Outcome outcome = test::run_command(std::string(LBFD_COMMAND) + " " + arguments + " 2>&1");
    return {outcome.status, outcome.out};
  }
  std::string config() const { return "--config " + path("lbfd.toml"); }
};

TEST_F(LbfdStart, TwoOnOneStateDirectoryAreRefused) {
  start();
  const auto [status, said] = run(config() + " --listen unix:" + path("other.sock"));
  EXPECT_EQ(status, 1);
  EXPECT_THAT(said, HasSubstr("in use by another lbfd"));
  const auto [status2, said2] = run(config() + " --state-dir " + path("state2"));
  EXPECT_EQ(status2, 1);
  EXPECT_THAT(said2, HasSubstr("another program listens there"));
}

TEST_F(LbfdStart, WrongConfigurationNamesKeyAndRemedy) {
  write_config("colour = \"blue\"\n");
  const auto [status, said] = run(config());
  EXPECT_EQ(status, 2);
  EXPECT_THAT(said, HasSubstr("lbfd.toml:5: colour: unknown key"));
  const auto [missing, said_missing] = run("--config /nonexistent");
  EXPECT_EQ(missing, 2);
  EXPECT_THAT(said_missing, HasSubstr("--config"));
  EXPECT_EQ(run("--no-such-option").first, 2);
  EXPECT_EQ(run("--version").first, 0);
}

TEST_F(LbfdStart, ADamagedDatabaseIsNamedAtTheStart) {
  std::filesystem::create_directory(path("state"));
  std::ofstream(path("state/lbf.db")) << std::string(10000, 'x');
  const auto [status, said] = run(config());
  EXPECT_EQ(status, 1);
  EXPECT_THAT(said, HasSubstr("damaged"));
}

TEST_F(LbfdStart, ABrokenNetworkFileIsNamedAtTheStart) {
  std::ofstream(path("networks.d/bad.toml")) << "name = 5\n";
  const auto [status, said] = run(config());
  EXPECT_EQ(status, 1);
  EXPECT_THAT(said, HasSubstr("bad.toml"));
}

}  // namespace
}  // namespace lbf::test::http_protocol_test