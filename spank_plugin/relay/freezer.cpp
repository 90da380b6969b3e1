// cgroup freezers, see freezer.h.
#include "spank_plugin/relay/freezer.h"

#include <optional>

#include "spank_plugin/relay/cgroup.h"

namespace lbf::relay {
namespace {

std::string freezer_file(const std::optional<CgroupFolder>& folder) {
  if (!folder) return {};
  return folder->path() + (folder->version_1 ? "/freezer.state" : "/cgroup.events");
}

}  // namespace

std::string freezer_file_in(std::string_view cgroups, std::string_view mounts) {
  return freezer_file(cgroup_folder_in("freezer", cgroups, mounts));
}

std::string freezer_file_of(std::int32_t pid) {
  return freezer_file(cgroup_folder_of("freezer", pid));
}

bool is_frozen(const std::string& freezer_file) {
  if (freezer_file.empty()) return false;
  const std::string content = read_whole(freezer_file);
  return content.starts_with("FROZEN") || has_part(content, '\n', "frozen 1");
}

}  // namespace lbf::relay
