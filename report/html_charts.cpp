// The curves of predicted time over a count, and time against node-hours with its Pareto front.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/times.h"
#include "report/advice.h"
#include "report/curves.h"
#include "report/html_parts.h"

namespace lbf::report::html {
namespace {

constexpr std::size_t kNetworks = 8;

// A mark of the network's own shape around (x, y).
std::string mark(std::size_t network, double x, double y, double r) {
  const std::string fill = fmt::format("fill=\"var(--n{})\"", network % kNetworks);
  switch (network % 4) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}/>", x, y, r, fill);
    case 1:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}h-{}z\" {}/>", x, y - 1.1 * r, 1.1 * r, 2 * r, 2.2 * r, fill);
    case 2:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" {}/>", x - 0.9 * r, y - 0.9 * r,
                         1.8 * r, 1.8 * r, fill);
    default:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}l-{} {}l-{} -{}z\" {}/>", x, y - 1.3 * r, 1.3 * r, 1.3 * r,
                         1.3 * r, 1.3 * r, 1.3 * r, 1.3 * r, fill);
  }
}

std::string time_text(const std::string& what, const advisor::Saying& saying) {
  std::string out = what + ": " + saying.in_words();
  if (saying.is_number()) out += " (" + format_duration(saying.low_s) + " to " + format_duration(saying.high_s) + ")";
  return out;
}

std::string target_text(const TargetPrediction& target, const advisor::Saying& saying) {
  return time_text(describe(target, true), saying);
}

std::string network_legend(const std::vector<Curve>& curves) {
  std::string out = "<ul class=\"legend\">";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    out += "<li><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\">" + mark(i, 8, 8, 5) + "</svg>" +
           escaped(curves[i].name) + (curves[i].ran ? " (ran)" : "") + "</li>";
  }
  return out + "</ul>";
}

struct Axes {
  double width, height, left, right, top, bottom;
  std::vector<double> x_ticks, y_ticks;
  double x(double value) const {
    return left + (value - x_ticks.front()) / (x_ticks.back() - x_ticks.front()) * (width - left - right);
  }
  double y(double value) const {
    return height - bottom - (value - y_ticks.front()) / (y_ticks.back() - y_ticks.front()) * (height - top - bottom);
  }
};

std::string y_grid(const Axes& axes) {
  std::string out;
  for (const double tick : axes.y_ticks) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>",
        axes.left, axes.width - axes.right, axes.y(tick), axes.left - 6, axes.y(tick) + 4, format_duration(tick, 3));
  }
  return out;
}

std::string svg(const Axes& axes, std::string_view css_class, std::string_view label, const std::string& body) {
  return fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>", css_class,
                     axes.width, axes.height, escaped(label), body);
}

// From the lower to the upper end of the interval at x. Empty: there is none.
std::string bar(const Axes& axes, double x, const advisor::Saying& saying, std::size_t network) {
  if (!saying.has_interval()) return {};
  return fmt::format(
      "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {1:.1f}h8M{3:.1f} {2:.1f}h8\" stroke=\"var(--n{4})\" "
      "stroke-width=\"1.5\"/>",
      x, axes.y(saying.low_s), axes.y(saying.high_s), x - 4, network % kNetworks);
}

// A range has no place for a mark.
std::string mark_of(const advisor::Saying& saying, std::size_t network, double x, double y) {
  return saying.form == advisor::Saying::Form::kRange ? std::string() : mark(network, x, y, 5);
}

std::string ring(double x, double y) {
  return fmt::format("<circle class=\"ring\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\"/>", x, y);
}

