// RegionTable: the parallel regions of the ops between the matcher and the replays, a row for each kOpRegions op.
//
// Place in the event's way: match -> *regions* -> replay (region_time.h). docs/adr/0012-threads.md.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "predictor/engine/match/memory_account.h"

namespace lbf::engine {

using RegionIndex = std::uint32_t;

// Regions of one rank between two events, as they ran.
struct RegionWork {
  Seconds work_s = 0;       // of all threads
  Seconds critical_s = 0;   // sum over regions of the longest thread
  Seconds fork_join_s = 0;  // besides
  double regions = 0;
  std::uint32_t threads = 1;  // of the largest team
};

class RegionTable {
 public:
  explicit RegionTable(MemoryAccount* account) : rows_(account), pending_(account), free_(account) {}

  // Gone when READERS said note_use().
  RegionIndex add(const RegionWork& work, std::uint32_t readers) {
    if (free_.empty()) {
      rows_.push_back(work);
      pending_.push_back(readers);
      return static_cast<RegionIndex>(rows_.size() - 1);
    }
    const RegionIndex index = free_.back();
    free_.pop_back();
    rows_[index] = work;
    pending_[index] = readers;
    return index;
  }
  const RegionWork& at(RegionIndex index) const { return rows_[index]; }
  void note_use(RegionIndex index) {
    if (--pending_[index] == 0) free_.push_back(index);
  }
  // A reader more, which has INDEX still to execute.
  void expect_one_more(RegionIndex index) { ++pending_[index]; }

 private:
  CountedVector<RegionWork> rows_;
  CountedVector<std::uint32_t> pending_;  // readers that have still to execute the row's op
  CountedVector<RegionIndex> free_;
};

}  // namespace lbf::engine
