// DaemonCounts: what lbfd has done since it started, for its metrics (http/metrics.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"

namespace lbf::daemon {

// Each one is read alone, whenever somebody asks.
struct DaemonCounts {
  std::atomic<std::uint64_t> started_steps{0};
  std::atomic<std::uint64_t> complete_steps{0};
  std::atomic<std::uint64_t> partial_steps{0};
  std::atomic<std::uint64_t> predictions{0};       // of steps that ended, deferred ones not included
  std::atomic<std::uint64_t> deferred_targets{0};  // when their steps ended
  std::atomic<std::uint64_t> stored_batches{0};
  std::atomic<Bytes> stored_bytes{0};
  std::atomic<std::uint64_t> replayed_events{0};
  std::atomic<Seconds> replay_cpu_s{0};
  std::atomic<std::uint64_t> spooled_batches{0};  // as relays say at their end
  std::atomic<std::uint64_t> lost_batches{0};     // likewise
  std::atomic<std::uint64_t> replay_errors{0};
  std::atomic<std::uint64_t> set_aside_steps{0};
};

}  // namespace lbf::daemon
