// HttpClient: how every client of lbfd (relay, lbf-report, lbf-whatif) talks to it.
//
// Implements docs/formats/http-v1.md: HTTP/1.1 on a Unix socket or TCP, each request with a munge credential
// of its own. One object per thread; connections are kept between requests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace lbf {

struct HttpResponse {
  int status = 0;  // 200, 404 ...
  std::string body;
};

struct HttpClientOptions {
  Seconds connect_timeout_s = 5;
  Seconds total_timeout_s = 60;  // of one request; 0: as long as something comes
  // A longer answer is an error.
  Bytes response_limit_bytes = Bytes{256} << 20;
};

// Takes the body of an answer piece by piece, as it comes.
using HttpBodySink = std::function<void(std::string_view piece)>;

// For the environment of a program with a client: libcurl brings gnutls along, which would set itself up as it is
// loaded, 1 ms of a start of 7. gnutls_global_init(3).
inline constexpr const char* kHttpClientVariable = "GNUTLS_NO_IMPLICIT_INIT=1";

enum class HttpAuth { kMunge, kNone };  // kNone: GET /v1/health only

class HttpClient {
 public:
  // SERVER: "unix:/path/of/socket", "http://host:port" or "https://host:port", whose certificate must be of a CA in the
  // file that LBF_CA_FILE names, else in /etc/lbf/ca.pem, else of the system. Errors: kInvalidInput for anything else.
  static Result<HttpClient> make(std::string_view server, HttpClientOptions options = {});

  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // One request, for example ("GET", "/v1/steps?job=12"). Every answer of the server is a value, 4xx and 5xx
  // too (see error_of_response). Errors: kUnavailable (nobody listens, timeout, connection lost, no munged),
  // kLimit (answer too long). With a `sink` an answer with status 200 goes there and HttpResponse::body stays
  // empty; after an error the sink may have got a part.
  Result<HttpResponse> request(std::string_view method, std::string_view target, std::string_view body = {},
                               std::string_view content_type = "application/json", HttpAuth auth = HttpAuth::kMunge,
                               const HttpBodySink& sink = nullptr);

  const std::string& server() const;

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The Error in the body of an answer with status 4xx or 5xx ({"error":"...","code":"..."}); where the body
// says nothing usable, one made from the status.
Error error_of_response(const HttpResponse& response);

}  // namespace lbf
