// ring_drain DIR [open|counting|off]: empties the event rings in a directory every 5 ms, copying the records out as the
// relay does, until it is terminated. For bench/capture_overhead only: what capture costs without the relay's encoding
// and compression. `counting`, `off`: tells each ring so as soon as it appears.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "spank_plugin/capture/ring.h"

namespace {

struct Mapped {
  lbf::ring::Header* header;
  const char* data;
};

Mapped map_ring(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) return {nullptr, nullptr};
  void* pages = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (pages == MAP_FAILED) return {nullptr, nullptr};
  auto* header = static_cast<lbf::ring::Header*>(pages);
  return {header, static_cast<const char*>(pages) + header->header_bytes};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[2] : "open";
  if (argc < 2 || argc > 3 || (mode != "open" && mode != "counting" && mode != "off")) {
    std::cerr << "usage: ring_drain DIR [open|counting|off]\n";
    return 2;
  }
  using lbf::ring::CaptureOrder;
  const CaptureOrder order = mode == "open"  ? CaptureOrder::kOpen
                             : mode == "off" ? CaptureOrder::kOff
                                             : CaptureOrder::kCounting;
  std::map<std::string, Mapped> rings;
  std::vector<char> copy(256 << 10);
  for (;;) {
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(argv[1], ignored)) {
      const std::string path = file.path().string();
      if (file.path().extension() != ".ring" || rings.contains(path)) continue;
      rings[path] = map_ring(path);
      if (rings[path].header != nullptr)
        rings[path].header->order.store(static_cast<std::uint32_t>(order), std::memory_order_release);
    }
    for (auto& [path, ring] : rings) {
      if (ring.header == nullptr) continue;
      const std::uint64_t capacity = ring.header->capacity_bytes;
      const std::uint64_t head = ring.header->head.load(std::memory_order_acquire);
      std::uint64_t tail = ring.header->tail.load(std::memory_order_relaxed);
      while (tail < head) {
        const std::uint64_t offset = tail & (capacity - 1);
        const std::uint64_t chunk = std::min<std::uint64_t>({head - tail, capacity - offset, copy.size()});
        std::memcpy(copy.data(), ring.data + offset, chunk);
        tail += chunk;
        ring.header->tail.store(tail, std::memory_order_release);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}
