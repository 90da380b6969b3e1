// See config.h.
#include "spank_plugin/plugin/config.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

namespace lbf::plugin {
namespace {

constexpr std::uint64_t kMinRingBytes = 64 << 10;
constexpr std::uint64_t kMaxRingBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxSpoolMb = 1 << 20;
constexpr std::uint64_t kMinRelayMemoryMb = 4;
constexpr std::uint64_t kMaxRelayMemoryMb = 4096;
constexpr std::size_t kMaxProcedureListBytes = 4096;

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// A percentage from 0 to 100, or what is wrong with it.
struct Percent {
  double value = 0;
  std::string_view wrong;  // empty: nothing
};
Percent percent(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  const auto value = number<double>(text);
  if (!value || !std::isfinite(*value)) return {0, "that is no number; give a percentage, 0 to 100"};
  if (*value < 0) return {0, "a limit cannot be below 0; give a percentage, 0 to 100 (0: the capture is off)"};
  if (*value > 100) return {0, "more than all of the program's time; give a percentage, 0 to 100"};
  return {*value, {}};
}

std::string shown_percent(double percent) {
  std::string text = std::to_string(percent);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::vector<std::string>> network_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    const bool good = !part.empty() && part.size() <= 64 && std::all_of(part.begin(), part.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
             c == '_' || c == '.';
    });
    if (!good) return std::nullopt;
    names.emplace_back(part);
  }
  return names;
}

// What a value may look like in a message: it comes from a user and goes to a terminal and to logs.
std::string shown(std::string_view value) {
  std::string out(value.substr(0, 80));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return out;
}

Error wrong(std::string_view argument, const std::string& what) {
  return invalid_input("plugstack.conf: " + shown(argument) + ": " + what);
}

bool good_server(std::string_view text) {
  if (text.starts_with("unix:/")) return text.size() > 6;
  if (!text.starts_with("http://")) return false;
  const std::string_view authority = text.substr(7);
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto port = number<std::uint32_t>(authority.substr(colon + 1));
  return port && *port >= 1 && *port <= 65535 && authority.find('/') == std::string_view::npos;
}

// "on" without a value: srun hands on nothing, and where Slurm passes an option through the environment it
// turns nothing into "" or "(null)".
std::optional<bool> on_or_off(std::string_view text) {
  if (text.empty() || text == "on" || text == "1" || text == "yes" || text == "(null)") return true;
  if (text == "off" || text == "0" || text == "no") return false;
  return std::nullopt;
}

}  // namespace

AdminConfig default_config() {
  AdminConfig config;
  config.relay = LBF_LIBEXEC_DIR "/lbf-relay";
  config.capture = LBF_LIB_DIR "/liblbf_capture.so";
  config.report = LBF_BIN_DIR "/lbf-report";
  return config;
}

