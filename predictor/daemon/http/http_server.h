// HttpServer: HTTP/1.1 on Unix sockets, TCP and TLS (Boost.Beast, OpenSSL), for Api.
//
// One thread (the caller's io_context) moves the bytes; the handler runs on the worker pool. Nothing is given before
// it is known who asks, or before it is needed: a body is read after its credential, and gets memory as its bytes
// come. No peer (the other end's uid of a Unix socket, the address over TCP) and no user has more than a part of the
// connections, of the memory and of the workers. What a peer does not send in time, or too slowly, ends its
// connection. docs/lbfd.md has the table of bounds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "predictor/daemon/config.h"
#include "predictor/daemon/http/api.h"
#include "predictor/daemon/http/tls_certificate.h"

namespace lbf::daemon {

struct HttpLimits {
  std::uint32_t max_connections = 1024;
  Bytes request_memory_bytes = Bytes{256} << 20;  // of all bodies
  std::uint32_t worker_threads = 4;               // of requests with a body; those without have as many again

  std::chrono::milliseconds header_timeout{5000};    // of a header, from accept or its first byte
  std::chrono::milliseconds body_timeout{5000};      // of a body that does not move
  Bytes body_bytes_per_s = Bytes{64} << 10;          // that a body has to come with, on average
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds answer_timeout{60'000};  // of an answer, or a piece of a long one
  std::chrono::milliseconds stalled_after{5000};     // when connections are full: of an answer that does not move

  // A peer's or user's part of all.
  std::size_t connections_per_peer() const;
  std::size_t requests_per_user() const { return connections_per_peer(); }
  Bytes request_memory_per_user() const;
  std::size_t threads_per_user() const;
};

class HttpServer {
 public:
  // How many threads `workers` needs for the server.
  static unsigned threads(std::uint32_t worker_threads);

  // REQUIRES: io is run by one thread; io, workers and handler outlive the server. `workers` has threads() of
  // limits.worker_threads that nobody else keeps busy.
  HttpServer(boost::asio::io_context& io, boost::asio::thread_pool& workers, RequestHandler& handler,
             const HttpLimits& limits);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Of the addresses with TLS.
  void use_certificate(std::unique_ptr<TlsCertificate> certificate);

  // REQUIRES: use_certificate() before an address with TLS.
  // Begins to listen. A Unix socket that nobody listens on any more is replaced; everybody may connect
  // (requests carry credentials). Returns the address with the port that was taken. Errors: the address is in
  // use, or cannot be had, with the remedy.
  Result<ListenAddress> listen(const ListenAddress& address);

  // On the io thread: accepts nothing more; idle connections are closed, requests under way get their
  // answers. `on_idle` is called when the last connection is gone.
  void stop(std::function<void()> on_idle);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbf::daemon
