#include "report/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/number.h"
#include "base/quoted.h"
#include "base/times.h"
#include "report/step.h"
#include "report/text.h"

namespace lbf::report {
namespace {

// At the commas that are not in brackets.
std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> out;
  while (true) {
    std::size_t comma = 0;
    for (int depth = 0; comma < list.size() && (list[comma] != ',' || depth > 0); ++comma) {
      depth += list[comma] == '[' ? 1 : list[comma] == ']' ? -1 : 0;
    }
    if (comma == list.size()) comma = std::string_view::npos;
    out.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::uint64_t> parse_step(std::string_view text) {
  for (const std::uint64_t reserved : {0xfffffffbULL, 0xfffffffcULL, 0xfffffffaULL}) {
    if (text == step_name(reserved)) return reserved;
  }
  if (text.starts_with(kRunPrefix)) {
    text.remove_prefix(kRunPrefix.size());
    const auto number = parse_number<std::uint32_t>(text, 16);
    if (text.size() != 7 || !number) return std::nullopt;
    return kFirstRunNumber + *number;
  }
  const auto number = parse_number<std::uint32_t>(text);
  return number ? std::optional<std::uint64_t>(*number) : std::nullopt;
}

// "[1-3,7]" or "4". The tasks are asked for one by one: so many must do.
constexpr std::size_t kMostTasks = 1000;
std::optional<std::vector<std::uint32_t>> parse_tasks(std::string_view text) {
  if (!text.starts_with('[')) {
    const auto task = parse_number<std::uint32_t>(text);
    if (!task) return std::nullopt;
    return std::vector<std::uint32_t>{*task};
  }
  if (!text.ends_with(']')) return std::nullopt;
  std::vector<std::uint32_t> out;
  for (const std::string_view range : split(text.substr(1, text.size() - 2))) {
    const std::size_t dash = range.find('-');
    const auto first = parse_number<std::uint32_t>(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<std::uint32_t>(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMostTasks - out.size()) return std::nullopt;
    for (std::uint64_t task = *first; task <= *last; ++task) out.push_back(static_cast<std::uint32_t>(task));
  }
  return out;
}

}  // namespace

Result<std::vector<JobSelector>> parse_jobs(std::string_view list) {
  std::vector<JobSelector> out;
  for (const std::string_view item : split(list)) {
    const std::size_t at = item.find('@');
    if (at != std::string_view::npos && at + 1 == item.size())
      return invalid_input(fmt::format("'{}': after @ stands a cluster, for example 123.0@alpha", item));
    const std::string_view number = item.substr(0, at);
    const std::size_t dot = number.find('.');
    const std::string_view name = number.substr(0, dot);
    const std::size_t mark = name.find_first_of("_+");
    const auto job = parse_number<std::uint32_t>(name.substr(0, mark));
    if (!job || *job == 0) {
      return invalid_input(
          fmt::format("'{}' is no job; write JOB, JOB_TASK or JOB+OFFSET, and .STEP behind it for one step: "
                      "123, 123.0, 123_4, 123+1.0",
                      item));
    }
    JobSelector selector;
    selector.job = *job;
    if (at != std::string_view::npos) selector.cluster = item.substr(at + 1);
    std::vector<std::uint32_t> tasks;
    if (mark != std::string_view::npos) {
      const bool array = name[mark] == '_';
      const auto parts = parse_tasks(name.substr(mark + 1));
      if (!parts || (!array && name[mark + 1] == '[')) {
        return invalid_input(fmt::format("'{}': after {} stands {}, for example {}", item,
                                         array ? "_ (task of an array)" : "+ (part of a heterogeneous job)",
                                         array ? "one number, or up to 1000 in brackets" : "one number",
                                         array ? "123_4 or 123_[1-3,7]" : "123+1"));
      }
      (array ? selector.array_task : selector.het_offset) = parts->front();
      tasks = *parts;
    }
    if (dot != std::string_view::npos) {
      selector.step = parse_step(number.substr(dot + 1));
      if (!selector.step) {
        return invalid_input(
            fmt::format("'{}': the step is a number, batch, extern or interactive, for example 123.0", item));
      }
    }
    out.push_back(selector);
    for (std::size_t i = 1; i < tasks.size(); ++i) {
      selector.array_task = tasks[i];
      out.push_back(selector);
    }
  }
  return out;
}

Result<std::vector<std::string>> parse_users(std::string_view list) {
  std::vector<std::string> out;
  for (const std::string_view item : split(list)) {
    if (item.empty()) return invalid_input("a user name is empty; write -u NAME[,NAME...] or uids");
    out.emplace_back(item);
  }
  return out;
}

Result<std::vector<std::string>> parse_names(std::string_view list, std::string_view what) {
  std::vector<std::string> out;
  for (const std::string_view item : split(list)) {
    if (item.empty()) return invalid_input(fmt::format("{} in '{}' has no name; write NAME[,NAME...]", what, list));
    out.emplace_back(item);
  }
  return out;
}

Result<std::vector<std::string>> parse_states(std::string_view list) {
  struct Word {
    std::string_view word;
    std::string_view state;
  };
  constexpr std::array<Word, 7> kWords{{{"running", "running"},
                                        {"r", "running"},
                                        {"complete", "complete"},
                                        {"completed", "complete"},
                                        {"cd", "complete"},
                                        {"partial", "partial"},
                                        {"pa", "partial"}}};
  std::vector<std::string> out;
  for (const std::string_view item : split(list)) {
    std::string lowered(item);
    for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto* const found =
        std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) { return word.word == lowered; });
    if (found == kWords.end()) {
      return invalid_input(
          fmt::format("'{}' is no state; there are running (R), complete (CD) and partial (PA): how a job ended is "
                      "for sacct",
                      item));
    }
    out.emplace_back(found->state);
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       byte == '-' || byte == '.' || byte == '_' || byte == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

std::vector<std::string> request_targets(const Selection& selection) {
  std::string window = fmt::format("&limit={}", selection.limit);
  if (selection.since) window += fmt::format("&since={}", *selection.since);
  if (selection.until) window += fmt::format("&until={}", *selection.until);
  if (selection.submit_s) window += fmt::format("&submit={}", *selection.submit_s);
  if (selection.duplicates) window += "&duplicates=1";
  if (selection.detail) window += "&detail=1";
  if (selection.summary) window += "&summary=1";
  if (!selection.rows.empty()) window += "&rows=" + selection.rows;
  if (!selection.states.empty())
    window += "&state=" + percent_encoded(fmt::format("{}", fmt::join(selection.states, ",")));
  if (!selection.nodes.empty()) window += "&nodelist=" + percent_encoded(selection.nodes);

  std::vector<std::string> owners;
  const bool any_owner = !selection.jobs.empty() && selection.users.empty() && selection.operator_view;
  if (selection.all_users || any_owner) {
    owners.emplace_back("&all=1");
  } else if (selection.users.empty()) {
    owners.emplace_back("");
  } else {
    for (const std::string& user : selection.users) owners.push_back("&user=" + percent_encoded(user));
  }

  std::vector<std::string> queries;
  for (const std::string& owner : owners) {
    if (selection.jobs.empty()) queries.push_back(owner + window);
    for (const JobSelector& selector : selection.jobs) {
      queries.push_back("&" + query_of(selector) + owner + window);
    }
  }
  const auto for_each_name = [&queries](const char* parameter, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::vector<std::string> more;
    for (const std::string& query : queries) {
      for (const std::string& name : names) more.push_back(query + parameter + percent_encoded(name));
    }
    queries = std::move(more);
  };
  for_each_name("&cluster=", selection.clusters);
  for_each_name("&name=", selection.names);
  for_each_name("&account=", selection.accounts);
  for_each_name("&partition=", selection.partitions);
  std::vector<std::string> out;
  for (const std::string& query : queries) out.push_back("/v1/steps?" + query.substr(1));
  return out;
}

std::string text_of(const JobSelector& selector) {
  std::string out = std::to_string(selector.job);
  if (selector.array_task) out += '_' + std::to_string(*selector.array_task);
  if (selector.het_offset) out += '+' + std::to_string(*selector.het_offset);
  if (selector.step) out += '.' + step_name(*selector.step);
  if (!selector.cluster.empty()) out += '@' + selector.cluster;
  return out;
}

std::string query_of(const JobSelector& selector) {
  std::string out = fmt::format("job={}", selector.job);
  if (selector.array_task) out += fmt::format("&array_task={}", *selector.array_task);
  if (selector.het_offset) out += fmt::format("&het_offset={}", *selector.het_offset);
  if (selector.step) out += fmt::format("&step={}", *selector.step);
  if (!selector.cluster.empty()) out += "&cluster=" + percent_encoded(selector.cluster);
  return out;
}

std::string describe(const std::vector<JobSelector>& jobs) {
  std::string out = jobs.size() == 1 ? "job " : "jobs ";
  for (std::size_t i = 0; i < jobs.size(); ++i) out += (i > 0 ? ", " : "") + text_of(jobs[i]);
  return out;
}

std::string describe_filters(const Selection& selection) {
  std::string out;
  const auto add = [&out](std::string_view option, const std::string& value) {
    if (value.empty()) return;
    out.append(out.empty() ? "" : " ").append(option).append(" ").append(shell_word(printable(value)));
  };
  const auto list = [](const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ",")); };
  add("-M", list(selection.clusters));
  add("--name", list(selection.names));
  add("-u", list(selection.users));
  add("-A", list(selection.accounts));
  add("-r", list(selection.partitions));
  add("-s", list(selection.states));
  add("-N", selection.nodes);
  return out;
}

std::string describe_window(const Selection& selection) {
  std::string out;
  if (selection.since) out += " since " + format_timestamp(static_cast<double>(*selection.since));
  if (selection.until) out += " until " + format_timestamp(static_cast<double>(*selection.until));
  return out;
}

}  // namespace lbf::report