Result<AdminConfig> parse_admin_config(std::span<char* const> arguments) {
  AdminConfig config = default_config();
  for (const char* const raw : arguments) {
    const std::string_view argument = raw;
    const std::size_t equals = argument.find('=');
    if (equals == std::string_view::npos) return wrong(argument, "write it as NAME=VALUE");
    const std::string_view name = argument.substr(0, equals);
    const std::string_view value = argument.substr(equals + 1);
    const auto path = [&](std::string* to) -> Result<void> {
      if (!value.starts_with('/')) return wrong(argument, "give an absolute path");
      *to = value;
      return {};
    };
    Result<void> outcome;
    if (name == "overhead_limit") {
      const Percent limit = percent(value);
      if (!limit.wrong.empty()) return wrong(argument, std::string(limit.wrong));
      config.overhead_limit_percent = limit.value;
    } else if (name == "relay_cpu_limit") {
      const Percent limit = percent(value);
      if (!limit.wrong.empty()) return wrong(argument, std::string(limit.wrong));
      if (limit.value == 0) return wrong(argument, "without processor time no relay runs; leave it out for no limit");
      config.relay_cpu_limit_percent = limit.value;
    } else if (name == "relay_memory_limit_mb") {
      const auto limit = number<std::uint64_t>(value);
      if (!limit || *limit < kMinRelayMemoryMb || *limit > kMaxRelayMemoryMb)
        return wrong(argument, "give megabytes, 4 to 4096");
      config.relay_memory_limit_mb = *limit;
    } else if (name == "network_limit_kBps") {
      const auto limit = number<double>(value);
      if (!limit || !(*limit >= 1) || *limit > 1e9)
        return wrong(argument, "give kilobytes per second, 1 to 1e9; leave it out for no limit");
      config.network_limit_kBps = *limit;
    } else if (name == "lbfd") {
      if (!good_server(value)) return wrong(argument, "give unix:/path/of/socket or http://host:port");
      config.lbfd = value;
    } else if (name == "networks") {
      auto names = network_names(value);
      if (!names) return wrong(argument, "give names of networks.d, separated by commas");
      config.networks = std::move(*names);
    } else if (name == "spool_dir") {
      outcome = path(&config.spool_dir);
    } else if (name == "spool_limit_mb") {
      const auto limit = number<std::uint64_t>(value);
      if (!limit || *limit < 1 || *limit > kMaxSpoolMb)
        return wrong(argument, "give megabytes, 1 to 1048576");
      config.spool_limit_mb = *limit;
    } else if (name == "default") {
      if (value != "on" && value != "off") return wrong(argument, "give on or off");
      config.default_on = value == "on";
    } else if (name == "libexec_dir") {
      outcome = path(&config.relay);
      config.relay += "/lbf-relay";
    } else if (name == "relay") {
      outcome = path(&config.relay);
    } else if (name == "capture") {
      outcome = path(&config.capture);
      if (outcome.ok() && value.find_first_of(": ") != std::string_view::npos) {
        return wrong(argument, "LD_PRELOAD cannot hold a path with a colon or a space");
      }
    } else if (name == "report") {
      outcome = path(&config.report);
    } else if (name == "ring_dir") {
      outcome = path(&config.ring_dir);
    } else if (name == "ring_bytes") {
      const auto bytes = number<std::uint64_t>(value);
      if (!bytes || !std::has_single_bit(*bytes) || *bytes < kMinRingBytes || *bytes > kMaxRingBytes) {
        return wrong(argument, "give a power of two, 65536 to 1073741824");
      }
      config.ring_bytes = *bytes;
    } else if (name == "relay_wait_s") {
      const auto wait_s = number<double>(value);
      if (!wait_s || !(*wait_s >= 0) || *wait_s > 600) return wrong(argument, "give seconds, 0 to 600");
      config.relay_wait_s = *wait_s;
    } else {
      return wrong(
          argument,
          "unknown argument; known are overhead_limit, relay_cpu_limit, relay_memory_limit_mb, network_limit_kBps, "
          "lbfd, networks, spool_dir, spool_limit_mb, default, "
          "libexec_dir, relay, capture, report, ring_dir, ring_bytes, relay_wait_s");
    }
    if (!outcome) return outcome.error();
  }
  return config;
}

