// Cgroups in the file system, see cgroup.h.
#include "spank_plugin/relay/cgroup.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/number.h"

namespace lbf::relay {
namespace {

// for_each(part) for the parts of TEXT between SEPARATORs.
template <class ForEach>
void split(std::string_view text, char separator, ForEach for_each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    for_each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

struct Cgroup {
  bool version_1 = false;
  std::string_view path;
};

// "7:freezer:/slurm/job_1", or without such a line "0::/slurm/job_1".
Cgroup cgroup_in(std::string_view controller, std::string_view cgroups) {
  Cgroup found;
  split(cgroups, '\n', [&](std::string_view line) {
    const std::size_t controllers = line.find(':');
    const std::size_t path = controllers == std::string_view::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string_view::npos) return;
    const std::string_view names = line.substr(controllers + 1, path - controllers - 1);
    if (has_part(names, ',', controller)) {
      found = {true, line.substr(path + 1)};
    } else if (names.empty() && !found.version_1) {
      found = {false, line.substr(path + 1)};
    }
  });
  return found;
}

}  // namespace

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has_part(std::string_view list, char separator, std::string_view wanted) {
  bool found = false;
  split(list, separator, [&](std::string_view part) { found = found || part == wanted; });
  return found;
}

std::optional<CgroupFolder> cgroup_folder_in(std::string_view controller, std::string_view cgroups,
                                             std::string_view mounts) {
  const Cgroup cgroup = cgroup_in(controller, cgroups);
  std::optional<CgroupFolder> folder;
  if (cgroup.path.empty()) return folder;
  // 35 24 0:30 ROOT MOUNT_POINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER_OPTIONS; what is mounted over another comes
  // later.
  split(mounts, '\n', [&](std::string_view line) {
    std::vector<std::string_view> fields;
    split(line, ' ', [&](std::string_view field) { fields.push_back(field); });
    std::size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 3 >= fields.size()) return;
    if (cgroup.version_1 ? fields[dash + 1] != "cgroup" || !has_part(fields[dash + 3], ',', controller)
                         : fields[dash + 1] != "cgroup2")
      return;
    const std::string_view root = fields[3] == "/" ? std::string_view() : fields[3];
    if (!cgroup.path.starts_with(root)) return;
    const std::string_view below = cgroup.path.substr(root.size());
    if (!below.empty() && below.front() != '/') return;
    folder = {cgroup.version_1, std::string(fields[4]), std::string(below)};
  });
  return folder;
}

std::optional<CgroupFolder> cgroup_folder_of(std::string_view controller, std::int32_t pid) {
  return cgroup_folder_in(controller, read_whole("/proc/" + std::to_string(pid) + "/cgroup"),
                          read_whole("/proc/self/mountinfo"));
}

Seconds throttled_in(std::string_view stat) {
  Seconds throttled_s = 0;
  split(stat, '\n', [&](std::string_view line) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const auto value = parse_number<std::uint64_t>(line.substr(std::min(blank + 1, line.size())));
    if (!value) return;
    if (line.substr(0, blank) == "throttled_usec") throttled_s = static_cast<double>(*value) * 1e-6;
    if (line.substr(0, blank) == "throttled_time") throttled_s = static_cast<double>(*value) * 1e-9;
  });
  return throttled_s;
}

std::vector<std::string> cpu_stat_files(const CgroupFolder& folder) {
  std::vector<std::string> files;
  std::string_view below = folder.below;
  while (!below.empty() && below.back() == '/') below.remove_suffix(1);
  for (;;) {
    files.push_back(folder.mount_point + std::string(below) + "/cpu.stat");
    if (below.empty()) return files;
    below = below.substr(0, below.rfind('/'));
  }
}

}  // namespace lbf::relay
