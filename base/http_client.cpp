// HttpClient over libcurl, see http_client.h.
#include "base/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/munge_credential.h"
#include "base/unique_handle.h"

namespace lbf {
namespace {

struct CleanupCurl {
  void operator()(CURL* curl) const noexcept { curl_easy_cleanup(curl); }
};
struct FreeList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using CurlHandle = UniqueHandle<CURL*, CleanupCurl>;

constexpr std::string_view kUnixScheme = "unix:";
constexpr std::string_view kTcpScheme = "http://";
constexpr std::string_view kTlsScheme = "https://";
// The CA of a site's lbfd; without the file those of the system.
constexpr const char* kCaFile = "/etc/lbf/ca.pem";

class HeaderList {
 public:
  void add(const std::string& line) {
    curl_slist* grown = curl_slist_append(list_.get(), line.c_str());
    if (grown == nullptr) throw std::bad_alloc();
    (void)list_.release();
    list_.reset(grown);
  }
  curl_slist* get() const { return list_.get(); }

 private:
  UniqueHandle<curl_slist*, FreeList> list_;
};

// A list of a thousand steps is megabytes: few reads of much.
constexpr long kReceiveBytes = 256L << 10;
// What lbfd says of an error is a line.
constexpr Bytes kMostErrorBytes = Bytes{1} << 20;
// An answer without a time limit ends when less comes for so long.
constexpr long kLeastBytesPerS = 1000;
constexpr long kStallS = 60;

struct Received {
  std::string body;
  CURL* curl = nullptr;
  const HttpBodySink* sink = nullptr;  // takes what an answer with status 200 has; nullptr: nobody does
  Bytes bytes = 0;
  Bytes limit_bytes = 0;
  std::optional<Bytes> over_limit{};  // the one that it is over
};

std::size_t receive(char* data, std::size_t size, std::size_t count, void* user) {
  auto* received = static_cast<Received*>(user);
  const std::size_t bytes = size * count;
  long status = 0;
  curl_easy_getinfo(received->curl, CURLINFO_RESPONSE_CODE, &status);
  const Bytes limit = status == 200 ? received->limit_bytes : std::min(received->limit_bytes, kMostErrorBytes);
  if (bytes > limit - std::min(limit, received->bytes)) {
    received->over_limit = limit;
    return 0;
  }
  received->bytes += bytes;
  if (status == 200 && received->sink != nullptr) {
    (*received->sink)({data, bytes});
  } else {
    received->body.append(data, bytes);
  }
  return bytes;
}

long milliseconds(Seconds seconds) {
  return std::lround(seconds * 1e3);
}

std::string ca_file() {
  const char* const named = std::getenv("LBF_CA_FILE");
  if (named != nullptr && *named != '\0') return named;
  return ::access(kCaFile, R_OK) == 0 ? kCaFile : "";
}

Error bad_server(std::string_view server) {
  return invalid_input("'" + std::string(server) +
                       "' is no address of lbfd: give unix:/path/of/socket, http://host:port or https://host:port");
}

}  // namespace

struct HttpClient::State {
  std::string server;
  std::string socket_path;  // empty: TCP
  std::string base_url;     // without the target
  std::string ca_file;      // empty: those of the system, or no TLS
  HttpClientOptions options;
  CurlHandle curl;

