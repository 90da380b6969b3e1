// The pictures of `lbf-report --savings`: bars in the terminal, and a page. See savings.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/curves.h"
#include "report/html_parts.h"
#include "report/savings.h"
#include "report/text.h"

namespace lbf::report {
namespace {

constexpr std::size_t kMostBars = 12;  // of a group
constexpr std::size_t kNarrowestSavings = 50;

std::string saved_text(const Saved& saved) {
  return fmt::format("{:.4g} ({:.4g} to {:.4g}) of {:.4g}", saved.saved, saved.low, saved.high, saved.used);
}

// The lines that save something, at most kMostBars, and how many are left out.
struct Bars {
  std::vector<Savings::Line> lines;
  std::size_t further = 0;
};
Bars bars_of(const Savings& savings, std::size_t group) {
  Bars out{savings.lines(group), 0};
  std::erase_if(out.lines, [](const Savings::Line& line) { return line.saved.advised == 0; });
  if (out.lines.size() > kMostBars) {
    out.further = out.lines.size() - kMostBars;
    out.lines.resize(kMostBars);
  }
  return out;
}

double longest_bar(const Savings& savings) {
  double longest = 0;
  for (std::size_t i = 0; i < Savings::kGroups.size(); ++i) {
    for (const Savings::Line& line : savings.lines(i)) longest = std::max(longest, line.saved.high);
  }
  return longest;
}

std::string terminal_bar(const Saved& saved, double longest, std::size_t width, PlotCharacters characters) {
  const bool unicode = characters == PlotCharacters::kUnicode;
  const auto column = [&](double value) {
    return static_cast<std::size_t>(std::lround(std::max(value, 0.0) / longest * static_cast<double>(width - 1)));
  };
  std::string out;
  for (std::size_t x = 0; x < width; ++x) {
    if (x == column(saved.saved)) {
      out += unicode ? "┃" : "|";
    } else if (x < column(saved.low)) {
      out += unicode ? "█" : "#";
    } else if (x <= column(saved.high)) {
      out += unicode ? "─" : "-";
    } else {
      out += ' ';
    }
  }
  return out;
}

std::string savings_svg(const std::vector<Savings::Line>& lines, double longest, double width,
                        std::string_view css_class) {
  constexpr double kRow = 44;
  constexpr double kTop = 6;
  constexpr double kBottom = 34;
  const double height = kTop + kRow * static_cast<double>(lines.size()) + kBottom;
  const std::vector<double> ticks = axis_ticks(0, longest, width < 500 ? 3 : 6);
  const double right = width - 24;
  const auto x = [&](double hours) { return 4 + hours / ticks.back() * (right - 4); };
  std::string body;
  for (const double tick : ticks) {
    body += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"{4}\">{5:.4g}</text>",
        x(tick), kTop, height - kBottom, height - kBottom + 14, tick == 0 ? "start" : "middle", tick);
  }
  body += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">node-hours</text>", right, height - 4);
  double y = kTop;
  for (const Savings::Line& line : lines) {
    const Saved& saved = line.saved;
    body += fmt::format(
        "<g><title>{0}: {1}</title><text class=\"strong\" x=\"4\" y=\"{2:.1f}\">{3}</text><rect x=\"4\" y=\"{4:.1f}\" "
        "width=\"{5:.1f}\" height=\"14\" fill=\"var(--n0)\"/><path d=\"M{6:.1f} {7:.1f}H{8:.1f}M{6:.1f} "
        "{9:.1f}v8M{8:.1f} "
        "{9:.1f}v8\" stroke=\"var(--ink)\" stroke-width=\"1.5\" fill=\"none\"/></g>",
        html::escaped(line.key), saved_text(saved), y + 14, html::escaped(shorten(line.key, width < 500 ? 30 : 80)),
        y + 20, x(saved.saved) - 4, x(saved.low), y + 27, x(saved.high), y + 23);
    y += kRow;
  }
  return fmt::format(
      "<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Node-hours saved; the table below has the "
      "numbers\">{}</svg>",
      css_class, width, height, body);
}

