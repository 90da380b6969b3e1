// The rings of all ranks of a node together leave room in a small /dev/shm.
#include "spank_plugin/capture/ring_room.h"

#include <gtest/gtest.h>

namespace lbf::capture::ring_room_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kHeader = 16384;
constexpr std::uint64_t kSmallest = 65536;

std::uint64_t first_ring(std::uint64_t free_bytes, std::uint32_t ranks) {
  RingRoom room;
  room.set(free_bytes, ranks);
  return room.take(kHeader, 8 * kMiB, kSmallest);
}

TEST(RingRoom, WhereThereIsEnoughAllRingsAreWhole) {
  RingRoom unknown;
  EXPECT_EQ(unknown.take(kHeader, 8 * kMiB, kSmallest), 8 * kMiB);
  EXPECT_EQ(first_ring(64 * 1024 * kMiB, 128), 8 * kMiB);
  EXPECT_EQ(first_ring(64 * kMiB, 2), 8 * kMiB);
}

// A container's 64 MB: eight rings of 8 MiB left nothing for MPICH, whose MPI_Init failed.
TEST(RingRoom, ASmallOneIsSharedByTheRanks) {
  EXPECT_EQ(first_ring(64 * kMiB, 8), 2 * kMiB) << "16 MiB in all";
  EXPECT_EQ(first_ring(64 * kMiB, 64), kMiB / 4);
}

TEST(RingRoom, ThreadsShareWhatTheirProcessHas) {
  RingRoom room;
  room.set(64 * kMiB, 8);  // 4 MiB for all threads of a rank
  std::uint64_t taken = 0;
  int rings = 0;
  std::uint64_t before = 8 * kMiB;
  while (const std::uint64_t bytes = room.take(kHeader, 8 * kMiB, kSmallest)) {
    EXPECT_LE(bytes, before);
    before = bytes;
    taken += kHeader + bytes;
    ++rings;
  }
  EXPECT_GE(rings, 4);
  EXPECT_LE(taken, 4 * kMiB);
  room.give_back(kHeader + 2 * kMiB);  // a thread has ended
  EXPECT_GE(room.take(kHeader, 8 * kMiB, kSmallest), kMiB);
}

TEST(RingRoom, NothingIsLeft) {
  EXPECT_EQ(first_ring(0, 1), 0U);
  EXPECT_EQ(first_ring(128 * 1024, 1), 0U);
  RingRoom room;
  room.set(kMiB, 1);
  EXPECT_EQ(room.take(kHeader, 4096, 4096), 4096U) << "what was asked for may be below the smallest of others";
}

}  // namespace
}  // namespace lbf::capture::ring_room_test
