#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/hostlist.h"
#include "base/network_name.h"
#include "base/times.h"
#include "report/advice.h"
#include "report/answer_json.h"
#include "report/curves.h"
#include "report/html_parts.h"
#include "report/other_programs.h"
#include "report/text.h"

namespace lbf::report {
namespace html {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

std::string page(std::string_view title, std::string_view body, std::string_view program, std::string_view closing) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
         "dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
         escaped(title) + "</title>\n<style>" + std::string(style()) + "</style>\n</head>\n<body>\n<main>\n" +
         std::string(body) + "<footer>Made by " + escaped(program) + ". " + escaped(closing) +
         "</footer>\n</main>\n</body>\n</html>\n";
}

}  // namespace html

namespace {

using html::escaped;
using Json = nlohmann::json;

std::string section(std::string_view id, std::string_view heading, const std::string& body,
                    std::string_view css_class = "") {
  return fmt::format("<section aria-labelledby=\"{0}\"{1}><h2 id=\"{0}\">{2}</h2>{3}</section>\n", id,
                     css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class), heading, body);
}

std::string missing(const std::string& text) {
  return "<p class=\"missing\">" + escaped(text) + "</p>";
}

std::string fact(std::string_view name, const std::string& value) {
  return value.empty() ? std::string() : fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, escaped(value));
}

std::string percent(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : std::string();
}

std::string head(const Step& step) {
  std::string program = command_line(step);
  if (program.empty()) program = step.job_name;
  std::string where;
  if (!step.user_name.empty())
    where += step.user_name + (step.account.empty() ? "" : ", account " + step.account) + " · ";
  if (!step.nodes.empty()) where += hostlist(step.nodes) + " · ";
  if (!step.partition.empty()) where += "partition " + step.partition + " · ";
  if (step.start_s) where += "started " + format_timestamp(*step.start_s) + " · ";
  where += name_of(step.state);
  if (!step.why_partial.empty()) where += ": " + step.why_partial;
  return fmt::format("<header><h1>Job {} {}</h1><p class=\"sub\">{}</p></header>\n", escaped(job_id(step)),
                     escaped(program), escaped(where));
}

// The report's closing note: its indented lines are to be pasted.
std::string advice_body(const Step& step) {
  constexpr std::size_t kAnyWidth = 100000;
  const std::string note = closing_note(step, kAnyWidth);
  std::string out;
  std::size_t at = 0;
  while (at < note.size()) {
    const std::size_t end = std::min(note.find('\n', at), note.size());
    const std::string line = note.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("    srun") || line.starts_with("    SLURM_HOSTFILE")) {
      out += "<pre>" + escaped(line.substr(4)) + "</pre>";
    } else if (!line.empty()) {
      out += "<p>" + escaped(line) + "</p>";
    }
  }
  return out;
}

std::string facts_body(const Step& step) {
  std::string out = "<dl class=\"facts\">";
  out += fact(step.running() ? "Measured so far" : "Measured",
              step.measured_s ? format_duration(*step.measured_s) : "not known yet");
  out += fact("Ranks", step.ranks ? std::to_string(*step.ranks) : "");
  out += fact("Nodes", step.nodes.empty() ? "" : std::to_string(step.nodes.size()));
  out += fact("Network that ran", step.network);
  out += fact("Self-prediction error", percent(step.self_error_percent(), "{:+.1f} %"));
  out += fact("Processors lost to others", lost_s(step) > 0 ? format_duration(lost_s(step)) : "");
  out += fact("Time in MPI", percent(step.mpi_percent(), "{:.1f} %"));
  out += fact("Of it unmodelled", percent(step.unmodelled_percent(), "{:.1f} %"));
  out += fact("Messages", step.messages ? std::to_string(*step.messages) : "");
  out += fact("Capture overhead", percent(step.overhead_percent(), "{:.2f} %"));
  out += "</dl>";
  if (!step.notes.empty()) {
    out += "<details><summary>Notes</summary><ul>";
    for (const std::string& note : step.notes) out += "<li>" + escaped(note) + "</li>";
    out += "</ul></details>";
  }
  return out;
}

std::string targets_table(const Step& step) {
  std::string rows;
  for (const TargetPrediction& target : step.predictions) {
    const auto saying = saying_of(step, target);
    const bool is_number = saying && saying->is_number();
    const auto ratio = is_number ? speedup(step, target) : std::nullopt;
    std::string predicted = saying ? saying->in_words() : advisor::Saying{}.in_words();
    if (!target.why_stuck.empty()) predicted = "would not end";
    if (!target.why_deferred.empty()) predicted = "deferred";
    rows += fmt::format(
        "<tr{}><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>",
        target.is_self() ? " class=\"self\"" : "", escaped(shorten(target.target, 40)), escaped(target.network),
        escaped(target.kind == "self" ? "ran" : target.kind), predicted,
        is_number ? "± " + saying->give_or_take() : "-", ratio ? fmt::format("{:.2f}×", *ratio) : "-",
        is_number && target.nodes ? fmt::format("{:.4g}", *target.predicted_s * *target.nodes / 3600) : "-");
  }
  return "<details><summary>All targets as numbers</summary><div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
         "<th scope=\"col\" class=\"text\">Target</th><th scope=\"col\" class=\"text\">Network</th><th scope=\"col\" "
         "class=\"text\">Kind</th><th scope=\"col\">Predicted</th><th scope=\"col\">Give or take</th><th "
         "scope=\"col\">Speed-up</th><th "
         "scope=\"col\">Node-hours</th></tr></thead><tbody>" +
         rows + "</tbody></table></div></details>";
}