std::string chart_svg(const TimeChart& chart, std::string_view label, double width, double height,
                      std::string_view css_class) {
  constexpr double kAxisHeight = 34;
  double high = 0;
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) high = std::max(high, point.highest_s());
  }
  for (const auto& [count, seconds] : chart.measured) high = std::max(high, seconds);
  const std::vector<std::uint32_t> counts = chart.counts();
  const double bottom = 6 + kAxisHeight * static_cast<double>(chart.axes.size());
  const double top = chart.knee ? 24 : 10;
  Axes axes{
      width, height, 58, 12, top, bottom, {-0.5, static_cast<double>(counts.size()) - 0.5}, axis_ticks(0, high, 5)};
  const auto position = [&](std::uint32_t count) {
    return static_cast<double>(std::lower_bound(counts.begin(), counts.end(), count) - counts.begin());
  };
  // Side by side: several curves have bars on one count.
  const double apart = std::min(10.0, 0.5 * (axes.x(0.5) - axes.x(-0.5)) / static_cast<double>(chart.curves.size()));
  const auto x_of = [&](std::size_t curve, std::uint32_t count) {
    return axes.x(position(count)) +
           apart * (static_cast<double>(curve) - static_cast<double>(chart.curves.size() - 1) / 2);
  };
  std::string body = y_grid(axes);
  double y_of_axis = height - bottom;
  for (const ChartAxis& axis : chart.axes) {
    double free_from = -1e9;
    for (const std::uint32_t count : counts) {
      const double x = axes.x(position(count));
      const std::string text = axis.text(count);
      if (x < free_from) continue;
      free_from = x + std::max(26.0, 8.0 * static_cast<double>(text.size()));
      body +=
          fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x, y_of_axis + 18, escaped(text));
    }
    body += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", (axes.left + width) / 2,
                        y_of_axis + 36, escaped(axis.name));
    y_of_axis += kAxisHeight;
  }
  if (chart.knee) {
    body += fmt::format(
        "<path class=\"front\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"strong\" x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">knee</text>",
        axes.x(position(*chart.knee)), top, height - bottom, top - 6);
  }
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    std::string points;
    for (const CurvePoint& point : chart.curves[i].points) {
      points += fmt::format("{:.1f},{:.1f} ", x_of(i, point.count), axes.y(point.saying.mark_s()));
    }
    body += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"var(--n{})\" stroke-width=\"2\"{}/>", points,
                        i % kNetworks,
                        chart.curves[i].ran ? "" : fmt::format(" stroke-dasharray=\"{} 3\"", 3 + 3 * (i % 3)));
  }
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    for (const CurvePoint& point : chart.curves[i].points) {
      const double x = x_of(i, point.count);
      const double y = axes.y(point.saying.mark_s());
      const std::string text =
          point.target != nullptr ? target_text(*point.target, point.saying)
                                  : time_text(fmt::format("{} {}", point.count, chart.axes.front().name), point.saying);
      body += "<g><title>" + escaped(text) + "</title>" + bar(axes, x, point.saying, i) +
              fmt::format("<circle class=\"hit\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"12\"/>", x, y) +
              mark_of(point.saying, i, x, y) + "</g>";
    }
  }
  for (const auto& [count, seconds] : chart.measured) {
    body += "<g><title>measured: " + escaped(format_duration(seconds)) + "</title>" +
            ring(x_of(0, count), axes.y(seconds)) + "</g>";
  }
  return svg(axes, css_class, label, body);
}

