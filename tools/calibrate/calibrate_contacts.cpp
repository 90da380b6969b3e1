// See calibrate_contacts.h.
#include "tools/calibrate/calibrate_contacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/number.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::tools {
namespace {

// The number behind `key` and a blank; nothing: the line is another one.
std::optional<Nanoseconds> number_behind(std::string_view line, std::string_view key) {
  if (!line.starts_with(key) || !line.substr(key.size()).starts_with(' ')) return std::nullopt;
  return parse_number<Nanoseconds>(line.substr(key.size() + 1));
}

// A disturbance of the shorter of two measurements can put the difference below 0.
Seconds median_s(const std::vector<Nanoseconds>& samples_ns) {
  return std::max(0.0, spread_of(samples_ns).median_s);
}

std::string spread_text(const std::vector<Nanoseconds>& samples_ns) {
  const Spread spread = spread_of(samples_ns);
  const double sum_ns = std::accumulate(samples_ns.begin(), samples_ns.end(), 0.0,
                                        [](double sum, Nanoseconds ns) { return sum + static_cast<double>(ns); });
  return fmt::format("[{:.3f}, {:.3f}, {:.3f}, {:.3f}, {}]", spread.quartile1_s * 1e6, spread.median_s * 1e6,
                     spread.quartile3_s * 1e6, sum_ns * 1e-3 / static_cast<double>(samples_ns.size()),
                     samples_ns.size());
}

std::string key_line(std::string_view key, Seconds seconds) {
  return fmt::format("{} = {:.3f}\n", key, seconds * 1e6);
}

}  // namespace

Result<void> read_contact_line(std::string_view line, Contacts& measured) {
  if (line == "end") {
    ++measured.complete;
  } else if (const auto peer_ns = number_behind(line, "peer"); peer_ns) {
    measured.peer_ns.push_back(*peer_ns);
  } else if (const auto remote_ns = number_behind(line, "first remote"); remote_ns) {
    measured.first_remote_ns.push_back(*remote_ns);
  } else if (const auto self_ns = number_behind(line, "first self"); self_ns) {
    measured.first_self_node_ns.push_back(*self_ns);
  } else {
    return broken_line(line);
  }
  return {};
}

Result<void> read_turn_line(std::string_view line, Turns& measured) {
  if (line == "end") {
    measured.complete = true;
  } else if (const auto turn_ns = number_behind(line, "turn"); turn_ns) {
    measured.turn_ns.push_back(*turn_ns);
  } else if (const auto switch_ns = number_behind(line, "switch"); switch_ns) {
    measured.switch_ns.push_back(*switch_ns);
  } else {
    return broken_line(line);
  }
  return {};
}

std::string contact_keys(Locality locality, const std::optional<Contacts>& contacts,
                         const std::optional<Turns>& turns) {
  std::string text;
  if (contacts) {
    const auto& first_ns = locality == Locality::kRemote ? contacts->first_remote_ns : contacts->first_self_node_ns;
    if (!first_ns.empty()) text += key_line("first_message_us", median_s(first_ns));
    if (locality == Locality::kRemote && !first_ns.empty() && !contacts->peer_ns.empty()) {
      text += key_line("first_peer_us", std::max(0.0, spread_of(contacts->peer_ns).quartile3_s - median_s(first_ns)));
    }
  }
  if (turns && !turns->turn_ns.empty()) text += key_line("turn_us", median_s(turns->turn_ns));
  if (turns && !turns->switch_ns.empty()) text += key_line("switch_us", median_s(turns->switch_ns));
  return text;
}

std::string contacts_about(const Contacts& contacts) {
  std::string text =
      "# what first messages took longer than later ones, turns, switches: first quartile, median, third "
      "quartile, "
      "mean, "
      "samples\n";
  for (const auto& [key, samples_ns] : {std::pair{"first_of_two_new_ranks_us", &contacts.peer_ns},
                                        std::pair{"first_remote_us", &contacts.first_remote_ns},
                                        std::pair{"first_self_node_us", &contacts.first_self_node_ns}}) {
    if (!samples_ns->empty()) text += fmt::format("{} = {}\n", key, spread_text(*samples_ns));
  }
  return text;
}

std::string turns_about(Locality locality, const Turns& turns) {
  const std::string_view prefix = locality == Locality::kRemote ? "remote" : "self_node";
  std::string text;
  for (const auto& [key, samples_ns] : {std::pair{"turn", &turns.turn_ns}, std::pair{"switch", &turns.switch_ns}}) {
    if (!samples_ns->empty()) text += fmt::format("{}_{}_us = {}\n", prefix, key, spread_text(*samples_ns));
  }
  return text;
}

}  // namespace lbf::tools
