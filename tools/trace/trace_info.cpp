#include "tools/trace/trace_info.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "event/unseen_time.h"
#include "report/text.h"
#include "tools/trace/event_text.h"

namespace lbf::tools {
namespace {

void append_format(std::string& text, const char* format, ...) __attribute__((format(printf, 2, 3)));
void append_format(std::string& text, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  char line[512];
  const int length = std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (length > 0) text.append(line, std::min(static_cast<std::size_t>(length), sizeof(line) - 1));
}

}  // namespace

// Long division by 10^9: 2^32 times the rest still fits.
std::string ByteSum::text() const {
  constexpr std::uint64_t kGroup = 1'000'000'000;
  std::array<std::uint64_t, 4> words{high_ >> 32, high_ & 0xffffffff, low_ >> 32, low_ & 0xffffffff};
  std::string out;
  do {
    std::uint64_t rest = 0;
    for (std::uint64_t& word : words) {
      const std::uint64_t value = (rest << 32) | word;
      word = value / kGroup;
      rest = value % kGroup;
    }
    const bool is_last = std::all_of(words.begin(), words.end(), [](std::uint64_t word) { return word == 0; });
    const std::string digits = std::to_string(rest);
    out.insert(0, is_last ? digits : std::string(9 - digits.size(), '0') + digits);
    if (is_last) return out;
  } while (true);
}

nlohmann::ordered_json ByteSum::json() const {
  if (high_ == 0) return low_;
  return std::ldexp(static_cast<double>(high_), 64) + static_cast<double>(low_);
}

TraceInfoCount::TraceInfoCount(Rank ranks)
    : duration_s_(static_cast<std::size_t>(ranks), 0.0), exited_(static_cast<std::size_t>(ranks), false) {}

Result<void> TraceInfoCount::add(Rank rank, const Event& event) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= duration_s_.size()) {
    return invalid_input("event of rank " + std::to_string(rank) + ", which the trace does not have");
  }
  const auto index = static_cast<std::size_t>(rank);
  duration_s_[index] += event.process_s + event.call_s + event.off_s;
  process_s_ += event.process_s;
  const Seconds call_s = call_time_is_unseen(event) ? Duration() : event.call_s;
  call_s_ += call_s;
  unseen_s_ += event.call_s - call_s;
  off_s_ += event.off_s;
  if (event.kind == EventKind::kKeepAlive) return {};  // advances time, is no event of the program
  ++events_;
  const bool is_send = event.kind == EventKind::kSend || event.kind == EventKind::kIsend;
  const bool is_collective = event.kind == EventKind::kCollective || event.kind == EventKind::kIcollective;
  Calls& calls = calls_[std::string(call_name(event))];
  ++calls.count;
  calls.call_s += call_s;
  calls.process_s += event.process_s;
  if (is_send || is_collective) calls.bytes += event.bytes;
  if (is_send) {
    ++messages_;
    message_bytes_ += event.bytes;
  }
  if (event.kind == EventKind::kStartRecv || event.kind == EventKind::kRecv) {
    ++receives_;
    const bool wildcard =
        (event.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0 || event.peer == kAnyRank || event.tag == kAnyTag;
    wildcard_receives_ += wildcard ? 1 : 0;
  }
  collectives_ += is_collective ? 1 : 0;
  if (event.kind == EventKind::kOneSided || event.kind == EventKind::kIo) calls.bytes += event.bytes;
  one_sided_ += event.kind == EventKind::kOneSided ? 1 : 0;
  unmodelled_calls_ += event.kind == EventKind::kUnmodelled ? 1 : 0;
  lost_events_ += event.kind == EventKind::kGap ? lost_events(event) : 0;
  if (event.kind == EventKind::kCommCreate && event.values.size() > 2) {
    communicators_[event.comm] = event.values.size() - 2;
  }
  if (event.kind == EventKind::kExit) exited_[index] = true;
  return {};
}

TraceInfoCount::Durations TraceInfoCount::durations() const {
  std::vector<Seconds> sorted = duration_s_;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  return {sorted.front(), n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2, sorted.back()};
}

