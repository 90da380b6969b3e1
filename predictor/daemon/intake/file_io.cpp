// Files that must survive a crash, see file_io.h.
#include "predictor/daemon/intake/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/scoped_fd.h"

namespace lbf::daemon {
namespace {

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Error system_error(std::string_view doing, const std::string& path, int error_number) {
  std::string message = "cannot " + std::string(doing) + " " + path + ": " + std::strerror(error_number);
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return {ErrorCode::kLimit, message + ": free space there, or lower trace_store_limit_mb in lbfd.toml"};
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return {ErrorCode::kLimit, message + ": raise the limits of lbfd's unit (LimitFSIZE, LimitNOFILE)"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorCode::kIo, message + ": lbfd's user must own its state directory"};
    case ENOENT:
      return {ErrorCode::kNotFound, message};
    default:
      return {ErrorCode::kIo, message};
  }
}

Result<void> sync_directory(const std::string& directory) {
  const ScopedFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return system_error("synchronise", directory, errno);
  return {};
}

Result<void> write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error("write", path, errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> read_all_at(int fd, std::span<std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return system_error("read", path, errno);
    }
    if (got == 0) return Error{ErrorCode::kIo, "cannot read " + path + ": it ends too early"};
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> write_file_durably(const std::string& path, std::string_view content) {
  const std::string fresh = path + ".new";
  {
    const ScopedFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return system_error("create", fresh, errno);
    auto written = write_all_at(fd.get(), std::as_bytes(std::span(content.data(), content.size())), 0, fresh);
    if (written && ::fsync(fd.get()) != 0) written = system_error("synchronise", fresh, errno);
    if (!written) {
      ::unlink(fresh.c_str());
      return written.error();
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    const Error error = system_error("rename", fresh, errno);
    ::unlink(fresh.c_str());
    return error;
  }
  return sync_directory(directory_of(path));
}

Result<std::string> read_whole_file(const std::string& path, std::size_t limit_bytes) {
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return system_error("read", path, errno);
  if (static_cast<std::uint64_t>(status.st_size) > limit_bytes) {
    return Error{ErrorCode::kLimit, path + ": longer than " + std::to_string(limit_bytes) + " bytes"};
  }
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  auto got = read_all_at(fd.get(), std::as_writable_bytes(std::span(content)), 0, path);
  if (!got) return got.error();
  return content;
}

Result<void> make_directory_durably(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) return system_error("create directory", path, errno);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      return Error{ErrorCode::kIo, path + " is in the way: it is not a directory"};
    }
    return {};
  }
  return sync_directory(directory_of(path));
}

}  // namespace lbf::daemon
