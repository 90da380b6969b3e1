// What is in a trace, counted in one pass: lbf-trace info.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace lbf {

class TraceInfoCount {
 public:
  explicit TraceInfoCount(Rank ranks);
  Result<void> add(Rank rank, const Event& event);

  // `name`: as the user named the trace; `form`: "text" or "stored"; `bytes_stored`: of its files;
  // `library`: what MPI_Get_library_version said, empty where it is not known.
  std::string table(const std::string& name, const std::string& form, std::uint64_t bytes_stored,
                    const std::string& library) const;
  // Keys `ranks`, `events`, `messages`, `bytes_stored` and more: docs/man/lbf-trace.1. They keep their names.
  std::string json(const std::string& name, const std::string& form, std::uint64_t bytes_stored,
                   const std::string& library) const;

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
  Seconds off_s_ = 0;
  std::map<std::string, Calls> calls_;                    // by name
  std::map<std::uint32_t, std::uint64_t> communicators_;  // by number: members
};

}  // namespace lbf
