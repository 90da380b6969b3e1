// HttpSession, see http_session.h.
#include "predictor/daemon/http/http_session.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <sstream>
#include <utility>
#include <variant>

namespace lbf::daemon {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

using Clock = std::chrono::steady_clock;
using SessionSocket = SessionStream::Socket;

constexpr std::uint32_t kHeaderLimitBytes = 32768;  // a munge credential is a few hundred bytes
constexpr std::size_t kFirstReadBytes = 4096;       // of a connection that was idle: a header, most likely
constexpr Bytes kFirstBodyBytes = Bytes{64} << 10;  // given at once; then as much again as has come
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::size_t kSmallAnswerBytes = std::size_t{64} << 10;  // is written at once: nobody's share
constexpr std::size_t kDrainBytes = std::size_t{16} << 10;        // nobody knows whose

class HttpSession final : public Connection, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(std::shared_ptr<HttpSessions> sessions, SessionStream stream, Peer peer)
      : sessions_(std::move(sessions)), stream_(std::move(stream)), peer_(std::move(peer)) {
    sessions_->connections.add(*this, peer_.name);
    sessions_->count_connections();
  }
  ~HttpSession() {
    close_body();
    sessions_->connections.remove(*this);
    sessions_->count_connections();
    if (sessions_->stopping && sessions_->connections.count() == 0 && sessions_->on_idle) {
      std::exchange(sessions_->on_idle, nullptr)();
    }
  }
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  void begin() {
    if (!stream_.has_tls()) return read_header();
    sessions_->connections.set_state(*this, ConnectionState::kForRequest);
    stream_.plain().expires_after(sessions_->limits.header_timeout);
    stream_.async_handshake([self = shared_from_this()](error_code error) {
      if (error) return self->close();
      self->read_header();
    });
  }

