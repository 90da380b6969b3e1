// The pictures of `lbf-report --scaling`: time and efficiency over ranks in the terminal, and a page. See scaling.h.
#include <fmt/format.h>

#include "base/times.h"
#include "report/html_parts.h"
#include "report/scaling.h"
#include "report/text.h"

namespace lbf::report {
namespace {

using html::escaped;

constexpr std::string_view kScalingCaption =
    "Where each rank has a processor. Rings are what was measured. Bars say how far each time may be off; one without "
    "a "
    "mark is a range, no number. A mark without a bar is a bound: no network is described.";

std::string cell(const std::string& text) {
  return "<td>" + escaped(text) + "</td>";
}

std::string rows_table(const ScalingAnswer& answer) {
  std::string rows;
  for (const ScalingRow& row : answer.rows) {
    const bool is_number = row.saying.is_number();
    rows += "<tr>" + cell(std::to_string(row.there.ranks)) + cell(std::to_string(row.there.nodes)) +
            cell(row.saying.in_words()) + cell(is_number ? "± " + row.saying.give_or_take() : "-") +
            cell(row.measured_s ? format_duration(*row.measured_s) : "-") +
            cell(is_number ? fmt::format("{:.0f} %", 100 * row.efficiency) : "-") +
            cell(is_number ? fmt::format("{:.3g}", row.there.node_hours()) : "-") +
            fmt::format("<td class=\"text\">{}</td></tr>", row.bound_by ? name_of(*row.bound_by) : "-");
  }
  return "<details open><summary>As numbers</summary><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th "
         "scope=\"col\">Ranks</th><th scope=\"col\">Nodes</th><th scope=\"col\">Time</th><th scope=\"col\">Give or "
         "take</th><th scope=\"col\">Measured</th><th scope=\"col\">Efficiency</th><th "
         "scope=\"col\">Node-hours</th><th "
         "scope=\"col\" class=\"text\">Bound by</th></tr></thead><tbody>" +
         rows + "</tbody></table></div></details>";
}

std::string laws_table(const ScalingAnswer& answer) {
  std::string rows;
  for (const auto& [part, law] : answer.laws)
    rows += fmt::format("<tr><td>{}</td><td class=\"text\">{}</td></tr>", escaped(part), escaped(law));
  return "<details><summary>Laws of the parts, p ranks</summary><div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
         "<th scope=\"col\">Part</th><th scope=\"col\" class=\"text\">Law</th></tr></thead><tbody>" +
         rows + "</tbody></table></div></details>";
}

}  // namespace

TimeChart scaling_chart(const ScalingAnswer& answer) {
  TimeChart chart;
  Curve& curve = chart.curves.emplace_back();
  curve.ran = true;
  for (const ScalingRow& row : answer.rows) {
    curve.points.push_back({row.there.ranks, nullptr, row.saying});
    if (row.measured_s) chart.measured.emplace_back(row.there.ranks, *row.measured_s);
  }
  chart.axes.push_back({"ranks", [](std::uint32_t ranks) { return std::to_string(ranks); }});
  chart.axes.push_back({"efficiency", [&answer](std::uint32_t ranks) {
                          for (const ScalingRow& row : answer.rows) {
                            if (row.there.ranks == ranks && row.saying.is_number())
                              return fmt::format("{:.0f} %", 100 * row.efficiency);
                          }
                          return std::string("-");
                        }});
  if (answer.knee) chart.knee = answer.rows[*answer.knee].there.ranks;
  return chart;
}

std::string plot_scaling(const ScalingAnswer& answer, const PlotStyle& style) {
  const std::string sentences = wrap(scaling_sentences(answer), style.width, 0);
  std::string out = wrap(scaling_head(answer), style.width, 0);
  if (!answer.rows.empty()) {
    const TimeChart chart = scaling_chart(answer);
    out += "\nRun time over ranks\n\n" + draw_chart(chart, style);
    out += fmt::format("\n  {} predicted\n", chart_mark(0, style));
    if (!chart.measured.empty()) out += fmt::format("  {} measured, the mean of the runs\n", measured_mark(style));
    out += fmt::format("  {} how far a time may be off\n", interval_mark(style));
    if (chart.knee) out += "  * the knee\n";
  }
  return sentences.empty() ? out : out + '\n' + sentences;
}

std::string scaling_html(const std::vector<ScalingAnswer>& answers, std::string_view version) {
  std::string out = "<header><h1>Run time over ranks</h1></header>\n";
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const ScalingAnswer& answer = answers[i];
    out += fmt::format("<section aria-labelledby=\"s{0}\"><h2 id=\"s{0}\">{1}</h2><p>{2}</p>", i,
                       escaped(answer.command.empty() ? "-" : answer.command), escaped(scaling_head(answer)));
    if (const std::string sentences = scaling_sentences(answer); !sentences.empty())
      out += "<p>" + escaped(sentences) + "</p>";
    if (answer.rows.empty()) {
      out += "<p class=\"missing\">One rank count makes no law: there is nothing to draw.</p>";
    } else {
      out += html::chart_figure(scaling_chart(answer), kScalingCaption,
                                "Predicted time over ranks; the table below has the numbers") +
             rows_table(answer) + laws_table(answer) + "</figure>";
    }
    out += "</section>\n";
  }
  if (answers.empty()) out += "<p class=\"missing\">No program ran with the same arguments at two rank counts.</p>";
  return html::page("lbf: run time over ranks", out, "lbf-report " + std::string(version),
                    "Each part of the longest path follows the simplest law that the runs support; the time is their "
                    "sum.");
}

}  // namespace lbf::report
