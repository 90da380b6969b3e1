// What was measured with a skeleton, kept in a small JSON file beside it (docs/skeletons.md, "The file of
// runs").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

// Runs of the skeleton on one node set.
struct SkeletonTimes {
  std::string when;  // UTC, ISO 8601
  std::string nodes;
  std::string launcher;
  std::vector<Seconds> times_s;
  double rate = 0;  // units of work per second of processor time that the runs used
};

struct SkeletonRecord {
  std::string id;                          // About::id
  std::optional<SkeletonTimes> reference;  // on the machine where the trace was recorded
  Seconds application_s = 0;               // of the application there
  std::vector<SkeletonTimes> runs;         // the latest last

  // The measured scaling ratio (Sec. 5.3), application over skeleton. REQUIRES: reference.
  double ratio() const;
};

// "skel.c" and "skel": "skel.runs.json".
std::string record_path(const std::string& skeleton);

// An empty record where there is no such file, or one of another skeleton (another id). Errors: kIo;
// kInvalidInput: not a file of runs.
Result<SkeletonRecord> read_record(const std::string& path, const std::string& id);
// All or nothing; keeps the last 200 runs. Errors: kIo.
Result<void> write_record(const std::string& path, const SkeletonRecord& record);

}  // namespace lbf::tools
