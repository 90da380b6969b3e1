// ConfigCheck, see config_check.h.
#include "predictor/daemon/config_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "base/munge_credential.h"
#include "db/database.h"
#include "predictor/daemon/http/tls_certificate.h"
#include "predictor/daemon/network_catalog.h"
#include "predictor/daemon/token_file.h"
#include "predictor/daemon/users.h"
#include "predictor/engine/network/topology_file.h"

namespace lbf::daemon {
namespace {

namespace asio = boost::asio;

class Findings {
 public:
  void ok(const std::string& what) { lines_.push_back("ok: " + what); }
  void warn(const std::string& what) {
    lines_.push_back("warning: " + what);
    ++warnings_;
  }
  void fail(const std::string& what) {
    lines_.push_back("error: " + what);
    ++errors_;
  }
  ConfigCheck result() && {
    lines_.push_back(fmt::format("{} error{}, {} warning{}", errors_, errors_ == 1 ? "" : "s", warnings_,
                                 warnings_ == 1 ? "" : "s"));
    return {std::move(lines_), errors_};
  }

 private:
  std::vector<std::string> lines_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
};

// Empty: files can be made in the directory.
std::string why_not_writable(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return std::strerror(errno);
  if (!S_ISDIR(status.st_mode)) return "not a directory";
  return ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? "" : std::strerror(errno);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

void check_unix_address(const ListenAddress& address, Findings& findings) {
  const std::string folder = folder_of(address.unix_path);
  struct stat status {};
  if (const std::string why = why_not_writable(folder); !why.empty())
    return findings.fail(
        fmt::format("listen: {}: {}: {}: make it, writable for lbfd (the service does)", address.text(), folder, why));
  if (::lstat(address.unix_path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode))
    return findings.fail(fmt::format(
        "listen: {}: a file that is no socket is in the way: remove it, or name another path", address.text()));
  findings.ok("listen: " + address.text());
}

Result<asio::ip::address> ip_of(const ListenAddress& address) {
  boost::system::error_code error;
  const auto ip = address.host == "localhost" ? asio::ip::address(asio::ip::address_v4::loopback())
                                              : asio::ip::make_address(address.host, error);
  if (error) return invalid_input(fmt::format("listen: {}: '{}' is not an IP address", address.text(), address.host));
  return ip;
}

// Whether the host has the address: a socket can have it, with any port.
void check_tcp_address(const ListenAddress& address, Findings& findings) {
  const auto ip = ip_of(address);
  if (!ip) return findings.fail(ip.error().message);
  boost::system::error_code error;
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.open(ip->is_v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), error);
  if (!error) socket.bind({*ip, 0}, error);
  if (error)
    return findings.fail(fmt::format("listen: {}: this host does not have it: {}", address.text(), error.message()));
  findings.ok("listen: " + address.text());
}

bool is_open(const ListenAddress& address) {
  if (!address.unix_path.empty() || address.security == Security::kTls) return false;
  const auto ip = ip_of(address);
  return ip && !ip->is_loopback();
}

Result<void> check_munge() {
  const auto credential = encode_munge_credential("lbfd");
  if (!credential) return credential.error();
  if (const auto identity = decode_munge_credential(*credential); !identity) return identity.error();
  return {};
}

void check_certificate(const DaemonConfig& config, Findings& findings) {
  if (!has_tls(config)) return;
  const auto certificate = TlsCertificate::load(config.tls_certificate, config.tls_key);
  if (!certificate) return findings.fail(certificate.error().message);
  const double days = (*certificate)->days_left();
  if (days < 0) return findings.warn(fmt::format("tls_certificate: {} is not valid any more", config.tls_certificate));
  findings.ok(fmt::format("tls_certificate: {}, for {:.0f} days", config.tls_certificate, days));
}

void check_state_directory(const std::string& directory, Findings& findings) {
  const std::string folder = folder_of(directory);
  if (::access(directory.c_str(), F_OK) != 0) {
    if (const std::string why = why_not_writable(folder); !why.empty())
      return findings.fail(fmt::format("state_dir: {} cannot be made: {}: {}", directory, folder, why));
    return findings.ok(fmt::format("state_dir: {} will be made, with a new database", directory));
  }
  if (const std::string why = why_not_writable(directory); !why.empty())
    return findings.fail(fmt::format("state_dir: {}: {}: lbfd's user must own it", directory, why));
  findings.ok("state_dir: " + directory);
  const std::string path = directory + "/lbf.db";
  const auto version = db::Database::stored_schema_version(path);
  if (!version) return findings.fail("database: " + version.error().message);
  if (*version == 0) return findings.ok(fmt::format("database: {} will be made", path));
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    return findings.fail(fmt::format("database: {}: {}: lbfd's user must own it", path, std::strerror(errno)));
  findings.ok(fmt::format("database: {}, schema version {}", path, *version));
}

// `of`: "cluster.NAME." of a section's keys; empty: of those beside the sections.
void check_networks(const std::string& of, const std::string& directory, const std::string& own, Findings& findings) {
  const auto networks = NetworkCatalog::load(directory, own);
  if (!networks) return findings.fail(of + "networks: " + networks.error().message);
  if (!networks->own_note().empty()) findings.warn(of + "networks: " + networks->own_note());
  findings.ok(fmt::format("{}networks: {} is this cluster's; {} has {}", of, networks->own()->name(), directory,
                          fmt::join(networks->names(), ", ")));
}

// lbfd starts whatever is in it.
void check_topology(const std::string& of, const std::string& path, Findings& findings) {
  if (path.empty()) return findings.ok(of + "topology: none, all nodes are equally far apart");
  auto file = engine::TopologyFile::load(path);
  const auto topology = file ? file->of_partition("") : file.error();
  if (!topology)
    findings.warn(
        fmt::format("{}topology: {}: all nodes are taken to be equally far apart", of, topology.error().message));
  if (!file) return;
  file->read_neighbours();
  for (const std::string& warning : file->warnings()) findings.warn(of + "topology: " + warning);
  if (topology && *topology != nullptr)
    findings.ok(fmt::format("{}topology: {}: {} nodes on {} levels of switches", of, (*topology)->file(),
                            (*topology)->nodes(), (*topology)->levels()));
}

void check_who_may_ask(const DaemonConfig& config, Findings& findings) {
  for (const std::string& name : config.operators) {
    if (const auto uid = uid_of_user(name)) {
      findings.ok("operators: " + name);
    } else {
      findings.warn(fmt::format("operators: {}: left out", uid.error().message));
    }
  }
  for (const auto& [key, path] :
       {std::pair("token_file", &config.token_file), std::pair("metrics_token_file", &config.metrics_token_file)}) {
    if (path->empty()) continue;
    if (const auto token = read_token(key, *path)) {
      findings.ok(fmt::format("{}: {}", key, *path));
    } else {
      findings.fail(token.error().message);
    }
  }
  if (const auto munge = check_munge(); !munge) {
    findings.warn(fmt::format("munge: {}: lbfd would answer {} alone", munge.error().message,
                              config.token_file.empty() ? "GET /v1/health" : "whoever has a token"));
  } else {
    findings.ok("munge: a credential was made and read");
  }
  if (const auto known = check_open_addresses(config); !known) findings.fail(known.error().message);
}

}  // namespace

Result<void> check_open_addresses(const DaemonConfig& config) {
  const auto open = std::ranges::find_if(config.listen, is_open);
  if (open == config.listen.end() || config.token_over_tcp) return {};
  const auto munge = check_munge();
  if (munge) return {};
  ListenAddress with_tls = *open;
  with_tls.security = Security::kTls;
  return Error{ErrorCode::kUnavailable,
               fmt::format("listen: {} is open to other hosts and {}; without munge listen on {}", open->text(),
                           munge.error().message, with_tls.text())};
}

ConfigCheck check_config(const std::string& name, const ConfigFile& file) {
  Findings findings;
  for (const Error& error : file.errors) findings.fail(error.message);
  if (file.errors.empty()) findings.ok(name);
  findings.ok(fmt::format("user: {}; start lbfd as the same one", user_name_of(::geteuid())));
  const DaemonConfig& config = file.config;
  for (const ListenAddress& address : config.listen) {
    if (address.unix_path.empty()) {
      check_tcp_address(address, findings);
    } else {
      check_unix_address(address, findings);
    }
  }
  check_certificate(config, findings);
  check_state_directory(config.state_dir, findings);
  check_networks("", config.networks_dir, config.network, findings);
  check_topology("", config.topology, findings);
  for (const auto& [cluster, own] : config.clusters) {
    const std::string of = "cluster." + cluster + ".";
    check_networks(of, own.networks_dir.empty() ? config.networks_dir : own.networks_dir, own.network, findings);
    check_topology(of, own.topology, findings);
  }
  check_who_may_ask(config, findings);
  return std::move(findings).result();
}

}  // namespace lbf::daemon
