// See calibrate_node_table.h.
#include "tools/calibrate/calibrate_node_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/number.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::tools {
namespace {

constexpr double kBytes = 1e9;  // whose time is measured
constexpr std::uint32_t kMostOthersPercent = 2;
constexpr std::string_view kGnuRuntime = "libgomp.so.1";

using CountSamples = std::map<std::uint32_t, std::vector<Nanoseconds>>;

// The words behind the first one, as numbers; nothing: one is none.
std::optional<std::vector<std::int64_t>> numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    const auto number = parse_number<std::int64_t>(word);
    if (!number || *number <= 0) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return numbers;
}

bool take_sample(std::string_view text, CountSamples& samples) {
  const auto numbers = numbers_of(text);
  if (!numbers || numbers->size() != 2 || numbers->front() > UINT32_MAX) return false;
  samples[static_cast<std::uint32_t>(numbers->front())].push_back(numbers->back());
  return true;
}

bool take_domains(std::string_view text, NodeTimes& measured) {
  const auto numbers = numbers_of(text);
  if (!numbers || numbers->size() != 3 || std::ranges::max(*numbers) > UINT32_MAX) return false;
  measured.domains = static_cast<std::uint32_t>((*numbers)[0]);
  measured.cores = static_cast<std::uint32_t>((*numbers)[1]);
  measured.domain_cores = static_cast<std::uint32_t>((*numbers)[2]);
  return true;
}

double megabytes_at(Seconds gigabyte_s) {
  return kBytes / gigabyte_s / 1e6;
}

template <typename Row>
std::string list_of(std::string_view key, const CountSamples& samples, Row row) {
  std::string text = fmt::format("{} = [", key);
  for (const auto& [number, samples_ns] : samples)
    text += (text.ends_with('[') ? "" : ", ") + row(number, spread_of(samples_ns));
  return text + "]\n";
}

std::string spread_row(std::uint32_t number, double quartile1, double median, double quartile3, std::size_t samples) {
  return fmt::format("[{}, {:.4g}, {:.4g}, {:.4g}, {}]", number, quartile1, median, quartile3, samples);
}

// The runtime that [threads] is of; nullptr: none was measured with two threads.
const std::pair<const std::string, CountSamples>* runtime_of(const NodeTimes& measured) {
  const std::pair<const std::string, CountSamples>* chosen = nullptr;
  for (const auto& runtime : measured.team_ns) {
    if (runtime.second.size() < 2) continue;
    if (chosen == nullptr || runtime.first == kGnuRuntime) chosen = &runtime;
  }
  return chosen;
}

}  // namespace

Result<void> read_node_line(std::string_view line, NodeTimes& measured) {
  const auto behind = [&](std::string_view key) {
    return line.starts_with(key) && line.size() > key.size() ? std::optional(line.substr(key.size())) : std::nullopt;
  };
  if (line == "end") {
    measured.complete = true;
    return {};
  }
  if (const auto node = behind("node 0 "); node && node->find(' ') == std::string_view::npos) {
    measured.node = *node;
    return {};
  }
  if (const auto processor = behind("processor ")) {
    measured.processor = *processor;
    return {};
  }
  if (const auto domains = behind("domains "); domains && take_domains(*domains, measured)) return {};
  if (const auto others = behind("others ")) {
    if (const auto percent = parse_number<std::uint32_t>(*others); percent && *percent <= 100) {
      measured.others_percent = *percent;
      return {};
    }
  }
  if (const auto sample = behind("bandwidth "); sample && take_sample(*sample, measured.gigabyte_ns)) return {};
  if (const auto team = behind("team ")) {
    const std::size_t blank = team->find(' ');
    if (blank != std::string_view::npos && blank > 0 &&
        take_sample(team->substr(blank + 1), measured.team_ns[std::string(team->substr(0, blank))]))
      return {};
  }
  return broken_line(line);
}

std::map<std::uint32_t, double> bandwidth_of(const NodeTimes& measured) {
  std::map<std::uint32_t, double> bytes_per_s;
  for (const auto& [cores, samples_ns] : measured.gigabyte_ns)
    bytes_per_s[cores] = kBytes / spread_of(samples_ns).median_s;
  return bytes_per_s;
}

