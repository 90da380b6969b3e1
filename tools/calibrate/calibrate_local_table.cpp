// See calibrate_local_table.h.
#include "tools/calibrate/calibrate_local_table.h"

#include <fmt/format.h>

#include <utility>

#include "base/number.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::tools {
namespace {

constexpr std::string_view kNode = "node 0 ";

// "BYTES NS"
bool read_sample(std::string_view text, std::map<Bytes, std::vector<Nanoseconds>>& samples) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return false;
  const auto bytes = parse_number<Bytes>(text.substr(0, blank));
  const auto ns = parse_number<Nanoseconds>(text.substr(blank + 1));
  if (!bytes || !ns || *ns < 0) return false;
  samples[*bytes].push_back(*ns);
  return true;
}

template <typename Row>
std::string rows(const std::map<Bytes, std::vector<Nanoseconds>>& samples, std::size_t per_line, Row row) {
  std::string text = "[";
  std::size_t written = 0;
  for (const auto& [bytes, samples_ns] : samples) {
    text += written++ % per_line == 0 ? "\n  " : " ";
    text += row(bytes, spread_of(samples_ns)) + ",";
  }
  return text + "\n]\n";
}

}  // namespace

Result<void> read_local_line(std::string_view line, LocalTimes& measured) {
  if (line == "end") {
    measured.complete = true;
    return {};
  }
  if (line.starts_with(kNode) && line.size() > kNode.size() && line.find(' ', kNode.size()) == std::string_view::npos) {
    measured.node = line.substr(kNode.size());
    return {};
  }
  for (auto [key, samples] : {std::pair{std::string_view("copy "), &measured.copy_ns},
                              std::pair{std::string_view("reduce "), &measured.reduce_ns}}) {
    if (line.starts_with(key) && read_sample(line.substr(key.size()), *samples)) return {};
  }
  return broken_line(line);
}

std::string local_table(const LocalTimes& measured) {
  if (measured.copy_ns.empty() && measured.reduce_ns.empty()) return "";
  std::string text = "\n[local]\n";
  for (const auto& [key, samples] : {std::pair{"copy", &measured.copy_ns}, std::pair{"reduce", &measured.reduce_ns}}) {
    if (samples->empty()) continue;
    text += fmt::format("{} = ", key) + rows(*samples, 5, [](Bytes bytes, const Spread& spread) {
              return fmt::format("[{}, {:.3f}]", bytes, spread.median_s * 1e6);
            });
  }
  return text;
}

std::string local_about(const LocalTimes& measured) {
  std::string text;
  if (!measured.node.empty()) text += fmt::format("local_node = \"{}\"\n", measured.node);
  for (const auto& [key, samples] : {std::pair{"local_copy_spread_us", &measured.copy_ns},
                                     std::pair{"local_reduce_spread_us", &measured.reduce_ns}}) {
    if (samples->empty()) continue;
    text += "# work of one rank: bytes, first quartile, median, third quartile, samples\n";
    text += fmt::format("{} = ", key) + rows(*samples, 3, [](Bytes bytes, const Spread& spread) {
              return fmt::format("[{}, {:.3f}, {:.3f}, {:.3f}, {}]", bytes, spread.quartile1_s * 1e6,
                                 spread.median_s * 1e6, spread.quartile3_s * 1e6, spread.samples);
            });
  }
  return text;
}

std::string local_summary(const LocalTimes& measured) {
  std::string text;
  for (const auto& [what, samples] :
       {std::pair{"copied", &measured.copy_ns}, std::pair{"summed", &measured.reduce_ns}}) {
    if (samples->empty()) continue;
    const auto& [bytes, samples_ns] = *samples->rbegin();
    text += fmt::format("{}{} B {} in {:.4g} us", text.empty() ? "" : ", ", bytes, what,
                        spread_of(samples_ns).median_s * 1e6);
  }
  return text;
}

}  // namespace lbf::tools
