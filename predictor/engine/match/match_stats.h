// What the matcher counts of a program's events.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace lbf::engine {

struct MatchStats {
  std::uint64_t events = 0;       // as fed, without keep-alives
  std::uint64_t messages = 0;     // point-to-point messages matched
  std::uint64_t collectives = 0;  // calls, all ranks
  std::uint64_t approximated_collectives = 0;
  std::uint64_t nonblocking_collectives = 0;
  std::uint64_t wildcard_receives = 0;
  std::uint64_t one_sided_operations = 0;
  std::uint64_t io_calls = 0;  // MPI-IO: their time is kept as measured
  Seconds io_s = 0;
  Bytes bytes_read = 0;
  Bytes bytes_written = 0;
  std::uint32_t region_threads = 0;  // of the largest team of a parallel region; 0: there was none
  Seconds other_programs_s = 0;      // all ranks: kPreempted, with what it delayed ends of calls
  std::uint64_t unmodelled_calls = 0;
  Seconds unmodelled_s = 0;
  std::uint64_t lost_events = 0;       // from kGap
  std::uint64_t skipped_channels = 0;  // kSkipped events
};

}  // namespace lbf::engine
