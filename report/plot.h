// lbf-report --plot: predicted time over a count, drawn with characters: of nodes, one mark per network, or of ranks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/curves.h"
#include "report/step.h"

namespace lbf::report {

struct PlotStyle {
  std::size_t width = 80;   // columns; below 40 it draws 40
  std::size_t height = 16;  // lines between the axes
  bool unicode = true;      // else ASCII only
  bool color = false;
};

// The title, the plot and its legend. Of several placements on a node count and network the fastest is drawn; its
// interval (low_s, high_s) where there is one. Without predictions: one line that says so.
std::string render_plot(const Step& step, const PlotStyle& style);

// The chart alone, with its axes: each count's time with its interval, what was measured, a * behind the knee.
// REQUIRES: a point.
std::string draw_chart(const TimeChart& chart, const PlotStyle& style);
// What stands for a curve, for measured times and for an interval in it, in the curve's color.
std::string chart_mark(std::size_t curve, const PlotStyle& style);
std::string_view measured_mark(const PlotStyle& style);
std::string_view interval_mark(const PlotStyle& style);

}  // namespace lbf::report
