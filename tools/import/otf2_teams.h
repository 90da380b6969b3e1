// Parallel regions of a rank from the records of its threads, as one kRegions event before the next call
// (docs/adr/0012-threads.md). No file but the import needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "event/event.h"
#include "tools/import/otf2_stream.h"

namespace lbf::tools::otf2 {

class Teams {
 public:
  // kFork, kJoin, kTeamBegin, kTeamEnd of any thread, by time.
  void on(const Record& record);
  // A thread waits for the others of its team.
  void enter_barrier(std::uint16_t thread, Nanoseconds ns);
  void leave_barrier(std::uint16_t thread, Nanoseconds ns);
  // An MPI call inside a region: this region's time is process time like any other.
  void call() { has_call_ = depth_ > 0; }
  bool in_region() const { return depth_ > 0; }

  // Of the regions since the last one: without values' storage, process time set; nothing: there were none.
  struct Sum {
    Nanoseconds wall_ns = 0;
    std::vector<std::uint64_t> values;
  };
  std::optional<Sum> take();
  // Regions whose time is in no sum because of a call.
  std::uint64_t with_calls() const { return with_calls_; }

 private:
  struct Thread {
    bool in_team = false;
    Nanoseconds begin_ns = 0;
    Nanoseconds end_ns = 0;
    Nanoseconds barrier_begin_ns = 0;
    Nanoseconds waited_ns = 0;     // in barriers
    Nanoseconds last_wait_ns = 0;  // in the last one, if it is the last thing
    Nanoseconds last_wait_end_ns = -1;
    bool took_part = false;
  };
  Thread& thread(std::uint16_t number);
  void join(Nanoseconds ns);

  std::vector<Thread> threads_;
  int depth_ = 0;  // of forks: nested regions are the outer one's
  bool has_call_ = false;
  Nanoseconds fork_ns_ = 0;
  std::uint64_t with_calls_ = 0;
  std::uint64_t regions_ = 0;
  std::uint64_t most_threads_ = 0;
  Nanoseconds wall_ns_ = 0;
  Nanoseconds work_ns_ = 0;
  Nanoseconds critical_ns_ = 0;
  Nanoseconds outside_ns_ = 0;  // fork and join
};

}  // namespace lbf::tools::otf2
