// HttpServer: HTTP/1.1 on Unix sockets and TCP (Boost.Beast), for Api.
//
// One thread (the caller's io_context) moves the bytes; the handler runs on the worker pool. What all request
// bodies together may take in memory is bounded: a request waits for its share before its body is read, so a
// relay that is too fast is slowed by its own connection. Times out slow or silent peers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "predictor/daemon/config.h"
#include "predictor/daemon/http/api.h"

namespace lbf::daemon {

struct HttpLimits {
  std::uint32_t max_connections = 1024;               // more wait in the listen queue
  std::uint64_t request_memory_bytes = 256ull << 20;  // of all bodies; at least one batch
  std::chrono::seconds idle_timeout{75};              // between requests
  std::chrono::seconds transfer_timeout{60};          // of one request's or answer's bytes
};

class HttpServer {
 public:
  using Handler = std::function<ApiResponse(const ApiRequest&)>;

  // REQUIRES: io is run by one thread; io and workers outlive the server. `handler` must be thread-safe.
  HttpServer(boost::asio::io_context& io, boost::asio::thread_pool& workers, Handler handler, HttpLimits limits);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Begins to listen. A Unix socket that nobody listens on any more is replaced; everybody may connect
  // (requests carry credentials). Returns the address with the port that was taken. Errors: the address is in
  // use, or cannot be had, with the remedy.
  Result<ListenAddress> listen(const ListenAddress& address);

  // On the io thread: accepts nothing more; idle connections are closed, requests under way get their
  // answers. `on_idle` is called when the last connection is gone.
  void stop(std::function<void()> on_idle);

  struct Impl;  // shared with the connections

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace lbf::daemon
