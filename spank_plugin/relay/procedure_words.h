// ProcedureWords: what one process says of procedures, as control records (docs/procedures.md).
//
// Place in the event's way: ring, kRecordProcedure -> *ProcedureWords* -> control records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spank_plugin/capture/ring.h"
#include "spank_plugin/relay/pass.h"
#include "spank_plugin/relay/record_converter.h"

namespace lbf::relay {

// How long a tick of a process's rings is, and what a call of a measured procedure costs; 0: not known.
struct ProcedureClock {
  Seconds tick_s = 0;
  Seconds call_s = 0;
};

class ProcedureWords {
 public:
  // The words come from the user's program: lengths are checked, and lbfd takes the words for what they are.
  // A name is told to CONVERTER.
  void take(Rank rank, const ring::Record& record, std::span<const std::uint64_t> values, ProcedureClock clock,
            RecordConverter& converter, Pass& pass);

 private:
  std::vector<bool> named_;  // by the process's own number, in the stream
  std::size_t remarks_ = 0;
};

}  // namespace lbf::relay
