#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/network_name.h"
#include "base/times.h"
#include "report/advice.h"
#include "report/terminal_colors.h"
#include "report/text.h"

namespace lbf::report {
namespace {

constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kNetworks = 8;  // with a mark and a color of their own; more begin again
constexpr std::array<std::string_view, kNetworks> kUnicodeMarks{"●", "▲", "■", "◆", "○", "△", "□", "◇"};
constexpr std::array<std::string_view, kNetworks> kAsciiMarks{"o", "^", "#", "*", "+", "x", "@", "%"};
constexpr std::array<std::string_view, kNetworks> kColors{"\x1b[34m", "\x1b[33m", "\x1b[32m", "\x1b[35m",
                                                          "\x1b[36m", "\x1b[31m", "\x1b[94m", "\x1b[93m"};

struct Cell {
  std::string_view text = " ";
  int curve = -1;  // whose color
};

class Canvas {
 public:
  Canvas(std::size_t width, std::size_t height) : width_(width), cells_(width * height) {}
  // What is there stays: the interval of one curve does not hide another one's mark.
  void put(std::size_t x, std::size_t line, std::string_view text, int curve, bool over) {
    if (x >= width_ || line >= cells_.size() / width_) return;
    Cell& cell = cells_[line * width_ + x];
    if (over || cell.text == " ") cell = {text, curve};
  }
  std::string line(std::size_t line, bool color) const {
    std::string out;
    for (std::size_t x = 0; x < width_; ++x) {
      const Cell& cell = cells_[line * width_ + x];
      const bool colored = color && cell.curve >= 0;
      if (colored) out += kColors[static_cast<std::size_t>(cell.curve) % kNetworks];
      out += cell.text;
      if (colored) out += kPlain;
    }
    return out;
  }

 private:
  std::size_t width_;
  std::vector<Cell> cells_;
};

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// The words of AXIS below the counts, as many as have room, and what they are.
std::string axis_lines(const ChartAxis& axis, const TimeChart& chart, std::size_t left, std::size_t width) {
  const std::vector<std::uint32_t> counts = chart.counts();
  const double slot = static_cast<double>(width) / static_cast<double>(counts.size());
  std::string line(width, ' ');
  std::size_t free_from = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool is_knee = &axis == &chart.axes.front() && chart.knee == counts[i];
    const std::string text = axis.text(counts[i]) + (is_knee ? "*" : "");
    const auto center = static_cast<std::size_t>(slot * (static_cast<double>(i) + 0.5));
    const std::size_t at = std::min(center - std::min(center, text.size() / 2), width - text.size());
    if (at < free_from) continue;
    line.replace(at, text.size(), text);
    free_from = at + text.size() + 1;
  }
  const std::string margin(left, ' ');
  return without_trailing_blanks(margin + line) + '\n' + margin + axis.name + '\n';
}

}  // namespace

std::string chart_mark(std::size_t curve, const PlotStyle& style) {
  const std::string_view shape = (style.unicode ? kUnicodeMarks : kAsciiMarks)[curve % kNetworks];
  if (!style.color) return std::string(shape);
  return std::string(kColors[curve % kNetworks]) + std::string(shape) + std::string(kPlain);
}

std::string_view measured_mark(const PlotStyle& style) {
  return style.unicode ? "×" : "X";
}

std::string_view interval_mark(const PlotStyle& style) {
  return style.unicode ? "│" : "|";
}

