// See config.h.
#include "spank_plugin/plugin/config.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/number.h"
#include "base/quoted.h"

namespace lbf::plugin {

using cost::Limit;

namespace {

constexpr std::uint64_t kMinRingBytes = 64 << 10;
constexpr std::uint64_t kMaxRingBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMaxProcedureListBytes = 4096;

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
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
             c == '.';
    });
    if (!good) return std::nullopt;
    names.emplace_back(part);
  }
  return names;
}

Error wrong(std::string_view argument, const std::string& what) {
  return invalid_input("plugstack.conf: " + as_ascii(argument) + ": " + what);
}

bool good_server(std::string_view text) {
  if (text.starts_with("unix:/")) return text.size() > 6;
  const std::string_view scheme = text.starts_with("https://") ? "https://" : "http://";
  if (!text.starts_with(scheme)) return false;
  const std::string_view authority = text.substr(scheme.size());
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto port = parse_number<std::uint32_t>(authority.substr(colon + 1));
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

cost::Limits default_limits() {
  cost::Limits limits;
  limits[Limit::kOverhead] = 2;
  limits[Limit::kRelayMemory] = 32;
  limits[Limit::kSpool] = 1024;
  return limits;
}

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
    if (const auto limit = cost::limit_named(name); limit && !cost::rule_of(*limit).is_of_lbfd) {
      const auto read = cost::read_limit(*limit, value);
      if (!read) {
        const bool may_lack = !default_limits()[*limit];
        return wrong(argument, read.error().message + (may_lack ? "; leave it out for no limit" : ""));
      }
      config.limits[*limit] = *read;
    } else if (name == "lbfd") {
      if (!good_server(value))
        return wrong(argument, "give unix:/path/of/socket, http://host:port or https://host:port");
      config.lbfd = value;
    } else if (name == "networks") {
      auto names = network_names(value);
      if (!names) return wrong(argument, "give names of networks.d, separated by commas");
      config.networks = std::move(*names);
    } else if (name == "spool_dir") {
      outcome = path(&config.spool_dir);
    } else if (name == "default" || name == "job_comment") {
      if (value != "on" && value != "off") return wrong(argument, "give on or off");
      (name == "default" ? config.default_on : config.job_comment) = value == "on";
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
      const auto bytes = parse_number<std::uint64_t>(value);
      if (!bytes || !std::has_single_bit(*bytes) || *bytes < kMinRingBytes || *bytes > kMaxRingBytes) {
        return wrong(argument, "give a power of two, 65536 to 1073741824");
      }
      config.ring_bytes = *bytes;
    } else if (name == "relay_wait_s") {
      const auto wait_s = parse_number<double>(value);
      if (!wait_s || !(*wait_s >= 0) || *wait_s > 600) return wrong(argument, "give seconds, 0 to 600");
      config.relay_wait_s = *wait_s;
    } else {
      return wrong(
          argument,
          "unknown argument; known are " + cost::known_limits(false) +
              ", lbfd, networks, spool_dir, default, job_comment, libexec_dir, relay, capture, report, ring_dir, "
              "ring_bytes, relay_wait_s");
    }
    if (!outcome) return outcome.error();
  }
  return config;
}

