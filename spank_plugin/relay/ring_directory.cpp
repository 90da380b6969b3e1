// RingDirectory, see ring_directory.h.
#include "spank_plugin/relay/ring_directory.h"

#include <fcntl.h>
#include <sys/file.h>
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
std::optional<RingName> parse_ring_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".ring";
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto pid = parse_number<std::int32_t>(name.substr(0, dot));
  name.remove_prefix(dot + 1);
  const std::size_t second = name.find('.');
  const auto tid = parse_number<std::int32_t>(name.substr(0, second));
  std::optional<std::uint64_t> pid_namespace = 0;
  if (second != std::string_view::npos) pid_namespace = parse_number<std::uint64_t>(name.substr(second + 1));
  // A namespace's first process may be a rank, the machine's is none.
  const std::int32_t first = second == std::string_view::npos ? 2 : 1;
  if (!pid || !tid || !pid_namespace || *pid < first || *tid < first) return std::nullopt;
  return RingName{*pid, *pid_namespace};
}

Result<std::shared_ptr<RingDirectory>> RingDirectory::open(const std::string& path) {
  std::shared_ptr<RingDirectory> directory(new RingDirectory);
  directory->dir_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory->dir_) {
    return io_error("cannot open ring directory " + path);
  }
  // Whoever looks for what killed processes left behind sees that this one is in use.
  ::flock(directory->dir_.get(), LOCK_SH | LOCK_NB);
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

std::vector<RingDirectory::Ring> RingDirectory::list(std::size_t limit) {
  std::vector<Ring> rings;
  namespaced_.look_again();
  // A descriptor of its own each time: closedir() closes it, and the position starts at the beginning.
  const int fd = ::openat(dir_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return rings;
  const DirectoryHandle dir(::fdopendir(fd));
  if (!dir) {
    ::close(fd);
    return rings;
  }
  while (const dirent* entry = ::readdir(dir.get())) {
    const auto name = parse_ring_name(entry->d_name);
    if (!name || rings.size() >= limit) continue;
    const bool is_ours = name->pid_namespace == 0 || name->pid_namespace == own_namespace_;
    const std::int32_t pid = is_ours ? name->pid : namespaced_.number_of(name->pid_namespace, name->pid);
    rings.push_back({entry->d_name, pid, name->pid, entry->d_ino});
  }
  return rings;
}

}  // namespace lbf::relay
