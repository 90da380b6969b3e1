// StepsNow: what lbfd has in hand at a moment, for its metrics (http/metrics.h).
#pragma once

#include <cstdint>

#include "base/units.h"

namespace lbf::daemon {

struct StepsNow {
  std::uint64_t running = 0;
  Seconds lag_s = 0;  // of the step whose replay is furthest behind (arrivals.h)
  Bytes backlog_bytes = 0;
  Bytes memory_bytes = 0;        // of all steps
  Bytes memory_limit_bytes = 0;  // 0: none
  std::uint64_t replay_threads = 0;
  bool traces_disk_full = false;
  bool database_disk_full = false;
  std::uint64_t writes_without_room = 0;
  std::uint64_t failed_writes = 0;  // for other reasons
  // Of the file system of state_dir; 0: it does not say.
  Bytes disk_bytes = 0;
  Bytes disk_free_bytes = 0;
  Bytes database_bytes = 0;  // lbf.db and its log
};

}  // namespace lbf::daemon
