// When the ranks of an OTF2 archive begin, and what their clocks are off: by what must be at one time (the end of the
// first collective in which all wait for all) or later (the end of a message than its beginning). No file but the
// import needs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/import/otf2_stream.h"

namespace lbf::tools::otf2 {

// Whether the record is the end of MPI_Init.
bool ends_init(const Record& record);

struct Start {
  bool is_after_init = false;  // the program begins at the end of MPI_Init, else at the rank's first record
  Nanoseconds later_ns = 0;    // than the first rank
};

struct Clocks {
  std::vector<Nanoseconds> shift_ns;  // by rank: its clock plus this is the common one
  std::vector<Start> starts;          // by rank
  std::string note;                   // what was done; empty: the clocks agree

  // Reads the beginning of each rank's records. Errors: those of the records; clocks that contradict each other.
  static Result<Clocks> align(Archive& archive);
};

}  // namespace lbf::tools::otf2
