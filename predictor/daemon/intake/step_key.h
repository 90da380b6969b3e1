// StepKey: which job step a request, a directory of the trace store and a row of the database are about
// (docs/formats/http-v1.md: CLUSTER/JOB/STEP/RESTART/SUBMIT).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"
#include "protocol/step_fields.h"

namespace lbf::daemon {

inline constexpr std::size_t kMaxClusterNameBytes = 64;

struct StepKey {
  std::string cluster;
  std::uint32_t job = 0;      // Slurm's job id; array tasks and heterogeneous components have their own
  std::uint32_t step = 0;     // Slurm's step id, decimal
  std::uint32_t restart = 0;  // how often the job was requeued before
  // When the job was submitted, seconds since 1970: Slurm gives a job number again. 0: the relay does not say it.
  std::uint64_t submit_s = 0;

  static StepKey of(const protocol::StepFields<protocol::Side::kLbfd>& step) {
    return {step.cluster, step.job, step.step, step.restart, step.submit_s};
  }

  bool operator==(const StepKey&) const = default;
  // Not defaulted: clang-tidy takes the 0 that the compiler compares with for a null pointer.
  std::strong_ordering operator<=>(const StepKey& other) const {
    return std::tie(cluster, job, step, restart, submit_s) <=>
           std::tie(other.cluster, other.job, other.step, other.restart, other.submit_s);
  }

  // SUBMIT is left out where it is not known.
  std::string text() const;            // "cluster/12/0/0/1700000000"
  std::string directory_name() const;  // "12.0.0.1700000000", inside a directory named as the cluster
};

// The name becomes a directory: letters, digits, '_', '-' and '.', not starting with '.', 1 to 64 bytes.
Result<void> check_cluster_name(std::string_view cluster);

// From the parts of a URL; `submit` is "0" where it has only four. Errors (kInvalidInput): a cluster name that is not
// safe, numbers that are not plain decimal or above 2^32 - 1 (`submit`: 2^53).
Result<StepKey> make_step_key(std::string_view cluster, std::string_view job, std::string_view step,
                              std::string_view restart, std::string_view submit = "0");

// The reverse of text(), for what an administrator writes.
Result<StepKey> step_key_of_text(std::string_view text);

// The reverse of directory_name().
Result<StepKey> step_key_of_directory(std::string_view cluster, std::string_view directory_name);

// Plain decimal without sign, spaces or anything behind it; `what` names the number in the error.
Result<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t maximum, std::string_view what);

}  // namespace lbf::daemon
