// What lbf-calibrate makes of the output of its program about copies and reductions (calibrate_local.h): the
// table [local] and what [about] says of it.
//
// Implements the writing side of docs/formats/network-v1.md. No processes or files in here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

// Everything that one run of `lbf-calibrate-pingpong local` printed.
struct LocalTimes {
  std::string node;
  bool complete = false;
  std::map<Bytes, std::vector<Nanoseconds>> copy_ns;
  std::map<Bytes, std::vector<Nanoseconds>> reduce_ns;
};

// Takes one line of the output. Errors: a line that the program never prints.
Result<void> read_local_line(std::string_view line, LocalTimes& measured);

// [local]: medians. Nothing where nothing was measured.
std::string local_table(const LocalTimes& measured);

// Lines of [about]: where it was measured, quartiles and numbers of samples.
std::string local_about(const LocalTimes& measured);

// For the summary on stdout: of the largest size of both. "" without any.
std::string local_summary(const LocalTimes& measured);

}  // namespace lbf::tools
