// RingRoom: what the rings of this process may take of their file system, so that those of all ranks of a node together
// leave room for others: a small /dev/shm (a container's has 64 MB) is where MPI libraries have their own memory.
#pragma once

#include <sys/statvfs.h>

#include <atomic>
#include <cstdint>

namespace lbf::capture {

class RingRoom {
 public:
  // Half of what is free in DIRECTORY is for the rings of this node's RANKS. A file system that cannot be asked, or has
  // no limit of its own (a tmpfs with size=0), bounds nothing.
  void measure(const char* directory, std::uint32_t ranks) noexcept {
    struct statvfs status {};
    if (statvfs(directory, &status) != 0 || status.f_blocks == 0) return;
    set(status.f_bavail * status.f_frsize, ranks);
  }
  // REQUIRES: ranks > 0; no ring is there yet.
  void set(std::uint64_t free_bytes, std::uint32_t ranks) noexcept {
    left_.store(free_bytes / 2 / ranks, std::memory_order_relaxed);
  }

  // What a ring with HEADER_BYTES may have for its data: WANTED, or as often halved as it takes to leave something for
  // the process's other threads, but not below SMALLEST. 0: that is not left, either. From several threads at once.
  std::uint64_t take(std::uint64_t header_bytes, std::uint64_t wanted, std::uint64_t smallest) noexcept {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    for (;;) {
      std::uint64_t capacity = wanted;
      while (capacity > left / 8 * 5 && capacity / 2 >= smallest) capacity /= 2;
      if (header_bytes + capacity > left) return 0;
      if (left_.compare_exchange_weak(left, left - header_bytes - capacity, std::memory_order_relaxed)) return capacity;
    }
  }
  void give_back(std::uint64_t bytes) noexcept { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> left_{~std::uint64_t{0} >> 1};
};

}  // namespace lbf::capture
