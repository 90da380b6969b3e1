// See owned_directory.h.
#include "tools/run/owned_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/directory_handle.h"
#include "base/io_error.h"

namespace lbf::tools {
namespace {

constexpr std::size_t kRandomCharacters = 6;  // of mkdtemp

bool is_of_name(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() != prefix.size() + kRandomCharacters) return false;
  name.remove_prefix(prefix.size());
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
}

std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  const int fd = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return names;
  const DirectoryHandle all(::fdopendir(fd));
  if (!all) {
    ::close(fd);
    return names;
  }
  while (const dirent* entry = ::readdir(all.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

bool answers(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const ScopedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool is_in_use(const std::string& path) {
  if (path.ends_with(".sock")) return answers(path);
  if (!path.ends_with(".ring")) return false;
  const auto pid = static_cast<pid_t>(std::strtol(path.c_str() + path.rfind('/') + 1, nullptr, 10));
  return pid > 1 && ::kill(pid, 0) == 0;
}

}  // namespace

Result<OwnedDirectory> OwnedDirectory::make(const std::string& base, const std::string& prefix) {
  for (;;) {
    std::string path = base + "/" + prefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return io_error("cannot make a directory in " + base);
    ScopedFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock) return io_error("cannot open " + path);
    struct stat status {};
    // Whoever removes leftovers may have come between the two.
    if (::flock(lock.get(), LOCK_SH) == 0 && ::fstat(lock.get(), &status) == 0 && status.st_nlink > 0)
      return OwnedDirectory(std::move(path), std::move(lock));
  }
}

void remove_leftovers(const std::string& base, const std::string& prefix) {
  const ScopedFd parent(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return;
  for (const std::string& name : names_in(parent.get())) {
    if (!is_of_name(name, prefix)) continue;
    const ScopedFd fd(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const std::vector<std::string> files = names_in(fd.get());
    const std::string path = base + "/" + name + "/";
    if (std::any_of(files.begin(), files.end(), [&](const std::string& file) { return is_in_use(path + file); }))
      continue;
    for (const std::string& file : files) ::unlinkat(fd.get(), file.c_str(), 0);
    ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace lbf::tools
