// HttpServer, see http_server.h.
#include "predictor/daemon/http/http_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <deque>
#include <set>
#include <utility>
#include <vector>

namespace lbf::daemon {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

using GenericSocket = asio::generic::stream_protocol::socket;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

constexpr std::uint32_t kHeaderLimitBytes = 32768;  // a munge credential is a few hundred bytes
// Beast reads as much at once as its buffer has room for, which is 512 bytes where nobody says more.
constexpr std::size_t kReceiveBytes = 64 << 10;
constexpr int kListenBacklog = 512;
constexpr std::chrono::milliseconds kAcceptRetry{200};  // when file descriptors ran out

class Session;

// Anything that accepts connections: one per listen address.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  virtual void accept() = 0;
  virtual void close() = 0;
};

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  Impl(asio::io_context& io_context, asio::thread_pool& pool, Handler request_handler, HttpLimits http_limits)
      : io(io_context), workers(pool), handler(std::move(request_handler)), limits(http_limits) {}

  asio::io_context& io;
  asio::thread_pool& workers;
  Handler handler;
  HttpLimits limits;
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::vector<std::string> unix_paths;
  std::set<Session*> sessions;
  std::vector<Acceptor*> waiting_acceptors;  // for a connection to end
  std::uint64_t memory_in_use_bytes = 0;
  std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting_for_memory;
  bool stopping = false;
  std::function<void()> on_idle;

  bool may_accept() const { return !stopping && sessions.size() < limits.max_connections; }

  // Calls `then` once `bytes` of body memory are this request's. First come, first served.
  void take_memory(std::uint64_t bytes, std::function<void()> then) {
    waiting_for_memory.emplace_back(bytes, std::move(then));
    serve_memory();
  }
  void give_memory(std::uint64_t bytes) {
    memory_in_use_bytes -= bytes;
    serve_memory();
  }
  void serve_memory() {
    while (!waiting_for_memory.empty() &&
           (memory_in_use_bytes == 0 ||
            memory_in_use_bytes + waiting_for_memory.front().first <= limits.request_memory_bytes)) {
      auto [bytes, then] = std::move(waiting_for_memory.front());
      waiting_for_memory.pop_front();
      memory_in_use_bytes += bytes;
      asio::post(io, std::move(then));
    }
  }

  void begin(GenericSocket socket);
  void ended(Session* session) {
    sessions.erase(session);
    if (stopping) {
      if (sessions.empty() && on_idle) std::exchange(on_idle, nullptr)();
      return;
    }
    std::vector<Acceptor*> waiting;
    waiting.swap(waiting_acceptors);
    for (Acceptor* acceptor : waiting) acceptor->accept();
  }
};

namespace {

// One connection: header, share of memory, body, handler, answer, and again.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<HttpServer::Impl> server, GenericSocket socket)
      : server_(std::move(server)), stream_(std::move(socket)) {}
  ~Session() {
    give_memory();
    server_->ended(this);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read_header() {
    parser_.emplace();
    buffer_.shrink_to_fit();  // most connections are idle most of the time
    parser_->header_limit(kHeaderLimitBytes);
    parser_->body_limit(kMaxBatchBytes);
    idle_ = true;
    stream_.expires_after(server_->limits.idle_timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, std::size_t) { self->header_read(error); });
  }

  // Nothing is under way: the peer may be told goodbye.
  void close_if_idle() {
    if (idle_) close();
  }

 private:
  void close() {
    error_code ignored;
    stream_.socket().shutdown(GenericSocket::shutdown_both, ignored);
    stream_.close();
  }

  void header_read(error_code error) {
    idle_ = false;
    if (error == http::error::body_limit) {
      return refuse(413, "limit", "the body is longer than 16 MiB: no request is");
    }
    if (error == http::error::header_limit) return refuse(431, "limit", "the header is longer than 32 KiB");
    if (error) {
      // A peer that speaks something else is told so; one that went away or said nothing is not.
      if (error.category() == http::make_error_code(http::error::bad_method).category() &&
          error != http::error::end_of_stream && error != http::error::partial_message) {
        return refuse(400, "invalid_input", "not HTTP/1.1: " + error.message());
      }
      return close();
    }
    const auto& header = parser_->get();
    const std::string method(header.method_string());
    const std::string target(header.target());
    const auto length = parser_->content_length();
    if (parser_->chunked()) {
      return refuse(411, "invalid_input", "a Content-Length is needed, not a chunked body");
    }
    const std::uint64_t body_bytes = length ? *length : 0;
    if (!Api::is_open_to_all(method, target) && header[http::field::authorization].empty()) {
      return refuse(401, "permission", "a munge credential is needed: Authorization: Munge CREDENTIAL");
    }
    if (body_bytes > Api::body_limit_bytes(method, target)) {
      return refuse(413, "limit", "the body is too long for this request");
    }
    stream_.expires_never();
    server_->take_memory(body_bytes, [self = shared_from_this(), body_bytes] {
      self->memory_bytes_ = body_bytes;
      self->buffer_.reserve(std::min<std::size_t>(body_bytes, kReceiveBytes));
      self->continue_request();
    });
  }

