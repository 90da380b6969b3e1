// Tokens that lbfd takes instead of munge credentials (docs/lbfd.md, "Configuration").
#pragma once

#include <string>

#include "base/result.h"

namespace lbf::daemon {

// The first line of the file that KEY of lbfd.toml names; PATH empty: "". Errors: kPermission (others may read it),
// kInvalidInput (shorter than 32 characters), those of the system.
Result<std::string> read_token(const std::string& key, const std::string& path);

}  // namespace lbf::daemon
