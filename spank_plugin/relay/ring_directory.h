// RingDirectory: the directory of a step's rings, and whether something was added since the last look.
//
// The kernel tells (inotify), so that a relay with nothing to do sleeps; where it has no watch left for this
// user, the directory is taken to have changed whenever somebody asks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "spank_plugin/relay/namespaced_processes.h"

namespace lbf::relay {

// "<pid>.<tid>.ring", "<pid>.<tid>.<namespace>.ring".
struct RingName {
  std::int32_t pid = 0;
  std::uint64_t pid_namespace = 0;  // its inode, where the numbers are not of the machine's first one
};
// Nothing: every other name.
std::optional<RingName> parse_ring_name(std::string_view name);

class RingDirectory {
 public:
  // Errors: kIo, it cannot be opened.
  static Result<std::shared_ptr<RingDirectory>> open(const std::string& path);

  int fd() const { return dir_.get(); }
  // Readable when something was added; -1: nobody tells.
  int watch_fd() const { return watch_.get(); }
  // Another number than before: list() may have more than before.
  std::uint64_t generation();

  struct Ring {
    std::string name;
    std::int32_t pid = 0;        // in this process's PID namespace; below 0: gone from it (NamespacedProcesses)
    std::int32_t named_pid = 0;  // as its header says
    std::uint64_t inode = 0;     // another one: another ring, although the name is the same
  };
  // All ring files, at most LIMIT.
  std::vector<Ring> list(std::size_t limit);

 private:
  RingDirectory() = default;
  ScopedFd dir_;
  ScopedFd watch_;
  std::uint64_t own_namespace_ = pid_namespace_of("self");
  NamespacedProcesses namespaced_;
  std::uint64_t generation_ = 1;
};

}  // namespace lbf::relay
