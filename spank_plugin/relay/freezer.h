// Whether a process is frozen: proctrack/cgroup leaves all of a suspended step's processes so, and stops only Slurm's
// own tasks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lbf::relay {

// The file that tells of PID's cgroup: freezer.state of cgroup version 1, cgroup.events of version 2. Empty: there is
// none that is to be seen from here.
std::string freezer_file_of(std::int32_t pid);

// Whether all processes of that cgroup are frozen. An empty name, or one that cannot be read: false.
bool is_frozen(const std::string& freezer_file);

// freezer_file_of from what the kernel says: CGROUPS is /proc/PID/cgroup, MOUNTS /proc/self/mountinfo (proc(5)).
std::string freezer_file_in(std::string_view cgroups, std::string_view mounts);

}  // namespace lbf::relay