  void read_header() {
    sessions_->connections.set_state(*this, ConnectionState::kForRequest);
    parser_.emplace();
    parser_->header_limit(kHeaderLimitBytes);
    parser_->body_limit(kMaxBatchBytes);
    stream_.plain().expires_after(sessions_->limits.header_timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, std::size_t) { self->header_read(error); });
  }

  void close() override {
    error_code ignored;
    stream_.plain().socket().shutdown(SessionSocket::shutdown_both, ignored);
    stream_.plain().close();
  }

 private:
  // Between two requests.
  void wait_for_request() {
    if (buffer_.size() > 0) return read_header();
    sessions_->connections.set_state(*this, ConnectionState::kForRequest);
    buffer_.shrink_to_fit();  // most connections are idle most of the time
    stream_.plain().expires_after(sessions_->limits.idle_timeout);
    stream_.async_read_some(buffer_.prepare(kFirstReadBytes),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                              if (error) return self->close();
                              self->buffer_.commit(bytes);
                              self->read_header();
                            });
  }

  void header_read(error_code error) {
    sessions_->connections.set_state(*this, ConnectionState::kBusy);
    received_bytes_ = 0;
    head_.body_bytes = 0;
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
    head_.method = std::string(header.method_string());
    head_.target = std::string(header.target());
    head_.authorization = std::string(header[http::field::authorization]);
    head_.channel = peer_.channel;
    if (parser_->chunked()) {
      return refuse(411, "invalid_input", "a Content-Length is needed, not a chunked body");
    }
    head_.body_bytes = parser_->content_length().value_or(0);
    const bool is_open = Api::is_open_to_all(head_.method, head_.target);
    if (!is_open && head_.authorization.empty()) {
      return refuse(401, "permission", "a munge credential is needed: Authorization: Munge CREDENTIAL");
    }
    if (head_.body_bytes > Api::body_limit_bytes(head_.method, head_.target)) {
      return refuse(413, "limit", "the body is too long for this request");
    }
    keep_alive_ = header.keep_alive();
    expects_continue_ = beast::iequals(header[http::field::expect], "100-continue");
    stream_.plain().expires_never();
    if (!is_open) return authenticate();
    submit(RequestKind::kOpen, peer_.name,
           [](HttpSession& self) { return self.sessions_->handler.handle_open(self.head_); });
  }

  RequestKind kind() const { return head_.body_bytes == 0 ? RequestKind::kWithoutBody : RequestKind::kWithBody; }

  void authenticate() {
    auto admission = std::make_shared<std::optional<std::variant<Sender, ApiResponse>>>();
    sessions_->queue.submit(kind(), peer_.name,
                            {[self = shared_from_this(), admission] {
                               admission->emplace(self->sessions_->handler.authenticate(self->head_));
                             },
                             [self = shared_from_this(), admission] { self->authenticated(std::move(**admission)); }});
  }

  void authenticated(std::variant<Sender, ApiResponse> admission) {
    if (auto* const refusal = std::get_if<ApiResponse>(&admission)) return respond(std::move(*refusal));
    sender_ = std::move(std::get<Sender>(admission));
    user_ = "uid " + std::to_string(sender_.caller.uid);
    if (sessions_->requests.of(user_) >= sessions_->limits.requests_per_user()) {
      return respond(daemon::error_response(503, "unavailable",
                                            "too many requests of this user are under way: try again in some seconds"));
    }
    request_ = ShareCount::Part(sessions_->requests, user_);
    if (head_.body_bytes == 0) return handle();
    body_account_ = sessions_->bodies.open(user_);
    if (!expects_continue_) return grow_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    stream_.plain().expires_after(sessions_->limits.body_timeout);
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->close();
                        self->grow_body();
                      });
  }

  void grow_body() {
    const Bytes wanted = std::min(head_.body_bytes, std::max(kFirstBodyBytes, 2 * received_bytes_));
    stream_.plain().expires_never();
    sessions_->bodies.grow(*body_account_, wanted, [self = shared_from_this(), wanted] { self->body_grown(wanted); });
  }

  void body_grown(Bytes bytes) {
    try {
      body_.resize(bytes);
    } catch (const std::bad_alloc&) {
      return refuse(503, "unavailable", "lbfd is out of memory: try again later");
    }
    const std::size_t read_already =
        asio::buffer_copy(asio::buffer(body_.data() + received_bytes_, body_.size() - received_bytes_), buffer_.data());
    buffer_.consume(read_already);
    body_until_ = Clock::now() + sessions_->limits.body_timeout;
    body_came(read_already);
  }

  // A body may take body_timeout without a byte. What comes buys time for more, at body_bytes_per_s.
  void body_came(std::size_t bytes) {
    received_bytes_ += bytes;
    const HttpLimits& limits = sessions_->limits;
    const auto bought = std::chrono::nanoseconds(bytes * std::uint64_t{1'000'000'000} / limits.body_bytes_per_s);
    body_until_ = std::min(Clock::now() + limits.body_timeout, body_until_ + bought);
    if (received_bytes_ == head_.body_bytes) {
      sessions_->bodies.complete(*body_account_);
      return handle();
    }
    if (received_bytes_ == body_.size()) return grow_body();
    stream_.plain().expires_at(body_until_);
    stream_.async_read_some(asio::buffer(body_.data() + received_bytes_, body_.size() - received_bytes_),
                            [self = shared_from_this()](error_code error, std::size_t now) {
                              if (error) return self->close();
                              self->body_came(now);
                            });
  }

  void handle() {
    stream_.plain().expires_never();
    submit(kind(), user_, [](HttpSession& self) {
      ApiResponse response = self.sessions_->handler.handle(self.head_, self.body_, self.sender_);
      self.body_ = {};
      return response;
    });
  }

  // Makes the answer on a worker.
  template <typename Make>
  void submit(RequestKind kind, const std::string& user, const Make& make) {
    auto response = std::make_shared<ApiResponse>();
    sessions_->queue.submit(
        kind, user,
        {[self = shared_from_this(), make, response] { *response = make(*self); },
         [self = shared_from_this(), response] {
           self->close_body();
           if (self->request_ && (response->source != nullptr || response->body.size() > kSmallAnswerBytes)) {
             self->held_answer_.emplace(self->sessions_->queue.hold_answer(self->user_));
           }
           self->respond(std::move(*response));
         }});
  }

  // An answer to what could be read no further.
  void refuse(int status, std::string_view code, std::string_view message) {
    close_body();
    keep_alive_ = false;
    unread_end_ = true;
    respond(daemon::error_response(status, code, message));
  }

  void respond(ApiResponse response) {
    sessions_->connections.set_state(*this, ConnectionState::kForReader);
    sessions_->handler.http_counts().answered(response.status);
    if (response.source == nullptr) {
      sessions_->refusals.add(head_.method, head_.target, user_.empty() ? peer_.name : user_, response.status,
                              response.body);
    }
    // What was refused before its body was read.
    if (received_bytes_ < head_.body_bytes) unread_end_ = true;
    keep_alive_ = keep_alive_ && !unread_end_ && !sessions_->stopping;
    source_ = std::move(response.source);
    piece_ = std::move(response.body);
    http::response<http::empty_body> header(static_cast<http::status>(response.status), 11);
    header.set(http::field::content_type, response.content_type);
    header.set(http::field::server, "lbfd");
    header.keep_alive(keep_alive_);
    const auto size = source_ == nullptr ? piece_.size() : source_->size_bytes();
    in_chunks_ = !size;
    if (size) {
      header.content_length(*size);
    } else {
      header.chunked(true);
    }
    std::ostringstream text;
    text << header.base();
    header_text_ = std::move(text).str();
    send_piece();
  }

  template <typename Buffers>
  void write(const Buffers& buffers, void (HttpSession::*then)()) {
    stream_.plain().expires_after(sessions_->limits.answer_timeout);
    asio::async_write(
        stream_, buffers,
        [self = shared_from_this()](error_code error, std::size_t bytes) {
          if (bytes > 0) self->sessions_->connections.moved(*self);
          return error ? 0 : kWriteBytes;
        },
        [self = shared_from_this(), then](error_code error, std::size_t) {
          if (error) return self->close();
          ((*self).*then)();
        });
  }

  // With the header before the first one.
  void send_piece() {
    const auto header = asio::buffer(header_text_);
    const asio::const_buffer piece(piece_.data(), piece_.size());
    if (in_chunks_ && piece.size() > 0)
      return write(beast::buffers_cat(header, http::make_chunk(piece)), &HttpSession::piece_sent);
    write(std::array<asio::const_buffer, 2>{header, piece}, &HttpSession::piece_sent);
  }

  void piece_sent() {
    header_text_.clear();
    piece_ = {};
    if (source_ == nullptr) return written();
    auto piece = std::make_shared<std::optional<Result<std::string>>>();
    sessions_->connections.set_state(*this, ConnectionState::kBusy);
    sessions_->queue.submit_next_piece(user_,
                                       {[self = shared_from_this(), piece] { piece->emplace(self->next_piece()); },
                                        [self = shared_from_this(), piece] { self->piece_made(std::move(**piece)); }});
  }

  Result<std::string> next_piece() {
    try {
      return source_->next();
    } catch (const std::exception& exception) {
      return Error{ErrorCode::kInternal, exception.what()};
    }
  }

  void piece_made(Result<std::string> piece) {
    // Half an answer cannot be taken back: the missing bytes tell the peer.
    if (!piece) return close();
    sessions_->connections.set_state(*this, ConnectionState::kForReader);
    piece_ = std::move(piece).value();
    if (!piece_.empty()) return send_piece();
    source_.reset();
    if (!in_chunks_) return written();
    write(http::make_chunk_last(), &HttpSession::written);
  }

  void written() {
    source_.reset();
    piece_ = {};
    held_answer_.reset();
    request_.reset();
    if (keep_alive_ && !sessions_->stopping) return wait_for_request();
    error_code ignored;
    stream_.plain().socket().shutdown(SessionSocket::shutdown_send, ignored);
    if (!unread_end_) return close();
    // What was refused is still coming: closing now would reset the connection and lose the answer on its way.
    sessions_->connections.set_state(*this, ConnectionState::kForRequest);
    stream_.plain().expires_after(sessions_->limits.body_timeout);
    piece_.resize(kDrainBytes);
    drain();
  }

  void drain() {
    stream_.async_read_some(asio::buffer(piece_), [self = shared_from_this()](error_code error, std::size_t bytes) {
      self->drained_bytes_ += bytes;
      if (error || self->drained_bytes_ > 4 * kMaxBatchBytes) return self->close();
      self->drain();
    });
  }

  void close_body() {
    body_ = {};
    if (body_account_) sessions_->bodies.close(*std::exchange(body_account_, std::nullopt));
  }

  const std::shared_ptr<HttpSessions> sessions_;
  SessionStream stream_;
  const Peer peer_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;

  // Of the request under way.
  RequestHead head_;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
  bool unread_end_ = false;  // bytes of it are not read, and are not going to be
  Sender sender_;
  std::string user_;
  std::optional<ShareCount::Part> request_;
  std::optional<BodyMemory::Body> body_account_;
  std::string body_;
  Bytes received_bytes_ = 0;
  Clock::time_point body_until_;

  // Of its answer.
  std::optional<RequestQueue::HeldAnswer> held_answer_;
  std::unique_ptr<BodySource> source_;
  std::string header_text_;  // that is not sent yet
  std::string piece_;
  bool in_chunks_ = false;
  std::uint64_t drained_bytes_ = 0;
};

}  // namespace

HttpSessions::HttpSessions(asio::io_context& io_context, asio::thread_pool& workers, RequestHandler& request_handler,
                           const HttpLimits& http_limits)
    : io(io_context),
      handler(request_handler),
      limits(http_limits),
      connections(limits.max_connections, limits.connections_per_peer(), limits.stalled_after),
      bodies(limits.request_memory_bytes, limits.request_memory_per_user()),
      queue(io, workers, {.threads = limits.worker_threads, .threads_per_user = limits.threads_per_user()}) {
  handler.http_counts().connection_limit = limits.max_connections;
}

void begin_session(std::shared_ptr<HttpSessions> sessions, SessionStream stream, const Peer& peer) {
  std::make_shared<HttpSession>(std::move(sessions), std::move(stream), peer)->begin();
}

}  // namespace lbf::daemon
