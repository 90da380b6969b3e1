// StepKey, see step_key.h.
#include "predictor/daemon/intake/step_key.h"

#include <algorithm>
#include <limits>

#include "base/number.h"

namespace lbf::daemon {
namespace {

constexpr std::uint64_t kMaxId = std::numeric_limits<std::uint32_t>::max();

bool is_cluster_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// Hostile input is shown cut and without control characters, so that a log line stays one line.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  if (text.size() > 40) out += "...";
  return out;
}

}  // namespace

std::string StepKey::text() const {
  return cluster + "/" + std::to_string(job) + "/" + std::to_string(step) + "/" + std::to_string(restart);
}

std::string StepKey::directory_name() const {
  return std::to_string(job) + "." + std::to_string(step) + "." + std::to_string(restart);
}

Result<void> check_cluster_name(std::string_view cluster) {
  if (cluster.empty() || cluster.size() > kMaxClusterNameBytes || cluster.front() == '.' ||
      !std::all_of(cluster.begin(), cluster.end(), is_cluster_character)) {
    return invalid_input("cluster name '" + shown(cluster) +
                         "': 1 to 64 letters, digits, '_', '-' or '.', not starting with '.'");
  }
  return {};
}

Result<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t maximum, std::string_view what) {
  const auto value = parse_number<std::uint64_t>(text);
  if (!value || *value > maximum) {
    return invalid_input(std::string(what) + " '" + shown(text) + "': a decimal number up to " +
                         std::to_string(maximum) + " is needed");
  }
  return *value;
}

Result<StepKey> make_step_key(std::string_view cluster, std::string_view job, std::string_view step,
                              std::string_view restart) {
  if (auto checked = check_cluster_name(cluster); !checked) return checked.error();
  const auto job_id = parse_decimal(job, kMaxId, "job id");
  if (!job_id) return job_id.error();
  const auto step_id = parse_decimal(step, kMaxId, "step id");
  if (!step_id) return step_id.error();
  const auto restarts = parse_decimal(restart, kMaxId, "restart count");
  if (!restarts) return restarts.error();
  return StepKey{std::string(cluster), static_cast<std::uint32_t>(*job_id), static_cast<std::uint32_t>(*step_id),
                 static_cast<std::uint32_t>(*restarts)};
}

Result<StepKey> step_key_of_directory(std::string_view cluster, std::string_view directory_name) {
  const std::size_t first = directory_name.find('.');
  const std::size_t second = first == std::string_view::npos ? first : directory_name.find('.', first + 1);
  if (second == std::string_view::npos) {
    return invalid_input("'" + shown(directory_name) + "' is not JOB.STEP.RESTART");
  }
  auto key = make_step_key(cluster, directory_name.substr(0, first),
                           directory_name.substr(first + 1, second - first - 1), directory_name.substr(second + 1));
  // "007.0.0" and "7.0.0" would be the same step in two directories.
  if (key && key->directory_name() != directory_name) {
    return invalid_input("'" + shown(directory_name) + "' is not JOB.STEP.RESTART in plain decimal");
  }
  return key;
}

}  // namespace lbf::daemon
