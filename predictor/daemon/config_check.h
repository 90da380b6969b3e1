// lbfd --check-config: what a start of lbfd would meet, as lines for people. Nothing is started, made or written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "predictor/daemon/config.h"

namespace lbf::daemon {

struct ConfigCheck {
  std::vector<std::string> lines;  // "ok: ...", "warning: ...", "error: ...", and the sum of them
  std::size_t errors = 0;          // lbfd would not start
};

// Of FILE, the configuration as it was read, with the rights of this process. What is not looked at: whether a TCP port
// is free, and whether lbf.db is whole.
ConfigCheck check_config(const std::string& name, const ConfigFile& file);

// Whether lbfd knows who asks wherever other hosts reach it: over TLS, by munge, or, where token_over_tcp says so, by a
// token. Errors: kUnavailable (munge does not work, and an address beyond loopback is plain TCP), with the remedy.
Result<void> check_open_addresses(const DaemonConfig& config);

}  // namespace lbf::daemon
