// HttpSession: one connection of HttpServer. Header, who sends it, body as its memory comes, handler, answer, and
// again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "predictor/daemon/http/api.h"
#include "predictor/daemon/http/body_memory.h"
#include "predictor/daemon/http/connections.h"
#include "predictor/daemon/http/http_server.h"
#include "predictor/daemon/http/refusal_log.h"
#include "predictor/daemon/http/request_queue.h"
#include "predictor/daemon/http/session_stream.h"
#include "predictor/daemon/http/tls_certificate.h"

namespace lbf::daemon {

// What the sessions of a server share. REQUIRES: used by the thread that runs `io`.
struct HttpSessions {
  HttpSessions(boost::asio::io_context& io_context, boost::asio::thread_pool& workers, RequestHandler& request_handler,
               const HttpLimits& http_limits);

  void count_connections() { handler.http_counts().connections = connections.count(); }

  boost::asio::io_context& io;
  RequestHandler& handler;
  const HttpLimits limits;
  Connections connections;
  BodyMemory bodies;
  RequestQueue queue;
  RefusalLog refusals;
  ShareCount requests;                          // of each user: authenticated, not yet answered
  std::unique_ptr<TlsCertificate> certificate;  // nullptr: no address has TLS
  bool stopping = false;
  std::function<void()> on_idle;  // once, when the last connection is gone while stopping
};

// The other end of a connection.
struct Peer {
  std::string name;  // the uid of a Unix socket's, or the address
  Channel channel = Channel::kOpen;
};

// A connection of PEER's, which nobody has read from yet.
void begin_session(std::shared_ptr<HttpSessions> sessions, SessionStream stream, const Peer& peer);

}  // namespace lbf::daemon
