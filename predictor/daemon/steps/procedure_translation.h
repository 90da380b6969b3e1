// ProcedureTranslation: the ranks' own numbers of procedures in events become those of the trace.
//
// Place in the event's way: stored events -> *ProcedureTranslation* -> SampledTimes -> replay.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "event/event.h"
#include "event/procedure_table.h"

namespace lbf::daemon {

class ProcedureTranslation {
 public:
  // EVENTS of RANK with the numbers that TABLE gives; valid until the next call. A procedure without a name, or with a
  // number from END on, is time like any other.
  std::span<const Event> translate(const ProcedureTable& table, std::size_t end, Rank rank,
                                   std::span<const Event> events);

 private:
  std::vector<Event> events_;
  std::vector<std::array<std::uint64_t, kProcedureValues>> values_;  // what events_ points to
};

}  // namespace lbf::daemon
