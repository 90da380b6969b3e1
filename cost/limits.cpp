// See limits.h.
#include "cost/limits.h"

#include <utility>

#include "base/number.h"
#include "base/quoted.h"

namespace lbf::cost {
namespace {

// In the order of Limit.
constexpr LimitRule kRules[kLimits] = {
    {"overhead_limit", "%", "give a percentage, 0 to 100", 0, 100},
    // Not 0, and nothing that a command line's six decimals make 0 of: that is no limit to a relay.
    {"relay_cpu_limit", "%", "give a percentage, 0.001 to 100", 0.001, 100},
    {"relay_memory_limit_mb", "MB", "give megabytes, 4 to 4096", 4, 4096, true},
    {"network_limit_kBps", "kB/s", "give kilobytes (1000 bytes) per second, 1 to 1e9", 1, 1e9},
    {"spool_limit_mb", "MB", "give megabytes, 1 to 1048576", 1, 1 << 20, true},
    {"step_cpu_percent", "%", "give a percentage, 0.001 to 10000", 0.001, 10000, false, true},
    {"step_trace_limit_mb", "MB", "give megabytes, 1 to 1099511627776", 1, 1099511627776.0, true, true},
};

std::optional<double> value_of(const LimitRule& rule, std::string_view text) {
  if (!rule.is_whole) return parse_number<double>(text);
  const auto whole = parse_number<std::uint64_t>(text);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

}  // namespace

const LimitRule& rule_of(Limit limit) {
  return kRules[static_cast<std::size_t>(limit)];
}

std::optional<Limit> limit_named(std::string_view name) {
  for (std::size_t i = 0; i < kLimits; ++i) {
    if (kRules[i].name == name) return static_cast<Limit>(i);
  }
  return std::nullopt;
}

std::string known_limits(bool with_those_of_lbfd) {
  std::string names;
  for (const LimitRule& rule : kRules) {
    if (rule.is_of_lbfd && !with_those_of_lbfd) continue;
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
  }
  return names;
}

Result<double> read_limit(Limit limit, std::string_view text) {
  const LimitRule& rule = rule_of(limit);
  if (rule.unit == "%" && text.ends_with('%')) text.remove_suffix(1);
  const auto value = value_of(rule, text);
  if (value && *value >= rule.least && *value <= rule.most) return *value;
  std::string_view wrong;
  if (rule.unit == "%" && !value) wrong = "that is no number; ";
  if (limit == Limit::kOverhead && value && *value < 0) wrong = "a limit cannot be below 0 (0: the capture is off); ";
  if (limit == Limit::kOverhead && value && *value > 100) wrong = "more than all of the program's time; ";
  if (limit == Limit::kRelayCpu && value && *value == 0) wrong = "without processor time no relay runs; ";
  return invalid_input(std::string(wrong) + std::string(rule.give));
}

std::string shown_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string shown_limit(Limit limit, double value) {
  return shown_number(value) + " " + std::string(rule_of(limit).unit);
}

Result<Limits> read_limits(std::string_view list) {
  Limits limits;
  while (true) {
    const std::size_t end = list.find(',');
    const std::string_view item = list.substr(0, end);
    const auto wrong = [&](const std::string& what) { return invalid_input(as_ascii(item) + ": " + what); };
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return wrong("write it as NAME=VALUE[,NAME=VALUE...]");
    const auto limit = limit_named(item.substr(0, equals));
    if (!limit) return wrong("unknown limit; known are " + known_limits(true));
    if (limits[*limit]) return wrong("it is there twice");
    const auto value = read_limit(*limit, item.substr(equals + 1));
    if (!value) return wrong(value.error().message);
    limits[*limit] = *value;
    if (end == std::string_view::npos) return limits;
    list.remove_prefix(end + 1);
  }
}

std::vector<Limit> lower(Limits& limits, const Limits& asked) {
  std::vector<Limit> above;
  for (std::size_t i = 0; i < kLimits; ++i) {
    const auto limit = static_cast<Limit>(i);
    if (!asked[limit]) continue;
    if (limits[limit] && *asked[limit] > *limits[limit]) {
      above.push_back(limit);
    } else {
      limits[limit] = asked[limit];
    }
  }
  return above;
}

std::vector<std::string> relay_arguments(const Limits& limits) {
  std::vector<std::string> words;
  for (const auto& [limit, option] :
       {std::pair{Limit::kRelayCpu, "--cpu-limit-percent"}, std::pair{Limit::kRelayMemory, "--memory-limit-mb"},
        std::pair{Limit::kNetwork, "--network-limit-kBps"}, std::pair{Limit::kSpool, "--spool-limit-mb"}}) {
    if (limits[limit]) words.insert(words.end(), {option, shown_number(*limits[limit])});
  }
  return words;
}

}  // namespace lbf::cost
