#include "spank_plugin/procedures/memory_map.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace lbf::procedures {

std::vector<Mapping> read_memory_map() {
  std::vector<Mapping> map;
  std::FILE* file = std::fopen("/proc/self/maps", "re");
  if (file == nullptr) return map;
  char* line = nullptr;
  std::size_t room = 0;
  while (getline(&line, &room, file) > 0) {
    Mapping mapping;
    char rights[5] = {};
    int name_at = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %n", &mapping.begin, &mapping.end, rights,
                    &name_at) < 3) {
      continue;
    }
    mapping.readable = rights[0] == 'r';
    mapping.executable = rights[2] == 'x';
    if (name_at > 0) {
      mapping.file = line + name_at;
      while (!mapping.file.empty() && mapping.file.back() == '\n') mapping.file.pop_back();
    }
    map.push_back(std::move(mapping));
  }
  std::free(line);
  std::fclose(file);
  return map;
}

std::uintptr_t free_range_near(const std::vector<Mapping>& map, std::uintptr_t begin, std::uintptr_t end,
                               std::size_t bytes) {
  constexpr std::uintptr_t kReach = (std::uintptr_t{1} << 31) - (std::uintptr_t{1} << 16);
  constexpr std::uintptr_t kLowest = std::uintptr_t{1} << 20;  // below it the kernel allows nothing, or should not
  constexpr std::uintptr_t kHighest = std::uintptr_t{1} << 47;
  if (end - begin >= kReach) return 0;
  // Distances are between the lowest and the highest byte of both together.
  const std::uintptr_t lowest = end > kReach + kLowest ? end - kReach : kLowest;
  const std::uintptr_t highest = std::min(begin + kReach, kHighest);
  std::uintptr_t best = 0;
  std::uintptr_t best_distance = ~std::uintptr_t{0};
  const auto offer = [&](std::uintptr_t gap_begin, std::uintptr_t gap_end) {
    gap_begin = std::max(gap_begin, lowest);
    gap_end = std::min(gap_end, highest);
    if (gap_end <= gap_begin || gap_end - gap_begin < bytes) return;
    const std::uintptr_t at = gap_begin >= end ? gap_begin : gap_end - bytes;
    const std::uintptr_t away = at >= end ? at - end : begin - at;
    if (away < best_distance) {
      best_distance = away;
      best = at;
    }
  };
  std::uintptr_t free_from = kLowest;
  for (const Mapping& mapping : map) {
    // What lies right below a stack or right behind the heap is theirs to grow into.
    constexpr std::uintptr_t kGrowth = std::uintptr_t{64} << 20;
    const bool is_stack = mapping.file == "[stack]";
    const std::uintptr_t until = is_stack && mapping.begin > kGrowth ? mapping.begin - kGrowth : mapping.begin;
    if (until > free_from) offer(free_from, until);
    free_from = mapping.end + (mapping.file == "[heap]" ? kGrowth : 0);
  }
  if (free_from < kHighest) offer(free_from, kHighest);
  return best;
}

}  // namespace lbf::procedures
