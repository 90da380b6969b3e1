#include "report/accuracy.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/answer_json.h"
#include "report/fields.h"
#include "report/text.h"

namespace lbf::report {
namespace {

using Json = nlohmann::json;

Error wrong_answer(const char* what) {
  return invalid_input(std::string("the answer does not keep to HTTP API version 1: ") + what +
                       "; is this the lbfd that belongs to this lbf-report (lbf-report --version)?");
}

std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get<std::string>()) : std::string();
}

// Nothing: no summary.
std::optional<ErrorSummary> summary_of(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto outcomes = object.find("outcomes");
  if (outcomes == object.end() || !outcomes->is_number_unsigned()) return std::nullopt;
  ErrorSummary out;
  out.outcomes = outcomes->get<std::uint64_t>();
  out.median_percent = number_of(object, "median_percent");
  out.p90_percent = number_of(object, "p90_percent");
  out.worst_percent = number_of(object, "worst_percent");
  return out;
}

std::string percent(const std::optional<double>& value, bool with_sign) {
  if (!value) return {};
  return with_sign ? fmt::format("{:+.1f}%", *value) : fmt::format("{:.1f}%", *value);
}

// "gnu:0123456789ab...": enough to tell builds apart.
std::string short_build_id(const std::string& identity) {
  constexpr std::size_t kShown = 12;
  const std::size_t colon = identity.find(':');
  return identity.substr(0, colon == std::string::npos ? kShown : colon + 1 + kShown);
}

}  // namespace

Result<ErrorFit> parse_error_fit(std::string_view text) {
  const Json json = json_of_answer(text);
  if (!json.is_object() || !json.contains("program") || !json.contains("site"))
    return wrong_answer("'program' or 'site' is missing");
  const auto program = summary_of(json["program"]);
  const auto site = summary_of(json["site"]);
  if (!program || !site) return wrong_answer("'outcomes' is missing");
  return ErrorFit{*program, *site};
}

Result<std::vector<AccuracyLine>> parse_accuracy(std::string_view text) {
  const Json json = json_of_answer(text);
  if (!json.is_object() || !json.contains("all")) return wrong_answer("'all' is missing");
  std::vector<AccuracyLine> lines;
  const auto all = summary_of(json["all"]);
  if (!all) return wrong_answer("'all' is no summary");
  lines.push_back({"all", "", "", *all});
  for (const auto& [list, group] : {std::pair{"by_distance", "distance"}, std::pair{"by_program", "program"},
                                    std::pair{"by_month", "month"}, std::pair{"by_week", "week"}}) {
    const auto found = json.find(list);
    if (found == json.end()) continue;
    if (!found->is_array()) return wrong_answer("a group is no list");
    for (const Json& one : *found) {
      const auto errors = summary_of(one);
      if (!errors) return wrong_answer("a group has no 'outcomes'");
      AccuracyLine line{group, text_of(one, group), "", *errors};
      if (std::string_view(group) == "program") {
        const auto ranks = number_of(one, "ranks").value_or(0);
        line.key = fmt::format("{}, {:.0f} {}", text_of(one, "name"), ranks, ranks == 1 ? "rank" : "ranks");
        line.build_id = text_of(one, "build_id");
      }
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::string accuracy_target(const Selection& selection) {
  std::string query;
  const auto add = [&](const std::string& parameter) { query += (query.empty() ? '?' : '&') + parameter; };
  if (selection.all_users) add("all=1");
  if (!selection.users.empty()) add("user=" + percent_encoded(selection.users.front()));
  if (selection.since) add("since=" + std::to_string(*selection.since));
  if (selection.until) add("until=" + std::to_string(*selection.until));
  return "/v1/accuracy" + query;
}

std::string render_accuracy(const std::vector<AccuracyLine>& lines, const TableStyle& style) {
  struct Cell {
    std::string_view name;
    std::size_t width;
    bool left;
  };
  static constexpr std::array kCells = {Cell{"Group", 8, true},     Cell{"Key", 20, true},    Cell{"BuildID", 16, true},
                                        Cell{"Outcomes", 8, false}, Cell{"Median", 7, false}, Cell{"P90", 7, false},
                                        Cell{"Worst", 8, false}};
  std::string out;
  const auto write = [&](const std::array<std::string, kCells.size()>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += style.parsable ? style.delimiter : std::string(" ");
      line += shown_cell(cells[i], kCells[i].width, kCells[i].left, style);
    }
    if (style.parsable && style.trailing) line += style.delimiter;
    if (!style.parsable) line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  if (style.header) {
    std::array<std::string, kCells.size()> names;
    std::array<std::string, kCells.size()> rules;
    for (std::size_t i = 0; i < kCells.size(); ++i) {
      names[i] = kCells[i].name;
      rules[i] = std::string(kCells[i].width, '-');
    }
    write(names);
    if (!style.parsable) write(rules);
  }
  for (const AccuracyLine& line : lines) {
    if (line.errors.outcomes == 0) continue;
    write({line.group, line.key, style.parsable ? line.build_id : short_build_id(line.build_id),
           std::to_string(line.errors.outcomes), percent(line.errors.median_percent, true),
           percent(line.errors.p90_percent, false), percent(line.errors.worst_percent, true)});
  }
  return out;
}

std::string accuracy_sentence(const std::vector<AccuracyLine>& lines) {
  const ErrorSummary& all = lines.front().errors;
  if (all.outcomes == 0 || !all.p90_percent) return {};
  return fmt::format(
      "Give or take {:.1f} %: 90 % of these predictions were as near to what was measured. Bounds (at best) are no "
      "outcomes.",
      *all.p90_percent);
}

}  // namespace lbf::report
