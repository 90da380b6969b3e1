// RingDirectory, see ring_directory.h.
#include "spank_plugin/relay/ring_directory.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/directory_handle.h"
#include "base/io_error.h"
#include "base/number.h"
#include "base/unique_handle.h"

namespace lbf::relay {
std::int32_t pid_of_ring_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".ring";
  if (!name.ends_with(kSuffix)) return 0;
  name.remove_suffix(kSuffix.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return 0;
  const auto pid = parse_number<std::int32_t>(name.substr(0, dot));
  const auto tid = parse_number<std::int32_t>(name.substr(dot + 1));
  return pid && tid && *pid > 1 && *tid > 1 ? *pid : 0;
}

Result<std::shared_ptr<RingDirectory>> RingDirectory::open(const std::string& path) {
  std::shared_ptr<RingDirectory> directory(new RingDirectory);
  directory->dir_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory->dir_) {
    return io_error("cannot open ring directory " + path);
  }
  directory->watch_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  // By the descriptor: the path may be another directory's by now.
  const std::string opened = "/proc/self/fd/" + std::to_string(directory->dir_.get());
  if (directory->watch_ && ::inotify_add_watch(directory->watch_.get(), opened.c_str(), IN_CREATE | IN_MOVED_TO) < 0) {
    directory->watch_.reset();
  }
  return directory;
}

std::uint64_t RingDirectory::generation() {
  if (!watch_) return ++generation_;
  alignas(inotify_event) std::array<char, 4096> events;
  bool added = false;
  while (::read(watch_.get(), events.data(), events.size()) > 0) added = true;
  if (added) ++generation_;
  return generation_;
}

std::vector<RingDirectory::Ring> RingDirectory::list(std::size_t limit) const {
  std::vector<Ring> rings;
  // A descriptor of its own each time: closedir() closes it, and the position starts at the beginning.
  const int fd = ::openat(dir_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return rings;
  const DirectoryHandle dir(::fdopendir(fd));
  if (!dir) {
    ::close(fd);
    return rings;
  }
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::int32_t pid = pid_of_ring_name(entry->d_name);
    if (pid != 0 && rings.size() < limit) rings.push_back({entry->d_name, pid, entry->d_ino});
  }
  return rings;
}

}  // namespace lbf::relay
