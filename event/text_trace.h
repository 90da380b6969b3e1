// Text trace, version 1 (docs/formats/text-trace-v1.md): for tests, golden files and interchange.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "event/event_sink.h"

namespace lbf {

struct TraceInfo {
  Rank ranks = 0;
  std::vector<std::string> procedures;      // by procedure id (kEnter/kLeave values[0])
  std::string library;                      // MPI_Get_library_version of the run; empty: not said
  std::vector<std::uint32_t> node_of_rank;  // where the program ran; empty: not said
};

// Reads a whole text trace and hands every event to `sink`. `comm` lines become a kCommCreate event on
// every member before that member's next event. Errors name the line: "fig3.lbf:7: ...".
// Every bad input is an error, never a crash: unknown kinds, keys and ops, a rank or root out of range, a
// comm that is not defined, numbers that are negative, not finite or too large, a request that is active
// already or not active, a missing header, an event after exit, ranks < 1 or > 1 << 24.
Result<TraceInfo> read_text_trace(std::istream& in, std::string_view name, const EventSink& sink);

// The beginning of a text trace, without its events: ranks, library, nodes. Errors as read_text_trace's, as far
// as it reads.
Result<TraceInfo> read_text_trace_header(std::istream& in, std::string_view name);

// Writes text trace version 1. Times are written so that they read back to the same nanosecond; the wall time
// inside calls (Event::call_s) has no place in a text trace.
class TextTraceWriter {
 public:
  // Writes the header. REQUIRES: `out` outlives the writer. `procedures`: names by procedure id; an id beyond
  // them is written as "procedureID".
  // `library`: MPI_Get_library_version of the run; what the format has no room for becomes '?'.
  // `node_of_rank`: empty (not known), or one number for each rank.
  TextTraceWriter(std::ostream& out, Rank ranks, std::vector<std::string> procedures = {},
                  std::string_view library = {}, const std::vector<std::uint32_t>& node_of_rank = {});

  // kRecv becomes a startRecv and an endRecv line; the time of kinds that are not in the format but change
  // nothing in a replay (kKeepAlive, kPhase, kCommFree) becomes a compute line; a communicator's
  // synchronisation (CollectiveOp::kCommCreate) becomes the allreduce that it stands for. Errors: what
  // version 1 cannot say (non-blocking and v-collectives, exscan, probes, cancelled and freed requests,
  // unmodelled calls, gaps, intercommunicators); ranks, peers or communicators that do not exist; kIo when
  // the stream failed.
  Result<void> add(Rank rank, const Event& event);

 private:
  static Error fail(Rank rank, const std::string& what);
  Result<void> write_line();
  // To line_, which stays empty where the event has no line.
  Result<void> append_event(Rank rank, const Event& event);
  Result<void> add_communicator(Rank rank, const Event& event);
  // kAnyRank: the peer is none of its members.
  Rank peer_in_comm(const Event& event) const;

  void start_line(Rank rank, std::string_view kind, Seconds process_s);
  void append_key(std::string_view key, std::uint64_t value);
  void append_comm(const Event& event);
  void append_request(const Event& event);
  Result<void> append_peer(Rank rank, std::string_view key, const Event& event);
  Result<void> append_tag(Rank rank, const Event& event);

  Result<void> append_send(Rank rank, const Event& event);
  Result<void> append_receive(Rank rank, const Event& event);
  Result<void> append_start_recv(Rank rank, const Event& event);
  Result<void> append_end_recv(Rank rank, const Event& event, Seconds process_s);
  Result<void> append_wait(Rank rank, const Event& event);
  Result<void> append_collective(Rank rank, const Event& event);
  Result<void> append_blocked(Rank rank, Seconds process_s, Seconds off_s);
  Result<void> append_one_sided(Rank rank, const Event& event);
  Result<void> append_procedure(Rank rank, const Event& event);
  Result<void> append_regions(Rank rank, const Event& event);

  std::ostream& out_;
  Rank ranks_;
  std::vector<std::string> procedures_;
  std::vector<std::vector<Rank>> comm_members_;             // by comm index; empty: not written yet
  std::vector<std::unordered_map<Rank, Rank>> comm_ranks_;  // by comm index: world rank -> rank in comm
  std::string line_;
};

}  // namespace lbf