std::string node_tables(const NodeTimes& measured) {
  std::string text;
  if (!measured.gigabyte_ns.empty()) {
    text += fmt::format("\n[memory]\ndomains = {}\n", measured.domains) +
            list_of("bandwidth_MBps", measured.gigabyte_ns, [](std::uint32_t cores, const Spread& spread) {
              return fmt::format("[{}, {:.1f}]", cores, megabytes_at(spread.median_s));
            });
  }
  if (const auto* const runtime = runtime_of(measured); runtime != nullptr) {
    text += "\n[threads]\n" + list_of("fork_join_us", runtime->second, [](std::uint32_t threads, const Spread& spread) {
              return fmt::format("[{}, {:.3f}]", threads, spread.median_s * 1e6);
            });
  }
  return text;
}

std::string node_about(const NodeTimes& measured) {
  std::string text = fmt::format("memory_node = \"{}\"\n", measured.node);
  if (!measured.processor.empty()) text += fmt::format("memory_processor = {}\n", toml_string(measured.processor));
  text += fmt::format("memory_cores = \"{} of the {} cores of one domain of {}\"\n", measured.cores,
                      measured.domain_cores, measured.domains);
  text += fmt::format("memory_others_percent = {}\n", measured.others_percent);
  text += "memory_bandwidth = \"STREAM triad, 24 bytes for each element, arrays of four times the largest cache\"\n";
  text += "# MB/s: cores, first quartile, median, third quartile, samples\n";
  text += list_of("memory_spread_MBps", measured.gigabyte_ns, [](std::uint32_t cores, const Spread& spread) {
    return spread_row(cores, megabytes_at(spread.quartile3_s), megabytes_at(spread.median_s),
                      megabytes_at(spread.quartile1_s), spread.samples);
  });
  if (const auto* const runtime = runtime_of(measured); runtime != nullptr)
    text += fmt::format("threads_runtime = {}\n", toml_string(runtime->first));
  for (const auto& [library, samples] : measured.team_ns) {
    text +=
        fmt::format("# fork and join by {}, us: threads, first quartile, median, third quartile, samples\n", library);
    const std::string key = fmt::format("threads_{}_us", library.substr(0, library.find('.')));
    text += list_of(key, samples, [](std::uint32_t threads, const Spread& spread) {
      return spread_row(threads, spread.quartile1_s * 1e6, spread.median_s * 1e6, spread.quartile3_s * 1e6,
                        spread.samples);
    });
  }
  return text;
}

std::string node_warning(const NodeTimes& measured) {
  if (measured.others_percent <= kMostOthersPercent) return {};
  return fmt::format("others had the processors of {} for {} % of the time: measure again when it is idle",
                     measured.node, measured.others_percent);
}

std::string node_summary(const NodeTimes& measured) {
  std::string text;
  const std::map<std::uint32_t, double> bytes_per_s = bandwidth_of(measured);
  if (!bytes_per_s.empty()) {
    text = fmt::format("1 core {:.4g} MB/s", bytes_per_s.begin()->second / 1e6);
    if (bytes_per_s.size() > 1) {
      text += fmt::format(", {} cores {:.4g} MB/s together", bytes_per_s.rbegin()->first,
                          bytes_per_s.rbegin()->second / 1e6);
    }
  }
  if (measured.cores < measured.domain_cores) {
    text += fmt::format(" (the domain has {} cores, srun gave {}: ask for all with --srun \"srun --exclusive\")",
                        measured.domain_cores, measured.cores);
  }
  if (const auto* const runtime = runtime_of(measured); runtime != nullptr) {
    const auto& [threads, samples_ns] = *runtime->second.rbegin();
    text += fmt::format("; {} starts {} threads in {:.3g} us", runtime->first, threads,
                        spread_of(samples_ns).median_s * 1e6);
  } else {
    text += "; no OpenMP runtime for two threads";
  }
  return text;
}

}  // namespace lbf::tools
