#include <algorithm>
#include <utility>

#include "skeleton/scalable_c_program.h"
#include "skeleton/scalable_fit.h"
#include "tools/skeleton/skeleton_build.h"
#include "tools/skeleton/skeleton_message.h"

namespace lbf::tools {

int skeleton_build_scalable(const ScalableBuildOptions& options) {
  const BuildOptions& build = options.build;
  std::vector<skeleton::ProgramTrace> runs;
  skeleton::ScalableOptions how;
  how.largest_threshold = build.largest_threshold;
  how.time_tolerance = options.time_tolerance;
  std::string names;
  std::uint64_t wildcards = 0;
  for (const std::string& trace : options.traces) {
    Result<skeleton::ProgramTrace> run = read_program(trace, build.server, build.is_job);
    if (!run) return skeleton_fail(kSkeletonFailure, run.error().message);
    how.application_s.push_back(build.is_job ? measured_by_lbfd_s(trace, build.server) : 0);
    names += (names.empty() ? "" : ", ") + trace;
    for (const auto& operations : run->ranks) {
      wildcards +=
          static_cast<std::uint64_t>(std::count_if(operations.begin(), operations.end(), [](const auto& o) {
            return (o.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0;
          }));
    }
    runs.push_back(std::move(*run));
  }
  const Result<skeleton::ScalableProgram> program = fit_scalable(runs, how);
  if (!program) return skeleton_fail(kSkeletonFailure, names + ": " + program.error().message);
  const Seconds application_s = build.application_s > 0 ? build.application_s : program->application_s.back();
  const Result<std::uint64_t> factor = factor_of(build, application_s);
  if (!factor) return skeleton_fail(kSkeletonFailure, factor.error().message);
  for (const std::string& warning : program->warnings) skeleton_warn(warning);
  if (wildcards > 0) {
    skeleton_warn(std::to_string(wildcards) +
                  " wildcard receives get the source that they had: what the rank sends may depend on it");
  }
  return write_skeleton(scalable_c_program(*program, *factor, names), build, *factor, application_s);
}

}  // namespace lbf::tools
