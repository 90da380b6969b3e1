// What the operating system said, as an Error.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "base/result.h"

namespace lbf {

// "WHAT: No such file or directory" (kIo). REQUIRES: errno is that of the call that failed.
inline Error io_error(const std::string& what) {
  return Error{ErrorCode::kIo, what + ": " + std::strerror(errno)};
}

}  // namespace lbf