StepConfig resolve(const AdminConfig& admin, const UserRequest& options, const UserRequest& environment) {
  StepConfig step;
  step.predict = admin.default_on;
  step.networks = admin.networks;
  step.overhead_limit_percent = admin.overhead_limit_percent;
  bool broken = false;
  const auto refuse = [&](std::string_view name, std::string_view value, std::string_view what) {
    broken = true;
    step.messages.push_back(std::string(name) + "=" + shown(value) + ": " + std::string(what) +
                            "; the job runs without prediction");
  };
  // The value that counts, and the name to complain about.
  struct Given {
    std::string_view name;
    const std::string* value;
  };
  const auto pick = [](std::string_view option_name, const std::optional<std::string>& option,
                       std::string_view variable, const std::optional<std::string>& value) {
    return option ? Given{option_name, &*option} : Given{variable, value ? &*value : nullptr};
  };

  const Given predict = pick("--lbf-predict", options.predict, "LBF_PREDICT", environment.predict);
  if (predict.value != nullptr) {
    if (const auto on = on_or_off(*predict.value)) {
      step.predict = *on;
    } else {
      refuse(predict.name, *predict.value, "give on or off, or the option without a value");
    }
  }
  const bool wanted = step.predict;
  const Given networks = pick("--lbf-networks", options.networks, "LBF_NETWORKS", environment.networks);
  if (networks.value != nullptr && !networks.value->empty() && wanted) {
    if (auto names = network_names(*networks.value)) {
      step.networks = std::move(*names);
    } else {
      refuse(networks.name, *networks.value, "give names of networks, separated by commas");
    }
  }
  const Given overhead = pick("--lbf-overhead", options.overhead, "LBF_OVERHEAD", environment.overhead);
  if (overhead.value != nullptr && !overhead.value->empty() && wanted) {
    const Percent limit = percent(*overhead.value);
    if (!limit.wrong.empty()) {
      refuse(overhead.name, *overhead.value, limit.wrong);
    } else if (limit.value > admin.overhead_limit_percent) {
      step.messages.push_back(std::string(overhead.name) + "=" + shown(*overhead.value) +
                              ": more than this site allows; " + shown_percent(admin.overhead_limit_percent) +
                              " % is used");
    } else {
      step.overhead_limit_percent = limit.value;
    }
  }
  const Given procedures =
      pick("--lbf-procedures", options.procedures, "LBF_PROCEDURES", environment.procedures);
  if (procedures.value != nullptr && !procedures.value->empty() && wanted) {
    const bool printable = std::all_of(procedures.value->begin(), procedures.value->end(),
                                       [](char c) { return c >= 0x20 && c < 0x7f; });
    if (!printable) {
      refuse(procedures.name, *procedures.value, "give names of procedures, separated by commas, or auto");
    } else if (procedures.value->size() > kMaxProcedureListBytes) {
      refuse(procedures.name, *procedures.value,
             "longer than " + std::to_string(kMaxProcedureListBytes) + " characters; a wildcard may stand for many");
    } else {
      step.procedures = *procedures.value;
    }
  }
  if (wanted && !broken && step.overhead_limit_percent == 0) {
    // With default=on nobody asked.
    if (predict.value != nullptr || overhead.value != nullptr) {
      step.messages.push_back(
          (admin.overhead_limit_percent == 0 ? std::string("overhead_limit=0 of this site")
                                             : std::string(overhead.name) + "=" + shown(*overhead.value)) +
          ": the capture is off; the job runs without prediction");
    }
    step.predict = false;
  }
  if (!wanted && !broken && (options.networks || options.overhead || options.procedures) && !options.predict) {
    step.messages.push_back("--lbf-networks, --lbf-overhead and --lbf-procedures do nothing without --lbf-predict");
  }
  if (broken) step.predict = false;
  return step;
}

std::vector<std::uint32_t> parse_tasks_per_node(std::string_view text, std::size_t max_nodes) {
  std::vector<std::uint32_t> tasks;
  for (std::string_view part : split(text, ',')) {
    std::uint32_t repeat = 1;
    if (const std::size_t open = part.find("(x"); open != std::string_view::npos && part.ends_with(')')) {
      const auto times = number<std::uint32_t>(part.substr(open + 2, part.size() - open - 3));
      if (!times) return {};
      repeat = *times;
      part = part.substr(0, open);
    }
    const auto count = number<std::uint32_t>(part);
    if (!count || repeat > max_nodes - tasks.size()) return {};
    tasks.insert(tasks.end(), repeat, *count);
  }
  return tasks;
}

std::string preload_without(const std::string& library, std::string_view old) {
  std::string kept;
  // ld.so takes spaces and colons as separators.
  while (!old.empty()) {
    const std::size_t end = std::min(old.find_first_of(": "), old.size());
    const std::string_view entry = old.substr(0, end);
    if (!entry.empty() && entry != library) {
      if (!kept.empty()) kept += ':';
      kept += entry;
    }
    old.remove_prefix(std::min(end + 1, old.size()));
  }
  return kept;
}

std::string preload_with(const std::string& library, std::string_view old) {
  const std::string kept = preload_without(library, old);
  return kept.empty() ? library : library + ":" + kept;
}

}  // namespace lbf::plugin
