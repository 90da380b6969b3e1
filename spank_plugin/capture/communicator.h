// Communicator: what the capture knows of an MPI communicator, and what belongs to one.
//
// Place in the event's way: inside *capture*; made and freed by recorder_communicators.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "event/event.h"
#include "spank_plugin/capture/mpi_family.h"

namespace lbf::capture {

struct Neighbours {
  std::uint32_t destinations = 0;
  std::uint32_t sources = 0;
  std::int32_t* ranks = nullptr;  // destinations, then sources: ranks in the communicator or MPI_PROC_NULL
};

// How many there are. Each thread counts in a part of its own, as long as there are as many, so that none waits for
// another; the parts together say how many.
class References {
 public:
  static constexpr std::uint32_t kParts = 6;
  static constexpr std::uint32_t kCommonPart = kParts - 1;  // of all threads that have none of their own
  void add(std::uint32_t part, std::int32_t amount) noexcept {
    std::atomic<std::int32_t>& count = parts_[part].count;
    if (part == kCommonPart) [[unlikely]] {
      count.fetch_add(amount, std::memory_order_release);
    } else {
      count.store(count.load(std::memory_order_relaxed) + amount, std::memory_order_release);
    }
  }
  // REQUIRES: nothing new refers to it.
  bool none() const noexcept {
    std::int32_t sum = 0;
    for (const Part& part : parts_) sum += part.count.load(std::memory_order_acquire);
    return sum == 0;
  }

 private:
  struct Part {
    std::atomic<std::int32_t> count{0};
    char rest_of_line[60];
  };
  Part parts_[kParts]{};
};

// What the capture knows of a communicator. Lives until it is freed and no request refers to it any more.
struct Communicator {
  std::uint64_t uid = 0;                // the same number on all members, made without talking to each other
  std::uint32_t index = 0;              // this rank's own number for it, as in the records
  std::uint32_t size = 0;               // local group
  std::uint32_t remote_size = 0;        // 0: an intracommunicator
  std::uint32_t children = 0;           // communicators made from it so far, MPI_COMM_NULL results included
  std::int32_t rank = 0;                // this process in the local group
  std::int32_t* world_ranks = nullptr;  // local group, then remote group; nullptr: world rank = rank
  Neighbours* neighbours = nullptr;     // looked up at the first neighbourhood collective
  // Windows: the world ranks of MPI_Win_start's group, from [size] on those of MPI_Win_post's; made at first use.
  std::int32_t* epoch_ranks = nullptr;
  std::uint32_t started = 0;  // how many of each
  std::uint32_t posted = 0;
  bool defined = false;  // its kCommCreate record is in the ring
  bool foreign = false;  // has members outside MPI_COMM_WORLD, or was not seen being made: not modelled
  bool unasked = false;  // made while calls were counted, and not used yet: `uid` is its child_seed, the rest is empty
  Communicator* next_freed = nullptr;
  References references;  // of requests; not counted of MPI_COMM_WORLD, which stays

  std::int32_t peer_world_rank(std::int32_t rank_in_comm) const noexcept {
    if (world_ranks == nullptr || rank_in_comm < 0) {
      return rank_in_comm < 0 ? recorded_negative_rank(rank_in_comm) : rank_in_comm;
    }
    return world_ranks[remote_size != 0 ? size + static_cast<std::uint32_t>(rank_in_comm)
                                        : static_cast<std::uint32_t>(rank_in_comm)];
  }
  std::uint32_t peers() const noexcept { return remote_size != 0 ? remote_size : size; }
};

static_assert(sizeof(Communicator) <= 512);  // a block of the pool

inline std::size_t epoch_ranks_bytes(const Communicator& window) noexcept {
  return 2 * sizeof(std::int32_t) * window.size;
}

// What MPI_Start of a persistent collective records; `value_count` values follow it. In a block of the process's pool.
struct PersistentCollective {
  std::uint64_t bytes;
  std::int32_t root;
  std::uint32_t value_count;
  CollectiveOp op;
  bool in_place;
  std::uint64_t* values() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  static std::size_t block_bytes(std::uint32_t values) noexcept {
    return sizeof(PersistentCollective) + values * sizeof(std::uint64_t);
  }
};

// Of a partitioned send: how many partitions are not ready yet.
struct Partitions {
  std::uint32_t all = 0;
  std::uint32_t left = 0;
};

}  // namespace lbf::capture
