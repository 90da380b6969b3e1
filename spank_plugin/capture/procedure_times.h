// Procedure times beside the calls: what procedures of the program did between two MPI calls, for procedure LBF.
//
// Place in the event's way: MPI_Init -> *procedure times* -> liblbf_procedures.so (spank_plugin/procedures/library.h)
// -> ring. Where LBF_CAPTURE_PROCEDURES asks for procedures, the library is loaded at the end of MPI_Init from the
// capture's own folder; from then on every recorded call takes the recorder's attentive path (recorder_attention.cpp),
// and calls what is below. Where it does not, nothing of this costs anything on the MPI path. docs/procedures.md,
// "Connection".
#pragma once

#include <atomic>
#include <cstdint>

#include "spank_plugin/capture/process.h"
#include "spank_plugin/procedures/library.h"

namespace lbf::capture {

// Share of a thread's time that measured calls may cost where LBF_CAPTURE_PROCEDURES_LIMIT does not say: half of the
// default overhead limit.
inline constexpr double kDefaultProcedureLimit = 0.01;

struct ProcedureTimes {
  std::atomic<const lbf_procedures*> library{nullptr};  // not null: every recorded call comes here
  std::atomic<bool> measuring{false};                   // else samples are taken first ("auto"), or only
  std::atomic<std::uint64_t> list_followed{0};          // generation of the list of all ranks (ring.h) that is measured
  std::uint32_t candidates_said = 0;
  bool candidates_known = false;               // there are that many, or none
  std::atomic<std::uint64_t> samples_next{0};  // at so many samples they are said; 0: none are counted
  std::atomic<std::uint64_t> sample_ticks_charged{0};
  std::atomic<std::uint64_t> calls_beside_charged{0};
  std::uint32_t names_said = 0;
  std::uint32_t remarks_said = 0;
  std::uint32_t switch_offs_said = 0;
  std::uint64_t named[4] = {};  // by procedure
  std::uint64_t off_said[4] = {};
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
};
extern constinit ProcedureTimes procedure_times;

// nullptr: no procedure is asked for, or the capture is off.
inline const lbf_procedures* procedures_library() noexcept {
  return procedure_times.library.load(std::memory_order_acquire);
}

// What a thread keeps for it.
struct ProcedureIntervals {
  // Of polls that only waited: their time is nobody's, the calls count with the next interval.
  std::uint64_t calls_carried[256];
  bool any_carried;
};

// At the end of MPI_Init, on its thread, before its leave is read. Reads files, uses the heap. Whatever goes wrong is
// said in one line, and the program runs on.
void start_procedures(Thread& thread) noexcept;

// A recorded call begins at `enter`, `gap` ticks after the one before, and the gap is judged: the records of the
// interval. REQUIRES: procedures_library() is not null; nothing of the call is in the ring yet.
void end_procedure_interval(Thread& thread, std::uint64_t enter, std::uint64_t gap, std::uint16_t function) noexcept;
// A call, recorded or not, is over: time passes in procedures again.
inline void begin_procedure_interval(std::uint64_t leave) noexcept {
  if (const lbf_procedures* const loaded = procedures_library()) loaded->resume(leave);
}

enum class ProceduresEnd : std::uint8_t { kRun, kCapture };  // the capture alone: the overhead limit ended it
// MPI_Finalize, or the capture's end: what was switched off since the last interval is said, or that nothing was
// chosen. REQUIRES: nothing of a call is in the ring uncommitted.
void say_last_of_procedures(Thread& thread, ProceduresEnd end) noexcept;
// For the rest of the run.
void stop_procedures() noexcept;

}  // namespace lbf::capture