std::string TraceInfoCount::table(const TraceSource& source) const {
  const std::string& library = source.library;
  const std::uint64_t bytes_stored = source.bytes_stored;
  const Durations duration = durations();
  const auto percent = [](double part, double whole) { return whole > 0 ? 100 * part / whole : 0.0; };
  std::string text;
  text += "Trace            " + report::printable(source.name) + " (" + source.form + ")\n";
  append_format(text, "Ranks            %zu", duration_s_.size());
  const auto without_exit = static_cast<std::size_t>(std::count(exited_.begin(), exited_.end(), false));
  if (without_exit > 0) append_format(text, ", %zu of them without their end", without_exit);
  if (!source.node_of_rank.empty()) {
    std::map<std::uint32_t, std::uint64_t> ranks_of_node;
    for (const std::uint32_t node : source.node_of_rank) ++ranks_of_node[node];
    const auto [least, most] = std::minmax_element(ranks_of_node.begin(), ranks_of_node.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
    append_format(text, "\nRan on           %zu node%s with %" PRIu64, ranks_of_node.size(),
                  ranks_of_node.size() == 1 ? "" : "s", least->second);
    if (most->second != least->second) append_format(text, " to %" PRIu64, most->second);
    append_format(text, " rank%s each", most->second == 1 ? "" : "s");
  }
  if (!library.empty()) text += "\nMPI library      " + report::printable(library.substr(0, library.find('\n')));
  append_format(text, "\nEvents           %" PRIu64 "\n", events_);
  if (lost_events_ > 0) append_format(text, "Lost events      %" PRIu64 "\n", lost_events_);
  append_format(text, "Bytes            %" PRIu64 ", %.2f per event\n", bytes_stored,
                events_ > 0 ? static_cast<double>(bytes_stored) / static_cast<double>(events_) : 0.0);
  append_format(text, "Messages         %" PRIu64 " point-to-point, %s bytes\n", messages_,
                message_bytes_.text().c_str());
  append_format(text, "Receives         %" PRIu64 ", %.1f %% of them with a wildcard\n", receives_,
                percent(static_cast<double>(wildcard_receives_), static_cast<double>(receives_)));
  append_format(text, "Collectives      %" PRIu64 " calls\n", collectives_);
  if (one_sided_ > 0) append_format(text, "One-sided        %" PRIu64 " operations\n", one_sided_);
  if (unmodelled_calls_ > 0) append_format(text, "Unmodelled       %" PRIu64 " calls\n", unmodelled_calls_);
  append_format(text, "Communicators    %zu beside MPI_COMM_WORLD", communicators_.size());
  if (!communicators_.empty()) {
    const auto [least, most] = std::minmax_element(communicators_.begin(), communicators_.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
    append_format(text, ", of %" PRIu64 " to %" PRIu64 " ranks", least->second, most->second);
  }
  append_format(text, "\nDuration         %.6f s (rank: min %.6f, median %.6f, max %.6f)\n", duration.max_s,
                duration.min_s, duration.median_s, duration.max_s);
  const double all_s = process_s_ + call_s_ + off_s_ + unseen_s_;
  append_format(text, "Time             %.1f %% process, %.1f %% MPI, %.1f %% blocked", percent(process_s_, all_s),
                percent(call_s_, all_s), percent(off_s_, all_s));
  if (unseen_s_ > 0)
    append_format(text, ", %.1f %% in no call (preempted, polling, not captured)", percent(unseen_s_, all_s));
  text += "\n\n";
  append_format(text, "%-28s %14s %18s %14s %14s\n", "Call", "Count", "Bytes", "InCall(s)", "Before(s)");
  std::vector<std::pair<std::string, Calls>> calls(calls_.begin(), calls_.end());
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  for (const auto& [call, counted] : calls) {
    append_format(text, "%-28s %14" PRIu64 " %18s %14.6f %14.6f\n", call.c_str(), counted.count,
                  counted.bytes.text().c_str(), counted.call_s, counted.process_s);
  }
  return text;
}

std::string TraceInfoCount::json(const TraceSource& source) const {
  const Durations duration = durations();
  nlohmann::ordered_json json;
  json["trace"] = source.name;
  json["form"] = source.form;
  json["library"] = source.library;
  json["node_of_rank"] = source.node_of_rank;
  json["ranks"] = duration_s_.size();
  json["events"] = events_;
  json["messages"] = messages_;
  json["bytes_stored"] = source.bytes_stored;
  json["message_bytes"] = message_bytes_.json();
  json["receives"] = receives_;
  json["wildcard_receives"] = wildcard_receives_;
  json["collectives"] = collectives_;
  json["one_sided_operations"] = one_sided_;
  json["unmodelled_calls"] = unmodelled_calls_;
  json["lost_events"] = lost_events_;
  json["communicators"] = communicators_.size();
  json["ranks_without_exit"] = std::count(exited_.begin(), exited_.end(), false);
  json["duration_s"] = {{"min", duration.min_s}, {"median", duration.median_s}, {"max", duration.max_s}};
  json["process_s"] = process_s_;
  json["call_s"] = call_s_;
  json["off_s"] = off_s_;
  json["unseen_s"] = unseen_s_;
  nlohmann::ordered_json calls = nlohmann::ordered_json::object();
  for (const auto& [call, counted] : calls_) {
    calls[call] = {{"count", counted.count},
                   {"bytes", counted.bytes.json()},
                   {"call_s", counted.call_s},
                   {"process_s", counted.process_s}};
  }
  json["calls"] = std::move(calls);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lbf::tools