StepConfig resolve(const AdminConfig& admin, const UserRequest& options, const UserRequest& environment) {
  StepConfig step;
  step.predict = admin.default_on;
  step.networks = admin.networks;
  step.limits = admin.limits;
  bool broken = false;
  const auto refuse_item = [&](std::string_view name, const std::string& item_and_what) {
    broken = true;
    step.messages.push_back(std::string(name) + "=" + item_and_what + "; the job runs without prediction");
  };
  const auto refuse = [&](std::string_view name, std::string_view value, std::string_view what) {
    refuse_item(name, as_ascii(value) + ": " + std::string(what));
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
  // Both may have an overhead limit: the lower one counts.
  std::string capture_off;  // the value that switched it off
  const auto ask = [&](const Given& given, const cost::Limits& asked, const std::function<std::string(Limit)>& words) {
    for (const Limit limit : cost::lower(step.limits, asked)) {
      // Above what this user asked for by the other option: that is no matter of the site's.
      if (*asked[limit] <= admin.limits[limit].value_or(*asked[limit])) continue;
      step.messages.push_back(std::string(given.name) + "=" + words(limit) + ": more than this site allows; " +
                              cost::shown_limit(limit, *admin.limits[limit]) + " is used");
    }
    if (asked[Limit::kOverhead] == 0.0) capture_off = std::string(given.name) + "=" + words(Limit::kOverhead);
  };
  const Given overhead = pick("--lbf-overhead", options.overhead, "LBF_OVERHEAD", environment.overhead);
  if (overhead.value != nullptr && !overhead.value->empty() && wanted) {
    if (const auto limit = cost::read_limit(Limit::kOverhead, *overhead.value)) {
      cost::Limits asked;
      asked[Limit::kOverhead] = *limit;
      ask(overhead, asked, [&](Limit) { return as_ascii(*overhead.value); });
    } else {
      refuse(overhead.name, *overhead.value, limit.error().message);
    }
  }
  const Given limits = pick("--lbf-limits", options.limits, "LBF_LIMITS", environment.limits);
  if (limits.value != nullptr && !limits.value->empty() && wanted) {
    if (const auto asked = cost::read_limits(*limits.value)) {
      ask(limits, *asked, [&](Limit limit) {
        return std::string(cost::rule_of(limit).name) + "=" + cost::shown_number(*(*asked)[limit]);
      });
    } else {
      refuse_item(limits.name, asked.error().message);
    }
  }
  const Given procedures = pick("--lbf-procedures", options.procedures, "LBF_PROCEDURES", environment.procedures);
  if (procedures.value != nullptr && !procedures.value->empty() && wanted) {
    const bool printable =
        std::all_of(procedures.value->begin(), procedures.value->end(), [](char c) { return c >= 0x20 && c < 0x7f; });
    if (!printable) {
      refuse(procedures.name, *procedures.value, "give names of procedures, separated by commas, or auto");
    } else if (procedures.value->size() > kMaxProcedureListBytes) {
      refuse(procedures.name, *procedures.value,
             "longer than " + std::to_string(kMaxProcedureListBytes) + " characters; a wildcard may stand for many");
    } else {
      step.procedures = *procedures.value;
    }
  }
  if (wanted && !broken && step.overhead_limit_percent() == 0) {
    // With default=on nobody asked.
    if (predict.value != nullptr || !capture_off.empty()) {
      step.messages.push_back(
          (admin.overhead_limit_percent() == 0 ? std::string("overhead_limit=0 of this site") : capture_off) +
          ": the capture is off; the job runs without prediction");
    }
    step.predict = false;
  }
  if (!wanted && !broken && (options.networks || options.overhead || options.limits || options.procedures) &&
      !options.predict) {
    step.messages.push_back(
        "--lbf-networks, --lbf-overhead, --lbf-limits and --lbf-procedures do nothing without --lbf-predict");
  }
  if (broken) step.predict = false;
  return step;
}

std::string unknown_networks(const std::vector<std::string>& names, std::string_view known) {
  constexpr std::size_t kMostBytes = 300;
  std::vector<std::string_view> lines = split(known, '\n');
  std::erase(lines, std::string_view());
  const auto joined = [](const auto& list) {
    std::string out;
    for (std::size_t i = 0; i < list.size() && out.size() < kMostBytes; ++i)
      out += (i == 0 ? "" : i + 1 < list.size() ? ", " : " and ") + as_ascii(list[i]);
    return out;
  };
  std::vector<std::string_view> unknown;
  for (const std::string& name : names) {
    if (std::find(lines.begin(), lines.end(), name) == lines.end()) unknown.push_back(name);
  }
  if (unknown.empty()) return {};
  return "lbfd has no network " + joined(unknown) + ", but " + joined(lines);
}

std::vector<std::uint32_t> parse_tasks_per_node(std::string_view text, std::size_t max_nodes) {
  std::vector<std::uint32_t> tasks;
  for (std::string_view part : split(text, ',')) {
    std::uint32_t repeat = 1;
    if (const std::size_t open = part.find("(x"); open != std::string_view::npos && part.ends_with(')')) {
      const auto times = parse_number<std::uint32_t>(part.substr(open + 2, part.size() - open - 3));
      if (!times) return {};
      repeat = *times;
      part = part.substr(0, open);
    }
    const auto count = parse_number<std::uint32_t>(part);
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
