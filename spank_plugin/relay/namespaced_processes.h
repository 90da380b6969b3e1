// NamespacedProcesses: the numbers here of processes that have others in a PID namespace of their own (a container).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lbf::relay {

class NamespacedProcesses {
 public:
  // One look at the machine's processes is enough for all questions until the next call.
  void look_again() { seen_.reset(); }
  // Of the process that has PID in the PID namespace with inode NAMESPACE. Below 0: it is gone, or not to be seen; each
  // such one has its own.
  std::int32_t number_of(std::uint64_t pid_namespace, std::int32_t pid);

 private:
  using Key = std::pair<std::uint64_t, std::int32_t>;
  struct Known {
    std::int32_t number = 0;
    std::uint64_t start_time_clock = 0;
  };
  std::optional<std::map<Key, std::int32_t>> seen_;
  std::map<Key, Known> known_;
  std::int32_t gone_ = 0;
};

// The number that a process has in its own PID namespace, from /proc/PID/status; 0: it has none below this one.
std::int32_t number_in_own_namespace(std::string_view status);
// Inode of PID's namespace ("self": this process's); 0: it is gone, or not to be asked.
std::uint64_t pid_namespace_of(const std::string& pid);

}  // namespace lbf::relay
