// See origin.h.
#include "spank_plugin/capture/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace lbf::capture {

void copy_variables(const char* const* names, std::size_t count, char* words, std::size_t size) noexcept {
  std::size_t used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const char* const value = getenv(names[i]);
    if (value == nullptr) continue;
    const std::size_t bytes = strlen(names[i]) + 1 + strlen(value) + 1;
    if (bytes > size - used) continue;
    snprintf(words + used, size - used, "%s=%s", names[i], value);
    used += bytes;
  }
}

void read_origin(Origin& origin) noexcept {
  constexpr std::size_t kCount = sizeof(ring::kLaunchVariables) / sizeof(ring::kLaunchVariables[0]);
  copy_variables(ring::kLaunchVariables, kCount, origin.launch, sizeof(origin.launch));
  // "pid:[INODE]"; not by stat(), which glibc has as a function since 2.33 only.
  constexpr const char* kPrefix = "pid:[";
  char link[64];
  const ssize_t bytes = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
  link[bytes > 0 ? bytes : 0] = '\0';
  const bool known = strncmp(link, kPrefix, strlen(kPrefix)) == 0;
  const unsigned long long inode = known ? strtoull(link + strlen(kPrefix), nullptr, 10) : 0;
  origin.pid_namespace = inode != ring::kFirstPidNamespace ? inode : 0;
}

std::uint32_t ranks_on_node() noexcept {
  for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LBF_CAPTURE_RANKS"}) {
    const char* const text = getenv(name);
    const long ranks = text != nullptr ? strtol(text, nullptr, 10) : 0;
    if (ranks > 0 && ranks <= 65536) return static_cast<std::uint32_t>(ranks);
  }
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  return processors > 0 ? static_cast<std::uint32_t>(processors) : 1;
}

}  // namespace lbf::capture
