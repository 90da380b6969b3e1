// Where a process's cgroup is in the file system, of version 1 and 2 (cgroups(7)).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace lbf::relay {

struct CgroupFolder {
  bool version_1 = false;
  std::string mount_point;  // what is above it is not to be seen from here
  std::string below;        // "/slurm/job_5", or empty: the mount's own root

  std::string path() const { return mount_point + below; }
};

// The folder in which CONTROLLER has its files. CGROUPS is /proc/PID/cgroup, MOUNTS /proc/self/mountinfo (proc(5)).
// Empty: there is none that is to be seen from here.
std::optional<CgroupFolder> cgroup_folder_in(std::string_view controller, std::string_view cgroups,
                                             std::string_view mounts);
std::optional<CgroupFolder> cgroup_folder_of(std::string_view controller, std::int32_t pid);

// Whether LIST has the part WANTED between SEPARATORs.
bool has_part(std::string_view list, char separator, std::string_view wanted);
// Empty: it cannot be read.
std::string read_whole(const std::string& path);

// For how long cgroups had used up their CPU limit (cpu.max, cpu.cfs_quota_us), of all processors together: the one of
// FOLDER and those above it. STAT is one's cpu.stat.
Seconds throttled_in(std::string_view stat);
std::vector<std::string> cpu_stat_files(const CgroupFolder& folder);

}  // namespace lbf::relay
