// Network files, version 1, and what a message costs on them (TSE Sec. 2.2).
//
// Place in the event's way: read once by lbfd and lbf-whatif; the replay asks a Network for every message.
// Implements docs/formats/network-v1.md.
#include "predictor/engine/network/network.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

namespace lbf::engine {
namespace {

constexpr double kSecondsPerMicrosecond = 1e-6;
constexpr double kBytesPerMegabyte = 1e6;
constexpr std::size_t kTailPoints = 3;                 // the curve fit beyond the table uses its last points
constexpr std::size_t kMaxNetworkFileBytes = 4 << 20;  // a network file is a page of text
constexpr unsigned kMaxHops = 1024;
// Of one message: a petabyte at a gigabyte a second. What is above it is a mistake, and would be 300 digits in a table.
constexpr double kMostMicroseconds = 1e12;
constexpr double kLeastMegabytesPerS = 1e-6;
constexpr double kMostMegabytesPerS = 1e12;
constexpr std::int64_t kMostProcessors = 1 << 20;

// "lan.toml:12: what is wrong": the line where toml++ knows it.
Error error_at(std::string_view file, const toml::source_region& where, const std::string& what) {
  std::string message{file};
  if (where.begin.line > 0) message += ":" + std::to_string(where.begin.line);
  return invalid_input(message + ": " + what);
}

// First key of `table` that is not in `known`, so that a typo is never silent.
Result<void> check_keys(std::string_view file, const toml::table& table, std::string_view what,
                        std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : table) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    std::string list;
    for (std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
    return error_at(file, key.source(),
                    "unknown key '" + std::string(key.str()) + "' in " + std::string(what) + ": known are " + list);
  }
  return {};
}

Result<CostCurve> read_curve(std::string_view file, const toml::node& node, std::string_view key) {
  const toml::array* rows = node.as_array();
  const std::string name = "'" + std::string(key) + "'";
  if (rows == nullptr) {
    return error_at(file, node.source(), name + " must be a list of [bytes, microseconds] pairs");
  }
  std::vector<std::pair<Bytes, Seconds>> points;
  points.reserve(rows->size());
  for (const toml::node& row : *rows) {
    const toml::array* pair = row.as_array();
    const bool is_pair =
        pair != nullptr && pair->size() == 2 && pair->get(0)->is_integer() && pair->get(1)->is_number();
    if (!is_pair) {
      return error_at(file, row.source(), name + ": each entry must be [bytes, microseconds], bytes a whole number");
    }
    const std::int64_t bytes = *pair->get(0)->value<std::int64_t>();
    if (bytes < 0) return error_at(file, row.source(), name + ": a message cannot have negative bytes");
    const double microseconds = *pair->get(1)->value<double>();
    if (microseconds > kMostMicroseconds) {
      return error_at(file, row.source(),
                      name + ": the time for " + std::to_string(bytes) + " bytes is more than 1e12 microseconds");
    }
    points.emplace_back(static_cast<Bytes>(bytes), microseconds * kSecondsPerMicrosecond);
  }
  Result<CostCurve> curve = CostCurve::make(std::move(points));
  if (!curve) return error_at(file, node.source(), name + ": " + curve.error().message);
  return curve;
}

Result<PathCost> read_path(std::string_view file, const toml::table& table) {
  Result<void> keys = check_keys(file, table, "[[path]]",
                                 {"locality", "table", "send_cpu", "recv_cpu", "eager_limit_bytes", "first_message_us",
                                  "first_peer_us", "turn_us", "switch_us"});
  if (!keys) return keys.error();
  PathCost cost;
  const toml::node* curve = table.get("table");
  if (curve == nullptr) {
    return error_at(file, table.source(), "[[path]] needs 'table': a list of [bytes, one-way microseconds]");
  }
  for (auto [key, target] : {std::pair{"table", &cost.flight}, std::pair{"send_cpu", &cost.send_cpu},
                             std::pair{"recv_cpu", &cost.recv_cpu}}) {
    const toml::node* node = table.get(key);
    if (node == nullptr) continue;
    Result<CostCurve> read = read_curve(file, *node, key);
    if (!read) return read.error();
    *target = std::move(*read);
  }
  if (const toml::node* limit = table.get("eager_limit_bytes"); limit != nullptr) {
    const std::optional<std::int64_t> bytes = limit->value_exact<std::int64_t>();
    if (!bytes || *bytes < 0) {
      return error_at(file, limit->source(), "'eager_limit_bytes' must be a whole number, 0 or more");
    }
    cost.eager_limit_bytes = static_cast<Bytes>(*bytes);
  }
  for (auto [key, target] :
       {std::pair{"first_message_us", &cost.first_message_s}, std::pair{"first_peer_us", &cost.first_peer_s},
        std::pair{"turn_us", &cost.turn_s}, std::pair{"switch_us", &cost.switch_s}}) {
    const toml::node* node = table.get(key);
    if (node == nullptr) continue;
    const std::optional<double> microseconds = node->is_number() ? node->value<double>() : std::nullopt;
    if (!microseconds || !(*microseconds >= 0 && *microseconds <= kMostMicroseconds)) {
      return error_at(file, node->source(), "'" + std::string(key) + "' must be microseconds, 0 to 1e12");
    }
    *target = *microseconds * kSecondsPerMicrosecond;
  }
  return cost;
}

// What values of a list by number of processors or threads are, and must be.
struct CountUnit {
  const char* number;  // "processors"
  const char* value;   // "MB/s"
  double least;
  double most;
  double scale;  // to bytes per second, or seconds
};

Result<CountCurve> read_count_curve(std::string_view file, const toml::node& node, const char* key,
                                    const CountUnit& unit) {
  const std::string name = "'" + std::string(key) + "'";
  const Error wrong = error_at(file, node.source(),
                               name + " must be a list of [" + unit.number + ", " + unit.value +
                                   "] pairs, the numbers whole and ascending, the values in range");
  const toml::array* rows = node.as_array();
  if (rows == nullptr || rows->empty()) return wrong;
  std::vector<CountCurve::Point> points;
  for (const toml::node& row : *rows) {
    const toml::array* pair = row.as_array();
    if (pair == nullptr || pair->size() != 2 || !pair->get(0)->is_integer() || !pair->get(1)->is_number()) return wrong;
    const std::int64_t number = *pair->get(0)->value<std::int64_t>();
    const double value = *pair->get(1)->value<double>();
    const std::int64_t before = points.empty() ? 0 : points.back().first;
    if (number <= before || number > kMostProcessors || !(value >= unit.least && value <= unit.most)) return wrong;
    points.emplace_back(static_cast<std::uint32_t>(number), value * unit.scale);
  }
  return CountCurve(std::move(points));
}

// hop:N -> N; nothing for anything else.
std::optional<unsigned> hop_number(std::string_view locality) {
  constexpr std::string_view kPrefix = "hop:";
  if (!locality.starts_with(kPrefix) || locality.size() == kPrefix.size() || locality.size() > kPrefix.size() + 4) {
    return std::nullopt;
  }
  unsigned hops = 0;
  for (char c : locality.substr(kPrefix.size())) {
    if (c < '0' || c > '9') return std::nullopt;
    hops = hops * 10 + static_cast<unsigned>(c - '0');
  }
  if (hops == 0 || hops > kMaxHops) return std::nullopt;
  return hops;
}

}  // namespace