  Error cannot_reach(const std::string& why) const {
    return {ErrorCode::kUnavailable,
            "cannot reach lbfd at " + server + ": " + why + ": is it running? (systemctl status lbfd)"};
  }
};

Result<HttpClient> HttpClient::make(std::string_view server, HttpClientOptions options) {
  auto state = std::make_unique<State>();
  state->server = server;
  state->options = options;
  if (server.starts_with(kUnixScheme)) {
    state->socket_path = server.substr(kUnixScheme.size());
    if (!state->socket_path.starts_with('/')) return bad_server(server);
    state->base_url = "http://localhost";
  } else if (server.starts_with(kTcpScheme) || server.starts_with(kTlsScheme)) {
    const std::string_view scheme = server.starts_with(kTlsScheme) ? kTlsScheme : kTcpScheme;
    if (scheme == kTlsScheme) state->ca_file = ca_file();
    while (server.ends_with('/')) server.remove_suffix(1);
    const std::string_view authority =
        server.size() > scheme.size() ? server.substr(scheme.size()) : std::string_view();
    if (authority.empty() || authority.find_first_of("/?#@ \t\r\n") != std::string_view::npos) {
      return bad_server(state->server);
    }
    state->base_url = server;
  } else {
    return bad_server(server);
  }

  static std::once_flag initialised;
  // Without TLS where the server has none: setting it up takes milliseconds of every short command. OpenSSL does it by
  // itself where a later client needs it.
  const bool has_tls = state->base_url.starts_with(kTlsScheme);
  std::call_once(initialised, [has_tls] { curl_global_init(has_tls ? CURL_GLOBAL_SSL : CURL_GLOBAL_NOTHING); });
  state->curl.reset(curl_easy_init());
  if (!state->curl) return Error{ErrorCode::kLimit, "libcurl: out of memory"};
  return HttpClient(std::move(state));
}

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

const std::string& HttpClient::server() const {
  return state_->server;
}

Result<HttpResponse> HttpClient::request(std::string_view method, std::string_view target, std::string_view body,
                                         std::string_view content_type, HttpAuth auth, const HttpBodySink& sink) {
  State& state = *state_;
  CURL* curl = state.curl.get();
  const std::string method_text(method);
  const std::string url = state.base_url + std::string(target);

  HeaderList headers;
  headers.add("Expect:");  // lbfd answers at once; waiting for "100 Continue" would cost a round trip
  headers.add("Accept: */*");
  if (!body.empty()) headers.add("Content-Type: " + std::string(content_type));
  // A private lbfd (lbf-run) knows its user by a secret of one run; there may be no munge at all.
  const char* const token = std::getenv("LBF_TOKEN");
  if (auth == HttpAuth::kMunge && token != nullptr && *token != '\0') {
    headers.add("Authorization: Bearer " + std::string(token));
  } else if (auth == HttpAuth::kMunge) {
    auto credential = encode_munge_credential(munge_payload_of_request(method, target, body));
    if (!credential) return credential.error();
    headers.add("Authorization: Munge " + *credential);
  }

  Received received;
  received.curl = curl;
  if (sink != nullptr) received.sink = &sink;
  received.limit_bytes = state.options.response_limit_bytes;
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_easy_reset(curl);  // options only: the connection stays
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);  // the credential is for this very target
  if (!state.socket_path.empty()) {
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, state.socket_path.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // http_proxy is for the web, not for this site's daemon
  if (!state.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, state.ca_file.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method_text.c_str());
  if (!body.empty() || method == "POST" || method == "PUT") {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.empty() ? "" : body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method_text.c_str());
  } else if (method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(state.options.connect_timeout_s));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(state.options.total_timeout_s));
  if (!(state.options.total_timeout_s > 0)) {
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallS);
  }
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why.data());

  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  // The list, the buffers and the body die with this call: leave nothing that points to them.
  curl_easy_reset(curl);
  if (received.over_limit) {
    return Error{ErrorCode::kLimit, "lbfd at " + state.server + " answered " + method_text + " " + std::string(target) +
                                        " with more than " + std::to_string(*received.over_limit) +
                                        " bytes: ask for less, or is it lbfd that answers there?"};
  }
  if (code == CURLE_COULDNT_CONNECT && !state.socket_path.empty()) {
    return state.cannot_reach("nothing listens there");  // curl names a host and port that nobody gave
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    return Error{ErrorCode::kUnavailable,
                 "lbfd at " + state.server +
                     " is not trusted: " + (why[0] != '\0' ? why.data() : curl_easy_strerror(code)) +
                     ": the CA of its certificate belongs into " + kCaFile + ", or LBF_CA_FILE names it"};
  }
  if (code != CURLE_OK) return state.cannot_reach(why[0] != '\0' ? why.data() : curl_easy_strerror(code));
  return HttpResponse{static_cast<int>(status), std::move(received.body)};
}

Error error_of_response(const HttpResponse& response) {
  constexpr std::array<std::pair<std::string_view, ErrorCode>, 7> kCodes{{
      {"invalid_input", ErrorCode::kInvalidInput},
      {"not_found", ErrorCode::kNotFound},
      {"permission", ErrorCode::kPermission},
      {"unavailable", ErrorCode::kUnavailable},
      {"limit", ErrorCode::kLimit},
      {"io", ErrorCode::kIo},
      {"internal", ErrorCode::kInternal},
  }};
  Error error;
  switch (response.status) {
    case 400:
      error.code = ErrorCode::kInvalidInput;
      break;
    case 401:
    case 403:
      error.code = ErrorCode::kPermission;
      break;
    case 404:
      error.code = ErrorCode::kNotFound;
      break;
    case 413:
      error.code = ErrorCode::kLimit;
      break;
    case 503:
      error.code = ErrorCode::kUnavailable;
      break;
    default:
      error.code = ErrorCode::kInternal;
      break;
  }
  error.message = "lbfd answered with HTTP status " + std::to_string(response.status);
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (!json.is_object()) return error;
  const auto text = json.find("error");
  if (text != json.end() && text->is_string() && !text->get_ref<const std::string&>().empty()) {
    error.message = text->get<std::string>();
  }
  const auto name = json.find("code");
  if (name != json.end() && name->is_string()) {
    for (const auto& [known, code] : kCodes) {
      if (name->get_ref<const std::string&>() == known) error.code = code;
    }
  }
  return error;
}

}  // namespace lbf
