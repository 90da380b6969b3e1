#include "tools/whatif/whatif_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "event/mpi_function_table.h"
#include "report/curves.h"
#include "report/html_parts.h"
#include "tools/whatif/procedure_output.h"

namespace lbf::tools {
namespace {

using report::html::escaped;
using Kind = ProcedureScenario::Kind;

constexpr std::size_t kColors = 8;  // of the style sheet
constexpr std::size_t kMostPathRows = 8;
constexpr int kPercentStep = 10;

std::string section(std::string_view id, std::string_view title, const std::string& body) {
  return fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>{2}</section>\n",
                     id, escaped(title), body);
}

// `words`: how many columns are words. Cells are escaped here. `drawings`: the last cell of each row, as it is.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                  std::size_t words, const std::vector<std::string>& drawings = {}) {
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
  for (std::size_t i = 0; i < head.size(); ++i) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", i < words ? " class=\"text\"" : "", escaped(head[i]));
  }
  out += "</tr></thead><tbody>";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto& row = rows[r];
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += fmt::format("<td{}>{}</td>", i < words ? " class=\"text\"" : "", escaped(row[i]));
    if (!drawings.empty()) out += "<td>" + drawings[r] + "</td>";
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

std::string seconds_cell(const engine::Prediction& prediction) {
  if (!prediction.complete) return "stuck";
  return is_known(prediction) ? fmt::format("{:.6g}", prediction.lbf_s) : "unknown";
}

std::string gain_cell(const engine::Prediction& as_it_ran, const engine::Prediction& changed) {
  const auto percent = gain_percent(as_it_ran, changed);
  return percent ? fmt::format("{:.1f} %", *percent) : "-";
}

// The interval that the words give, from 0 to MOST_S; a range has no mark, a bound no bar.
std::string interval_drawing(const std::optional<advisor::Saying>& saying, Seconds most_s) {
  if (!saying || saying->form == advisor::Saying::Form::kCannotTell || !(most_s > 0)) return {};
  constexpr double kWidth = 160;
  constexpr double kMargin = 5;
  const auto x = [&](Seconds at_s) { return kMargin + at_s / most_s * (kWidth - 2 * kMargin); };
  std::string body;
  if (saying->has_interval()) {
    body = fmt::format(
        "<path d=\"M{0:.1f} 8H{1:.1f}M{0:.1f} 4v8M{1:.1f} 4v8\" stroke=\"var(--n0)\" stroke-width=\"1.5\"/>",
        x(saying->low_s), x(saying->high_s));
  }
  if (saying->form != advisor::Saying::Form::kRange)
    body += fmt::format("<circle cx=\"{:.1f}\" cy=\"8\" r=\"4\" fill=\"var(--n0)\"/>", x(saying->mark_s()));
  return fmt::format(
      "<svg viewBox=\"0 0 {0} 16\" width=\"{0}\" height=\"16\" role=\"img\" aria-label=\"{1}\">{2}</svg>", kWidth,
      saying->in_words(), body);
}

