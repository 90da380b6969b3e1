// StepKey: which job step a request, a directory of the trace store and a row of the database are about
// (docs/formats/http-v1.md: CLUSTER/JOB/STEP/RESTART).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"

namespace lbf::daemon {

inline constexpr std::size_t kMaxClusterNameBytes = 64;

struct StepKey {
  std::string cluster;
  std::uint32_t job = 0;      // Slurm's job id; array tasks and heterogeneous components have their own
  std::uint32_t step = 0;     // Slurm's step id, decimal
  std::uint32_t restart = 0;  // how often the job was requeued before

  bool operator==(const StepKey&) const = default;
  // Not defaulted: clang-tidy takes the 0 that the compiler compares with for a null pointer.
  std::strong_ordering operator<=>(const StepKey& other) const {
    return std::tie(cluster, job, step, restart) <=> std::tie(other.cluster, other.job, other.step, other.restart);
  }

  std::string text() const;            // "cluster/12/0/0"
  std::string directory_name() const;  // "12.0.0", inside a directory named as the cluster
};

// The name becomes a directory: letters, digits, '_', '-' and '.', not starting with '.', 1 to 64 bytes.
Result<void> check_cluster_name(std::string_view cluster);

// From the four parts of a URL. Errors (kInvalidInput): a cluster name that is not safe, numbers that are not
// plain decimal or above 2^32 - 1.
Result<StepKey> make_step_key(std::string_view cluster, std::string_view job, std::string_view step,
                              std::string_view restart);

// The reverse of directory_name().
Result<StepKey> step_key_of_directory(std::string_view cluster, std::string_view directory_name);

// Plain decimal without sign, spaces or anything behind it; `what` names the number in the error.
Result<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t maximum, std::string_view what);

}  // namespace lbf::daemon
