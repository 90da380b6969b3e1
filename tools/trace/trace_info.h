// What is in a trace, counted in one pass: lbf-trace info.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace lbf::tools {

// What is known of a trace beside its events.
struct TraceSource {
  std::string name;                         // as the user named it
  std::string form;                         // text, stored
  std::uint64_t bytes_stored = 0;           // of its files
  std::string library;                      // what MPI_Get_library_version said; empty: not known
  std::vector<std::uint32_t> node_of_rank;  // where the program ran; empty: not known
};

class TraceInfoCount {
 public:
  explicit TraceInfoCount(Rank ranks);
  Result<void> add(Rank rank, const Event& event);

  std::string table(const TraceSource& source) const;
  // Keys `ranks`, `events`, `messages`, `bytes_stored` and more: docs/man/lbf-trace.1. They keep their names.
  std::string json(const TraceSource& source) const;

 private:
  struct Calls {
    std::uint64_t count = 0;
    Bytes bytes = 0;
    Seconds call_s = 0;
    Seconds process_s = 0;  // before them
  };
  struct Durations {
    Seconds min_s, median_s, max_s;
  };
  Durations durations() const;

  std::vector<Seconds> duration_s_;  // by rank
  std::vector<bool> exited_;
  std::uint64_t events_ = 0;
  std::uint64_t messages_ = 0;
  Bytes message_bytes_ = 0;
  std::uint64_t receives_ = 0;
  std::uint64_t wildcard_receives_ = 0;
  std::uint64_t collectives_ = 0;
  std::uint64_t one_sided_ = 0;
  std::uint64_t unmodelled_calls_ = 0;
  std::uint64_t lost_events_ = 0;
  Seconds process_s_ = 0;
  Seconds call_s_ = 0;
  Seconds unseen_s_ = 0;  // in no event: between windows; preempted, or polling
  Seconds off_s_ = 0;
  std::map<std::string, Calls> calls_;                    // by name
  std::map<std::uint32_t, std::uint64_t> communicators_;  // by number: members
};

}  // namespace lbf::tools