std::string targets_body(const WhatIfResult& result) {
  const std::vector<std::string> head{"Nodes",        "Placement", "Network", "Contention",
                                      "Predicted, s", "Low, s",    "High, s", "Interval"};
  const engine::Prediction& first = result.predictions.front();
  std::string out;
  if (first.seen_share < 1) {
    const std::string why = why_unknown(result, first);
    out = "<p>" +
          escaped(why.empty() ? fmt::format("{:.1f} % of the run was captured: times are extrapolated from it",
                                            100 * first.seen_share)
                              : "No prediction: " + why) +
          ".</p>";
  }
  if (const std::string others = others_note(result); !others.empty())
    out += "<p>O" + escaped(others.substr(1)) + ".</p>";
  std::vector<std::optional<advisor::Saying>> sayings;
  Seconds most_s = 0;
  for (std::size_t t = 0; t < result.targets.size(); ++t) {
    sayings.push_back(saying_of(result, t));
    if (sayings.back()) most_s = std::max({most_s, sayings.back()->low_s, sayings.back()->high_s});
  }
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> drawings;
  for (std::size_t t = 0; t < result.targets.size(); ++t) {
    const engine::Target& target = result.targets[t];
    const auto [predicted, low, high] = shown_time(sayings[t], "%.6g");
    const std::string threads = target.threads != 0 ? fmt::format(", {} threads", target.threads) : std::string();
    rows.push_back({std::to_string(target.nodes), target.placement.substr(0, 48) + threads, target.network->name(),
                    contention_name(target.network->contention()),
                    predicted + (is_beside_others(result, target) ? " +" : ""), low, high});
    drawings.push_back(interval_drawing(sayings[t], most_s));
  }
  out += table(head, rows, 4, drawings);
  for (const std::string& line : why_no_numbers(result)) out += "<p>" + escaped(line) + ".</p>";
  return out;
}

const engine::Prediction* find(const ProcedureAnswer& answer, Kind kind, std::size_t procedure, int percent,
                               std::size_t target) {
  for (std::size_t v = 0; v < answer.question.scenarios.size(); ++v) {
    const ProcedureScenario& one = answer.question.scenarios[v];
    if (one.kind == kind && one.procedure == procedure && one.percent == percent) return &answer.predictions[v][target];
  }
  return nullptr;
}

std::string procedures_body(const ProcedureAnswer& answer) {
  const ProcedureQuestion& question = answer.question;
  const engine::PathProfile& path = answer.path;
  const auto share = [&](Seconds part_s) {
    return fmt::format("{:.1f} %", path.length_s > 0 ? 100 * part_s / path.length_s : 0);
  };
  std::vector<std::vector<std::string>> rows;
  for (std::size_t p = 0; p < question.names.size(); ++p) {
    const engine::ProcedureStats& stats = answer.procedure_stats[p];
    const Seconds on_path_s = p < path.procedure_s.size() ? path.procedure_s[p] : 0;
    const std::string calls = question.sampled.contains(question.names[p]) ? "sampled" : std::to_string(stats.calls);
    rows.push_back({question.names[p], calls, fmt::format("{:.6g}", stats.inclusive_s),
                    fmt::format("{:.6g}", stats.exclusive_s), fmt::format("{:.6g}", on_path_s),
                    path.seen_s() > 0 ? fmt::format("{:.1f} %", 100 * on_path_s / path.seen_s()) : "-"});
  }
  std::string out = table({"Procedure", "Calls", "Time, s", "Self, s", "On the critical path, s", "Of it"}, rows, 1);
  out += fmt::format(
      "<p>Critical path of the first target: {:.6g} s to the end of rank {}: process time in none of these {}, MPI {}, "
      "blocked {}{}.</p>",
      path.length_s, path.ends_at, share(path.other_work_s), share(path.mpi_s), share(path.blocked_s),
      path.unseen_s > 0 ? ", not captured " + share(path.unseen_s) : std::string());
  const auto list = [&](std::string_view what, const auto& entries, const auto& name) {
    if (entries.empty()) return;
    out += fmt::format("<p>{}: ", what);
    for (std::size_t i = 0; i < std::min(kMostPathRows, entries.size()); ++i) {
      out += (i > 0 ? ", " : "") + escaped(name(entries[i].first)) + " " + share(entries[i].second);
    }
    out += entries.size() > kMostPathRows ? ", ...</p>" : "</p>";
  };
  list("Ranks", path.rank_s, [](std::int32_t rank) {
    return rank == engine::PathProfile::kOthers ? std::string("others") : std::to_string(rank);
  });
  list("MPI functions", path.function_s, [](std::int32_t function) {
    if (function == engine::PathProfile::kOthers) return std::string("others");
    return function == 0 ? std::string("(not said)")
                         : std::string(mpi_function_name(static_cast<std::uint16_t>(function)));
  });
  if (!question.left_out.empty()) {
    out += "<p>Left out, because they were switched off while they ran: ";
    for (const std::string& name : question.left_out)
      out += (&name == question.left_out.data() ? "" : ", ") + escaped(name);
    out += ".</p>";
  }
  return out;
}

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Plot {
  std::string caption;
  std::string label;    // for those who do not see it
  std::string x_title;  // of the axis
  std::string x_format;
  std::vector<double> x_marks;  // ascending; the axis goes from the first to the last, or as far as curves do
  bool shows_points = false;
};

