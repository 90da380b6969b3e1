// Text trace, version 1 (docs/formats/text-trace-v1.md): for tests, golden files and interchange.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace lbf {

// What an event sink gets: events of one rank in that rank's order, ranks interleaved as they arrive.
// Returning an error stops the reader, which passes it on.
using EventSink = std::function<Result<void>(Rank rank, const Event& event)>;

struct TraceInfo {
  Rank ranks = 0;
  std::vector<std::string> procedures;  // by procedure id (kEnter/kLeave values[0])
};

// Reads a whole text trace and hands every event to `sink`. `comm` lines become a kCommCreate event on
// every member before that member's next event. Errors name the line: "fig3.lbf:7: ...".
// Every bad input is an error, never a crash: unknown kinds, keys and ops, a rank or root out of range, a
// comm that is not defined, numbers that are negative, not finite or too large, a request that is active
// already or not active, a missing header, an event after exit, ranks < 1 or > 1 << 24.
Result<TraceInfo> read_text_trace(std::istream& in, std::string_view name, const EventSink& sink);

// Writes text trace version 1. Times are written so that they read back to the same double; the wall time
// inside calls (Event::call_s) has no place in a text trace.
class TextTraceWriter {
 public:
  // Writes the header. REQUIRES: `out` outlives the writer. `procedures`: names by procedure id; an id beyond
  // them is written as "procedureID".
  TextTraceWriter(std::ostream& out, Rank ranks, std::vector<std::string> procedures = {});

  // kRecv becomes a startRecv and an endRecv line; the time of kinds that are not in the format but change
  // nothing in a replay (kKeepAlive, kPhase, kCommFree) becomes a compute line; a communicator's
  // synchronisation (CollectiveOp::kCommCreate) becomes the allreduce that it stands for. Errors: what
  // version 1 cannot say (non-blocking and v-collectives, exscan, probes, cancelled and freed requests,
  // unmodelled calls, gaps, intercommunicators); ranks, peers or communicators that do not exist; kIo when
  // the stream failed.
  Result<void> add(Rank rank, const Event& event);

 private:
  std::ostream& out_;
  Rank ranks_;
  std::vector<std::string> procedures_;
  std::vector<std::vector<Rank>> comm_members_;             // by comm index; empty: not written yet
  std::vector<std::unordered_map<Rank, Rank>> comm_ranks_;  // by comm index: world rank -> rank in comm
  std::string line_;
};

}  // namespace lbf
