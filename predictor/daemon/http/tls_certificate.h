// TlsCertificate: the certificate and key of lbfd's TLS addresses, as they are on disk at the moment: who renews them
// replaces the files, and new connections have the new ones.
#pragma once

#include <sys/types.h>

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"

namespace lbf::daemon {

// REQUIRES: used by one thread.
class TlsCertificate {
 public:
  // PEM files, the chain from the certificate on, and its key. Errors: kInvalidInput (not a pair, not PEM), kPermission
  // (others may read the key), those of the system.
  static Result<std::unique_ptr<TlsCertificate>> load(std::string certificate, std::string key);

  // For a new connection; TLS 1.2 at least. Files that changed and are no pair are said once in the log, and the pair
  // before them stays.
  std::shared_ptr<boost::asio::ssl::context> context();

  // Until the certificate ends; negative: it has.
  double days_left() const;

 private:
  struct Stamp {
    timespec changed;
    off_t bytes;
    ino_t inode;
    bool operator==(const Stamp& other) const;
  };
  TlsCertificate(std::string certificate, std::string key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}
  Result<std::shared_ptr<boost::asio::ssl::context>> read() const;
  static Stamp stamp_of(const std::string& path);

  const std::string certificate_;
  const std::string key_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::pair<Stamp, Stamp> stamps_{};
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace lbf::daemon