std::string draw_chart(const TimeChart& chart, const PlotStyle& style) {
  const std::size_t width = std::max(style.width, kNarrowest);
  double low = kNeverS;
  double high = 0;
  const auto take = [&](Seconds lower_s, Seconds upper_s) {
    low = std::min(low, lower_s);
    high = std::max(high, upper_s);
  };
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) take(point.saying.low_s, point.highest_s());
  }
  for (const auto& [count, seconds] : chart.measured) take(seconds, seconds);
  // From zero, unless all the values are close together and far from it.
  if (low < 0.7 * high) low = 0;
  const std::vector<double> ticks = axis_ticks(low, high, 5);
  low = ticks.front();
  high = ticks.back();

  std::size_t label_width = 0;
  std::vector<std::string> labels;
  for (const double tick : ticks) {
    labels.push_back(format_duration(tick, 3));
    label_width = std::max(label_width, labels.back().size());
  }
  const std::size_t plot_width = width - label_width - 2;
  const std::size_t height = std::max<std::size_t>(style.height, 5);
  const auto line_of = [&](double value) {
    return static_cast<std::size_t>(std::lround((high - value) / (high - low) * static_cast<double>(height - 1)));
  };
  const std::vector<std::uint32_t> counts = chart.counts();
  const double slot = static_cast<double>(plot_width) / static_cast<double>(counts.size());
  // The curves side by side around their count, so that equal times hide nothing.
  const std::size_t marks = chart.curves.size() + (chart.measured.empty() ? 0 : 1);
  const double spread = std::min(2.0, slot / static_cast<double>(marks + 1));
  const auto column_of = [&](std::uint32_t count, std::size_t mark) {
    const auto index = std::lower_bound(counts.begin(), counts.end(), count) - counts.begin();
    const double center = slot * (static_cast<double>(index) + 0.5);
    const double shift = spread * (static_cast<double>(mark) - static_cast<double>(marks - 1) / 2);
    return static_cast<std::size_t>(std::clamp(std::lround(center + shift), 0L, static_cast<long>(plot_width) - 1));
  };

  Canvas canvas(plot_width, height);
  const auto& shapes = style.unicode ? kUnicodeMarks : kAsciiMarks;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    for (const CurvePoint& point : chart.curves[i].points) {
      const std::size_t x = column_of(point.count, i);
      const int curve = static_cast<int>(i);
      for (std::size_t line = line_of(point.highest_s()); line <= line_of(point.saying.low_s); ++line)
        canvas.put(x, line, interval_mark(style), curve, false);
      // A range has no place for a mark.
      if (point.saying.form != advisor::Saying::Form::kRange)
        canvas.put(x, line_of(point.saying.mark_s()), shapes[i % kNetworks], curve, true);
    }
  }
  for (const auto& [count, seconds] : chart.measured)
    canvas.put(column_of(count, chart.curves.size()), line_of(seconds), measured_mark(style), -1, true);

  std::string out;
  for (std::size_t line = 0; line < height; ++line) {
    std::string label;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (line_of(ticks[i]) == line) label = labels[i];
    }
    const std::string_view axis = style.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    out += without_trailing_blanks(fit(label, label_width, false) + ' ' + std::string(axis) +
                                   canvas.line(line, style.color)) +
           '\n';
  }
  out += std::string(label_width + 1, ' ') + (style.unicode ? "└" : "+");
  for (std::size_t x = 0; x < plot_width; ++x) out += style.unicode ? "─" : "-";
  out += '\n';
  for (const ChartAxis& axis : chart.axes) out += axis_lines(axis, chart, label_width + 2, plot_width);
  return out;
}

std::string render_plot(const Step& step, const PlotStyle& style) {
  const TimeChart chart = chart_of(step);
  std::string title = "Job " + job_id(step);
  if (const std::string program = command_line(step); !program.empty()) title += "  " + program;
  const std::size_t width = std::max(style.width, kNarrowest);
  if (chart.curves.empty()) {
    if (step.seen().is_too_little() || !step.predictions.empty())
      return shorten(title, width) + '\n' + closing_note(step, width);
    return shorten(title, width) + '\n' +
           wrap(step.running() ? "There is no prediction to draw yet; ask again in a moment."
                               : "There is no prediction to draw.",
                width, 0);
  }
  std::string out = shorten(title, width) + '\n';
  out += step.running() ? "Predicted time so far over nodes\n\n" : "Predicted time over nodes\n\n";
  out += draw_chart(chart, style) + '\n';
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    const CurvePoint& best =
        *std::min_element(curve.points.begin(), curve.points.end(), [](const CurvePoint& a, const CurvePoint& b) {
          return std::make_pair(!a.saying.has_interval(), *a.target->predicted_s) <
                 std::make_pair(!b.saying.has_interval(), *b.target->predicted_s);
        });
    out += "  " + chart_mark(i, style) + ' ' +
           shorten(fmt::format("{}{}: fastest on {}, {}", curve.name, curve.ran ? " (the network that ran)" : "",
                               describe(*best.target, false), best.saying.in_words()),
                   width - 4) +
           '\n';
  }
  for (const auto& [nodes, seconds] : chart.measured)
    out += fmt::format("  {} measured, {}\n", measured_mark(style), format_duration(seconds));
  out += fmt::format("  {} how far a time may be off\n", interval_mark(style));
  for (const Curve& curve : chart.curves) {
    if (!is_bound(curve.name, curve.points.back().count)) continue;
    out += wrap(fmt::format("{}: on more than one node the least time, because the network is not described; {}",
                            curve.name, advisor::kMeasureNetwork),
                width, 2);
  }
  return out;
}

}  // namespace lbf::report