// "direct_s" -> "direct", "1.2 s".
std::pair<std::string, std::string> cost_line(const std::string& key, const Json& value) {
  std::string name = key;
  std::string text;
  const auto cut = [&name](std::string_view end) {
    if (!name.ends_with(end)) return false;
    name.erase(name.size() - end.size());
    return true;
  };
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_boolean()) {
    text = value.get<bool>() ? "yes" : "no";
  } else if (value.is_number()) {
    const double number = value.get<double>();
    if (cut("_percent")) {
      text = fmt::format("{:.2f} %", number);
    } else if (cut("_share")) {
      text = fmt::format("{:.1f} %", 100 * number);
    } else if (cut("_s")) {
      text = format_duration(number);
    } else {
      text = value.is_number_integer() ? value.dump() : fmt::format("{:.4g}", number);
    }
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  if (!name.empty() && name.front() >= 'a' && name.front() <= 'z')
    name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return {name, text};
}

std::string cost_body(const Step& step, std::string_view step_json) {
  const Json json = json_of_answer(step_json);
  std::string lines;
  if (json.is_object() && json.contains("cost") && json["cost"].is_object()) {
    for (const auto& [key, value] : json["cost"].items()) {
      const auto [name, text] = cost_line(key, value);
      lines += fact(escaped(name), text);
    }
  }
  if (!lines.empty()) return "<dl class=\"facts\">" + lines + "</dl>";
  std::string out = missing(
      "This lbfd has no cost record of the step: what the limit was and how it was kept is "
      "not known.");
  if (step.capture_s && step.relay_cpu_s) {
    out += fmt::format("<p>Counted without it: capture {}, relays {} of processor time{}.</p>",
                       format_duration(*step.capture_s, 3), format_duration(*step.relay_cpu_s, 3),
                       step.overhead_percent() ? fmt::format(", {:.2f} % of the ranks' time", *step.overhead_percent())
                                               : std::string());
  }
  return out;
}

}  // namespace

std::optional<std::size_t> chosen_target(const Step& step) {
  if (step.predictions.empty()) return std::nullopt;
  const TargetPrediction* chosen = advise(step).first();
  if (chosen == nullptr) {
    for (const TargetPrediction& target : step.predictions) {
      if (target.is_self() || !target.predicted_s || is_bound(target.network, target.nodes.value_or(1))) continue;
      if (chosen == nullptr || *target.predicted_s < *chosen->predicted_s) chosen = &target;
    }
  }
  return chosen == nullptr ? 0 : static_cast<std::size_t>(chosen - step.predictions.data());
}

std::string render_html(const HtmlPage& page) {
  const Step& step = *page.step;
  const auto number = chosen_target(step);
  const TargetPrediction* chosen = number ? &step.predictions[*number] : nullptr;
  std::string out = head(step);
  out += section("advice", "What to change", advice_body(step), "advice");
  out += section("facts", "The run", facts_body(step));
  const std::string no_prediction = step.running() ? "There is no prediction yet: the step is still running."
                                                   : "There is no prediction of this step.";
  const std::string nothing_drawn =
      step.predictions.empty() ? no_prediction : "No time of this step is known well enough to be drawn.";
  out += section("curves", "Predicted time over nodes",
                 (curves_of(step).empty() ? missing(nothing_drawn) : html::curves_figure(step)) +
                     (step.predictions.empty() ? "" : targets_table(step)));
  out += section("pareto", "Time against node-hours",
                 costs_of(step).empty() ? missing(nothing_drawn) : html::pareto_figure(step, chosen));
  const std::string no_picture = page.why_no_picture.empty() ? no_prediction : page.why_no_picture;
  const bool drawn = page.picture && chosen != nullptr;
  out +=
      section("matrix", "Who sends to whom",
              drawn ? html::matrix_figures(*page.picture, *chosen) : missing("No communication matrix: " + no_picture));
  out += section("timeline", "What the ranks do when",
                 drawn ? html::timeline_figures(*page.picture, step, *chosen) : missing("No timelines: " + no_picture));
  if (step.procedures) out += section("procedures", "What if a procedure ran elsewhere", html::procedures_body(step));
  out += section("cost", "What the capture cost", cost_body(step, page.step_json));
  return html::page("lbf: job " + job_id(step), out, "lbf-report " + page.version,
                    "Predictions are replays of the recorded messages; the bars say how far to trust them.");
}

}  // namespace lbf::report
