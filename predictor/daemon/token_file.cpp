// Tokens, see token_file.h.
#include "predictor/daemon/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "base/scoped_fd.h"
#include "predictor/daemon/intake/file_io.h"

namespace lbf::daemon {

// A secret that others can read is none.
Result<std::string> read_token(const std::string& key, const std::string& path) {
  constexpr std::size_t kLeastCharacters = 32;
  if (path.empty()) return std::string();
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return system_error("read " + key, path, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return Error{ErrorCode::kPermission, key + " " + path + ": must be a file of lbfd's user alone (chmod 0600)"};
  }
  std::array<char, 256> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  const std::string_view line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  std::string token(line.substr(0, line.find('\n')));
  if (token.size() < kLeastCharacters) {
    return invalid_input(key + " " + path + ": the first line must have at least 32 characters");
  }
  return token;
}

}  // namespace lbf::daemon