std::string pareto_svg(const std::vector<TargetCost>& costs, const std::vector<Curve>& curves,
                       const TargetPrediction* chosen, double width, double height, std::string_view css_class) {
  double time = 0;
  double hours = 0;
  for (const TargetCost& cost : costs) {
    time = std::max(time, cost.saying.high_s);
    hours = std::max(hours, cost.node_hours);
  }
  Axes axes{width, height, 58, 16, 10, 40, axis_ticks(0, hours, width < 500 ? 3 : 6), axis_ticks(0, time, 5)};
  std::string body = y_grid(axes);
  for (const double tick : axes.x_ticks) {
    body += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>", axes.x(tick), height - 22,
                        tick);
  }
  body += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">node-hours</text>", (axes.left + width) / 2,
                      height - 4);
  std::string front;
  for (const TargetCost& cost : costs) {
    if (cost.on_front) front += fmt::format("{:.1f},{:.1f} ", axes.x(cost.node_hours), axes.y(cost.time_s));
  }
  body += "<polyline class=\"front\" points=\"" + front + "\"/>";
  for (const TargetCost& cost : costs) {
    const auto found = std::find_if(curves.begin(), curves.end(),
                                    [&](const Curve& curve) { return curve.name == cost.target->network; });
    const auto network = static_cast<std::size_t>(found - curves.begin());
    const double x = axes.x(cost.node_hours);
    const double y = axes.y(cost.time_s);
    body += fmt::format("<g{}><title>{}{}{}{}</title>", cost.on_front ? "" : " opacity=\"0.4\"",
                        escaped(target_text(*cost.target, cost.saying)),
                        cost.saying.is_number() ? fmt::format(", {:.4g} node-hours", cost.node_hours) : "",
                        cost.on_front ? ", on the front" : "", cost.target->is_self() ? ", the one that ran" : "");
    body += bar(axes, x, cost.saying, network) +
            fmt::format("<circle class=\"hit\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"12\"/>", x, y) +
            mark_of(cost.saying, network, x, y) + "</g>";
    if (cost.target->is_self() || cost.target == chosen) {
      // One above, the other below: they may be neighbours.
      const bool ran = cost.target->is_self();
      const double at = std::clamp(x, axes.left + 30, width - 30);
      body +=
          ring(x, y) + fmt::format("<text class=\"strong\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
                                   at, ran ? y - 14 : y + 24, ran ? "ran" : "compared");
    }
  }
  return svg(
      axes, css_class,
      "Predicted time against node-hours of every target, with the Pareto front; the table above has the numbers",
      body);
}

}  // namespace

std::string chart_figure(const TimeChart& chart, std::string_view caption, std::string_view label) {
  return fmt::format("<figure><figcaption>{}</figcaption>", escaped(caption)) +
         chart_svg(chart, label, 330, 260, "phone") + chart_svg(chart, label, 960, 340, "desk");
}

std::string curves_figure(const Step& step) {
  const TimeChart chart = chart_of(step);
  return chart_figure(
             chart,
             "The fastest placement on each number of nodes. The ring is what was measured. Bars say how far "
             "each time may be off; one without a mark is a range, no number. A mark without a bar is a bound: "
             "no network is described.",
             "Predicted time over nodes, one line for each network; the table below has the numbers") +
         network_legend(chart.curves) + "</figure>";
}

std::string pareto_figure(const Step& step, const TargetPrediction* chosen) {
  const std::vector<Curve> curves = curves_of(step);
  const std::vector<TargetCost> costs = costs_of(step);
  const auto on_front = std::count_if(costs.begin(), costs.end(), [](const TargetCost& cost) { return cost.on_front; });
  std::string list;
  for (const TargetCost& cost : costs) {
    if (!cost.on_front) continue;
    list += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>", escaped(describe(*cost.target, true)),
                        cost.saying.in_words(), cost.saying.is_number() ? fmt::format("{:.4g}", cost.node_hours) : "-");
  }
  return fmt::format(
             "<figure><figcaption>On the dashed front are the {} targets than which none is both faster and cheaper; "
             "the others are pale. Bars say how far each time may be off. Bounds are left out.</figcaption>",
             on_front) +
         pareto_svg(costs, curves, chosen, 330, 260, "phone") + pareto_svg(costs, curves, chosen, 960, 340, "desk") +
         network_legend(curves) +
         "<details><summary>The front as numbers</summary><div class=\"scroll\"><table><thead><tr><th "
         "scope=\"col\">Target</th><th scope=\"col\">Time</th><th scope=\"col\">Node-hours</th></tr></thead><tbody>" +
         list + "</tbody></table></div></details></figure>";
}

}  // namespace lbf::report::html
