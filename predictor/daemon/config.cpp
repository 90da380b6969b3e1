// lbfd.toml, see config.h.
#include "predictor/daemon/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "cost/limits.h"
#include "predictor/daemon/intake/step_key.h"

namespace lbf::daemon {
namespace {

using Setter = std::function<Result<void>(const toml::node&)>;

Result<void> set_text(const toml::node& node, std::string& out) {
  if (!node.is_string()) return invalid_input("must be a string");
  out = *node.value<std::string>();
  return {};
}

Result<void> set_texts(const toml::node& node, std::vector<std::string>& out) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return invalid_input("must be an array of strings");
  out.clear();
  for (const toml::node& element : *array) {
    if (!element.is_string()) return invalid_input("must be an array of strings");
    out.push_back(*element.value<std::string>());
  }
  return {};
}

Result<std::uint64_t> whole_number(const toml::node& node, std::int64_t minimum, std::int64_t maximum) {
  const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (!value || *value < minimum || *value > maximum) {
    return invalid_input("must be a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
  }
  return static_cast<std::uint64_t>(*value);
}

Result<double> number(const toml::node& node, double minimum, double maximum) {
  const auto value = node.is_number() ? node.value<double>() : std::nullopt;
  if (!value || !(*value >= minimum && *value <= maximum)) {
    std::ostringstream text;
    text << "must be a number from " << minimum << " to " << maximum;
    return invalid_input(text.str());
  }
  return *value;
}

template <typename T>
Setter to_whole_number(T& out, std::int64_t minimum, std::int64_t maximum) {
  return [&out, minimum, maximum](const toml::node& node) -> Result<void> {
    const auto value = whole_number(node, minimum, maximum);
    if (!value) return value.error();
    out = static_cast<T>(*value);
    return {};
  };
}

Setter to_flag(bool& out) {
  return [&out](const toml::node& node) -> Result<void> {
    const auto value = node.value_exact<bool>();
    if (!value) return invalid_input("give true or false");
    out = *value;
    return {};
  };
}

// MiB in the file.
Setter to_bytes(Bytes& out, std::int64_t most_mb) {
  return [&out, most_mb](const toml::node& node) -> Result<void> {
    const auto value = whole_number(node, 0, most_mb);
    if (!value) return value.error();
    out = *value << 20;
    return {};
  };
}

}  // namespace

Result<ListenAddress> ListenAddress::parse(std::string_view text) {
  const auto wrong = [&] {
    return invalid_input("'" + std::string(text) +
                         "': \"unix:/path/of/socket\", \"tcp:ADDRESS:PORT\" or \"tls:ADDRESS:PORT\" is needed");
  };
  ListenAddress address;
  if (text.starts_with("unix:")) {
    address.unix_path = text.substr(5);
    if (!address.unix_path.starts_with('/')) return wrong();
    if (address.unix_path.size() > 107) {
      return invalid_input("'" + std::string(text) + "': the path of a Unix socket may have 107 bytes");
    }
    return address;
  }
  if (!text.starts_with("tcp:") && !text.starts_with("tls:")) return wrong();
  if (text.starts_with("tls:")) address.security = Security::kTls;
  text.remove_prefix(4);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto port = parse_decimal(text.substr(colon + 1), 65535, "port");
  if (!port || host.empty()) return wrong();
  address.host = host;
  address.port = static_cast<std::uint16_t>(*port);
  return address;
}

std::string ListenAddress::text() const {
  if (!unix_path.empty()) return "unix:" + unix_path;
  const bool v6 = host.find(':') != std::string::npos;
  return (security == Security::kTls ? "tls:" : "tcp:") + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<void> check_log_level(const std::string& level) {
  static constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info", "warning", "error"};
  if (std::find(kLevels.begin(), kLevels.end(), level) != kLevels.end()) return {};
  return invalid_input("'" + level + "': trace, debug, info, warning or error is needed");
}

bool has_tls(const DaemonConfig& config) {
  return std::ranges::any_of(config.listen, [](const auto& one) { return one.security == Security::kTls; });
}

DaemonConfig DaemonConfig::defaults() {
  DaemonConfig config;
  config.listen.push_back({"/run/lbf/lbfd.sock", "", 0, Security::kPlain});
  config.listen.push_back({"", "127.0.0.1", 6820, Security::kPlain});
  return config;
}

using Setters = std::map<std::string, Setter, std::less<>>;

static Setter to_text(std::string& out) {
  return [&out](const toml::node& node) { return set_text(node, out); };
}

static Setter to_path(std::string& out) {
  return [&out](const toml::node& node) -> Result<void> {
    if (auto set = set_text(node, out); !set) return set;
    if (!out.starts_with('/')) return invalid_input("must be an absolute path");
    return {};
  };
}

static void set_keys(const toml::table& table, const std::string& name, const Setters& setters,
                     std::vector<Error>& errors) {
  for (const auto& [key, node] : table) {
    const std::string where = name + ":" + std::to_string(node.source().begin.line) + ": " + std::string(key.str());
    const auto setter = setters.find(std::string(key.str()));
    if (setter == setters.end()) {
      std::string known;
      for (const auto& [known_key, ignored] : setters) known += (known.empty() ? "" : ", ") + known_key;
      errors.push_back(invalid_input(where + ": unknown key; there are " + known));
    } else if (auto set = setter->second(node); !set) {
      errors.push_back(invalid_input(where + ": " + set.error().message));
    }
  }
}

static void read_keys(const toml::table& table, const std::string& name, ConfigFile& file) {
  DaemonConfig& config = file.config;
  const Setters setters = {
      {"cluster",
       [&](const toml::node& node) -> Result<void> {
         const toml::table* const sections = node.as_table();
         if (sections == nullptr) return invalid_input("must be sections, [cluster.NAME]");
         for (const auto& [key, section] : *sections) {
           const std::string cluster(key.str());
           if (auto checked = check_cluster_name(cluster); !checked) return checked;
           if (!section.is_table()) return invalid_input(cluster + " must be a section, [cluster." + cluster + "]");
           ClusterConfig& own = config.clusters[cluster];
           set_keys(*section.as_table(), name,
                    {{"networks_dir", to_path(own.networks_dir)},
                     {"network", to_text(own.network)},
                     {"topology", to_path(own.topology)}},
                    file.errors);
         }
         return {};
       }},
      {"listen",
       [&](const toml::node& node) -> Result<void> {
         std::vector<std::string> texts;
         if (auto set = set_texts(node, texts); !set) return set;
         if (texts.empty()) return invalid_input("must have at least one address");
         config.listen.clear();
         for (const std::string& address : texts) {
           auto parsed = ListenAddress::parse(address);
           if (!parsed) return parsed.error();
           config.listen.push_back(std::move(parsed).value());
         }
         return {};
       }},
      {"state_dir", to_path(config.state_dir)},
      {"networks_dir", to_path(config.networks_dir)},
      {"network", to_text(config.network)},
      {"topology", to_path(config.topology)},
      {"metrics_token_file", to_path(config.metrics_token_file)},
      {"token_file", to_path(config.token_file)},
      {"operators", [&](const toml::node& node) { return set_texts(node, config.operators); }},
      {"log_level",
       [&](const toml::node& node) -> Result<void> {
         if (auto set = set_text(node, config.log_level); !set) return set;
         return check_log_level(config.log_level);
       }},
      {"log_format",
       [&](const toml::node& node) -> Result<void> {
         static const std::map<std::string, LogFormat> kFormats = {
             {"text", LogFormat::kText}, {"logfmt", LogFormat::kLogfmt}, {"json", LogFormat::kJson}};
         std::string format;
         if (auto set = set_text(node, format); !set) return set;
         const auto found = kFormats.find(format);
         if (found == kFormats.end()) return invalid_input("'" + format + "': text, logfmt or json is needed");
         config.log_format = found->second;
         return {};
       }},
      {"stream_timeout_s",
       [&](const toml::node& node) -> Result<void> {
         const auto value = whole_number(node, 1, 7 * 86400);
         if (!value) return value.error();
         config.stream_timeout = std::chrono::seconds(*value);
         return {};
       }},
      {"stream_start_timeout_s",
       [&](const toml::node& node) -> Result<void> {
         const auto value = number(node, 0, 3600);
         if (!value) return value.error();
         config.stream_start_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*value * 1000));
         return {};
       }},
      {"trace_retention_days", to_whole_number(config.trace_retention_days, 0, 36500)},
      {"trace_store_limit_mb", to_whole_number(config.trace_store_limit_mb, 0, std::int64_t{1} << 40)},
      {"step_trace_limit_mb", to_whole_number(config.step_trace_limit_mb, 0,
                                              static_cast<std::int64_t>(cost::rule_of(cost::Limit::kStepTrace).most))},
      {"replay_memory_mb", to_whole_number(config.replay_memory_mb, 0, 1 << 30)},
      {"outcome_others_percent",
       [&](const toml::node& node) -> Result<void> {
         const auto value = number(node, 0, 100);
         if (!value) return value.error();
         config.bounds.outcome_others_percent = *value;
         return {};
       }},
      {"step_memory_mb", to_bytes(config.bounds.step_memory_bytes, 1 << 30)},
      {"user_memory_mb", to_bytes(config.bounds.user_memory_bytes, 1 << 30)},
      {"memory_mb", to_bytes(config.bounds.all_memory_bytes, 1 << 30)},
      {"user_steps", to_whole_number(config.bounds.user_steps, 0, 1 << 20)},
      {"turn_limit_s",
       [&](const toml::node& node) -> Result<void> {
         const auto value = number(node, 0, 86400);
         if (!value) return value.error();
         config.bounds.turn_cpu_s = *value;
         return {};
       }},
      {"step_cpu_percent",
       [&](const toml::node& node) -> Result<void> {
         const auto value = number(node, 0, cost::rule_of(cost::Limit::kStepCpu).most);
         if (!value) return value.error();
         config.step_cpu_percent = *value;
         return {};
       }},
      {"picture_limit_s",
       [&](const toml::node& node) -> Result<void> {
         const auto value = number(node, 0, 3600);
         if (!value) return value.error();
         config.picture_limit_s = *value;
         return {};
       }},
      {"step_retention_days", to_whole_number(config.step_retention_days, 0, 36500)},
      {"worker_threads", to_whole_number(config.worker_threads, 1, 64)},
      {"replay_threads", to_whole_number(config.replay_threads, 1, 64)},
      {"replay_when_idle", to_flag(config.replay_when_idle)},
      {"token_over_tcp", to_flag(config.token_over_tcp)},
      {"tls_certificate", to_path(config.tls_certificate)},
      {"tls_key", to_path(config.tls_key)},
      {"max_connections", to_whole_number(config.max_connections, 1, 65536)},
      {"request_memory_mb", to_whole_number(config.request_memory_mb, 16, 65536)},
  };
  set_keys(table, name, setters, file.errors);
}

static Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // An empty file is every default; << would call that a failure.
  const bool is_empty = file && file.peek() == std::ifstream::traits_type::eof() && !file.bad();
  if (!is_empty && (!file || !(text << file.rdbuf()))) {
    return Error{ErrorCode::kNotFound, path + ": cannot be read: give lbfd's configuration with --config FILE"};
  }
  return text.str();
}

static ConfigFile read_text(std::string_view text, const std::string& name) {
  ConfigFile out{DaemonConfig::defaults(), {}};
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    out.errors.push_back(invalid_input(name + ":" + std::to_string(error.source().begin.line) + ": " +
                                       std::string(error.description()) + ": see docs/lbfd.md for an example"));
    return out;
  }
  read_keys(table, name, out);
  return out;
}

Result<DaemonConfig> DaemonConfig::load(const std::string& path) {
  ConfigFile file = read(path);
  if (!file.errors.empty()) return file.errors.front();
  return std::move(file.config);
}

Result<DaemonConfig> DaemonConfig::parse(std::string_view text, const std::string& name) {
  ConfigFile file = read_text(text, name);
  if (!file.errors.empty()) return file.errors.front();
  return std::move(file.config);
}

ConfigFile DaemonConfig::read(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return {defaults(), {text.error()}};
  return read_text(*text, path);
}

}  // namespace lbf::daemon
