// lbfd --check-config: what a start of lbfd would meet, as lines for people. Nothing is started, made or written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "predictor/daemon/config.h"

namespace lbf::daemon {

struct ConfigCheck {
  std::vector<std::string> lines;  // "ok: ...", "warning: ...", "error: ...", and the sum of them
  std::size_t errors = 0;          // lbfd would not start
};

// Of FILE, the configuration as it was read, with the rights of this process. What is not looked at: whether a TCP port
// is free, and whether lbf.db is whole.
ConfigCheck check_config(const std::string& name, const ConfigFile& file);

}  // namespace lbf::daemon
