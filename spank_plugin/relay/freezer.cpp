// cgroup freezers, see freezer.h.
#include "spank_plugin/relay/freezer.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

namespace lbf::relay {
namespace {

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// for_each(part) for the parts of TEXT between SEPARATORs.
template <class ForEach>
void split(std::string_view text, char separator, ForEach for_each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    for_each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool has_part(std::string_view list, char separator, std::string_view wanted) {
  bool found = false;
  split(list, separator, [&](std::string_view part) { found = found || part == wanted; });
  return found;
}

struct Cgroup {
  bool version_1 = false;
  std::string_view path;
};

// "7:freezer:/slurm/job_1", or without such a line "0::/slurm/job_1".
Cgroup cgroup_in(std::string_view cgroups) {
  Cgroup found;
  split(cgroups, '\n', [&](std::string_view line) {
    const std::size_t controllers = line.find(':');
    const std::size_t path = controllers == std::string_view::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string_view::npos) return;
    const std::string_view names = line.substr(controllers + 1, path - controllers - 1);
    if (has_part(names, ',', "freezer")) {
      found = {true, line.substr(path + 1)};
    } else if (names.empty() && !found.version_1) {
      found = {false, line.substr(path + 1)};
    }
  });
  return found;
}

}  // namespace

std::string freezer_file_in(std::string_view cgroups, std::string_view mounts) {
  const Cgroup cgroup = cgroup_in(cgroups);
  if (cgroup.path.empty()) return {};
  std::string file;
  // 35 24 0:30 ROOT MOUNT_POINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER_OPTIONS; what is mounted over another comes
  // later.
  split(mounts, '\n', [&](std::string_view line) {
    std::vector<std::string_view> fields;
    split(line, ' ', [&](std::string_view field) { fields.push_back(field); });
    std::size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 3 >= fields.size()) return;
    if (cgroup.version_1 ? fields[dash + 1] != "cgroup" || !has_part(fields[dash + 3], ',', "freezer")
                         : fields[dash + 1] != "cgroup2")
      return;
    const std::string_view root = fields[3] == "/" ? std::string_view() : fields[3];
    if (!cgroup.path.starts_with(root)) return;
    const std::string_view below = cgroup.path.substr(root.size());
    if (!below.empty() && below.front() != '/') return;
    file = std::string(fields[4]) + std::string(below) + (cgroup.version_1 ? "/freezer.state" : "/cgroup.events");
  });
  return file;
}

std::string freezer_file_of(std::int32_t pid) {
  return freezer_file_in(read_whole("/proc/" + std::to_string(pid) + "/cgroup"), read_whole("/proc/self/mountinfo"));
}

bool is_frozen(const std::string& freezer_file) {
  if (freezer_file.empty()) return false;
  const std::string content = read_whole(freezer_file);
  return content.starts_with("FROZEN") || has_part(content, '\n', "frozen 1");
}

}  // namespace lbf::relay
