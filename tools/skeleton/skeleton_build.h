// lbf-skeleton show and build: a trace -> its execution signature -> a C program; lbf-advise --probe builds
// with the same functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "skeleton/operation.h"
#include "skeleton/signature.h"

namespace lbf::tools {

// kJob: a job that lbfd knows, whatever files there are.
enum class TraceName : std::uint8_t { kPathOrJob, kJob };

struct BuildOptions {
  std::string trace;
  TraceName named = TraceName::kPathOrJob;
  std::string server;
  Seconds time_s = 0;         // wanted run time of the skeleton; 0: `factor`
  std::uint64_t factor = 0;   // K; 0: none was asked for
  Seconds application_s = 0;  // run time of the recorded run; 0: what lbfd measured, else what the trace says
  double largest_threshold = 0.2;
  double compression = 0;  // 0: K / 2 (Sec. 4.2)
  std::string output;      // empty: standard output
  std::string program;     // empty: not compiled
  std::string compiler;
  bool json = false;
};

inline constexpr std::uint64_t kMostFactor = 2147483647;

// All operations of a trace. Errors: those of open_trace and OperationReader.
Result<skeleton::ProgramTrace> read_program(const std::string& trace, const std::string& server,
                                            TraceName named = TraceName::kPathOrJob);

struct BuiltSignature {
  skeleton::Signature signature;  // application_s: as asked for, else measured, else the trace's
  std::uint64_t factor = 0;       // K; 0: none was asked for
};
// Errors: those of read_program and make_signature; a time that no K gives.
Result<BuiltSignature> build_signature(const BuildOptions& options);

// Exit statuses.
int skeleton_show(const BuildOptions& options);
int skeleton_build(const BuildOptions& options);

}  // namespace lbf::tools
