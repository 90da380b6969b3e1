// CriticalPath: the longest path through the program activity graph (TR Sec. 3, TSE Sec. 2) and what it runs
// through, online.
//
// Watches the replay of one target (predictor/engine/replay/timeline.h). Each process has the profile of the longest
// path to where it is; a message takes its sender's along, and a receive that waited for it goes on with that one. So
// memory is O(ranks + messages in flight), each with the profiled procedures and at most kMaxEntries ranks and
// functions.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "predictor/engine/replay/timeline.h"

namespace lbf::engine {

// The parts sum up to `length_s`.
struct PathProfile {
  Seconds length_s = 0;
  Rank ends_at = 0;                  // the rank with the last event
  std::vector<Seconds> procedure_s;  // exclusive, of each profiled procedure
  Seconds other_work_s = 0;          // process time in none of them
  Seconds mpi_s = 0;                 // messages under way, protocol processing, waits that no message's path explains
  Seconds blocked_s = 0;
  Seconds unseen_s = 0;  // between capture windows: nothing is known of what it was spent with
  Seconds seen_s() const { return length_s - unseen_s; }
  // Process time and protocol processing by rank; mpi_s by MPI function (0: the trace does not say). Longest first;
  // of more than kMaxEntries those with least are summed up under kOthers.
  static constexpr std::size_t kMaxEntries = 32;
  static constexpr std::int32_t kOthers = -1;
  std::vector<std::pair<std::int32_t, Seconds>> rank_s;
  std::vector<std::pair<std::int32_t, Seconds>> function_s;
};

class CriticalPath final : public TimelineObserver {
 public:
  // `profiled`: procedures of the predictor's plan.
  explicit CriticalPath(std::size_t profiled) : profiled_(profiled) {}

  void on_op(const TimelineOp& op) override;
  void on_ready(const TimelineOp& op) override;
  // Of what was replayed so far.
  PathProfile profile() const;

 private:
  struct Path {
    PathProfile profile;  // length_s: up to where it is told
    bool named = false;   // the process is a rank, not an actor
  };
  Path& path_of(const TimelineOp& op);
  // The op's processor work up to `until_s`.
  void work(Path& path, const TimelineOp& op, Seconds until_s) const;
  void mpi(Path& path, const TimelineOp& op, Seconds until_s) const;
  static void add(std::vector<std::pair<std::int32_t, Seconds>>& entries, std::int32_t key, Seconds seconds);

  std::size_t profiled_;
  std::vector<Path> paths_;  // by process
  // By the message's slot, which the next message has after one that nobody received.
  struct Sent {
    std::uint64_t message_id = 0;
    PathProfile profile;
  };
  std::unordered_map<std::uint32_t, Sent> sent_;
};

}  // namespace lbf::engine
