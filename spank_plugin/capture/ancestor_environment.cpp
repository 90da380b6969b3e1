// See ancestor_environment.h.
#include "spank_plugin/capture/ancestor_environment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank_plugin/capture/memory.h"

namespace lbf::capture {
namespace {

constexpr int kMaxGenerations = 16;  // of scripts between a launcher's daemon and a rank
constexpr std::size_t kMaxEnvironmentBytes = std::size_t{4} << 20;

// Up to `size` - 1 bytes and a NUL; their number.
std::size_t read_process_file(int pid, const char* name, char* text, std::size_t size) noexcept {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
  std::size_t used = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    ssize_t got;
    while (used < size - 1 && (got = read(fd, text + used, size - 1 - used)) > 0) used += static_cast<std::size_t>(got);
    close(fd);
  }
  text[used] = '\0';
  return used;
}

// 0: it is gone.
int parent_of(int pid) noexcept {
  char stat[1024];
  read_process_file(pid, "stat", stat, sizeof(stat));
  const char* const name_end = strrchr(stat, ')');  // ") S PPID"
  return name_end != nullptr && strlen(name_end) > 4 ? atoi(name_end + 4) : 0;
}

}  // namespace

bool ancestor_environment(const char* name, bool (*accepts)(const char*), char* value, std::size_t size) noexcept {
  auto* const environment = static_cast<char*>(map_pages(kMaxEnvironmentBytes));
  if (environment == nullptr) return false;
  const std::size_t length = strlen(name);
  bool found = false;
  int pid = getppid();
  for (int generation = 0; !found && generation < kMaxGenerations && pid > 1; ++generation, pid = parent_of(pid)) {
    const std::size_t used = read_process_file(pid, "environ", environment, kMaxEnvironmentBytes);
    for (const char* word = environment; !found && word < environment + used; word += strlen(word) + 1) {
      if (strncmp(word, name, length) != 0 || word[length] != '=') continue;
      const char* const its = word + length + 1;
      found = strlen(its) < size && accepts(its);
      if (found) strcpy(value, its);
    }
  }
  munmap(environment, kMaxEnvironmentBytes);
  return found;
}

}  // namespace lbf::capture