Result<CostCurve> CostCurve::make(std::vector<std::pair<Bytes, Seconds>> points) {
  if (points.empty()) return invalid_input("the table is empty: give at least one [bytes, microseconds] pair");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [bytes, seconds] = points[i];
    if (!std::isfinite(seconds) || seconds < 0) {
      return invalid_input("the time for " + std::to_string(bytes) + " bytes is not a time: 0 or more is");
    }
    if (i > 0 && points[i - 1].first >= bytes) {
      return invalid_input("sizes must ascend: " + std::to_string(bytes) + " bytes come after " +
                           std::to_string(points[i - 1].first));
    }
  }
  CostCurve curve;
  // Least squares over the last points; a falling tail is measurement noise, so never below flat.
  const std::size_t used = std::min(points.size(), kTailPoints);
  const auto tail = points.end() - static_cast<std::ptrdiff_t>(used);
  double mean_bytes = 0;
  double mean_s = 0;
  for (auto it = tail; it != points.end(); ++it) {
    mean_bytes += static_cast<double>(it->first) / static_cast<double>(used);
    mean_s += it->second / static_cast<double>(used);
  }
  double covariance = 0;
  double variance = 0;
  for (auto it = tail; it != points.end(); ++it) {
    const double dx = static_cast<double>(it->first) - mean_bytes;
    covariance += dx * (it->second - mean_s);
    variance += dx * dx;
  }
  curve.tail_slope_s_per_byte_ = variance > 0 ? std::max(0.0, covariance / variance) : 0.0;
  curve.tail_intercept_s_ = mean_s - curve.tail_slope_s_per_byte_ * mean_bytes;
  curve.points_ = std::move(points);
  return curve;
}

