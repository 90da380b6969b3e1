// See calibrate_table.h.
#include "tools/calibrate/calibrate_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/number.h"

namespace lbf::tools {
namespace {

constexpr Bytes kLargestMessageBytes = Bytes{1} << 30;
constexpr Bytes kLargestDefaultBytes = Bytes{4} << 20;
constexpr Bytes kLongestStreamMessage = Bytes{1} << 20;
constexpr Bytes kShortestStreamMessage = Bytes{1}
                                         << 17;  // above usual eager limits: long messages are what fills links
constexpr double kMessagesInRound = 20;
constexpr double kStillGrew = 1.1;

// The next word of `text`, which is cut off; "" at the end.
std::string_view next_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::string microseconds(Seconds seconds) {
  return fmt::format("{:.3f}", seconds * 1e6);
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

// Median work by size, and beyond the largest measured size the least-squares line through the last points.
class WorkCurve {
 public:
  explicit WorkCurve(const std::map<Bytes, std::vector<Nanoseconds>>& samples) {
    for (const auto& [bytes, works] : samples) medians_[bytes] = spread_of(works).median_s;
    const std::size_t count = std::min(kLinePoints, medians_.size());
    double sum_x = 0;
    double sum_y = 0;
    double sum_xx = 0;
    double sum_xy = 0;
    for (auto point = std::prev(medians_.end(), static_cast<std::ptrdiff_t>(count)); point != medians_.end(); ++point) {
      const auto x = static_cast<double>(point->first);
      sum_x += x;
      sum_y += point->second;
      sum_xx += x * x;
      sum_xy += x * point->second;
    }
    const auto n = static_cast<double>(count);
    const double spread = n * sum_xx - sum_x * sum_x;
    slope_ = spread > 0 ? std::max(0.0, (n * sum_xy - sum_x * sum_y) / spread) : 0.0;
    intercept_ = (sum_y - slope_ * sum_x) / n;
  }
  // REQUIRES: `bytes` was measured or is larger than all that were.
  Seconds at(Bytes bytes) const {
    const auto measured = medians_.find(bytes);
    if (measured != medians_.end()) return measured->second;
    return std::max(medians_.rbegin()->second, intercept_ + slope_ * static_cast<double>(bytes));
  }
  bool covers(Bytes bytes) const { return medians_.contains(bytes) || bytes > medians_.rbegin()->first; }

 private:
  static constexpr std::size_t kLinePoints = 3;
  std::map<Bytes, Seconds> medians_;
  double slope_ = 0;
  double intercept_ = 0;
};

std::string path_table(Locality locality, const PingPong& measured, const std::optional<Contacts>& contacts,
                       const std::optional<Turns>& turns) {
  const bool has_switch = turns && !turns->switch_ns.empty();
  const std::map<Bytes, MessageCost> costs =
      split_costs(measured, has_switch ? spread_of(turns->switch_ns).median_s : 0);
  std::string text =
      fmt::format("\n[[path]]\nlocality = \"{}\"\n", locality == Locality::kRemote ? "remote" : "self-node");
  const auto column = [&](std::string_view key, Seconds MessageCost::*part) {
    text += fmt::format("{} = ", key) + rows(measured, 5, [&](Bytes bytes, const Spread&) {
              return fmt::format("[{}, {}]", bytes, microseconds(costs.at(bytes).*part));
            });
  };
  if (measured.eager == PingPong::Eager::kUpToLimit) {
    text += fmt::format("eager_limit_bytes = {}\n", measured.eager_limit_bytes);
  }
  text += contact_keys(locality, contacts, turns);
  if (!costs.empty()) {
    column("send_cpu", &MessageCost::send_cpu_s);
    column("recv_cpu", &MessageCost::recv_cpu_s);
    column("table", &MessageCost::flight_s);
    return text;
  }
  return text + "table = " + rows(measured, 5, [](Bytes bytes, const Spread& spread) {
           return fmt::format("[{}, {}]", bytes, microseconds(spread.median_s));
         });
}

std::string spread_table(std::string_view key, const PingPong& measured) {
  return fmt::format("{} = ", key) + rows(measured, 3, [](Bytes bytes, const Spread& spread) {
           return fmt::format("[{}, {}, {}, {}, {}]", bytes, microseconds(spread.quartile1_s),
                              microseconds(spread.median_s), microseconds(spread.quartile3_s), spread.samples);
         });
}

using Samples = std::map<Bytes, std::vector<Nanoseconds>>;
std::string work_table(std::string_view key, const Samples& send, const Samples& recv) {
  std::string text = fmt::format("{} = [", key);
  std::size_t written = 0;
  for (const auto& [bytes, send_ns] : send) {
    const auto recv_ns = recv.find(bytes);
    if (recv_ns == recv.end()) continue;
    text += fmt::format("{}[{}, {}, {}],", written++ % 5 == 0 ? "\n  " : " ", bytes,
                        microseconds(spread_of(send_ns).median_s), microseconds(spread_of(recv_ns->second).median_s));
  }
  return text + "\n]\n";
}

// For [about].
std::string eager_text(const PingPong& measured) {
  switch (measured.eager) {
    case PingPong::Eager::kUpToLimit:
      return "measured: the largest message whose send returns before its receive is posted";
    case PingPong::Eager::kAll:
      return fmt::format("measured: sends up to {} bytes, the largest size, return before their receive is posted",
                         measured.half_round_trips_ns.rbegin()->first);
    case PingPong::Eager::kNotMeasured:
      break;
  }
  return "not measured: too much noise";
}

std::string megabytes_per_s(double bytes_per_s) {
  return fmt::format("{:.4g} MB/s", bytes_per_s / 1e6);
}

// What was seen of the link, and what its rate is good for.
std::string link_about(const Calibration& calibration) {
  const LinkRates& measured = *calibration.link;
  const LinkBandwidth link = link_bandwidth(measured);
  std::string rates;
  for (const auto& [pairs, bytes_per_s] : link.median_bytes_per_s) {
    rates += fmt::format("{}{} pair{} {}", rates.empty() ? "" : ", ", pairs, pairs == 1 ? "" : "s",
                         megabytes_per_s(bytes_per_s));
  }
  std::string text = fmt::format(
      "bandwidth = {}\n",
      toml_string(fmt::format("{} to {}, streams of {} byte messages, median of {} rounds, all pairs together: {}",
                              measured.nodes[0], measured.nodes[1], calibration.link_message_bytes,
                              measured.bytes_per_s.begin()->second.size(), rates)));
  text += fmt::format("bandwidth_is_lower_bound = {}\n", link.grew);
  return text;
}

// " 0 NAME" or " 1 NAME" behind `node`; false: something else.
bool read_node(std::string_view rest, std::string (&nodes)[2]) {
  const std::string_view rank = next_word(rest);
  const std::string_view name = next_word(rest);
  if ((rank != "0" && rank != "1") || name.empty() || !rest.empty()) return false;
  nodes[rank == "0" ? 0 : 1] = name;
  return true;
}

bool shared_a_processor(const PingPong& measured) {
  return measured.yielded && !measured.nodes[0].empty() && measured.nodes[0] == measured.nodes[1];
}

}  // namespace

std::string toml_string(std::string_view text) {
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

Error broken_line(std::string_view line) {
  return {ErrorCode::kInvalidInput, "a program of lbf-calibrate printed '" + std::string(line.substr(0, 80)) +
                                        "': does something else write to srun's stdout (a TaskProlog, a shell "
                                        "start-up file), or is it of another version?"};
}

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
    if (!read_node(rest, measured.nodes)) return broken_line(line);
    return {};
  }
  if (kind == "eager") {
    const std::string_view limit = next_word(rest);
    const auto bytes = parse_number<Bytes>(limit);
    if (!rest.empty() || (!bytes && limit != "all" && limit != "unknown")) return broken_line(line);
    measured.eager = bytes            ? PingPong::Eager::kUpToLimit
                     : limit == "all" ? PingPong::Eager::kAll
                                      : PingPong::Eager::kNotMeasured;
    measured.eager_limit_bytes = bytes.value_or(0);
    return {};
  }
  if (kind == "yield" && (rest == " 0" || rest == " 1")) {
    measured.yielded = rest == " 1";
    return {};
  }
  if (kind == "work" || kind == "long_work") {
    const auto bytes = parse_number<Bytes>(next_word(rest));
    const auto send_ns = parse_number<Nanoseconds>(next_word(rest));
    const auto recv_ns = parse_number<Nanoseconds>(next_word(rest));
    if (!bytes || !send_ns || !recv_ns || *send_ns < 0 || *recv_ns < 0 || !rest.empty()) return broken_line(line);
    (kind == "work" ? measured.send_work_ns : measured.long_send_work_ns)[*bytes].push_back(*send_ns);
    (kind == "work" ? measured.recv_work_ns : measured.long_recv_work_ns)[*bytes].push_back(*recv_ns);
    return {};
  }
  if (kind != "batch") return broken_line(line);
  const auto bytes = parse_number<Bytes>(next_word(rest));
  if (!bytes) return broken_line(line);
  std::vector<Nanoseconds> batch;
  while (!rest.empty()) {
    const auto half_ns = parse_number<Nanoseconds>(next_word(rest));
    if (!half_ns || *half_ns < 0) return broken_line(line);
    batch.push_back(*half_ns);
  }
  if (batch.empty()) return broken_line(line);
  auto& samples = measured.half_round_trips_ns[*bytes];
  samples.insert(samples.end(), batch.begin(), batch.end());
  return {};
}

Result<void> read_link_line(std::string_view line, LinkRates& measured) {
  std::string_view rest = line;
  const std::string_view kind = next_word(rest);
  if (kind == "end" && rest.empty()) {
    measured.complete = true;
    return {};
  }
  if (kind == "library" || (kind == "yield" && (rest == " 0" || rest == " 1"))) return {};
  if (kind == "node" && read_node(rest, measured.nodes)) return {};
  if (kind != "stream") return broken_line(line);
  const auto pairs = parse_number<int>(next_word(rest));
  const auto bytes_per_s = parse_number<std::uint64_t>(next_word(rest));
  if (!pairs || *pairs < 1 || !bytes_per_s || *bytes_per_s == 0 || !rest.empty()) return broken_line(line);
  measured.bytes_per_s[*pairs].push_back(static_cast<double>(*bytes_per_s));
  return {};
}

LinkBandwidth link_bandwidth(const LinkRates& measured) {
  LinkBandwidth link;
  for (const auto& [pairs, rates] : measured.bytes_per_s) {
    std::vector<double> sorted = rates;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    const double median = sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    link.median_bytes_per_s[pairs] = median;
    link.bytes_per_s = std::max(link.bytes_per_s, median);
  }
  const auto& medians = link.median_bytes_per_s;
  link.grew = medians.size() < 2 || medians.rbegin()->second > kStillGrew * medians.begin()->second;
  return link;
}

Bytes stream_message_bytes(const PingPong& remote, Seconds round_s) {
  const auto& [bytes, samples] = *remote.half_round_trips_ns.rbegin();
  const double bytes_per_s = static_cast<double>(bytes) / std::max(spread_of(samples).median_s, 1e-9);
  Bytes message = kLongestStreamMessage;
  while (message > kShortestStreamMessage && static_cast<double>(message) * kMessagesInRound > bytes_per_s * round_s) {
    message /= 2;
  }
  return message;
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

std::map<Bytes, MessageCost> split_costs(const PingPong& measured, Seconds switch_s) {
  std::map<Bytes, MessageCost> costs;
  if (shared_a_processor(measured)) {
    for (const auto& [bytes, samples] : measured.half_round_trips_ns) {
      const Seconds work_s = std::max(0.0, spread_of(samples).median_s - switch_s);
      costs[bytes] = {work_s / 2, 0, work_s / 2};
    }
    return costs;
  }
  if (measured.send_work_ns.empty() || measured.recv_work_ns.empty()) return costs;
  const WorkCurve send(measured.send_work_ns);
  const WorkCurve recv(measured.recv_work_ns);
  for (const auto& [bytes, samples] : measured.half_round_trips_ns) {
    if (!send.covers(bytes) || !recv.covers(bytes)) return {};
    const Seconds half_s = spread_of(samples).median_s;
    const Seconds work_s = send.at(bytes) + recv.at(bytes);
    const double kept = work_s > half_s ? half_s / work_s : 1.0;
    MessageCost& cost = costs[bytes];
    cost.send_cpu_s = kept * send.at(bytes);
    cost.recv_cpu_s = kept * recv.at(bytes);
    cost.flight_s = std::max(0.0, half_s - cost.send_cpu_s - cost.recv_cpu_s);
  }
  return costs;
}

std::string network_file(const Calibration& calibration) {
  const PingPong& any = calibration.remote ? *calibration.remote : *calibration.self_node;
  std::string text = fmt::format(
      "# Measured by lbf-calibrate. Format: docs/formats/network-v1.md; times in microseconds. send_cpu + "
      "table + "
      "recv_cpu\n# is half a round trip, less the switch_us of self-node where its two ranks had one "
      "processor.\n"
      "name = {}\n",
      toml_string(calibration.name));
  if (calibration.self_node) {
    text += path_table(Locality::kSelfNode, *calibration.self_node, calibration.contacts, calibration.self_node_turns);
  }
  if (calibration.remote) {
    text += path_table(Locality::kRemote, *calibration.remote, calibration.contacts, calibration.remote_turns);
  }

  if (calibration.local) text += local_table(*calibration.local);
  if (calibration.node) text += node_tables(*calibration.node);
  if (calibration.link) {
    text += fmt::format("\n[contention]\nmodel = \"nic\"\nbandwidth_MBps = {:.3f}\n",
                        link_bandwidth(*calibration.link).bytes_per_s / 1e6);
  }

  text += fmt::format("\n[about]\ndate = {}\ncommand = {}\nmpi = {}\n", toml_string(calibration.date),
                      toml_string(calibration.command), toml_string(any.library));
  if (calibration.remote) {
    text += fmt::format("remote_nodes = [{}, {}]\n", toml_string(calibration.remote->nodes[0]),
                        toml_string(calibration.remote->nodes[1]));
  }
  if (calibration.self_node) {
    text += fmt::format("self_node = {}\n", toml_string(calibration.self_node->nodes[0]));
    text += fmt::format("self_node_yield_when_idle = {}\n", calibration.self_node->yielded);
  }
  text += "table = \"medians as measured, not smoothed\"\n";
  text += fmt::format("footprint_bytes = {}\n", calibration.footprint_bytes);
  if (calibration.remote && !split_costs(*calibration.remote).empty()) {
    text += fmt::format(
        "remote_cpu = \"median processor time of eager sends to a sleeping receiver and of its receives "
        "afterwards, up "
        "to {} bytes; beyond by the line through the last three sizes; cut to the half round trip where they "
        "overlap\"\n",
        calibration.remote->send_work_ns.rbegin()->first);
    text +=
        "# processor time as measured, of long messages with ranks that sleep between polls (not used): "
        "bytes, "
        "sender, receiver\n" +
        work_table("remote_work_us", calibration.remote->send_work_ns, calibration.remote->recv_work_ns) +
        work_table("remote_long_work_us", calibration.remote->long_send_work_ns, calibration.remote->long_recv_work_ns);
  } else if (calibration.remote) {
    text += "remote_cpu = \"not measured: all of it is in the table\"\n";
  }
  if (calibration.self_node && shared_a_processor(*calibration.self_node)) {
    text +=
        "self_node_cpu = \"both ranks had one processor, which worked all the time: all of it but switch_us "
        "is "
        "work, half of it the sender's and half the receiver's\"\n";
  } else if (calibration.self_node) {
    text +=
        "self_node_cpu = \"not separable: a waiting rank polls, and the other one's work fills all of the "
        "time; all of it "
        "is in the table\"\n";
  }
  if (calibration.remote) {
    text += fmt::format("remote_eager_limit = {}\n", toml_string(eager_text(*calibration.remote)));
  }
  if (calibration.self_node) {
    text += fmt::format("self_node_eager_limit = {}\n", toml_string(eager_text(*calibration.self_node)));
  }
  if (calibration.link) text += link_about(calibration);
  if (calibration.contacts) text += contacts_about(*calibration.contacts);
  if (calibration.remote_turns) text += turns_about(Locality::kRemote, *calibration.remote_turns);
  if (calibration.self_node_turns) text += turns_about(Locality::kSelfNode, *calibration.self_node_turns);
  if (calibration.remote) {
    text += "# half round trips: bytes, first quartile, median, third quartile, samples\n" +
            spread_table("remote_spread_us", *calibration.remote);
  }
  if (calibration.self_node) {
    text += "# half round trips: bytes, first quartile, median, third quartile, samples\n" +
            spread_table("self_node_spread_us", *calibration.self_node);
  }
  if (calibration.local) text += local_about(*calibration.local);
  if (calibration.node) text += node_about(*calibration.node);
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
    const auto number = parse_number<Bytes>(digits);
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
  if (quote != 0)
    return invalid_input("the quote " + std::string(1, quote) + " in '" + std::string(command) + "' is never closed");
  if (in_word) words.push_back(word);
  if (words.empty()) return invalid_input("an empty command cannot be run");
  return words;
}

}  // namespace lbf::tools
