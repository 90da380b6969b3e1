// See calibrate_table.h.
#include "tools/calibrate_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <optional>

namespace lbf {
namespace {

constexpr Bytes kLargestMessageBytes = Bytes{1} << 30;
constexpr Bytes kLargestDefaultBytes = Bytes{4} << 20;

// The next word of `text`, which is cut off; "" at the end.
std::string_view next_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error broken_line(std::string_view line) {
  return {ErrorCode::kInvalidInput, "the ping-pong program printed '" + std::string(line.substr(0, 80)) +
                                        "': does something else write to srun's stdout (a TaskProlog, a shell "
                                        "start-up file), or is lbf-calibrate-pingpong of another version?"};
}

std::string microseconds(Seconds seconds) { return fmt::format("{:.3f}", seconds * 1e6); }

// A TOML basic string.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// [[bytes, us], ...] in lines of a handy length.
template <typename Row>
std::string rows(const PingPong& measured, std::size_t per_line, Row row) {
  std::string text = "[";
  std::size_t written = 0;
  for (const auto& [bytes, samples] : measured.half_round_trips_ns) {
    text += written % per_line == 0 ? "\n  " : " ";
    text += row(bytes, spread_of(samples)) + ",";
    ++written;
  }
  return text + "\n]\n";
}

std::string path_table(std::string_view locality, const PingPong& measured) {
  return fmt::format("\n[[path]]\nlocality = \"{}\"\ntable = ", locality) +
         rows(measured, 5, [](Bytes bytes, const Spread& spread) {
           return fmt::format("[{}, {}]", bytes, microseconds(spread.median_s));
         });
}

std::string spread_table(std::string_view key, const PingPong& measured) {
  return fmt::format("{} = ", key) + rows(measured, 3, [](Bytes bytes, const Spread& spread) {
           return fmt::format("[{}, {}, {}, {}]", bytes, microseconds(spread.quartile1_s),
                              microseconds(spread.quartile3_s), spread.samples);
         });
}

}  // namespace

Result<void> read_pingpong_line(std::string_view line, PingPong& measured) {
  std::string_view rest = line;
  const std::string_view kind = next_word(rest);
  if (kind == "end" && rest.empty()) {
    measured.complete = true;
    return {};
  }
  if (kind == "library" && rest.size() > 1) {
    measured.library = rest.substr(1);
    return {};
  }
  if (kind == "node") {
    const std::string_view rank = next_word(rest);
    const std::string_view name = next_word(rest);
    if ((rank != "0" && rank != "1") || name.empty() || !rest.empty()) return broken_line(line);
    measured.nodes[rank == "0" ? 0 : 1] = name;
    return {};
  }
  if (kind == "yield" && (rest == " 0" || rest == " 1")) {
    measured.yielded = rest == " 1";
    return {};
  }
  if (kind != "batch") return broken_line(line);
  const auto bytes = parse<Bytes>(next_word(rest));
  if (!bytes) return broken_line(line);
  std::vector<Nanoseconds> batch;
  while (!rest.empty()) {
    const auto half_ns = parse<Nanoseconds>(next_word(rest));
    if (!half_ns || *half_ns < 0) return broken_line(line);
    batch.push_back(*half_ns);
  }
  if (batch.empty()) return broken_line(line);
  auto& samples = measured.half_round_trips_ns[*bytes];
  samples.insert(samples.end(), batch.begin(), batch.end());
  return {};
}

Spread spread_of(std::vector<Nanoseconds> samples_ns) {
  assert(!samples_ns.empty());
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto quantile = [&](double part) {
    const double place = part * static_cast<double>(samples_ns.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, samples_ns.size() - 1);
    const double weight = place - std::floor(place);
    return seconds_from_ns(samples_ns[below]) * (1 - weight) + seconds_from_ns(samples_ns[above]) * weight;
  };
  return {quantile(0.25), quantile(0.5), quantile(0.75), samples_ns.size()};
}

std::string network_file(const Calibration& calibration) {
  const PingPong& any = calibration.remote != nullptr ? *calibration.remote : *calibration.self_node;
  std::string text = fmt::format(
      "# Measured by lbf-calibrate. Format: docs/formats/network-v1.md; times in microseconds, half a round trip.\n"
      "name = {}\n",
      quoted(calibration.name));
  if (calibration.self_node != nullptr) text += path_table("self-node", *calibration.self_node);
  if (calibration.remote != nullptr) text += path_table("remote", *calibration.remote);

  text += fmt::format("\n[about]\ndate = {}\ncommand = {}\nmpi = {}\n", quoted(calibration.date),
                      quoted(calibration.command), quoted(any.library));
  if (calibration.remote != nullptr) {
    text += fmt::format("remote_nodes = [{}, {}]\n", quoted(calibration.remote->nodes[0]),
                        quoted(calibration.remote->nodes[1]));
  }
  if (calibration.self_node != nullptr) {
    text += fmt::format("self_node = {}\n", quoted(calibration.self_node->nodes[0]));
    text += fmt::format("self_node_yield_when_idle = {}\n", calibration.self_node->yielded);
  }
  text +=
      "table = \"medians as measured, not smoothed\"\n"
      "processor_work = \"no send_cpu and recv_cpu: a waiting rank polls, so its processor time tells nothing about "
      "the protocol's work; all of it is in the table\"\n";
  if (calibration.remote != nullptr) {
    text += "# bytes, first quartile, third quartile, samples\n" + spread_table("remote_spread_us", *calibration.remote);
  }
  if (calibration.self_node != nullptr) {
    text += "# bytes, first quartile, third quartile, samples\n" +
            spread_table("self_node_spread_us", *calibration.self_node);
  }
  return text;
}

Result<std::vector<Bytes>> parse_sizes(std::string_view list) {
  std::vector<Bytes> sizes;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string_view item = list.substr(at, end - at);
    at = end + 1;
    std::string_view digits = item;
    Bytes unit = 1;
    if (item.ends_with('K') || item.ends_with('k')) unit = 1024;
    if (item.ends_with('M') || item.ends_with('m')) unit = 1024 * 1024;
    if (unit > 1) digits.remove_suffix(1);
    const auto number = parse<Bytes>(digits);
    if (!number || *number > kLargestMessageBytes / unit) {
      return invalid_input("size '" + std::string(item) +
                           "' is none: give bytes up to 1 GiB, separated by commas, with K or M for KiB or MiB "
                           "(--sizes 0,64,4K,1M)");
    }
    sizes.push_back(*number * unit);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<Bytes> default_sizes() {
  std::vector<Bytes> sizes{0, 4000, 4200, 65400, 65700};
  for (Bytes bytes = 1; bytes <= kLargestDefaultBytes; bytes *= 2) sizes.push_back(bytes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

bool is_network_name(std::string_view name) {
  if (name.empty() || name.starts_with('.')) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

Result<std::vector<std::string>> split_command(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == 0 && (c == ' ' || c == '\t')) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      in_word = true;
    } else if (c == quote && quote != 0) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      word += command[++i];
      in_word = true;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return invalid_input("the quote " + std::string(1, quote) + " in '" + std::string(command) + "' is never closed");
  if (in_word) words.push_back(word);
  if (words.empty()) return invalid_input("an empty command cannot be run");
  return words;
}

}  // namespace lbf
