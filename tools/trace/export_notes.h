// What an export could not say in the other format: counted, and told by lbf-trace.
#pragma once

#include <cstdint>
#include <string>

namespace lbf::tools {

struct ExportNotes {
  std::uint64_t left_out_probes = 0;
  std::uint64_t never_sent = 0;  // receives of messages that the trace does not have: left out
  std::uint64_t approximated_collectives = 0;
  std::uint64_t unmodelled_calls = 0;
  std::uint64_t synchronous_sends = 0;  // written as ordinary ones
  std::uint64_t late_collectives = 0;   // TI: non-blocking ones that happen where they are waited for
  std::uint64_t rounded_sizes = 0;      // TI: of messages, up to the unit that they are counted in
  std::string why_partial;
};

}  // namespace lbf::tools