Seconds CostCurve::at(Bytes bytes) const {
  if (points_.empty()) return 0;
  if (bytes <= points_.front().first) return points_.front().second;
  const auto& last = points_.back();
  if (bytes == last.first) return last.second;
  if (bytes > last.first) {
    return std::max(last.second, tail_intercept_s_ + tail_slope_s_per_byte_ * static_cast<double>(bytes));
  }
  const auto upper = std::lower_bound(points_.begin(), points_.end(), bytes,
                                      [](const auto& point, Bytes value) { return point.first < value; });
  if (upper->first == bytes) return upper->second;
  const auto lower = upper - 1;
  const double fraction = static_cast<double>(bytes - lower->first) / static_cast<double>(upper->first - lower->first);
  return lower->second + fraction * (upper->second - lower->second);
}

CostCurve CostCurve::scaled(double empty, double more) const {
  if (points_.empty()) return {};
  std::vector<std::pair<Bytes, Seconds>> points = points_;
  for (auto& [bytes, time_s] : points) {
    const Seconds of_empty_s = std::min(time_s, points_.front().second);
    time_s = of_empty_s * empty + (time_s - of_empty_s) * more;
  }
  return *make(std::move(points));
}

const char* contention_name(Contention contention) {
  switch (contention) {
    case Contention::kNone:
      return "none";
    case Contention::kBus:
      return "bus";
    case Contention::kNic:
      return "nic";
  }
  return "none";
}

void Network::set_contention(Contention model) {
  contention_ = model;
  if (model == Contention::kNone || contention_bytes_per_s_ > 0) return;
  contention_bytes_per_s_ = 1.0 / remote_.flight.tail_slope_s_per_byte();
}

Network Network::scaled(const NetworkFactors& factors) const {
  Network network = *this;
  const auto scale = [&factors](PathCost& path) {
    path.flight = path.flight.scaled(factors.latency, factors.gap);
    path.send_cpu = path.send_cpu.scaled(factors.overhead, factors.overhead);
    path.recv_cpu = path.recv_cpu.scaled(factors.overhead, factors.overhead);
  };
  scale(network.self_node_);
  scale(network.remote_);
  for (HopPath& path : network.hop_paths_) scale(path.cost);
  if (contention_bytes_per_s_ > 0) network.contention_bytes_per_s_ /= factors.gap;
  return network;
}

Network Network::zero() {
  Network network;
  network.name_ = kNoNetwork;
  network.description_ = "every message takes no time";
  return network;
}

// A network file, part by part.
class Network::FileReader {
 public:
  FileReader(std::string_view file, const toml::table& root) : file_(file), root_(root) {}

  Result<Network> read() {
    if (Result<void> keys =
            check_keys(file_, root_, "the file", {"name", "path", "local", "memory", "threads", "contention", "about"});
        !keys)
      return keys.error();
    for (const auto part :
         {&FileReader::read_name, &FileReader::read_about, &FileReader::read_paths, &FileReader::read_local,
          &FileReader::read_memory, &FileReader::read_threads, &FileReader::read_contention}) {
      if (Result<void> done = (this->*part)(); !done) return done.error();
    }
    return std::move(network_);
  }

 private:
  Result<void> read_name();
  Result<void> read_about();
  Result<void> read_paths();
  Result<void> read_path_of(const toml::node& node);
  Result<void> read_local();
  Result<void> read_memory();
  Result<void> read_threads();
  Result<void> read_contention();

  std::string_view file_;
  const toml::table& root_;
  Network network_;
  std::optional<PathCost> self_node_;
  std::optional<PathCost> remote_;
};

