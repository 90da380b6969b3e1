// NamespacedProcesses, see namespaced_processes.h.
#include "spank_plugin/relay/namespaced_processes.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/directory_handle.h"
#include "base/number.h"
#include "spank_plugin/relay/process_probe.h"

namespace lbf::relay {

std::int32_t number_in_own_namespace(std::string_view status) {
  constexpr std::string_view kKey = "\nNSpid:";
  const std::size_t at = status.find(kKey);
  if (at == std::string_view::npos) return 0;
  std::string_view numbers = status.substr(at + kKey.size());
  numbers = numbers.substr(0, numbers.find('\n'));
  // From the namespace of this /proc to the process's own one.
  if (std::count(numbers.begin(), numbers.end(), '\t') < 2) return 0;
  return parse_number<std::int32_t>(numbers.substr(numbers.rfind('\t') + 1)).value_or(0);
}

std::uint64_t pid_namespace_of(const std::string& pid) {
  struct stat status {};
  return ::stat(("/proc/" + pid + "/ns/pid").c_str(), &status) == 0 ? status.st_ino : 0;
}

std::int32_t NamespacedProcesses::number_of(std::uint64_t pid_namespace, std::int32_t pid) {
  const Key key{pid_namespace, pid};
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.number > 0) {
    const std::uint64_t start = read_process_stat(known->second.number).start_time_clock;
    // A process that is gone is the one that was known by this number.
    if (start == 0 || start == known->second.start_time_clock) return known->second.number;
  }
  if (!seen_) {
    seen_.emplace();
    const DirectoryHandle all(::opendir("/proc"));
    while (const dirent* entry = all ? ::readdir(all.get()) : nullptr) {
      const auto number = parse_number<std::int32_t>(entry->d_name);
      if (!number) continue;
      std::ifstream file("/proc/" + std::to_string(*number) + "/status");
      const std::string status{std::istreambuf_iterator<char>(file), {}};
      if (const std::int32_t own = number_in_own_namespace(status); own > 0)
        seen_->emplace(Key{pid_namespace_of(std::to_string(*number)), own}, *number);
    }
  }
  if (const auto seen = seen_->find(key); seen != seen_->end()) {
    known_[key] = {seen->second, read_process_stat(seen->second).start_time_clock};
    return seen->second;
  }
  if (known == known_.end() || known->second.number > 0) known_[key] = {--gone_, 0};
  return known_[key].number;
}

}  // namespace lbf::relay
