// SessionStream: the bytes of one connection, as they are or over TLS.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace lbf::daemon {

// An AsyncReadStream and AsyncWriteStream of Asio. The time limits of plain() hold for TLS as well.
class SessionStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Plain = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
  using executor_type = Plain::executor_type;

  // TLS: nullptr: bytes go as they are.
  SessionStream(Socket socket, std::shared_ptr<boost::asio::ssl::context> tls) : context_(std::move(tls)) {
    if (context_ != nullptr) {
      tls_.emplace(Plain(std::move(socket)), *context_);
    } else {
      plain_.emplace(std::move(socket));
    }
  }

  bool has_tls() const { return tls_.has_value(); }
  Plain& plain() { return tls_ ? tls_->next_layer() : *plain_; }
  executor_type get_executor() { return plain().get_executor(); }

  // REQUIRES: has_tls(), once, before anything is read or written.
  template <typename Handler>
  void async_handshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    plain_->async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    plain_->async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  std::shared_ptr<boost::asio::ssl::context> context_;  // outlives the stream
  std::optional<Plain> plain_;
  std::optional<boost::asio::ssl::stream<Plain>> tls_;
};

}  // namespace lbf::daemon