// Gain in percent for each curve that was asked for, by percent of the time.

std::vector<Curve> curves_of(const ProcedureAnswer& answer, const engine::Prediction& as_it_ran, std::size_t target) {
  const ProcedureQuestion& question = answer.question;
  std::vector<Curve> curves;
  for (const ProcedureScenario& scenario : question.scenarios) {
    if (scenario.kind < Kind::kCurveMoved || scenario.percent != 100) continue;
    const bool is_asked = scenario.kind == Kind::kCurveAsked;
    Curve curve;
    curve.name = is_asked ? question.asked
                          : question.names[scenario.procedure] +
                                (scenario.kind == Kind::kCurveMoved ? ", moved to the " + question.to : ", faster");
    curve.points.emplace_back(0, 0.0);
    for (int percent = kPercentStep; percent <= 100; percent += kPercentStep) {
      const engine::Prediction* const changed = find(answer, scenario.kind, scenario.procedure, percent, target);
      const auto gained = changed == nullptr ? std::nullopt : gain_percent(as_it_ran, *changed);
      if (gained) curve.points.emplace_back(percent, *gained);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::string curve_figure(const std::vector<Curve>& curves, const Plot& plot) {
  double low = 0;
  double high = 1;
  double left = plot.x_marks.front();
  double right = plot.x_marks.back();
  for (const Curve& curve : curves) {
    for (const auto& [at, percent] : curve.points) {
      low = std::min(low, percent);
      high = std::max(high, percent);
      left = std::min(left, at);
      right = std::max(right, at);
    }
  }
  constexpr double kWidth = 640;
  constexpr double kHeight = 300;
  constexpr double kLeft = 48;
  constexpr double kRight = 12;
  constexpr double kTop = 10;
  constexpr double kBottom = 40;
  const std::vector<double> ticks = report::axis_ticks(low, high, 5);
  const double bottom = ticks.front();
  const double top = std::max(ticks.back(), bottom + 1);
  const auto x = [&](double at) { return kLeft + (at - left) / (right - left) * (kWidth - kLeft - kRight); };
  const auto y = [&](double percent) {
    return kHeight - kBottom - (percent - bottom) / (top - bottom) * (kHeight - kTop - kBottom);
  };
  std::string body;
  for (const double tick : ticks) {
    body += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:g} %</text>",
        kLeft, kWidth - kRight, y(tick), kLeft - 4, y(tick) + 4, tick);
  }
  for (const double mark : plot.x_marks) {
    body += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x(mark), kHeight - 22,
                        fmt::format(fmt::runtime(plot.x_format), mark));
  }
  body += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x((left + right) / 2),
                      kHeight - 4, escaped(plot.x_title));
  std::string legend;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string points;
    for (const auto& [at, percent] : curves[i].points) {
      points += fmt::format("{:.1f},{:.1f} ", x(at), y(percent));
      if (plot.shows_points) {
        body += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"var(--n{})\"/>", x(at), y(percent),
                            i % kColors);
      }
    }
    const std::string line = fmt::format("fill=\"none\" stroke=\"var(--n{})\" stroke-width=\"2\"{}", i % kColors,
                                         i == 0 ? "" : fmt::format(" stroke-dasharray=\"{} 3\"", 3 + 3 * (i % 3)));
    body += fmt::format("<polyline points=\"{}\" {}/>", points, line);
    legend += fmt::format(
        "<li><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><line x1=\"0\" x2=\"16\" y1=\"8\" y2=\"8\" "
        "{}/></svg>{}</li>",
        line, escaped(curves[i].name));
  }
  return fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}; the numbers are in the table below\">{}</svg><ul class=\"legend\">{}</ul></figure>",
      escaped(plot.caption), kWidth, kHeight, escaped(plot.label), body, legend);
}

