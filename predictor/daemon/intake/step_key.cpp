// StepKey, see step_key.h.
#include "predictor/daemon/intake/step_key.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/number.h"
#include "protocol/step_description.h"

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

// JOB, STEP, RESTART and perhaps SUBMIT. What is too many is left out.
Result<StepKey> key_of_numbers(std::string_view cluster, std::string_view text, char separator) {
  std::array<std::string_view, 4> parts{{{}, {}, {}, "0"}};
  for (std::string_view& part : parts) {
    const std::size_t end = text.find(separator);
    part = text.substr(0, end);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return make_step_key(cluster, parts[0], parts[1], parts[2], parts[3]);
}

}  // namespace

std::string StepKey::text() const {
  std::string text = cluster + "/" + std::to_string(job) + "/" + std::to_string(step) + "/" + std::to_string(restart);
  if (submit_s > 0) text += "/" + std::to_string(submit_s);
  return text;
}

std::string StepKey::directory_name() const {
  std::string name = std::to_string(job) + "." + std::to_string(step) + "." + std::to_string(restart);
  if (submit_s > 0) name += "." + std::to_string(submit_s);
  return name;
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
                              std::string_view restart, std::string_view submit) {
  if (auto checked = check_cluster_name(cluster); !checked) return checked.error();
  const auto job_id = parse_decimal(job, kMaxId, "job id");
  if (!job_id) return job_id.error();
  const auto step_id = parse_decimal(step, kMaxId, "step id");
  if (!step_id) return step_id.error();
  const auto restarts = parse_decimal(restart, kMaxId, "restart count");
  if (!restarts) return restarts.error();
  const auto submit_s = parse_decimal(submit, protocol::kMaxSubmitS, "submit time");
  if (!submit_s) return submit_s.error();
  return StepKey{std::string(cluster), static_cast<std::uint32_t>(*job_id), static_cast<std::uint32_t>(*step_id),
                 static_cast<std::uint32_t>(*restarts), *submit_s};
}

Result<StepKey> step_key_of_text(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view numbers = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  auto key = key_of_numbers(text.substr(0, slash), numbers, '/');
  if (key && key->text() != text) {
    return invalid_input("'" + shown(text) + "' is not CLUSTER/JOB/STEP/RESTART/SUBMIT in plain decimal");
  }
  return key;
}

Result<StepKey> step_key_of_directory(std::string_view cluster, std::string_view directory_name) {
  auto key = key_of_numbers(cluster, directory_name, '.');
  // "007.0.0" and "7.0.0" would be the same step in two directories.
  if (key && key->directory_name() != directory_name) {
    return invalid_input("'" + shown(directory_name) + "' is not JOB.STEP.RESTART.SUBMIT in plain decimal");
  }
  return key;
}

}  // namespace lbf::daemon
