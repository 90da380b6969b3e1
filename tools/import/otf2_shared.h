// What the ranks of one import share: the definitions, the counts for the notes, how places are named. No file but the
// import needs it.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/import/otf2_definitions.h"
#include "tools/import/otf2_inbox.h"

namespace lbf::tools::otf2 {

inline std::string seconds_text(Seconds s) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6f", s);
  return text.data();
}

// What was read over, rebuilt or left out.
struct Counts {
  std::uint64_t unmodelled_calls = 0;
  std::string first_unmodelled;  // name of the function
  std::uint64_t probes = 0;
  std::uint64_t unended_receives = 0;
  std::uint64_t late_posts = 0;
  std::uint64_t cancelled_receives = 0;
  std::uint64_t maybe_in_place = 0;
  std::uint64_t shared_sizes = 0;  // alltoallv and alltoallw
  std::uint64_t misfits = 0;       // collectives whose sizes differ between the ranks
  std::string first_misfit;
  std::uint64_t foreign_sizes = 0;  // collectives of a writer whose way to count is not known
  std::uint64_t flushes = 0;
  Seconds flush_s = 0;
  std::uint64_t pauses = 0;  // of the measurement
  std::uint64_t odd_regions = 0;
  std::uint64_t rebuilt_ends = 0;
  std::uint64_t early_ends = 0;  // of these, before the message was sent
  std::uint64_t false_receives = 0;
  std::uint64_t calls_in_teams = 0;
};

struct Shared {
  const Definitions& definitions;
  const std::string& anchor;
  Counts counts;
  // By rank: messages to it, and those that a record of it receives.
  std::vector<std::uint64_t> sent_to;
  std::vector<std::uint64_t> received_by;
  // By rank; empty: every end of a request has a record.
  std::vector<Inbox> inboxes;

  bool rebuilds() const { return !inboxes.empty(); }
  Error error(Rank rank, std::uint64_t position, const std::string& region, const std::string& what) const {
    return invalid_input(anchor + ": rank " + std::to_string(rank) + ", event " + std::to_string(position) +
                         (region.empty() ? ": " : " (" + region + "): ") + what);
  }
};

}  // namespace lbf::tools::otf2
