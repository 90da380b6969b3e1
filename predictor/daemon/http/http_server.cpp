// HttpServer, see http_server.h.
#include "predictor/daemon/http/http_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "event/wire.h"
#include "predictor/daemon/http/http_session.h"

namespace lbf::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr int kListenBacklog = 4096;  // a Unix socket refuses whom it has no room for
constexpr int kAcceptsAtOnce = 16;    // before connections have their turn
// Until a place is free, or a file descriptor.
constexpr std::chrono::milliseconds kAcceptRetry{50};
// No peer has more than one part in so many of the connections, no user of the workers and the memory.
constexpr std::size_t kConnectionParts = 4;
constexpr std::size_t kMemoryParts = 4;
constexpr std::size_t kThreadParts = 2;

// Anything that accepts connections: one per listen address.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  virtual void accept() = 0;
  virtual void close() = 0;
};

}  // namespace

std::size_t HttpLimits::connections_per_peer() const {
  return std::max<std::size_t>(1, max_connections / kConnectionParts);
}

Bytes HttpLimits::request_memory_per_user() const {
  return std::max<Bytes>(std::min<Bytes>(kMaxBatchBytes, request_memory_bytes), request_memory_bytes / kMemoryParts);
}

std::size_t HttpLimits::threads_per_user() const {
  return std::max<std::size_t>(1, worker_threads / kThreadParts);
}

struct HttpServer::Impl {
  std::shared_ptr<HttpSessions> sessions;
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::vector<std::string> unix_paths;
};

namespace {

using AcceptedSocket = asio::generic::stream_protocol::socket;

// Who is at the other end, as far as the kernel knows. Nothing: he went away again.
std::optional<Peer> peer_of(asio::local::stream_protocol::socket& socket) {
  struct ucred credentials {};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return Peer{"uid " + std::to_string(credentials.uid), Channel::kPrivate};
}

std::optional<Peer> peer_of(asio::ip::tcp::socket& socket) {
  error_code error;
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return Peer{"address " + address.to_string(), address.is_loopback() ? Channel::kPrivate : Channel::kOpen};
}

template <typename Protocol>
class ProtocolAcceptor : public Acceptor {
 public:
  ProtocolAcceptor(std::shared_ptr<HttpSessions> sessions, typename Protocol::acceptor acceptor, Security security)
      : sessions_(std::move(sessions)), acceptor_(std::move(acceptor)), retry_(sessions_->io), security_(security) {
    acceptor_.non_blocking(true);
  }

  void accept() override {
    acceptor_.async_wait(asio::socket_base::wait_read, [this](error_code error) {
      if (!error && !sessions_->stopping) accept_waiting();
    });
  }

  void close() override {
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

 private:
  // Whom there is no room for stays in the listen queue.
  void accept_waiting() {
    for (int accepted = 0; accepted < kAcceptsAtOnce; ++accepted) {
      if (!sessions_->connections.have_room()) return accept_later();
      typename Protocol::socket socket(sessions_->io);
      error_code error;
      acceptor_.accept(socket, error);
      if (error == asio::error::would_block) break;
      if (error) {
        // Out of descriptors, most likely.
        (void)sessions_->connections.end_longest_waiting();
        return accept_later();
      }
      auto peer = peer_of(socket);
      if (!peer || !sessions_->connections.make_room(peer->name)) continue;
      std::shared_ptr<asio::ssl::context> tls;
      if (security_ == Security::kTls) {
        tls = sessions_->certificate->context();
        peer->channel = Channel::kPrivate;
      }
      begin_session(sessions_, SessionStream(AcceptedSocket(std::move(socket)), std::move(tls)), *peer);
    }
    accept();
  }

  void accept_later() {
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([this](error_code waited) {
      if (!waited && !sessions_->stopping) accept();
    });
  }

  const std::shared_ptr<HttpSessions> sessions_;
  typename Protocol::acceptor acceptor_;
  asio::steady_timer retry_;
  const Security security_;
};

Error cannot_listen(const ListenAddress& address, const std::string& why) {
  return {ErrorCode::kUnavailable, "cannot listen on " + address.text() + ": " + why};
}

}  // namespace

unsigned HttpServer::threads(std::uint32_t worker_threads) {
  return RequestQueueLimits{.threads = worker_threads}.all_threads();
}

HttpServer::HttpServer(asio::io_context& io, asio::thread_pool& workers, RequestHandler& handler,
                       const HttpLimits& limits)
    : impl_(std::make_unique<Impl>()) {
  impl_->sessions = std::make_shared<HttpSessions>(io, workers, handler, limits);
}

void HttpServer::use_certificate(std::unique_ptr<TlsCertificate> certificate) {
  impl_->sessions->certificate = std::move(certificate);
}

HttpServer::~HttpServer() {
  for (const std::string& path : impl_->unix_paths) ::unlink(path.c_str());
  // What waits holds its session, and a session what it waits in.
  impl_->sessions->queue.clear();
  impl_->sessions->bodies.forget_waiting();
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
        Local::socket probe(impl_->sessions->io);
        error_code refused;
        probe.connect(endpoint, refused);
        if (!refused) return cannot_listen(address, "another program listens there: stop the other lbfd");
        ::unlink(address.unix_path.c_str());
      }
      Local::acceptor acceptor(impl_->sessions->io);
      acceptor.open();
      acceptor.bind(endpoint);
      if (::chmod(address.unix_path.c_str(), 0666) != 0) {
        return cannot_listen(address, "its mode cannot be set: " + std::string(std::strerror(errno)));
      }
      acceptor.listen(kListenBacklog);
      impl_->unix_paths.push_back(address.unix_path);
      impl_->acceptors.push_back(
          std::make_unique<ProtocolAcceptor<Local>>(impl_->sessions, std::move(acceptor), Security::kPlain));
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
      Tcp::acceptor acceptor(impl_->sessions->io);
      acceptor.open(ip.is_v6() ? Tcp::v6() : Tcp::v4());
      acceptor.set_option(Tcp::acceptor::reuse_address(true));
      acceptor.bind({ip, address.port});
      acceptor.listen(kListenBacklog);
      taken.port = acceptor.local_endpoint().port();
      impl_->acceptors.push_back(
          std::make_unique<ProtocolAcceptor<Tcp>>(impl_->sessions, std::move(acceptor), address.security));
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
  HttpSessions& sessions = *impl_->sessions;
  sessions.stopping = true;
  for (auto& acceptor : impl_->acceptors) acceptor->close();
  sessions.on_idle = std::move(on_idle);
  sessions.connections.close_waiting();
  if (sessions.connections.count() == 0 && sessions.on_idle) std::exchange(sessions.on_idle, nullptr)();
}

}  // namespace lbf::daemon
