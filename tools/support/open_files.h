// How many files a command may have open.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <string>

#include "base/result.h"

namespace lbf::tools {

// Raises the soft limit to FILES. Errors: kLimit, the hard limit is lower; `what` needs them.
inline Result<void> allow_open_files(std::size_t files, const std::string& what) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files) return {};
  if (limit.rlim_max < files) {
    return Error{ErrorCode::kLimit, what + " needs " + std::to_string(files) + " open files, the system allows " +
                                        std::to_string(limit.rlim_max) + ": raise the hard limit (ulimit -Hn)"};
  }
  limit.rlim_cur = files;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return {};
}

}  // namespace lbf::tools
