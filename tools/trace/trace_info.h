// What is in a trace, counted in one pass: lbf-trace info.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace lbf::tools {

// What is known of a trace beside its events.
struct TraceSource {
  std::string name;                         // as the user named it
  std::string form;                         // text, stored, otf2
  std::uint64_t bytes_stored = 0;           // of its files
  std::string library;                      // what MPI_Get_library_version said; empty: not known
  std::vector<std::uint32_t> node_of_rank;  // where the program ran; empty: not known
};

// Bytes of many messages: one alone may have 2^64 - 1.
class ByteSum {
 public:
  ByteSum& operator+=(Bytes bytes) {
    low_ += bytes;
    high_ += low_ < bytes ? 1 : 0;
    return *this;
  }
  std::string text() const;  // all digits
  // As a JSON number: exact below 2^64.
  nlohmann::ordered_json json() const;

 private:
  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
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
    ByteSum bytes;
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
  ByteSum message_bytes_;
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
