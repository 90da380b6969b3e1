#include "spank_plugin/procedures/memory_map.h"

#include <gtest/gtest.h>

#include "spank_plugin/procedures/loaded_symbols.h"

namespace lbf::procedures::memory_map_test {
namespace {

Mapping at(std::uintptr_t begin, std::uintptr_t end, const char* file = "") {
  return Mapping{begin, end, true, true, file};
}

TEST(MemoryMap, HasThisFunction) {
  const auto here = reinterpret_cast<std::uintptr_t>(&at);
  bool found = false;
  for (const Mapping& mapping : read_memory_map())
    found |= mapping.executable && here >= mapping.begin && here < mapping.end;
  EXPECT_TRUE(found);
}

TEST(MemoryMap, NearestGap) {
  const std::vector<Mapping> map{at(0x10000000, 0x20000000), at(0x20001000, 0x20004000), at(0x20010000, 0x30000000)};
  EXPECT_EQ(free_range_near(map, 0x20001000, 0x20002000, 0x1000), 0x20000000u);
  EXPECT_EQ(free_range_near(map, 0x20001000, 0x20004000, 0x2000), 0x20004000u);
  EXPECT_EQ(free_range_near(map, 0x20001000, 0x20004000, 0x10000000), 0x30000000u);
}

TEST(MemoryMap, NothingBeyondTwoGigabytes) {
  const std::uintptr_t kGiB = std::uintptr_t{1} << 30;
  const std::vector<Mapping> map{at(1 << 20, 10 * kGiB)};
  EXPECT_EQ(free_range_near(map, 4 * kGiB, 4 * kGiB + 4096, 4096), 0u);
  EXPECT_EQ(free_range_near(map, 9 * kGiB, 9 * kGiB + 4096, 4096), 10 * kGiB);
}

TEST(MemoryMap, TheHeapKeepsRoomToGrow) {
  const std::vector<Mapping> map{at(1 << 20, 0x20000000), at(0x20000000, 0x20100000, "[heap]")};
  EXPECT_GE(free_range_near(map, 0x1ff00000, 0x20000000, 4096), std::uintptr_t{0x20100000 + (64 << 20)});
}

TEST(LoadedSymbols, ThisProgramAndItsLibraries) {
  LoadedSymbols symbols;
  const auto count = symbols.read("");
  ASSERT_TRUE(count);
  EXPECT_GT(*count, 1000u);
  bool executable = false;
  bool c_library = false;
  for (const LoadedModule& module : symbols.modules()) {
    executable |= module.executable && !module.stripped;
    c_library |= module.system && module.file.find("libc.so") != std::string::npos;
  }
  EXPECT_TRUE(executable);
  EXPECT_TRUE(c_library);
  const auto here = reinterpret_cast<std::uintptr_t>(&free_range_near);
  bool found = false;
  for (const LoadedSymbol& symbol : symbols.symbols()) {
    if (symbol.address == here) found |= symbol.linkage.find("free_range_near") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace lbf::procedures::memory_map_test