  void continue_request() {
    stream_.expires_after(server_->limits.transfer_timeout);
    if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return read_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (!error) self->read_body();
                      });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->close();
      self->handle();
    });
  }

  void handle() {
    stream_.expires_never();
    keep_alive_ = parser_->get().keep_alive();
    auto request = std::make_shared<http::request<http::string_body>>(parser_->release());
    asio::post(server_->workers, [self = shared_from_this(), request]() mutable {
      const ApiRequest api_request{std::string(request->method_string()), std::string(request->target()),
                                   std::string((*request)[http::field::authorization]), request->body()};
      auto response = std::make_shared<ApiResponse>(self->server_->handler(api_request));
      request->body() = {};
      auto& io = self->server_->io;
      asio::post(io, [self = std::move(self), response] {  // the last owner must not end on this thread
        self->give_memory();
        self->respond(std::move(*response));
      });
    });
  }

  void refuse(int status, std::string_view code, std::string_view message) {
    keep_alive_ = false;  // the body, if any, stays unread
    respond(daemon::error_response(status, code, message));
  }

  void respond(ApiResponse response) {
    keep_alive_ = keep_alive_ && !server_->stopping;
    stream_.expires_after(server_->limits.transfer_timeout);
    source_ = std::move(response.source);
    header_.emplace(static_cast<http::status>(response.status), 11);
    header_->set(http::field::content_type, response.content_type);
    header_->set(http::field::server, "lbfd");
    header_->keep_alive(keep_alive_);
    if (source_ == nullptr) {
      header_->body() = std::move(response.body);
      header_->prepare_payload();
      http::async_write(stream_, *header_,
                        [self = shared_from_this()](error_code error, std::size_t) { self->written(error); });
      return;
    }
    const auto size = source_->size_bytes();
    in_chunks_ = !size;
    if (size) {
      header_->content_length(*size);
    } else {
      header_->chunked(true);
    }
    serializer_.emplace(*header_);
    piece_ = std::move(response.body);
    http::async_write_header(stream_, *serializer_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->close();
      if (self->piece_.empty()) return self->next_piece();
      self->send_piece();
    });
  }

  void next_piece() {
    asio::post(server_->workers, [self = shared_from_this()]() mutable {
      auto piece = std::make_shared<Result<std::string>>(self->source_->next());
      auto& io = self->server_->io;
      asio::post(io, [self = std::move(self), piece] {
        // Half an answer cannot be taken back: the missing bytes tell the peer.
        if (!piece->ok()) return self->close();
        self->piece_ = std::move(*piece).value();
        if (self->piece_.empty()) return self->end_pieces();
        self->send_piece();
      });
    });
  }

  void send_piece() {
    stream_.expires_after(server_->limits.transfer_timeout);
    const auto sent = [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->close();
      self->next_piece();
    };
    if (in_chunks_) {
      asio::async_write(stream_, http::make_chunk(asio::const_buffer(piece_.data(), piece_.size())), sent);
    } else {
      asio::async_write(stream_, asio::buffer(piece_), sent);
    }
  }

  void end_pieces() {
    if (!in_chunks_) return written({});
    stream_.expires_after(server_->limits.transfer_timeout);
    asio::async_write(stream_, http::make_chunk_last(),
                      [self = shared_from_this()](error_code error, std::size_t) { self->written(error); });
  }

  void written(error_code error) {
    source_.reset();
    if (!error && keep_alive_ && !server_->stopping) return read_header();
    error_code ignored;
    stream_.socket().shutdown(GenericSocket::shutdown_send, ignored);
    if (error || parser_->is_done()) return close();
    drain();
  }

  // A refused body is still coming: closing now would reset the connection and lose the answer on its way.
  void drain() {
    stream_.expires_after(std::chrono::seconds(5));
    piece_.resize(65536);
    stream_.async_read_some(asio::buffer(piece_), [self = shared_from_this()](error_code error, std::size_t bytes) {
      self->drained_bytes_ += bytes;
      if (error || self->drained_bytes_ > 4 * kMaxBatchBytes) return self->close();
      self->drain();
    });
  }

  void give_memory() {
    if (memory_bytes_ > 0) server_->give_memory(std::exchange(memory_bytes_, 0));
  }

  std::shared_ptr<HttpServer::Impl> server_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> header_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::unique_ptr<BodySource> source_;
  std::string piece_;
  bool in_chunks_ = false;
  std::uint64_t memory_bytes_ = 0;
  std::uint64_t drained_bytes_ = 0;
  bool keep_alive_ = false;
  bool idle_ = false;
};