Result<void> Network::FileReader::read_name() {
  const std::optional<std::string> name = root_["name"].value_exact<std::string>();
  if (!name || name->empty()) {
    return invalid_input(std::string(file_) + ": needs name = \"...\", the network's name in every report");
  }
  const bool printable = std::all_of(name->begin(), name->end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  });
  if (!printable) {
    return error_at(file_, root_.get("name")->source(),
                    "'name' may hold letters, digits, '-', '_' and '.' only: it is used in lists and file names");
  }
  network_.name_ = *name;
  return {};
}

Result<void> Network::FileReader::read_about() {
  const toml::node* about = root_.get("about");
  if (about == nullptr) return {};
  const toml::table* table = about->as_table();
  if (table == nullptr) return error_at(file_, about->source(), "'about' must be a table: [about]");
  std::ostringstream text;
  for (const auto& [key, value] : *table) {
    if (text.tellp() > 0) text << "; ";
    text << key.str() << ": ";
    if (const auto* string = value.as_string()) {
      text << string->get();
    } else {
      value.visit([&text](const auto& typed) { text << typed; });
    }
  }
  network_.description_ = text.str();
  return {};
}

Result<void> Network::FileReader::read_paths() {
  const toml::node* path_node = root_.get("path");
  const toml::array* paths = path_node != nullptr ? path_node->as_array() : nullptr;
  if (paths == nullptr || paths->empty()) {
    return invalid_input(std::string(file_) + ": needs at least one [[path]] with 'locality' and 'table'");
  }
  for (const toml::node& node : *paths) {
    if (Result<void> done = read_path_of(node); !done) return done;
  }
  if (!remote_ && !network_.hop_paths_.empty()) {  // the farthest serves whatever is farther
    remote_ = std::move(network_.hop_paths_.back().cost);
    network_.hop_paths_.pop_back();
  }
  network_.self_node_ = self_node_ ? *self_node_ : *remote_;
  network_.remote_ = remote_ ? *remote_ : *self_node_;
  return {};
}

Result<void> Network::FileReader::read_path_of(const toml::node& node) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return error_at(file_, node.source(), "'path' must be tables: [[path]]");
  const std::optional<std::string> locality = (*table)["locality"].value_exact<std::string>();
  if (!locality) {
    return error_at(file_, table->source(), "[[path]] needs 'locality': \"self-node\", \"remote\" or \"hop:N\"");
  }
  Result<PathCost> cost = read_path(file_, *table);
  if (!cost) return cost.error();
  const std::optional<unsigned> hops = hop_number(*locality);
  bool twice = false;
  if (*locality == "self-node") {
    twice = self_node_.has_value();
    self_node_ = std::move(*cost);
  } else if (*locality == "remote") {
    twice = remote_.has_value();
    remote_ = std::move(*cost);
  } else if (hops) {
    const auto at = std::lower_bound(network_.hop_paths_.begin(), network_.hop_paths_.end(), *hops,
                                     [](const HopPath& path, std::uint32_t value) { return path.hops < value; });
    twice = at != network_.hop_paths_.end() && at->hops == *hops;
    network_.hop_paths_.insert(at, {*hops, std::move(*cost)});
  } else {
    return error_at(file_, table->get("locality")->source(),
                    "unknown locality '" + *locality + "': use \"self-node\", \"remote\" or \"hop:N\" (N from 1)");
  }
  if (twice) return error_at(file_, table->source(), "locality '" + *locality + "' appears twice");
  return {};
}

Result<void> Network::FileReader::read_local() {
  const toml::node* node = root_.get("local");
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) return error_at(file_, node->source(), "'local' must be a table: [local]");
  if (Result<void> keys = check_keys(file_, *table, "[local]", {"copy", "reduce"}); !keys) return keys.error();
  for (auto [key, target] : {std::pair{"copy", &network_.local_.copy}, std::pair{"reduce", &network_.local_.reduce}}) {
    const toml::node* curve = table->get(key);
    if (curve == nullptr) continue;
    Result<CostCurve> read = read_curve(file_, *curve, key);
    if (!read) return read.error();
    *target = std::move(*read);
  }
  return {};
}

