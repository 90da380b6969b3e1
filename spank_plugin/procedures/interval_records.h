// Interval records: what a thread's procedures did since its last MPI call, as kProcedure records in its
// ring.
//
// Place in the event's way: call times -> *interval records* -> ring -> relay. For the recorder, which
// includes this file and has loaded the library (library.h): at the beginning of a recorded call, when the
// gap before it is judged, it calls `write_interval_records`; at the call's end `library.resume(leave)`. No
// heap, lock or I/O.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/ring_writer.h"
#include "spank_plugin/procedures/library.h"

namespace lbf::procedures {

inline constexpr std::uint32_t kMostIntervalSums =
    256;  // REQUIRES: lbf_procedures::max_procedures is not more

// One record for each procedure that ran, as a call of its own with enter = leave = `enter`: the first takes
// the process time of the gap, the MPI call's own record none. Values: procedure, inclusive ns, exclusive ns,
// calls, as kProcedure's. `ns_per_tick`: of the TSC. `process_share`: process time of the gap / its wall
// time; what was preempted or blocked (GapSplit) was so in every procedure alike, as far as anybody knows, so
// that the sum of exclusive times stays at most the process time. Returns how many records were written or,
// where the ring is full, counted as lost.
inline std::uint32_t write_interval_records(capture::RingWriter& ring, const lbf_procedures& library,
                                            std::uint64_t enter, std::uint16_t function, double ns_per_tick,
                                            double process_share) noexcept {
  lbf_procedure_sums sums[kMostIntervalSums];
  const std::uint32_t count = library.take(enter, sums, kMostIntervalSums);
  const double scale = ns_per_tick * process_share;
  for (std::uint32_t i = 0; i < count; ++i) {
    ring.begin_call(enter, 0);
    if (ring::Record* const record = ring.append(EventKind::kProcedure, kProcedureValues)) {
      std::uint64_t* const values = capture::RingWriter::values_of(record);
      values[0] = sums[i].procedure;
      values[1] = static_cast<std::uint64_t>(static_cast<double>(sums[i].inclusive_ticks) * scale);
      values[2] = static_cast<std::uint64_t>(static_cast<double>(sums[i].self_ticks) * scale);
      // Coroutines that sleep inside a procedure can make it so.
      if (values[2] > values[1]) values[2] = values[1];
      values[3] = sums[i].calls;
      record->flags = 0;  // no MPI call begins here
    }
    ring.commit(enter);
  }
  if (count != 0) ring.begin_call(enter, function);
  return count;
}

}  // namespace lbf::procedures
