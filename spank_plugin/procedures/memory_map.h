// Memory map: what is mapped where in this process, and room for code near a place.
//
// Place in the event's way: inside *procedures*, at start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lbf::procedures {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool readable = false;
  bool executable = false;
  std::string file;  // empty: none
};

// /proc/self/maps, sorted by address; empty: it cannot be read.
std::vector<Mapping> read_memory_map();

// A free range of `bytes` (a multiple of the page size) of which every byte is less than 2 GiB away from
// every byte of [begin, end), as near as possible; 0: none.
std::uintptr_t free_range_near(const std::vector<Mapping>& map, std::uintptr_t begin, std::uintptr_t end,
                               std::size_t bytes);

}  // namespace lbf::procedures
