// Thread: the capture's state of one thread that calls MPI.
//
// Place in the event's way: inside *capture*, between the generated wrappers and the ring writer. thread_ring.cpp makes
// it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/channel_counts.h"
#include "spank_plugin/capture/clock.h"
#include "spank_plugin/capture/communicator.h"
#include "spank_plugin/capture/device_times.h"
#include "spank_plugin/capture/memory.h"
#include "spank_plugin/capture/mpi_family.h"
#include "spank_plugin/capture/pool_clock.h"
#include "spank_plugin/capture/request_numbers.h"
#include "spank_plugin/capture/request_table.h"
#include "spank_plugin/capture/ring_writer.h"
#include "spank_plugin/capture/sampling.h"
#include "spank_plugin/capture/spin_mutex.h"

namespace lbf::capture {

// Requests that were complete when they were made share a handle (mpi_family.h, shared_queue): they are told
// apart by their order only, per thread (the one that made a request mostly waits for it too).
class CompletedRequests {
 public:
  bool open() noexcept {
    ids_ = static_cast<std::uint32_t*>(map_pages(kCapacity * sizeof(std::uint32_t)));
    return ids_ != nullptr;
  }
  // 0: a request that no event belongs to (MPI_PROC_NULL). false: full.
  bool push(std::uint32_t id) noexcept {
    if (last_ - first_ == kCapacity) return false;
    ids_[last_++ & (kCapacity - 1)] = id;
    return true;
  }
  bool empty() const noexcept { return first_ == last_; }
  std::uint32_t pop() noexcept { return empty() ? 0 : ids_[first_++ & (kCapacity - 1)]; }
  void clear() noexcept { first_ = last_; }
  void release() noexcept {
    if (ids_ != nullptr) munmap(ids_, kCapacity * sizeof(std::uint32_t));
    ids_ = nullptr;
  }

 private:
  static constexpr std::uint64_t kCapacity = 1u << 18;
  std::uint32_t* ids_ = nullptr;
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

inline bool open_all(CompletedRequests (&queues)[family::kSharedQueues]) noexcept {
  for (CompletedRequests& queue : queues) {
    if (!queue.open()) return false;
  }
  return true;
}

inline void release_all(CompletedRequests (&queues)[family::kSharedQueues]) noexcept {
  for (CompletedRequests& queue : queues) queue.release();
}

// When the beginning of a call needs more than a look at the control word (Call::begin_otherwise).
struct CallAttention {
  std::atomic<std::uint64_t> expected_control{kNever};  // another control word: the relay wants something
  std::uint64_t recorded_at = 0;                        // so many recorded calls; 0: always
  std::uint64_t counted_at = 0;  // so many counted calls, and the next one is not left to CountedCall; 0: none is
};

// Of the outermost wrapper that was entered last. They tell whether it was left by a jump (left_call.cpp).
struct OutermostCall {
  const std::byte* frame = nullptr;  // the stack pointer of its caller
  const void* return_address = nullptr;
};

// The process's mode, as far as the thread knows it.
struct ThreadMode {
  bool counting = false;
  bool shared = false;     // process.shared
  bool attentive = false;  // each Call takes the ways with attention: shared
  // Inside the recorder: between Call::returned and Call::finish, and where a SharedCountedCall looks at what it counts
  // and counts it; only where shared.
  std::atomic<bool> busy{false};
  bool last_was_failed_poll = false;
  std::uint32_t epoch = 0;  // of process.mode
};

// The communicator that was looked up last, defined and not foreign.
struct LastCommunicator {
  MPI_Comm handle{};
  Communicator* communicator = nullptr;
  std::uint32_t epoch = 0;
};

// What the capture of this thread costs (recorder_cost.cpp).
struct ThreadCost {
  std::uint64_t call_ticks = 0;          // of one recorded call, calibrated
  std::uint64_t beside_calls_ticks = 0;  // of capture_ticks_estimate: reads of the CPU clock
  Sampler recorded;
  Sampler counted;
  CountedIdeal shared_counted_ideal;
};

struct TypeSize {
  MPI_Datatype type{};
  std::uint32_t epoch = 0;
  std::uint64_t bytes = 0;
};

// Memory that one call uses.
struct CallScratch {
  MPI_Status status{};  // for a program that ignores it
  Scratch<MPI_Status> statuses;
  Scratch<RequestTable::Entry> snapshot;
  Scratch<MPI_Request> handles;
  Scratch<std::int32_t> ranks;
  RequestTable::Entry first_snapshot[16];
  MPI_Request first_handles[16];
};

// Requests that this thread made and that were complete at once.
struct CompletedOfThread {
  SpinMutex lock;  // another thread may wait for one of them (MPI_THREAD_MULTIPLE)
  CompletedRequests queues[family::kSharedQueues] GUARDED_BY(lock);

  // No other thread knows of them yet, or any more.
  bool open() noexcept NO_THREAD_SAFETY_ANALYSIS { return open_all(queues); }
  void release() noexcept NO_THREAD_SAFETY_ANALYSIS { release_all(queues); }
};

// The thread's own stack, as it was mapped when the capture began.
struct StackBounds {
  const std::byte* low = nullptr;
  const std::byte* high = nullptr;
};

// Calls inside the outermost one.
struct NestedCalls {
  std::uint64_t outermost = 0;  // which one
  std::uint64_t entries = 0;
  std::uint64_t recordable = 0;  // of them those that would have been recorded
};

// Header::grant and counted_grant as this process set them. Others stand there: the relay has spoken.
struct OwnGrants {
  std::uint64_t recorded = 0;
  std::uint64_t counted = 0;
  std::uint64_t dear_ticks = 0;  // what dear calls took of it (PrimitiveCounter::dear_ticks)
};

struct ProcedureIntervals;  // procedure_times.h

// Procedure times (procedure_times.h), where they are asked for.
struct ThreadProcedures {
  std::uint64_t gap_off_ticks = 0;  // of the gap that was judged last: preempted and blocked
  bool stale = true;                // what procedures did since the last recorded call is not this interval's
  ProcedureIntervals* intervals = nullptr;
};

struct alignas(64) Thread {
  // What the beginning and the end of each call look at: the first cache line.
  CallAttention attention;
  ring::Header* header = nullptr;
  std::uint64_t last_leave = 0;
  std::uint64_t cpu_threshold = kNever;
  OutermostCall outermost;

  RingWriter ring;
  ProcessClock clock;
  RequestNumbers::Taken request_numbers;
  std::uint32_t reference_part = 0;  // of References
  ThreadMode mode;
  LastCommunicator last_comm;
  ThreadCost cost;
  ChannelCounts counts;
  TypeSize type_sizes[16];
  CallScratch scratch;
  CompletedOfThread completed;
  StackBounds stack;
  NestedCalls nested;
  std::uint64_t mapped_bytes = 0;  // of the ring file
  std::uint64_t bytes_there = 0;   // of its data that have pages from the start
  OwnGrants own_grants;
  ThreadProcedures procedures;
  PoolClock pool;
  DeviceSums* devices = nullptr;  // waits for devices since the last recorded call; nullptr: none are measured
  RegionSums* regions = nullptr;  // parallel regions since the last recorded call; nullptr: none are measured
  Thread* next = nullptr;
};
static_assert(sizeof(CallAttention) + 3 * sizeof(std::uint64_t) + sizeof(OutermostCall) == 64);  // the first cache line

}  // namespace lbf::capture