std::string savings_table(std::string_view group, const std::vector<Savings::Line>& lines) {
  std::string rows;
  for (const Savings::Line& line : lines) {
    const Saved& saved = line.saved;
    rows += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{:.4g}</td><td>{:.4g}</td><td>{:.4g}</td>"
        "<td>{:.4g}</td><td>{:.4g}</td></tr>",
        html::escaped(line.key), saved.steps, saved.advised, saved.used, saved.saved, saved.low, saved.high,
        saved.unknown_used);
  }
  return fmt::format(
      "<details><summary>As numbers</summary><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\" "
      "class=\"text\">{}</th><th scope=\"col\">Steps</th><th scope=\"col\">Advised</th><th "
      "scope=\"col\">Node-hours</th><th scope=\"col\">Saved</th><th scope=\"col\">Low</th><th "
      "scope=\"col\">High</th><th scope=\"col\">Not known</th></tr></thead><tbody>{}</tbody></table></div></details>",
      group, rows);
}

}  // namespace

std::string plot_savings(const Savings& savings, const Selection& selection, std::size_t width,
                         PlotCharacters characters) {
  width = std::max(width, kNarrowestSavings);
  std::string out = wrap(savings_sentence(savings, selection), width, 0);
  const double longest = longest_bar(savings);
  for (std::size_t group = 0; longest > 0 && group < Savings::kGroups.size(); ++group) {
    const Bars bars = bars_of(savings, group);
    out += fmt::format("\nNode-hours saved, by {}\n", Savings::kGroups[group]);
    for (const Savings::Line& line : bars.lines) {
      const std::string text = saved_text(line.saved);
      const std::size_t label = std::min<std::size_t>(18, width / 4);
      const std::size_t bar = width - label - text.size() - 4;
      out += fmt::format("  {} {} {}\n", fit(line.key, label, true),
                         terminal_bar(line.saved, longest, std::max<std::size_t>(bar, 8), characters), text);
    }
    if (bars.further > 0) out += fmt::format("  and {} more\n", bars.further);
  }
  const std::string unknown = unknown_sentence(savings);
  return unknown.empty() ? out : out + '\n' + wrap(unknown, width, 0);
}

std::string savings_html(const Savings& savings, const Selection& selection, std::string_view version) {
  std::string out =
      "<header><h1>Node-hours that could be saved</h1></header>\n<section class=\"advice\" aria-labelledby=\"sum\"><h2 "
      "id=\"sum\">In all</h2><p>" +
      html::escaped(savings_sentence(savings, selection)) + "</p>";
  if (const std::string unknown = unknown_sentence(savings); !unknown.empty())
    out += "<p>" + html::escaped(unknown) + "</p>";
  out += "</section>\n";
  const double longest = longest_bar(savings);
  for (std::size_t group = 0; group < Savings::kGroups.size(); ++group) {
    const std::string_view name = Savings::kGroups[group];
    const Bars bars = bars_of(savings, group);
    out += fmt::format("<section aria-labelledby=\"{0}\"><h2 id=\"{0}\">By {0}</h2>", name);
    if (bars.lines.empty()) {
      out += "<p class=\"missing\">Nothing is advised that saves node-hours.</p>";
    } else {
      out += fmt::format(
          "<figure><figcaption>Bars are what would have been saved, lines the interval.{}</figcaption>{}{}</figure>",
          bars.further > 0 ? fmt::format(" {} more are in the table.", bars.further) : std::string(),
          savings_svg(bars.lines, longest, 330, "phone"), savings_svg(bars.lines, longest, 960, "desk"));
    }
    out += savings_table(name, savings.lines(group)) + "</section>\n";
  }
  return html::page("lbf: node-hours that could be saved", out, "lbf-report " + std::string(version),
                    "Predictions are replays of the recorded messages. Runs count whose predictions are trusted; the "
                    "interval is as if all of them were off to the same side.");
}

}  // namespace lbf::report
