// Names and lines for events, for people: what lbf-trace's tables, dumps and timelines call them.
#pragma once

#include <string>
#include <string_view>

#include "event/event.h"

namespace lbf::tools {

std::string_view kind_name(EventKind kind);  // "startRecv"
std::string_view one_sided_name(OneSidedOp op);
// What the program called: "MPI_Isend" where the trace has it, else "isend" or "allreduce".
std::string_view call_name(const Event& event);
// One line without its end: "3 isend 0.00012 to=4 tag=0 bytes=512 req=7 call=1e-06 MPI_Isend". Says all that
// is in the event; not the text format (ranks are world ranks, there is more of it).
std::string event_line(Rank rank, const Event& event);

}  // namespace lbf::tools