std::string curve_table(const std::vector<Curve>& curves) {
  std::vector<std::string> head{"Of the time"};
  for (const Curve& curve : curves) head.push_back(curve.name);
  std::vector<std::vector<std::string>> rows;
  for (int percent = kPercentStep; percent <= 100; percent += kPercentStep) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(fmt::format("{} %", percent));
    for (const Curve& curve : curves) {
      const auto point =
          std::find_if(curve.points.begin(), curve.points.end(), [&](const auto& one) { return one.first == percent; });
      row.push_back(point == curve.points.end() ? "-" : fmt::format("{:.1f} %", point->second));
    }
  }
  return "<details><summary>The numbers</summary>" + table(head, rows, 0) + "</details>";
}

std::string target_body(const WhatIfResult& result, const ProcedureAnswer& answer, std::size_t t) {
  const ProcedureQuestion& question = answer.question;
  const engine::Prediction& as_it_ran = result.predictions[t];
  std::string out = fmt::format("<p>As it ran: {} s.</p>", seconds_cell(as_it_ran));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t p = 0; p < question.names.size(); ++p) {
    const engine::Prediction* const moved = find(answer, Kind::kLbf, p, 100, t);
    const engine::Prediction* const zeroed = find(answer, Kind::kZeroing, p, 100, t);
    if (moved == nullptr || zeroed == nullptr) continue;
    rows.push_back({question.names[p], seconds_cell(*moved), gain_cell(as_it_ran, *moved), seconds_cell(*zeroed),
                    gain_cell(as_it_ran, *zeroed)});
  }
  if (!rows.empty())
    out += table({"Procedure", "Procedure LBF, s", "Shorter", "Critical Path Zeroing, s", "Shorter"}, rows, 1);
  for (std::size_t v = 0; v < question.scenarios.size(); ++v) {
    if (question.scenarios[v].kind != Kind::kAsked) continue;
    const engine::Prediction& changed = answer.predictions[v][t];
    out += fmt::format("<p>{}: {} s, {} shorter", escaped(question.asked), seconds_cell(changed),
                       gain_cell(as_it_ran, changed));
    if (const Seconds stayed_s = answer.scenario_stats[v].stayed_s; stayed_s > 0)
      out += fmt::format("; {:.6g} s of it stayed where they ran, because there is no message to go with", stayed_s);
    out += ".</p>";
  }
  const Plot plot{
      "How much shorter the run would be. A curve that goes flat says that something else has become the "
      "longest path; one that turns, how much is worth moving.",
      "Gain over the part of the time that is moved or saved",
      "of the procedure's time",
      "{:g} %",
      {0, 20, 40, 60, 80, 100}};
  if (const std::vector<Curve> curves = curves_of(answer, as_it_ran, t); !curves.empty())
    out += curve_figure(curves, plot) + curve_table(curves);
  return out;
}

