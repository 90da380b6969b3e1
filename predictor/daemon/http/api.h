// Api: docs/formats/http-v1.md, between the HTTP server (bytes) and Steps (the daemon's state): who asks, for
// what, and the answer. Knows nothing of sockets.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "predictor/daemon/http/http_counts.h"
#include "predictor/daemon/http/refused_steps.h"
#include "predictor/daemon/steps/steps.h"

namespace lbf::daemon {

// Whether others on the way can read a request.
enum class Channel : std::uint8_t {
  kPrivate,  // a Unix socket, the loopback network, TLS
  kOpen,     // TCP
};

// What a request's header says, and how it came.
struct RequestHead {
  std::string method;
  std::string target;         // with the query, as in the request line
  std::string authorization;  // the header's value; empty: none
  std::uint64_t body_bytes = 0;
  Channel channel = Channel::kOpen;
};

// Who sends a request: known before its body is read.
struct Sender {
  Caller caller;
  std::string munge_payload;  // that the body must be the one of; empty: a token, which is good for any request
};

// A body that is too long for memory, or takes long to be made: piece by piece while it is sent.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // nullopt: nobody knows yet; the body is sent in chunks then (RFC 9112, 7.1).
  virtual std::optional<std::uint64_t> size_bytes() const = 0;
  // The next piece; empty at the end. Errors break the connection off.
  virtual Result<std::string> next() = 0;
};

struct ApiResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::unique_ptr<BodySource> source;  // what comes after `body`; its size is that of both
};

ApiResponse error_response(int status, std::string_view code, std::string_view message);

// What the HTTP server asks for each request. Thread-safe; may wait for the disk and for munge.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Who sends it, or the answer that refuses it.
  virtual std::variant<Sender, ApiResponse> authenticate(const RequestHead& head) = 0;
  virtual ApiResponse handle(const RequestHead& head, std::string_view body, const Sender& sender) = 0;
  // REQUIRES: Api::is_open_to_all() of it.
  virtual ApiResponse handle_open(const RequestHead& head) = 0;
  // The server counts there.
  HttpCounts& http_counts() { return http_counts_; }

 private:
  HttpCounts http_counts_;
};

// Who sends one needs no munge; empty: nobody does.
struct ApiTokens {
  std::string user;                   // is lbfd's own user
  std::string metrics;                // may read /metrics, and nothing else
  Channel least = Channel::kPrivate;  // kOpen: they are taken whoever can read them on their way

  bool any() const { return !user.empty() || !metrics.empty(); }
};

class Api : public RequestHandler {
 public:
  // REQUIRES: `steps` outlives the object. `operators`: uids that see and write everybody's steps.
  Api(Steps& steps, std::set<uid_t> operators, std::string version, ApiTokens tokens);

  std::variant<Sender, ApiResponse> authenticate(const RequestHead& head) override;
  ApiResponse handle(const RequestHead& head, std::string_view body, const Sender& sender) override;
  ApiResponse handle_open(const RequestHead& head) override;

  // Before the body is read: how long it may be for this request (0: none).
  static std::size_t body_limit_bytes(std::string_view method, std::string_view target);
  // Whether the request is answered without a credential.
  static bool is_open_to_all(std::string_view method, std::string_view target);

 private:
  struct RequestTarget;
  Result<Sender> sender_of(const RequestHead& head) const;
  ApiResponse route(const Caller& caller, const RequestHead& head, std::string_view body, const RequestTarget& target);
  // PATH: "streams" and what comes behind it.
  ApiResponse stream_request(const Caller& caller, const RequestHead& head, std::string_view body, const StepKey& key,
                             std::span<const std::string_view> path);
  ApiResponse metrics(const Caller& caller);
  ApiResponse accuracy(const Caller& caller, const RequestTarget& target);
  ApiResponse picture(const Caller& caller, const StepKey& key, const RequestTarget& target);
  ApiResponse refused(const Caller& caller, const RequestTarget& target) const;
  ApiResponse list_steps(const Caller& caller, const RequestTarget& target);

  Steps& steps_;
  const std::set<uid_t> operators_;
  const std::string version_;
  const ApiTokens tokens_;
  RefusedSteps refused_steps_;
};

}  // namespace lbf::daemon
