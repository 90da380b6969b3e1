// TlsCertificate, see tls_certificate.h.
#include "predictor/daemon/http/tls_certificate.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <boost/system/error_code.hpp>
#include <cerrno>

#include "predictor/daemon/intake/file_io.h"

namespace lbf::daemon {
namespace {

namespace ssl = boost::asio::ssl;

// A pair is replaced file by file: between the two it is none.
constexpr std::chrono::seconds kLookAgain{1};

}  // namespace

bool TlsCertificate::Stamp::operator==(const Stamp& other) const {
  return changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec && bytes == other.bytes &&
         inode == other.inode;
}

TlsCertificate::Stamp TlsCertificate::stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_mtim, status.st_size, status.st_ino};
}

Result<std::shared_ptr<ssl::context>> TlsCertificate::read() const {
  struct stat status {};
  if (::stat(key_.c_str(), &status) != 0) return system_error("read tls_key", key_, errno);
  if ((status.st_mode & 077) != 0)
    return Error{ErrorCode::kPermission, "tls_key " + key_ + ": must be a file of lbfd's user alone (chmod 0600)"};
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->use_certificate_chain_file(certificate_, error);
  if (error) return invalid_input("tls_certificate " + certificate_ + ": " + error.message());
  context->use_private_key_file(key_, ssl::context::pem, error);
  if (error)
    return invalid_input("tls_key " + key_ + ": " + error.message() + ": the key of tls_certificate is needed, as PEM");
  return context;
}

Result<std::unique_ptr<TlsCertificate>> TlsCertificate::load(std::string certificate, std::string key) {
  if (certificate.empty() || key.empty())
    return invalid_input("listen has an address with TLS: tls_certificate and tls_key are needed");
  std::unique_ptr<TlsCertificate> out(new TlsCertificate(std::move(certificate), std::move(key)));
  out->stamps_ = {stamp_of(out->certificate_), stamp_of(out->key_)};
  auto context = out->read();
  if (!context) return context.error();
  out->context_ = std::move(context).value();
  return out;
}

std::shared_ptr<ssl::context> TlsCertificate::context() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kLookAgain) return context_;
  looked_ = now;
  const std::pair stamps(stamp_of(certificate_), stamp_of(key_));
  if (stamps == stamps_) return context_;
  stamps_ = stamps;
  if (auto context = read()) {
    context_ = std::move(context).value();
    spdlog::info("the certificate of TLS is a new one, for {:.0f} days", days_left());
  } else {
    spdlog::error("{}: the certificate before it stays", context.error().message);
  }
  return context_;
}

double TlsCertificate::days_left() const {
  int days = 0;
  int seconds = 0;
  const X509* const own = SSL_CTX_get0_certificate(context_->native_handle());
  if (own == nullptr || ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(own)) != 1) return 0;
  return days + seconds / 86400.0;
}

}  // namespace lbf::daemon