std::string sensitivity_body(const TargetSensitivity& of) {
  const std::vector<engine::Parameter>& parameters = of.answer.asked.parameters;
  std::string out = fmt::format("<p>Bound by: {}.</p>", escaped(of.bound_by()));
  if (const std::string imbalance = of.imbalance(); !imbalance.empty())
    out += "<p>W" + escaped(imbalance.substr(1)) + ".</p>";
  std::vector<std::vector<std::string>> rows;
  for (const PathGrouping& grouping : kPathGroupings) {
    for (const TargetSensitivity::PathRow& row : of.path_rows(grouping.by, kMostPathRows)) {
      rows.push_back({grouping.words, row.name, fmt::format("{:.6g}", row.seconds),
                      fmt::format("{:.1f} %", of.seen_s() > 0 ? 100 * row.seconds / of.seen_s() : 0)});
    }
  }
  out += table({"Critical path by", "Name", "Seconds", "Of the time"}, rows, 2);
  rows.clear();
  std::vector<Curve> curves;
  for (std::size_t p = 0; p < of.curves.size(); ++p) {
    const engine::SensitivityCurve& found = of.curves[p];
    Curve& curve = curves.emplace_back();
    curve.name = engine::parameter_name(parameters[p]);
    for (const engine::SensitivityCurve::Point& point : found.points) {
      const double percent = of.percent_longer(found, point.factor);
      curve.points.emplace_back(point.factor, percent);
      rows.push_back({curve.name, shown_value(of.target, parameters[p], point.factor),
                      fmt::format("{:.4g}", point.factor), fmt::format("{:.6g}", point.time_s),
                      fmt::format("{:.2f} %", percent)});
    }
    for (const engine::FactorRange& range : found.not_convex) {
      out += fmt::format(
          "<p>{}, {:.3g} to {:.3g} times: the time depends on the order of events there; the lines are "
          "approximate.</p>",
          curve.name, range.low, range.high);
    }
  }
  std::vector<double> marks = report::axis_ticks(of.answer.asked.range.low, of.answer.asked.range.high, 6);
  while (marks.size() > 2 && marks.front() < of.answer.asked.range.low) marks.erase(marks.begin());
  while (marks.size() > 2 && marks.back() > of.answer.asked.range.high) marks.pop_back();
  out += curve_figure(curves, {"How much longer the run takes where one of them alone takes more of its time. Where a "
                               "line bends, another path becomes the longest.",
                               "Time over the factor of each parameter", "times what it is", "{:g}", marks, true});
  return out + "<details><summary>The numbers</summary>" +
         table({"Parameter", "Value", "Factor", "Time, s", "Longer"}, rows, 1) + "</details>";
}

}  // namespace

std::string whatif_html(const WhatIfResult& result, const std::string& version) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>lbf-whatif: " +
      escaped(result.trace) + "</title>\n<style>" + std::string(report::html::style()) +
      "</style>\n</head>\n<body>\n<main>\n<h1>What if: " + escaped(result.trace) + "</h1>\n" +
      fmt::format("<p class=\"sub\">{} {}</p>\n", result.ranks, result.ranks == 1 ? "rank" : "ranks");
  if (!result.why_partial.empty())
    out += "<p class=\"missing\">The prediction is partial: " + escaped(result.why_partial) + "</p>\n";
  out += section("targets", "Predicted run time", targets_body(result));
  for (std::size_t t = 0; result.sensitivity && t < result.targets.size(); ++t) {
    if (!result.predictions[t].complete) continue;
    out += section("sensitivity-" + std::to_string(t), "Sensitivity: " + target_name(result.targets[t]).substr(0, 120),
                   sensitivity_body(
                       {*result.sensitivity, result.targets[t], result.predictions[t], result.sensitivity->curves[t]}));
  }
  if (result.procedures) {
    out += section("procedures", "Procedures and the critical path", procedures_body(*result.procedures));
    for (std::size_t t = 0; t < result.targets.size(); ++t) {
      out += section("target-" + std::to_string(t),
                     "If they ran elsewhere: " + target_name(result.targets[t]).substr(0, 120),
                     target_body(result, *result.procedures, t));
    }
  }
  return out + "<footer>Made by lbf-whatif " + escaped(version) +
         ". Predictions are replays of the recorded messages.</footer>\n</main>\n</body>\n</html>\n";
}

}  // namespace lbf::tools
