// Defaults of options that the environment may set.
#pragma once

#include <cstdlib>
#include <string>

namespace lbf::tools {

// The variable's value; `otherwise` where it is not set or empty.
inline std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

inline constexpr const char* kDefaultServer = "unix:/run/lbf/lbfd.sock";
inline std::string default_server() {
  return from_environment("LBF_SERVER", kDefaultServer);
}

}  // namespace lbf::tools