Result<void> Network::FileReader::read_memory() {
  constexpr CountUnit kBandwidth{"processors", "MB/s", kLeastMegabytesPerS, kMostMegabytesPerS, kBytesPerMegabyte};
  const toml::node* node = root_.get("memory");
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) return error_at(file_, node->source(), "'memory' must be a table: [memory]");
  if (Result<void> keys = check_keys(file_, *table, "[memory]", {"domains", "bandwidth_MBps"}); !keys)
    return keys.error();
  if (const toml::node* domains = table->get("domains"); domains != nullptr) {
    const std::optional<std::int64_t> number = domains->value_exact<std::int64_t>();
    if (!number || *number < 1 || *number > kMostProcessors)
      return error_at(file_, domains->source(), "'domains' must be a whole number, 1 or more");
    network_.memory_.per_node = static_cast<std::uint32_t>(*number);
  }
  const toml::node* bandwidth = table->get("bandwidth_MBps");
  if (bandwidth == nullptr) {
    return error_at(file_, node->source(), "[memory] needs 'bandwidth_MBps': a list of [processors, MB/s]");
  }
  Result<CountCurve> curve = read_count_curve(file_, *bandwidth, "bandwidth_MBps", kBandwidth);
  if (!curve) return curve.error();
  network_.memory_.bytes_per_s = std::move(*curve);
  return {};
}

Result<void> Network::FileReader::read_threads() {
  constexpr CountUnit kForkJoin{"threads", "microseconds", 0, kMostMicroseconds, kSecondsPerMicrosecond};
  const toml::node* node = root_.get("threads");
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) return error_at(file_, node->source(), "'threads' must be a table: [threads]");
  if (Result<void> keys = check_keys(file_, *table, "[threads]", {"fork_join_us"}); !keys) return keys.error();
  const toml::node* times = table->get("fork_join_us");
  if (times == nullptr) {
    return error_at(file_, node->source(), "[threads] needs 'fork_join_us': a list of [threads, microseconds]");
  }
  Result<CountCurve> curve = read_count_curve(file_, *times, "fork_join_us", kForkJoin);
  if (!curve) return curve.error();
  network_.fork_join_s_ = std::move(*curve);
  return {};
}

Result<void> Network::FileReader::read_contention() {
  const toml::node* node = root_.get("contention");
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) return error_at(file_, node->source(), "'contention' must be a table: [contention]");
  if (Result<void> keys = check_keys(file_, *table, "[contention]", {"model", "bandwidth_MBps"}); !keys) {
    return keys.error();
  }
  const std::string model = (*table)["model"].value_exact<std::string>().value_or("");
  if (model == "none") {
    network_.contention_ = Contention::kNone;
  } else if (model == "bus") {
    network_.contention_ = Contention::kBus;
  } else if (model == "nic") {
    network_.contention_ = Contention::kNic;
  } else {
    return error_at(file_, node->source(), "[contention] needs model = \"none\", \"bus\" or \"nic\"");
  }
  const toml::node* bandwidth = table->get("bandwidth_MBps");
  const double megabytes = bandwidth != nullptr ? bandwidth->value<double>().value_or(-1.0) : 0.0;
  const bool needed = network_.contention_ != Contention::kNone;
  const bool given = megabytes >= kLeastMegabytesPerS && megabytes <= kMostMegabytesPerS;
  if (!given && (needed || megabytes != 0)) {
    return error_at(file_, node->source(),
                    "[contention] needs bandwidth_MBps, a number from 1e-6 to 1e12, for model '" + model + "'");
  }
  network_.contention_bytes_per_s_ = megabytes * kBytesPerMegabyte;
  return {};
}

Result<Network> Network::parse(std::string_view toml_text, std::string_view file_name) {
  toml::table root;
  try {
    root = toml::parse(toml_text, file_name);
  } catch (const toml::parse_error& error) {
    return error_at(file_name, error.source(), std::string(error.description()));
  }
  return FileReader(file_name, root).read();
}

Result<Network> Network::load(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int code = errno;
    return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 path + ": cannot open the network file: " + std::strerror(code)};
  }
  std::string text(kMaxNetworkFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorCode::kIo, path + ": cannot read the network file (is it a folder?)"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxNetworkFileBytes) {
    return Error{ErrorCode::kLimit, path + ": is over 4 MiB: not a network file"};
  }
  return parse(text, path);
}

}  // namespace lbf::engine
