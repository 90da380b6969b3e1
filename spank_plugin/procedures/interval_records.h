// Interval records: what a thread's procedures did since its last MPI call, as kProcedure records in its
// ring.
//
// Place in the event's way: call times -> *interval records* -> ring -> relay. For the capture
// (spank_plugin/capture/procedure_times.h), which has loaded the library (library.h). No heap, lock or I/O.
#pragma once

#include <cstdint>
#include <span>

#include "spank_plugin/capture/ring_writer.h"
#include "spank_plugin/procedures/library.h"

namespace lbf::procedures {

inline constexpr std::uint32_t kMostIntervalSums = 256;  // REQUIRES: lbf_procedures::max_procedures is not more

// By what the times of SUMS are to be multiplied, of a gap of GAP ticks of which OFF were no process time. Where they
// are processor time they only have to fit in; else what was preempted or blocked was so in every procedure alike, as
// far as anybody knows.
inline double process_share(std::span<const lbf_procedure_sums> sums, std::uint64_t gap, std::uint64_t off) noexcept {
  if (gap == 0) return 1;
  bool processor_time = !sums.empty();
  std::uint64_t self_ticks = 0;
  for (const lbf_procedure_sums& one : sums) {
    processor_time &= one.processor_time != 0;
    self_ticks += one.self_ticks;
  }
  const auto process = static_cast<double>(gap - off);
  if (!processor_time) return process / static_cast<double>(gap);
  const auto self = static_cast<double>(self_ticks);
  return self > process ? process / self : 1;
}

// One record for each procedure of SUMS (lbf_procedures::take), as a call of its own with enter = leave = `enter`:
// the first takes the process time of the gap, the MPI call's own record none. Values: procedure, inclusive,
// exclusive, calls, as kProcedure's, but in ticks of the TSC: the relay, which knows their rate best, makes
// nanoseconds of them. `share`: process_share(), so that the sum of exclusive times stays at most the process time. To
// be called when the gap before the call is judged. Returns how many records were written or, where the ring is full,
// counted as lost.
inline std::uint32_t write_interval_records(capture::RingWriter& ring, std::span<const lbf_procedure_sums> sums,
                                            std::uint64_t enter, std::uint16_t function, double share) noexcept {
  std::uint32_t written = 0;
  for (const lbf_procedure_sums& one : sums) {
    if (one.calls == 0 && one.inclusive_ticks == 0 && one.self_ticks == 0) continue;
    ring.begin_call(enter, 0);
    if (ring::Record* const record = ring.append(EventKind::kProcedure, kProcedureValues)) {
      std::uint64_t* const values = capture::RingWriter::values_of(record);
      values[0] = one.procedure;
      values[1] = static_cast<std::uint64_t>(static_cast<double>(one.inclusive_ticks) * share);
      values[2] = static_cast<std::uint64_t>(static_cast<double>(one.self_ticks) * share);
      // Coroutines that sleep inside a procedure can make it so.
      if (values[2] > values[1]) values[2] = values[1];
      values[3] = one.calls;
      record->flags = 0;  // no MPI call begins here
    }
    ring.commit(enter);
    ++written;
  }
  if (written != 0) ring.begin_call(enter, function);
  return written;
}

}  // namespace lbf::procedures