template <typename Protocol>
class ProtocolAcceptor : public Acceptor {
 public:
  ProtocolAcceptor(HttpServer::Impl& server, typename Protocol::acceptor acceptor)
      : server_(server), acceptor_(std::move(acceptor)), retry_(server.io) {}

  void accept() override {
    if (!server_.may_accept()) {
      if (!server_.stopping) server_.waiting_acceptors.push_back(this);
      return;
    }
    acceptor_.async_accept([this](error_code error, typename Protocol::socket socket) {
      if (error == asio::error::operation_aborted || server_.stopping) return;
      if (error) {  // out of descriptors, most likely: later
        retry_.expires_after(kAcceptRetry);
        retry_.async_wait([this](error_code waited) {
          if (!waited) accept();
        });
        return;
      }
      server_.begin(GenericSocket(std::move(socket)));
      accept();
    });
  }

  void close() override {
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

 private:
  HttpServer::Impl& server_;
  typename Protocol::acceptor acceptor_;
  asio::steady_timer retry_;
};

Error cannot_listen(const ListenAddress& address, const std::string& why) {
  return {ErrorCode::kUnavailable, "cannot listen on " + address.text() + ": " + why};
}

}  // namespace

void HttpServer::Impl::begin(GenericSocket socket) {
  error_code ignored;
  if (socket.local_endpoint(ignored).protocol().family() != AF_UNIX) {
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  }
  auto session = std::make_shared<Session>(shared_from_this(), std::move(socket));
  sessions.insert(session.get());
  session->read_header();
}

HttpServer::HttpServer(asio::io_context& io, asio::thread_pool& workers, Handler handler, HttpLimits limits)
    : impl_(std::make_shared<Impl>(io, workers, std::move(handler), limits)) {}

HttpServer::~HttpServer() {
  for (const std::string& path : impl_->unix_paths) ::unlink(path.c_str());
}

Result<ListenAddress> HttpServer::listen(const ListenAddress& address) {
  ListenAddress taken = address;
  try {
    if (!address.unix_path.empty()) {
      using Local = asio::local::stream_protocol;
      const Local::endpoint endpoint(address.unix_path);
      struct stat status {};
      if (::lstat(address.unix_path.c_str(), &status) == 0) {
        if (!S_ISSOCK(status.st_mode))
          return cannot_listen(address, "a file that is no socket is in the way: remove it, or name another path");
        Local::socket probe(impl_->io);
        error_code refused;
        probe.connect(endpoint, refused);
        if (!refused) return cannot_listen(address, "another program listens there: stop the other lbfd");
        ::unlink(address.unix_path.c_str());
      }
      Local::acceptor acceptor(impl_->io);
      acceptor.open();
      acceptor.bind(endpoint);
      if (::chmod(address.unix_path.c_str(), 0666) != 0) {
        return cannot_listen(address, "its mode cannot be set: " + std::string(std::strerror(errno)));
      }
      acceptor.listen(kListenBacklog);
      impl_->unix_paths.push_back(address.unix_path);
      impl_->acceptors.push_back(std::make_unique<ProtocolAcceptor<Local>>(*impl_, std::move(acceptor)));
    } else {
      using Tcp = asio::ip::tcp;
      error_code error;
      asio::ip::address ip;
      if (address.host == "localhost") {
        ip = asio::ip::address_v4::loopback();
      } else {
        ip = asio::ip::make_address(address.host, error);
      }
      if (error) return cannot_listen(address, "'" + address.host + "' is not an IP address");
      Tcp::acceptor acceptor(impl_->io);
      acceptor.open(ip.is_v6() ? Tcp::v6() : Tcp::v4());
      acceptor.set_option(Tcp::acceptor::reuse_address(true));
      acceptor.bind({ip, address.port});
      acceptor.listen(kListenBacklog);
      taken.port = acceptor.local_endpoint().port();
      impl_->acceptors.push_back(std::make_unique<ProtocolAcceptor<Tcp>>(*impl_, std::move(acceptor)));
    }
  } catch (const boost::system::system_error& error) {
    return cannot_listen(
        address, error.code().message() + (address.unix_path.empty()
                                               ? ": choose another address with 'listen' in lbfd.toml"
                                               : ": choose another path with 'listen' in lbfd.toml, or make its "
                                                 "directory, writable for lbfd"));
  }
  impl_->acceptors.back()->accept();
  return taken;
}

void HttpServer::stop(std::function<void()> on_idle) {
  impl_->stopping = true;
  for (auto& acceptor : impl_->acceptors) acceptor->close();
  impl_->on_idle = std::move(on_idle);
  const std::set<Session*> sessions = impl_->sessions;
  for (Session* session : sessions) session->close_if_idle();
  if (impl_->sessions.empty() && impl_->on_idle) std::exchange(impl_->on_idle, nullptr)();
}

}  // namespace lbf::daemon
